package board

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster/budget"
)

const (
	defaultPool     = "default"
	defaultAttempts = 3
	maxAfter        = 12  // ids of After that an entry carries
	nameBytes       = 100 // of a pool, a profile, a name
	titleChars      = 200
	maxDepth        = 16

	bulkJobs    = 256  // that are written together
	bulkPending = 1024 // acknowledgements that may be outstanding
)

// pointer is a message of the queue: which job, and the how manieth pointer to it.
type pointer struct {
	Job    string `json:"job"`
	Run    string `json:"run"`
	Parent string `json:"parent,omitempty"`
	N      uint64 `json:"n"`
}

// Submit stores and queues a root job (no Parent). Submitting the same id again is success and repairs what is missing. Children go
// through Lease.Submit. All jobs are checked before anything is stored; After may name jobs of the same call.
func (b *Board) Submit(ctx context.Context, jobs ...Job) ([]Entry, error) {
	ready := make([]Job, len(jobs))
	for i, j := range jobs {
		if j.Parent != "" || len(j.Path) > 0 {
			return nil, fmt.Errorf("submit %s: it has a parent: children are submitted by their parent's holder", j.label())
		}
		j, err := j.complete()
		if err != nil {
			return nil, err
		}
		if err := b.hide(&j); err != nil {
			return nil, err
		}
		ready[i] = j
	}
	if err := b.checkAfter(ctx, ready); err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(ready))
	for chunk := range slices.Chunk(ready, bulkJobs) {
		es := make([]Entry, len(chunk))
		for i, j := range chunk {
			es[i] = b.newEntry(j)
		}
		es, err := b.store(ctx, chunk, es)
		if err != nil {
			return entries, err
		}
		entries = append(entries, es...)
	}
	return entries, nil
}

// label names a job in an error: what its submitter would know it by.
func (j Job) label() string {
	return fmt.Sprintf("job %q", cmp.Or(j.Name, budget.Preview(j.Title, 60), j.ID))
}

// complete fills the defaults and checks everything that needs no look at the board.
func (j Job) complete() (Job, error) {
	if j.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return j, fmt.Errorf("submit %s: make an id: %w", j.label(), err)
		}
		j.ID = id.String()
	}
	if !isID(j.ID) {
		return j, fmt.Errorf("submit %s: id %q is no UUID in its usual form", j.label(), j.ID)
	}
	j.Run = cmp.Or(j.Run, j.ID)
	if !isRun(j.Run) {
		return j, fmt.Errorf("submit %s: run %q: use up to 64 letters, digits, _ or -", j.label(), j.Run)
	}
	j.Pool, j.Priority = cmp.Or(j.Pool, defaultPool), cmp.Or(j.Priority, normalPriority)
	if !slices.Contains(priorities[:], j.Priority) {
		return j, fmt.Errorf("submit %s: priority %q: use one of %v", j.label(), j.Priority, priorities)
	}
	for what, s := range map[string]string{"pool": j.Pool, "profile": j.Profile, "name": j.Name} {
		if len(s) > nameBytes {
			return j, fmt.Errorf("submit %s: %s has %d bytes, at most %d are allowed", j.label(), what, len(s), nameBytes)
		}
	}
	if j.Attempts = cmp.Or(j.Attempts, defaultAttempts); j.Attempts < 0 {
		return j, fmt.Errorf("submit %s: attempts %d: use 1 or more", j.label(), j.Attempts)
	}
	if !utf8.ValidString(j.Prompt) {
		return j, fmt.Errorf("submit %s: its prompt is no UTF-8 text: convert it first", j.label())
	}
	if _, err := j.Caps.Caps(); err != nil {
		return j, fmt.Errorf("submit %s: caps: %w", j.label(), err)
	}
	if err := j.Sandbox.CheckJob(); err != nil {
		return j, fmt.Errorf("submit %s: sandbox: %w", j.label(), err)
	}
	if err := j.Rules.Check(); err != nil {
		return j, fmt.Errorf("submit %s: rules: %w", j.label(), err)
	}
	if j.AskFor < 0 {
		return j, fmt.Errorf("submit %s: questions wait for %s: use 0 or more", j.label(), j.AskFor)
	}
	if len(j.Path) > maxDepth {
		return j, fmt.Errorf("submit %s: %w: %d ancestors, at most %d are possible", j.label(), ErrLimit, len(j.Path), maxDepth)
	}
	if j.Created.IsZero() {
		j.Created = now()
	}
	return j, nil
}

// isRun reports whether a text can be the whole id of a run.
func isRun(text string) bool { return tokenForm().MatchString(text) && text != rootParent }

// checkAfter refuses what could never start: an unknown id, a job after itself, a circle within the call. Jobs that are known already
// cannot come after new ones, so there are no other circles.
func (b *Board) checkAfter(ctx context.Context, jobs []Job) error {
	batch := make(map[string]*Job, len(jobs))
	for i := range jobs {
		if _, twice := batch[jobs[i].ID]; twice {
			return fmt.Errorf("submit %s: id %s is given twice", jobs[i].label(), jobs[i].ID)
		}
		batch[jobs[i].ID] = &jobs[i]
	}
	known := map[string]bool{}
	for _, j := range jobs {
		for _, id := range j.After {
			if batch[id] != nil || known[id] {
				continue
			}
			if !isID(id) {
				return fmt.Errorf("submit %s: after %q: use the whole id of a job", j.label(), id)
			}
			if _, err := b.sibling(ctx, j, id); err != nil {
				return fmt.Errorf("submit %s: after %s: %w", j.label(), id, err)
			}
			known[id] = true
		}
	}
	return circle(jobs, batch)
}

// sibling finds the entry of id, most probably one with the same parent as j.
func (b *Board) sibling(ctx context.Context, j Job, id string) (Entry, error) {
	e, err := b.entry(ctx, entryKey(j.Run, j.Parent, id))
	if errors.Is(err, ErrNotFound) {
		return b.Get(ctx, id)
	}
	return e, err
}

func circle(jobs []Job, batch map[string]*Job) error {
	const open, closed = 1, 2
	seen := make(map[string]int, len(jobs))
	var visit func(j *Job) error
	visit = func(j *Job) error {
		seen[j.ID] = open
		for _, id := range j.After {
			next := batch[id]
			if next == nil || seen[id] == closed {
				continue
			}
			if seen[id] == open {
				return fmt.Errorf("submit %s: it comes after %s, which comes after it", j.label(), next.label())
			}
			if err := visit(next); err != nil {
				return err
			}
		}
		seen[j.ID] = closed
		return nil
	}
	for i := range jobs {
		if seen[jobs[i].ID] != 0 {
			continue
		}
		if err := visit(&jobs[i]); err != nil {
			return err
		}
	}
	return nil
}

// newEntry is the entry of a new job.
func (b *Board) newEntry(j Job) Entry {
	e := Entry{
		ID: j.ID, Run: j.Run, Parent: j.Parent, Again: j.Again, Path: j.Path, Name: j.Name, Title: budget.Preview(j.Title, titleChars), Profile: j.Profile,
		Pool: j.Pool, Priority: j.Priority, State: Queued, After: j.After, Deadline: j.Deadline,
		Created: j.Created, MaxTries: j.Attempts, Detach: j.Detach,
	}
	if len(j.After) > 0 {
		e.State = Blocked
	}
	if len(j.After) > maxAfter {
		e.After, e.AfterAll = j.After[:maxAfter], len(j.After)
	}
	return e.without(b.secretsOf(j))
}

// queue is the entry's way into the queue: its newest pointer gets a number that was never used.
func (e *Entry) queue() {
	e.State, e.Queued, e.Delay, e.Waits = Queued, now(), 0, ""
	e.Pointer++
}

// store writes log, entry and pointer of jobs, each kind together. What is there already stays and is returned.
func (b *Board) store(ctx context.Context, jobs []Job, entries []Entry) ([]Entry, error) {
	specs := make([]outgoing, len(jobs))
	for i, j := range jobs {
		data, err := b.encodeEvent(ctx, entries[i], kindSpec, 0, j, nil) // whole: see Shown
		if err != nil {
			return nil, fmt.Errorf("submit %s: %w", j.label(), err)
		}
		specs[i] = outgoing{b.names.event(j.Run, j.ID, kindSpec), data, []jetstream.PublishOpt{
			jetstream.WithMsgID(j.ID), jetstream.WithExpectLastSequenceForSubject(0, b.names.logOf(j.Run, j.ID)),
		}}
	}
	if _, err := b.publishAll(ctx, specs); err != nil {
		return nil, fmt.Errorf("submit: store specifications: %w", err)
	}
	writes := make([]outgoing, len(jobs))
	for i := range entries {
		e := &entries[i]
		if e.State == Queued {
			e.queue()
		}
		e.Updated = now()
		data, err := e.encode()
		if err != nil {
			return nil, fmt.Errorf("submit %s: %w", jobs[i].label(), err)
		}
		writes[i] = outgoing{b.names.entrySubject(e.key()), data, []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(0)}}
	}
	seqs, err := b.publishAll(ctx, writes)
	if err != nil {
		return nil, fmt.Errorf("submit: store entries: %w", err)
	}
	var points []outgoing
	for i := range entries {
		e := &entries[i]
		if e.Revision = seqs[i]; e.Revision == 0 {
			if err := b.again(ctx, e); err != nil {
				return nil, fmt.Errorf("submit %s: %w", jobs[i].label(), err)
			}
			continue
		}
		if e.State == Queued {
			points = append(points, b.pointing(*e))
		}
	}
	if _, err := b.publishAll(ctx, points); err != nil {
		return nil, fmt.Errorf("submit: queue: %w", err)
	}
	return entries, nil
}

// again makes the entry that exists of a job that is submitted once more, and points to it where no pointer does.
func (b *Board) again(ctx context.Context, e *Entry) error {
	old, err := b.entryLeader(ctx, e.key())
	if err != nil {
		return err
	}
	*e, err = b.repoint(ctx, old)
	return err
}

// repoint gives a queued entry a new pointer when the queue has none.
func (b *Board) repoint(ctx context.Context, e Entry) (Entry, error) {
	if e.State != Queued {
		return e, nil
	}
	r, err := b.readLeader(ctx, b.names.jobs, query{Last: b.names.pointer(e)})
	if err == nil {
		var p pointer
		if err = json.Unmarshal(r.data, &p); err != nil || p.N >= e.Pointer {
			return e, err
		} // an older one, which is dropped when it is delivered
	} else if !errors.Is(err, ErrNotFound) {
		return e, err
	}
	next := e
	next.queue()
	stored, err := b.swap(ctx, e, next)
	if errors.Is(err, errConflict) {
		return b.entryLeader(ctx, e.key()) // claimed or pointed to meanwhile
	}
	if err != nil {
		return e, err
	}
	return stored, b.point(ctx, stored)
}

// pointing is the message that points to a queued entry.
func (b *Board) pointing(e Entry) outgoing {
	data, _ := encode(pointer{Job: e.ID, Run: e.Run, Parent: e.Parent, N: e.Pointer}) // strings and a number: cannot fail
	return outgoing{b.names.pointer(e), data, []jetstream.PublishOpt{
		jetstream.WithMsgID(fmt.Sprintf("%s.%d.%d", e.ID, e.Epoch, e.Pointer)),
	}}
}

func (b *Board) point(ctx context.Context, e Entry) error {
	o := b.pointing(e)
	if _, err := b.publish(ctx, o.subject, o.data, o.opts...); err != nil {
		return fmt.Errorf("queue job %s: %w", e.ID, err)
	}
	return nil
}

// outgoing is a message to be stored.
type outgoing struct {
	subject string
	data    []byte
	opts    []jetstream.PublishOpt
}

// publishAll stores messages without waiting for each, and returns their sequences: 0 where the expected sequence was another.
func (b *Board) publishAll(ctx context.Context, out []outgoing) ([]uint64, error) {
	acks := make([]jetstream.PubAckFuture, len(out))
	for i, o := range out {
		m := &nats.Msg{Subject: o.subject, Data: o.data, Header: nats.Header{}}
		var err error
		acks[i], err = b.js.PublishMsgAsync(m, append(o.opts, jetstream.WithStallWait(requestTime))...)
		if err != nil && !transient(err) && !errors.Is(err, jetstream.ErrTooManyStalledMsgs) {
			return nil, err
		}
	}
	seqs := make([]uint64, len(out))
	for i, o := range out {
		ack, err := b.settle(ctx, acks[i], o)
		if refused(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		seqs[i] = ack.Sequence
	}
	return seqs, nil
}

// settle waits for an acknowledgement, and stores the message again where none came.
func (b *Board) settle(ctx context.Context, f jetstream.PubAckFuture, o outgoing) (*jetstream.PubAck, error) {
	if f != nil {
		timeout := time.NewTimer(requestTime)
		defer timeout.Stop()
		select {
		case ack := <-f.Ok():
			return ack, nil
		case err := <-f.Err():
			if !transient(err) && !errors.Is(err, jetstream.ErrAsyncPublishTimeout) {
				return nil, err
			}
		case <-timeout.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return b.publish(ctx, o.subject, o.data, o.opts...)
}
