package board

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster/board/approval"
	"muster/budget"
)

// Questions to people stand in a bucket of their own, made with the first of them, so that an answer survives whoever asked. A key is
// <run>.<job>.<n>. An answer is written over its question by compare-and-set, so there is one; it is for one call with its exact arguments.

const (
	kindAsked    = "approval_asked"    // approval.Approval, open
	kindAnswered = "approval_answered" // approval.Approval, answered: what its holder does next follows from it

	alwaysToken  = "always" // stands for the job in the keys of rules
	answerChars  = 500      // of a reason
	alwaysRules  = 20       // with one answer
	alwaysBytes  = 2_000    // of a rule
	byChars      = 100
	nobodyInTime = "nobody answered in time"
)

func questionKey(a approval.Approval) string { return fmt.Sprintf("%s.%s.%d", a.Run, a.Job, a.N) }

// Ask puts a question to people, and waits for the answer without a slot. The same call of a job is asked about once, however many holders
// the job has: what was answered meanwhile is taken. Nobody answers in time: denied. ErrNobody where the job may ask nobody.
func (l *Lease) Ask(ctx context.Context, q approval.Question) (approval.Approval, error) {
	if l.job.AskFor <= 0 {
		return approval.Approval{}, approval.ErrNobody
	}
	kv, err := l.b.lazily(ctx, &l.b.questions, l.b.names.approvals, true)
	if err != nil {
		return approval.Approval{}, err
	}
	a, err := l.question(ctx, kv, q)
	if err != nil {
		return approval.Approval{}, err
	}
	if a.Open() {
		if a, err = l.awaitAnswer(ctx, kv, a); err != nil {
			return approval.Approval{}, err
		}
	}
	_, err = l.append(context.WithoutCancel(ctx), kindAnswered, a)
	return a, err
}

// question finds the question that an earlier holder has asked, or asks it.
func (l *Lease) question(ctx context.Context, kv jetstream.KeyValue, q approval.Question) (approval.Approval, error) {
	l.askMu.Lock()
	defer l.askMu.Unlock()
	hash := q.Hash()
	for {
		all, err := l.b.approvals(ctx, kv, l.job.Run+"."+l.job.ID+".*")
		if err != nil {
			return approval.Approval{}, err
		}
		n := 0
		for _, a := range all {
			if n = max(n, a.N); a.Call == q.Call && a.Hash == hash {
				return a, nil
			}
		}
		a := approval.Approval{
			Run: l.job.Run, Job: l.job.ID, N: n + 1, Title: l.Entry().Title, Call: q.Call, Tool: q.Tool, Args: l.secrets.JSON(q.Args), Hash: hash,
			Why: l.secrets.String(q.Why), Worker: l.s.id, Asked: now(), Deadline: now().Add(l.job.AskFor),
		}
		data, err := encode(a)
		if err != nil {
			return approval.Approval{}, fmt.Errorf("ask about call %s of job %s: %w", q.Call, l.job.ID, err)
		}
		if len(data) > l.b.inline {
			return approval.Approval{}, fmt.Errorf("ask about call %s: its arguments have %d bytes, and at most %d can be shown to a person: take smaller steps: %w", q.Call, len(q.Args), l.b.inline, ErrLimit)
		}
		if _, err := l.append(ctx, kindAsked, a); err != nil { // in the log first: who sees the question finds it there
			return approval.Approval{}, err
		}
		ack, err := l.b.publish(ctx, l.b.names.question(questionKey(a)), data, jetstream.WithExpectLastSequencePerSubject(0))
		if err == nil {
			a.Revision = ack.Sequence
			return a, nil
		}
		if !refused(err) {
			return approval.Approval{}, fmt.Errorf("ask about call %s of job %s: %w", q.Call, l.job.ID, err)
		}
	}
}

// awaitAnswer gives the slot back until a question is answered.
func (l *Lease) awaitAnswer(ctx context.Context, kv jetstream.KeyValue, a approval.Approval) (approval.Approval, error) {
	if err := l.pause(ctx); err != nil {
		return a, err
	}
	if err := l.write(ctx, func(e *Entry) { e.Waits = fmt.Sprintf("approval %d: %s", a.N, a.Tool) }); err != nil {
		return a, errors.Join(err, l.unwait())
	}
	answered, err := l.b.answered(ctx, kv, a)
	if err != nil {
		return a, errors.Join(err, l.unwait())
	}
	if err := l.resume(ctx); err != nil {
		return a, err
	}
	return answered, l.write(ctx, func(e *Entry) { e.Waits = "" })
}

// answered waits for the answer, and denies when its time is over.
func (b *Board) answered(ctx context.Context, kv jetstream.KeyValue, a approval.Approval) (approval.Approval, error) {
	late, cancel := context.WithDeadlineCause(ctx, a.Deadline, errEnough)
	defer cancel()
	for {
		err := b.watch(late, kv, []string{questionKey(a)}, func() error { return nil }, func(kv jetstream.KeyValueEntry) (err error) {
			if a, err = decodeApproval(kv); err == nil && !a.Open() {
				err = errEnough
			}
			return err
		})
		switch {
		case !a.Open():
			return a, nil
		case ctx.Err() != nil:
			return a, context.Cause(ctx)
		case late.Err() == nil:
			return a, cmp.Or(err, fmt.Errorf("question %d of job %s: its watch ended", a.N, a.Job))
		}
		denied, err := b.conclude(ctx, a, approval.Answer{By: "muster", Reason: nobodyInTime})
		if !errors.Is(err, approval.ErrAnswered) {
			return denied, err
		}
		a = denied
	}
}

func decodeApproval(kv jetstream.KeyValueEntry) (approval.Approval, error) {
	var a approval.Approval
	if err := json.Unmarshal(kv.Value(), &a); err != nil {
		return a, fmt.Errorf("question %s: %w", kv.Key(), err)
	}
	a.Revision = kv.Revision()
	return a, nil
}

// conclude writes an answer over its question. ErrAnswered with the answer that stands.
func (b *Board) conclude(ctx context.Context, a approval.Approval, ans approval.Answer) (approval.Approval, error) {
	next := a
	next.Verdict, next.By, next.Answered, next.Always = approval.Denied, budget.Preview(ans.By, byChars), now(), ans.Always
	if ans.Approve {
		next.Verdict = approval.Approved
	}
	next.Reason = hushed(b.secrets, ans.Reason, answerChars)
	data, err := encode(next)
	if err != nil {
		return a, fmt.Errorf("answer question %d of job %s: %w", a.N, a.Job, err)
	}
	ack, err := b.publish(ctx, b.names.question(questionKey(a)), data, jetstream.WithExpectLastSequencePerSubject(a.Revision))
	if err == nil {
		next.Revision = ack.Sequence
		return next, nil
	}
	if !refused(err) {
		return a, fmt.Errorf("answer question %d of job %s: %w", a.N, a.Job, err)
	}
	r, err := b.readLeader(ctx, "KV_"+b.names.approvals, query{Last: b.names.question(questionKey(a))})
	if err != nil {
		return a, fmt.Errorf("answer question %d of job %s: %w", a.N, a.Job, err)
	}
	var stands approval.Approval
	if err := json.Unmarshal(r.data, &stands); err != nil {
		return a, fmt.Errorf("question %s: %w", questionKey(a), err)
	}
	if stands.Revision = r.seq; stands.Answered.Equal(next.Answered) && stands.By == next.By && stands.Verdict == next.Verdict {
		return stands, nil // only the acknowledgement was lost
	}
	return stands, fmt.Errorf("question %d of job %s was %s by %s: %w", a.N, a.Job, stands.Verdict, stands.By, approval.ErrAnswered)
}

// approvals reads the questions of a key, by age.
func (b *Board) approvals(ctx context.Context, kv jetstream.KeyValue, key string) ([]approval.Approval, error) {
	var all []approval.Approval
	err := b.watch(ctx, kv, []string{key}, stopAtSync, func(kv jetstream.KeyValueEntry) error {
		if strings.Contains(kv.Key(), "."+alwaysToken+".") {
			return nil
		}
		a, err := decodeApproval(kv)
		all = append(all, a)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list questions: %w", err)
	}
	slices.SortFunc(all, func(x, y approval.Approval) int {
		return cmp.Or(x.Asked.Compare(y.Asked), strings.Compare(x.Job, y.Job), cmp.Compare(x.N, y.N))
	})
	return all, nil
}

// Approvals lists the questions of a run, or of a job, by age; of neither, all. Those of jobs that have ended are no longer open: nobody waits for
// the answer.
func (b *Board) Approvals(ctx context.Context, run, job string) ([]approval.Approval, error) {
	kv, err := b.lazily(ctx, &b.questions, b.names.approvals, false)
	if err != nil || kv == nil {
		return nil, err
	}
	return b.approvals(ctx, kv, cmp.Or(run, "*")+"."+cmp.Or(job, "*")+".*")
}

// Waiting are those of Approvals that somebody waits for: open, in time, and of a job that lives.
func (b *Board) Waiting(ctx context.Context, all []approval.Approval) ([]approval.Approval, error) {
	var open []approval.Approval
	states := map[string]bool{}
	for _, a := range all {
		if !a.Open() || time.Now().After(a.Deadline) {
			continue
		}
		if _, known := states[a.Job]; !known {
			e, err := b.entry(ctx, "*.*."+a.Job)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return nil, err
			}
			states[a.Job] = err == nil && !e.State.Terminal() && e.Killing == ""
		}
		if states[a.Job] {
			open = append(open, a)
		}
	}
	return open, nil
}

// Find returns a question of a job that waits for an answer: of a number, or with 0 the only one. approval.ErrNoQuestion, ErrAnswered.
func (b *Board) Find(ctx context.Context, id string, n int) (approval.Approval, error) {
	e, err := b.Get(ctx, id)
	if err != nil {
		return approval.Approval{}, err
	}
	all, err := b.Approvals(ctx, e.Run, e.ID)
	if err != nil {
		return approval.Approval{}, err
	}
	for _, a := range all {
		switch {
		case n != a.N:
		case !a.Open():
			return a, fmt.Errorf("question %d of job %s was %s by %s: %w", n, e.ID, a.Verdict, a.By, approval.ErrAnswered)
		case e.State.Terminal():
			return a, fmt.Errorf("job %s is %s and asks nothing any more: %w", e.ID, e.State, approval.ErrNoQuestion)
		}
	}
	open, err := b.Waiting(ctx, all)
	if err != nil {
		return approval.Approval{}, err
	}
	var numbers []string
	for _, a := range open {
		if n == a.N || n == 0 && len(open) == 1 {
			return a, nil
		}
		numbers = append(numbers, fmt.Sprint(a.N))
	}
	switch {
	case len(open) == 0:
		return approval.Approval{}, fmt.Errorf("job %s (%s) asks nothing now: %w", e.ID, e.State, approval.ErrNoQuestion)
	case n == 0:
		return approval.Approval{}, fmt.Errorf("job %s asks %d things: say which: %s: %w", e.ID, len(open), strings.Join(numbers, ", "), ErrAmbiguous)
	}
	return approval.Approval{}, fmt.Errorf("job %s has no question %d; it asks %s: %w", e.ID, n, strings.Join(numbers, ", "), approval.ErrNoQuestion)
}

// Answer answers a question as Find returned it. ErrAnswered where another was faster; nothing is answered twice.
func (b *Board) Answer(ctx context.Context, a approval.Approval, ans approval.Answer) (approval.Approval, error) {
	ans.By = cmp.Or(ans.By, "somebody")
	if len(ans.Always) > 0 && !ans.Approve {
		return a, errors.New("a rule for further calls goes with an approval only")
	}
	if len(ans.Always) > alwaysRules {
		return a, fmt.Errorf("%d rules for further calls, at most %d are allowed", len(ans.Always), alwaysRules)
	}
	for _, rule := range ans.Always {
		if len(rule) > alwaysBytes {
			return a, fmt.Errorf("rule %.60q has %d bytes, at most %d are allowed", rule, len(rule), alwaysBytes)
		}
		if shown := b.secrets.String(rule); shown != rule {
			return a, fmt.Errorf("the rule holds a secret: %s", shown)
		}
	}
	answered, err := b.conclude(ctx, a, ans)
	if err != nil {
		return answered, err
	}
	for _, rule := range ans.Always {
		data, err := encode(approval.Always{Rule: rule, By: answered.By, At: answered.Answered, Job: a.Job, N: a.N})
		if err != nil {
			return answered, err
		}
		sum := sha256.Sum256([]byte(rule))
		key := a.Run + "." + alwaysToken + "." + hex.EncodeToString(sum[:8])
		if _, err := b.publish(ctx, b.names.question(key), data); err != nil {
			return answered, fmt.Errorf("question %d of job %s is approved, but a rule for further calls was not stored: %w", a.N, a.Job, err)
		}
	}
	return answered, nil
}

// AlwaysOf lists the rules that people gave a run, by age.
func (b *Board) AlwaysOf(ctx context.Context, run string) ([]approval.Always, error) {
	kv, err := b.lazily(ctx, &b.questions, b.names.approvals, false)
	if err != nil || kv == nil {
		return nil, err
	}
	var all []approval.Always
	err = b.watch(ctx, kv, []string{run + "." + alwaysToken + ".*"}, stopAtSync, func(kv jetstream.KeyValueEntry) error {
		var a approval.Always
		if err := json.Unmarshal(kv.Value(), &a); err != nil {
			return fmt.Errorf("rule %s: %w", kv.Key(), err)
		}
		all = append(all, a)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rules of run %s: %w", run, err)
	}
	slices.SortFunc(all, func(x, y approval.Always) int { return x.At.Compare(y.At) })
	return all, nil
}
