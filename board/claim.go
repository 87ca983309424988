package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"muster/budget"
)

const (
	orphanDelay = 250 * time.Millisecond // until a pointer that is ahead of its entry is looked at again
	orphanTime  = time.Minute            // after which it is dropped

	firstWait, maxWait = time.Second, 15 * time.Second // until a pointer that a worker left to others is delivered again
)

// claim makes a lease of a pointer, or sees to the pointer and returns nil.
func (s *server) claim(m *nats.Msg) *Lease {
	var p pointer
	if err := json.Unmarshal(m.Data, &p); err != nil || !isID(p.Job) || lastToken(m.Subject) != p.Job {
		s.log.Error().Err(err).Str("subject", m.Subject).Msg("dropped a message of the queue that is no pointer")
		s.ack(m)
		return nil
	}
	ctx, written := s.concluding()
	defer written()
	l, err := s.tryClaim(ctx, m, p)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn().Err(err).Str("job", p.Job).Msg("claim")
		}
		s.nak(m, s.b.backoff(1))
	}
	return l
}

// putBack gives a pointer that was delivered to a worker that stops to another: by a new one, as handBack does.
func (s *server) putBack(m *nats.Msg) {
	ctx, written := s.concluding()
	defer written()
	var p pointer
	err := json.Unmarshal(m.Data, &p)
	var e Entry
	if err == nil {
		e, err = s.b.entryLeader(ctx, entryKey(p.Run, p.Parent, p.Job))
	}
	if err == nil && e.State == Queued && e.Pointer == p.N {
		next := e
		next.queue()
		if e, err = s.b.swap(ctx, e, next); err == nil {
			err = s.b.point(ctx, e)
		}
		if err == nil {
			s.ack(m)
			return
		}
	}
	s.nak(m, 0)
}

// tryClaim decides by the entry, and by the newest one when another changed it in between.
func (s *server) tryClaim(ctx context.Context, m *nats.Msg, p pointer) (*Lease, error) {
	key := entryKey(p.Run, p.Parent, p.Job)
	e, err := s.b.entry(ctx, key)
	for {
		if errors.Is(err, ErrNotFound) {
			s.orphan(m, p)
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case e.State.Terminal(), p.N < e.Pointer:
			s.ack(m)
			return nil, nil
		case p.N > e.Pointer, !e.State.may(Running): // this reader is behind the writer
			s.orphan(m, p)
			return nil, nil
		}
		reason, err := s.b.doomed(ctx, e)
		if err != nil {
			return nil, err
		}
		if reason != "" && !e.State.held() {
			if _, err := s.b.endUnheld(ctx, e, killedResult(reason), killProof{Reason: reason}); err != nil {
				return nil, err
			}
			s.ack(m)
			return nil, nil
		}
		l, err := s.take(ctx, m, e, reason)
		if !errors.Is(err, errConflict) {
			return l, err
		}
		before := e.Epoch
		if e, err = s.b.entryLeader(ctx, key); err == nil && e.Epoch != before {
			return nil, nil // another has claimed it: its delivery is the valid one
		}
	}
}

// orphan puts back a pointer whose entry is not there yet, and drops it when it does not come.
func (s *server) orphan(m *nats.Msg, p pointer) {
	id := fmt.Sprintf("%s.%d", p.Job, p.N)
	s.mu.Lock()
	since, seen := s.orphans[id]
	if !seen {
		since = time.Now()
		s.orphans[id] = since
	}
	over := time.Since(since) > orphanTime
	for o, t := range s.orphans { // also those that another worker saw to
		if time.Since(t) > 2*orphanTime || over && o == id {
			delete(s.orphans, o)
		}
	}
	s.mu.Unlock()
	if over {
		s.log.Warn().Str("job", p.Job).Uint64("pointer", p.N).Msg("dropped a pointer without an entry")
		s.ack(m)
		return
	}
	s.nak(m, orphanDelay)
}

// doomed says why a job may not start: it or an ancestor is killed, or its parent has ended and it was not detached.
func (b *Board) doomed(ctx context.Context, e Entry) (string, error) {
	if e.Killing != "" {
		return e.Killing, nil
	}
	child := e
	for i := len(e.Path) - 1; i >= 0; i-- {
		parent := ""
		if i > 0 {
			parent = e.Path[i-1]
		}
		a, err := b.entry(ctx, entryKey(e.Run, parent, e.Path[i]))
		switch {
		case errors.Is(err, ErrNotFound):
			return "", nil
		case err != nil:
			return "", err
		case a.Killing != "":
			return fmt.Sprintf("killed with its ancestor %s: %s", a.ID, a.Killing), nil
		case a.State.Terminal() && !child.Detach:
			return fmt.Sprintf("its parent %s ended %s", a.ID, a.State), nil
		}
		child = a
	}
	return "", nil
}

// take claims: state running, epoch + 1, this worker. A holder that was there before fell silent, which is a failed attempt. What needs
// no handler is then concluded at once: a result that is in the log already, a kill, attempts that are used up.
func (s *server) take(ctx context.Context, m *nats.Msg, e Entry, doom string) (*Lease, error) {
	job, seq, err := s.b.spec(ctx, e)
	missing := errors.Is(err, ErrNotFound)
	if err != nil && !missing {
		return nil, err
	}
	var earlier *Event
	if e.Epoch > 0 {
		last, err := s.b.lastEvent(ctx, e)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		seq = last.seq
		if err == nil && lastToken(last.subject) == kindResult {
			ev, err := s.b.decodeEvent(ctx, last)
			if err != nil {
				return nil, err
			}
			if ev.Epoch == e.Epoch {
				earlier = &ev
			}
		}
	}
	if why := s.unfit(job, e, doom); why != nil && !missing && earlier == nil {
		return nil, s.leave(ctx, m, e, why.Error())
	}
	next, silent, start := e, "", time.Now()
	next.State, next.Epoch, next.Worker, next.Claimed = Running, e.Epoch+1, s.id, now()
	next.Heard, next.Sandbox, next.Waits = next.Claimed, s.w.Sandbox.Rung, ""
	if next.Started.IsZero() {
		next.Started = next.Claimed
	}
	if e.State.held() {
		silent = silentWorker(e)
		next.addReason(silent)
	}
	spent := e.Attempt >= e.MaxTries
	if earlier == nil && !spent {
		next.Attempt++
	}
	stored, err := s.b.swap(ctx, e, next)
	if err != nil {
		return nil, err
	}
	if missing {
		job = Job{ID: e.ID, Run: e.Run, Parent: e.Parent, Path: e.Path}
	}
	l := s.lease(m, job, stored, seq, start)
	if earlier != nil {
		l.adopt(*earlier)
		return nil, nil
	}
	if _, err := l.append(ctx, kindClaimed, note{Worker: s.id, Attempt: stored.Attempt, From: e.State, To: Running, Reason: silent}); err != nil {
		if errors.Is(err, ErrLeaseLost) {
			return nil, nil // it is logged; the newer holder has the pointer
		}
		return nil, err
	}
	switch {
	case doom != "":
		l.finish(ctx, killedResult(doom), &killProof{Reason: doom, Worker: e.Worker, Unproved: silent})
	case missing:
		l.finish(ctx, Result{State: Failed, Error: "its specification is not in the log any more"}, nil)
	case spent:
		l.finish(ctx, lostResult(stored), nil)
	default:
		return l, nil
	}
	l.end()
	return nil, nil
}

// unfit says why this worker must not claim a job. What needs no handler any more it may conclude.
func (s *server) unfit(job Job, e Entry, doom string) error {
	if s.w.Fits == nil || doom != "" || e.Attempt >= e.MaxTries {
		return nil
	}
	return s.w.Fits(job)
}

// leave puts a pointer back for another worker, and lets people know why the job waits. It comes again, since this may be the only worker
// until one is there that can do it.
func (s *server) leave(ctx context.Context, m *nats.Msg, e Entry, why string) error {
	if e.State == Queued && e.Waits == "" {
		next := e
		next.Waits = budget.Preview(why, reasonChars)
		if _, err := s.b.swap(ctx, e, next); err != nil {
			return err
		}
		if _, err := s.b.remark(ctx, e, kindWaits, kindWaits, note{Worker: s.id, Reason: why}); err != nil {
			return err
		}
	}
	wait := firstWait
	if meta, err := m.Metadata(); err == nil {
		wait = min(firstWait<<min(meta.NumDelivered-1, 8), maxWait)
	}
	s.nak(m, wait)
	return nil
}

// heard is when a holder's newest write came: other writes, such as a kill flag, say nothing about it.
func (e Entry) heard() time.Time {
	if e.Heard.IsZero() {
		return e.Updated
	}
	return e.Heard
}

// fellSilent is in a reason of a holder whose end nobody has seen.
const fellSilent = "fell silent"

func silentWorker(e Entry) string {
	return fmt.Sprintf("worker %s "+fellSilent+" at epoch %d (last heard of %s)", e.Worker, e.Epoch, e.heard().Format("15:04:05"))
}

func (s *server) lease(m *nats.Msg, job Job, e Entry, seq uint64, claimed time.Time) *Lease {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.stop))
	return &Lease{
		b: s.b, s: s, job: job, epoch: e.Epoch, msg: m, ctx: ctx, cancel: cancel, entry: e, confirmed: claimed, seq: seq, slot: true,
		secrets: s.b.secretsOf(job),
		log:     s.log.With().Str("job", e.ID).Uint64("epoch", e.Epoch).Logger(),
		killed:  make(chan struct{}), wake: make(chan struct{}, 1), gone: make(chan struct{}), nudged: make(chan struct{}, 1),
	}
}
