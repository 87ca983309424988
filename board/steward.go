package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

const (
	pointerTime   = 3 * time.Second // after which a queued entry must have its pointer in the queue
	pointersAgain = time.Minute     // after which all of them are looked for again
)

// steward looks after what nobody holds, until ctx ends. One of the processes that serve does: who has the key in the workers bucket,
// which dies with it like a heartbeat. Everything is decided by compare-and-set on the newest entry, so two stewards at once do no harm.
func (b *Board) steward(ctx context.Context, id string, log zerolog.Logger) {
	tick := time.NewTicker(min(time.Second, b.ttl/10))
	defer tick.Stop()
	for {
		rev, err := b.workers.Create(ctx, stewardKey, []byte(id))
		if err == nil {
			st := newStewardship(b, id, rev, log)
			if err := st.run(ctx); err != nil && ctx.Err() == nil {
				log.Warn().Err(err).Msg("steward")
			}
			st.resign(ctx)
		} else if ctx.Err() == nil && !refused(err) {
			log.Debug().Err(err).Msg("become steward")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stewardship is one steward's picture of the board.
type stewardship struct {
	b        *Board
	id       string
	revision uint64 // of its key
	log      zerolog.Logger

	live     map[string]Entry           // by id: what has not ended
	ended    map[string]State           // by id
	children map[string]map[string]bool // by parent: ids of the live ones
	placed   map[string]int             // by parent: how many of them have a place
	places   map[string][]string        // by parent: who waits for one, first come first served
	waiters  map[string]map[string]bool // by id: who comes after it
	after    map[string][]string        // all of After, where an entry does not carry it
	queued   map[string]queuedSince     // by id
	lookedAt time.Time                  // for all pointers, and at everything
	again    bool                       // something failed: look at everything in the next round
	beats    map[string]time.Time       // by worker: when its heartbeat came, by our clock
	conns    uint64                     // reconnections so far
	steady   time.Time                  // since when the connection is there
}

// queuedSince is when this steward first saw a pointer's number, and whether it was in the queue.
type queuedSince struct {
	n       uint64
	at      time.Time
	present bool
}

func newStewardship(b *Board, id string, rev uint64, log zerolog.Logger) *stewardship {
	return &stewardship{
		b: b, id: id, revision: rev, log: log,
		live: map[string]Entry{}, ended: map[string]State{}, children: map[string]map[string]bool{}, placed: map[string]int{},
		places: map[string][]string{}, waiters: map[string]map[string]bool{},
		after: map[string][]string{}, queued: map[string]queuedSince{}, beats: map[string]time.Time{}, lookedAt: time.Now(),
		conns: b.nc.Stats().Reconnects,
	}
}

// run watches entries and heartbeats until ctx ends or another is steward.
func (st *stewardship) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, err := st.b.board.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("watch entries: %w", err)
	}
	defer stopWatch(entries)
	beats, err := st.b.workers.WatchFiltered(ctx, []string{workerKeys + "*"}, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("watch workers: %w", err)
	}
	defer stopWatch(beats)
	tick := time.NewTicker(min(time.Second, st.b.ttl/10))
	defer tick.Stop()
	synced := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case kv, ok := <-entries.Updates():
			switch {
			case !ok:
				return errors.New("watch of the entries ended")
			case kv == nil:
				synced = true
				st.all(ctx)
			default:
				e, err := decodeEntry(record{seq: kv.Revision(), subject: kv.Key(), data: kv.Value()}, nil)
				if err != nil {
					st.log.Warn().Err(err).Msg("steward")
					continue
				}
				st.see(e)
				if synced {
					st.react(ctx, e)
				}
			}
		case kv, ok := <-beats.Updates():
			if !ok {
				return errors.New("watch of the workers ended")
			}
			if kv != nil {
				st.beats[kv.Key()] = time.Now()
			}
		case <-tick.C:
			if err := st.renew(ctx); err != nil {
				return err
			}
			if synced {
				st.round(ctx)
			}
		}
	}
}

// renew keeps the key alive; an error when it is another's or gone.
func (st *stewardship) renew(ctx context.Context) error {
	rctx, cancel := context.WithTimeout(ctx, st.b.ttl/2)
	defer cancel()
	rev, err := st.b.workers.Update(rctx, stewardKey, []byte(st.id), st.revision)
	if err != nil {
		return fmt.Errorf("stay steward: %w", err)
	}
	st.revision = rev
	return nil
}

func (st *stewardship) resign(ctx context.Context) {
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	if err := st.b.workers.Delete(rctx, stewardKey, jetstream.LastRevision(st.revision)); err != nil {
		st.log.Debug().Err(err).Msg("resign as steward") // its TTL does the same
	}
}

// see keeps the picture.
func (st *stewardship) see(e Entry) {
	if _, ended := st.ended[e.ID]; ended || e.Revision < st.live[e.ID].Revision {
		return // older than what this steward wrote itself
	}
	if e.Parent != "" {
		st.place(e.Parent, st.live[e.ID].State, e.State)
	}
	if e.State.Terminal() {
		st.ended[e.ID] = e.State
		delete(st.live, e.ID)
		delete(st.queued, e.ID)
		delete(st.after, e.ID)
		drop(st.children, e.Parent, e.ID)
		return
	}
	st.live[e.ID] = e
	if e.Parent != "" {
		add(st.children, e.Parent, e.ID)
	}
	if e.State != Queued {
		delete(st.queued, e.ID)
	} else if st.queued[e.ID].n != e.Pointer {
		st.queued[e.ID] = queuedSince{n: e.Pointer, at: time.Now()}
	}
}

// place keeps count of the places that a parent's children take.
func (st *stewardship) place(parent string, from, to State) {
	n := st.placed[parent]
	if from != "" && from.placed() {
		n--
	}
	if to.placed() {
		n++
	}
	if st.placed[parent] = n; n == 0 {
		delete(st.placed, parent)
	}
}

func add(m map[string]map[string]bool, key, id string) {
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][id] = true
}

func drop(m map[string]map[string]bool, key, id string) {
	if delete(m[key], id); len(m[key]) == 0 {
		delete(m, key)
	}
}

// react does what follows from one change.
func (st *stewardship) react(ctx context.Context, e Entry) {
	if e.State == Blocked {
		st.do(ctx, e.ID, st.unblock)
		return
	}
	if !e.State.Terminal() {
		return
	}
	for id := range st.waiters[e.ID] {
		st.do(ctx, id, st.unblock)
	}
	delete(st.waiters, e.ID)
	st.fill(ctx, e.Parent)
	for id := range st.children[e.ID] {
		st.do(ctx, id, st.orphaned)
	}
}

// fill gives free places to who waits for one.
func (st *stewardship) fill(ctx context.Context, parent string) {
	for waiting := st.places[parent]; len(waiting) > 0; waiting = waiting[1:] {
		first, lives := st.live[waiting[0]]
		if lives && first.State == Blocked && st.placed[parent] >= first.Live {
			st.places[parent] = waiting
			return
		}
		st.do(ctx, waiting[0], st.unblock)
	}
	delete(st.places, parent)
}

// all looks at everything: when the picture is complete, and now and then, since what failed once is not told again.
func (st *stewardship) all(ctx context.Context) {
	st.again = false
	for id, e := range st.live {
		if e.State == Blocked {
			st.do(ctx, id, st.unblock)
		}
		st.do(ctx, id, st.orphaned)
	}
}

// do runs one duty for a live entry; what it stored is seen at once.
func (st *stewardship) do(ctx context.Context, id string, duty func(context.Context, Entry) (Entry, error)) {
	e, live := st.live[id]
	if !live {
		return
	}
	stored, err := duty(ctx, e)
	if err != nil {
		if ctx.Err() == nil {
			st.log.Warn().Err(err).Str("job", id).Msg("steward")
		}
		st.again = true
		return
	}
	if stored.Revision > e.Revision {
		st.see(stored)
	}
}

// unblock queues a blocked entry whose conditions hold, and fails one whose condition never can.
func (st *stewardship) unblock(ctx context.Context, e Entry) (Entry, error) {
	if e.State != Blocked {
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
		default:
			return st.b.endUnheld(ctx, e, Result{State: Failed, Error: fmt.Sprintf("after job %s ended %s", id, st.ended[id])}, killProof{})
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
	if n := st.b.nc.Stats().Reconnects; n != st.conns {
		st.conns, st.steady = n, time.Now()
	}
	silent := map[string]bool{}
	for id, e := range st.live {
		switch {
		case e.State.held():
			gone, known := silent[e.Worker]
			if !known {
				gone = st.gone(ctx, e.Worker)
				silent[e.Worker] = gone
			}
			if gone {
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
		if !q.present && time.Since(q.at) > pointerTime {
			look = append(look, id)
		}
	}
	if len(look) == 0 {
		return nil
	}
	info, err := st.b.jobs.Info(ctx, jetstream.WithSubjectFilter(st.b.names.allPointers()))
	if err != nil {
		return err
	}
	for _, id := range look {
		if _, there := info.State.Subjects[st.b.names.pointer(st.live[id])]; there {
			q := st.queued[id]
			q.present = true
			st.queued[id] = q
			continue
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
