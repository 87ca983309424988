package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// This file is what a steward does for one job, and each round.

// unblock queues a blocked entry whose conditions hold, and fails one whose condition never can.
func (st *stewardship) unblock(ctx context.Context, e Entry) (Entry, error) {
	if e.State != Blocked || e.Killing != "" { // what is killed ends by that
		return e, nil
	}
	after, err := st.afterOf(ctx, e)
	if err != nil {
		return e, err
	}
	for _, id := range after {
		switch st.ended[id] {
		case Done, Partial:
		case "":
			add(st.waiters, id, e.ID)
			return e, nil // one is enough: when it ends, the others are looked at
		case Killed:
			if st.hadTime(id) {
				return st.fail(ctx, e, id)
			}
			st.again = true
			return e, nil
		default:
			return st.fail(ctx, e, id)
		}
	}
	if e.Live > 0 && st.placed[e.Parent] >= e.Live {
		if !slices.Contains(st.places[e.Parent], e.ID) {
			st.places[e.Parent] = append(st.places[e.Parent], e.ID)
		}
		return e, nil
	}
	stored, err := st.b.change(ctx, e.key(), func(now *Entry) error {
		if now.State != Blocked || now.Killing != "" {
			return errKeep
		}
		now.queue()
		return nil
	})
	if err != nil || stored.State != Queued {
		return stored, err
	}
	if _, err := st.b.remark(ctx, stored, kindState, fmt.Sprintf("queued.%d", stored.Pointer), note{From: Blocked, To: Queued}); err != nil {
		return stored, err
	}
	return stored, st.b.point(ctx, stored)
}

// fail ends a job that comes after one that did not end well.
func (st *stewardship) fail(ctx context.Context, e Entry, after string) (Entry, error) {
	return st.b.endUnheld(ctx, e, Result{State: Failed, Error: fmt.Sprintf("after job %s ended %s", after, st.ended[after])}, killProof{})
}

// killTime is how long a kill has to come to the jobs after one that was killed: who is killed with it has not failed.
const killTime = 2 * time.Second

// hadTime reports whether killTime has passed since this steward asked first.
func (st *stewardship) hadTime(id string) bool {
	since, asked := st.killed[id]
	if !asked {
		since = time.Now()
		st.killed[id] = since
	}
	return time.Since(since) > killTime
}

func (st *stewardship) afterOf(ctx context.Context, e Entry) ([]string, error) {
	if e.AfterAll == 0 {
		return e.After, nil
	}
	if all, ok := st.after[e.ID]; ok {
		return all, nil
	}
	j, _, err := st.b.spec(ctx, e)
	if err != nil {
		return nil, err
	}
	st.after[e.ID] = j.After
	return j.After, nil
}

// orphaned kills what would outlive its parent.
func (st *stewardship) orphaned(ctx context.Context, e Entry) (Entry, error) {
	parent, ended := st.ended[e.Parent]
	if !ended || e.Detach || e.Killing != "" {
		return e, nil
	}
	return st.b.doom(ctx, e, fmt.Sprintf("its parent %s ended %s", e.Parent, parent))
}

// round is what time alone brings about.
func (st *stewardship) round(ctx context.Context) {
	silent := map[string]bool{}
	for id, e := range st.live {
		switch {
		case e.State.held():
			gone, known := silent[e.Worker]
			if !known {
				gone = st.gone(ctx, e.Worker)
				silent[e.Worker] = gone
			}
			if gone && time.Since(st.heard[id]) > st.b.ttl { // a beat of the job is one of the worker
				st.do(ctx, id, st.requeue)
			}
		case e.Killing != "":
			st.do(ctx, id, func(ctx context.Context, e Entry) (Entry, error) {
				return st.b.endUnheld(ctx, e, killedResult(e.Killing), killProof{Reason: e.Killing})
			})
		case !e.Deadline.IsZero() && time.Now().After(e.Deadline):
			st.do(ctx, id, func(ctx context.Context, e Entry) (Entry, error) {
				return st.b.endUnheld(ctx, e, Result{State: Failed, Error: "deadline passed before it ran"}, killProof{})
			})
		}
	}
	if st.again || time.Since(st.lookedAt) > pointersAgain {
		st.all(ctx)
	}
	if err := st.pointers(ctx); err != nil && ctx.Err() == nil {
		st.log.Warn().Err(err).Msg("steward: look for pointers")
	}
}

// gone reports whether a worker's heartbeat is. While a connection is new, nobody's is: the server may have been away, and every
// key with it.
func (st *stewardship) gone(ctx context.Context, worker string) bool {
	if time.Since(st.steady) < st.b.ttl || time.Since(st.beats[workerKeys+worker]) < st.b.ttl {
		return false
	}
	_, err := st.b.workers.Get(ctx, workerKeys+worker)
	return errors.Is(err, jetstream.ErrKeyNotFound)
}

// requeue points again to a job whose worker is dead. The next claim fences it, in case it is not.
func (st *stewardship) requeue(ctx context.Context, e Entry) (Entry, error) {
	b, reason := st.b, silentWorker(e)
	last, err := b.lastEvent(ctx, e)
	if err != nil {
		return e, err
	}
	stored, err := b.change(ctx, e.key(), func(now *Entry) error {
		if now.Epoch != e.Epoch || !now.State.held() {
			return errKeep
		}
		now.queue()
		now.addReason(reason)
		return nil
	})
	if err != nil || stored.State != Queued {
		return stored, err
	}
	st.log.Warn().Str("job", e.ID).Uint64("epoch", e.Epoch).Str("dead", e.Worker).Msg("worker is dead: queued again")
	if lastToken(last.subject) != kindResult { // the next claim takes a result that is there
		_, err := b.remark(ctx, stored, kindRequeued, kindRequeued, note{Worker: e.Worker, Attempt: e.Attempt, From: e.State, To: Queued, Reason: reason})
		if err != nil {
			return stored, err
		}
	}
	return stored, b.point(ctx, stored)
}

// pointers looks for queued entries that no pointer in the queue points to.
func (st *stewardship) pointers(ctx context.Context) error {
	if time.Since(st.lookedAt) > pointersAgain {
		for id, q := range st.queued {
			q.present = false
			st.queued[id] = q
		}
		st.lookedAt = time.Now()
	}
	var look []string
	for id, q := range st.queued {
		if !q.present && time.Since(q.at) > pointerTime+st.live[id].Delay {
			look = append(look, id)
		}
	}
	if len(look) == 0 {
		return nil
	}
	info, err := persist(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		return st.b.jobs.Info(ctx, jetstream.WithSubjectFilter(st.b.names.allPointers()))
	})
	if err != nil {
		return err
	}
	for _, id := range look {
		if _, there := info.State.Subjects[st.b.names.pointer(st.live[id])]; there {
			q := st.queued[id]
			q.present = true
			st.queued[id] = q
			if q.n == 1 {
				continue
			} // else it may be an older one
		}
		st.do(ctx, id, func(ctx context.Context, e Entry) (Entry, error) {
			cur, err := st.b.entryLeader(ctx, e.key())
			if err != nil {
				return e, err
			}
			return st.b.repoint(ctx, cur)
		})
	}
	return nil
}
