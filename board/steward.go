package board

import (
	"context"
	"errors"
	"fmt"
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
	conns, steady := b.nc.Stats().Reconnects, time.Time{}
	for {
		cctx, cancel := context.WithTimeout(ctx, requestTime)
		rev, err := b.workers.Create(cctx, stewardKey, []byte(id))
		cancel()
		if n := b.nc.Stats().Reconnects; n != conns {
			conns, steady = n, time.Now()
		}
		if err == nil {
			st := newStewardship(b, id, rev, log)
			st.conns, st.steady = conns, steady
			if err := st.run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errStale) {
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
	killed   map[string]time.Time       // by id: when a job after a killed one was first looked at
	queued   map[string]queuedSince     // by id
	lookedAt time.Time                  // for all pointers, and at everything
	again    bool                       // something failed: look at everything in the next round
	heard    map[string]time.Time       // by id: when its holder wrote the entry, by our clock
	beats    map[string]time.Time       // by worker: when its heartbeat came, by our clock
	conns    uint64                     // reconnections before: at another the watches are stale
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
		after: map[string][]string{}, killed: map[string]time.Time{}, queued: map[string]queuedSince{}, beats: map[string]time.Time{}, heard: map[string]time.Time{}, lookedAt: time.Now(),
		conns: b.nc.Stats().Reconnects,
	}
}

// run watches entries and heartbeats until ctx ends or another is steward.
func (st *stewardship) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, stopEntries, err := beginWatch(ctx, st.b.board, []string{">"}, requestTime)
	if err != nil {
		return fmt.Errorf("watch entries: %w", err)
	}
	defer stopEntries()
	defer stopWatch(entries)
	beats, stopBeats, err := beginWatch(ctx, st.b.workers, []string{workerKeys + "*"}, requestTime)
	if err != nil {
		return fmt.Errorf("watch workers: %w", err)
	}
	defer stopBeats()
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
			if st.b.nc.Stats().Reconnects != st.conns {
				return errStale // begun anew at once, with a whole picture
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
	rev, err := persist(rctx, func(ctx context.Context) (uint64, error) {
		return st.b.workers.Update(ctx, stewardKey, []byte(st.id), st.revision)
	})
	if refused(err) { // by an earlier try, whose answer was lost?
		if kv, gerr := st.b.workers.Get(rctx, stewardKey); gerr == nil && string(kv.Value()) == st.id {
			rev, err = kv.Revision(), nil
		}
	}
	if err != nil {
		return fmt.Errorf("stay steward: %w", err)
	}
	st.revision = rev
	return nil
}

func (st *stewardship) resign(ctx context.Context) {
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
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
		delete(st.heard, e.ID)
		drop(st.children, e.Parent, e.ID)
		return
	}
	switch old := st.live[e.ID]; {
	case !e.State.held():
	case old.ID == "" && e.heard().Before(time.Now()):
		st.heard[e.ID] = e.heard()
	case !e.Heard.Equal(old.Heard):
		st.heard[e.ID] = time.Now()
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
