package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Filter narrows List, Page and Watch. Zero: everything.
type Filter struct {
	Run     string
	Parent  string // job id
	States  []State
	Pool    string
	Profile string
	Since   time.Time // created then or later
	Until   time.Time // created before
}

func (f Filter) keys() []string {
	run, parent := cmp.Or(f.Run, "*"), cmp.Or(f.Parent, "*")
	return []string{run + "." + parent + ".*"}
}

func (f Filter) matches(e Entry) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, e.State)) &&
		(f.Pool == "" || f.Pool == e.Pool) && (f.Profile == "" || f.Profile == e.Profile) &&
		(f.Since.IsZero() || !e.Created.Before(f.Since)) && (f.Until.IsZero() || e.Created.Before(f.Until))
}

// byAge orders entries by creation.
func byAge(a, b Entry) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
}

// List returns the entries, sorted by creation.
func (b *Board) List(ctx context.Context, f Filter) ([]Entry, error) {
	var all []Entry
	err := b.watchEntries(ctx, f.keys(), stopAtSync, func(e Entry) error {
		if f.matches(e) {
			all = append(all, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	slices.SortFunc(all, byAge)
	return all, nil
}

// Watch calls fn with each entry now and at each change until ctx ends or fn returns an error; synced is called once when the present
// ones are through (may be nil). With Filter.States it sees an entry only while in one of them.
func (b *Board) Watch(ctx context.Context, f Filter, synced func(), fn func(Entry) error) error {
	return b.watchEntries(ctx, f.keys(), func() error {
		if synced != nil {
			synced()
		}
		return nil
	}, func(e Entry) error {
		if !f.matches(e) {
			return nil
		}
		return fn(e)
	})
}

// Wait returns the entries of ids, in their order, once every one is terminal.
func (b *Board) Wait(ctx context.Context, ids ...string) ([]Entry, error) {
	entries := make([]Entry, len(ids))
	open := map[string][]int{} // by whole id: a job may be named twice
	runs, keys := map[string]bool{}, map[string]bool{}
	for i, id := range ids {
		e, err := b.Get(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("wait: %w", err)
		}
		entries[i] = e
		if !e.State.Terminal() {
			open[e.ID] = append(open[e.ID], i)
			runs[e.Run+".*.*"], keys[e.key()] = true, true
		}
	}
	if len(open) == 0 {
		return entries, nil
	}
	const single = 16 // from here on it costs the server less to send the whole run
	if len(keys) > single {
		keys = runs
	}
	filters := make([]string, 0, len(keys))
	for k := range keys {
		filters = append(filters, k)
	}
	err := b.watchEntries(ctx, filters, func() error { return nil }, func(e Entry) error {
		if !e.State.Terminal() {
			return nil
		}
		for _, i := range open[e.ID] {
			entries[i] = e
		}
		if delete(open, e.ID); len(open) == 0 {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait: %w", err)
	}
	return entries, nil
}

// errEnough ends a watch without an error.
var errEnough = errors.New("enough")

// stopAtSync makes a list of a watch.
func stopAtSync() error { return errEnough }

func (b *Board) watchEntries(ctx context.Context, keys []string, synced func() error, fn func(Entry) error) error {
	return b.watch(ctx, b.board, keys, synced, func(kv jetstream.KeyValueEntry) error {
		e, err := decodeEntry(record{seq: kv.Revision(), subject: kv.Key(), data: kv.Value()}, nil)
		if err != nil {
			return err
		}
		return fn(e)
	})
}

// errStale ends a watch whose consumer may be gone: the connection was made anew, perhaps to a server that never heard of it.
var errStale = errors.New("watch is stale")

// watch calls fn with each value of keys, now and at each change, and synced once, when the present ones are through. A watch that outlives its server
// begins anew at once (the client by itself would miss two heartbeats first) and hands on only what it has not seen.
func (b *Board) watch(ctx context.Context, bucket jetstream.KeyValue, keys []string, synced func() error, fn func(jetstream.KeyValueEntry) error) error {
	return b.watchWith(ctx, bucket, keys, synced, fn, jetstream.IgnoreDeletes())
}

// watchWith is watch with options of the client: without any, deletions are handed on too.
func (b *Board) watchWith(
	ctx context.Context, bucket jetstream.KeyValue, keys []string, synced func() error, fn func(jetstream.KeyValueEntry) error, opts ...jetstream.WatchOpt,
) error {
	connected := b.nc.StatusChanged(nats.CONNECTED)
	defer b.nc.RemoveStatusListener(connected)
	seen := map[string]uint64{} // revisions by key
	isSynced := false
	once := func() error {
		if isSynced {
			return nil
		}
		isSynced = true
		return synced()
	}
	fresh := func(kv jetstream.KeyValueEntry) error {
		if kv.Revision() <= seen[kv.Key()] {
			return nil
		}
		seen[kv.Key()] = kv.Revision()
		return fn(kv)
	}
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	end := time.Now().Add(persistTime) // of the first try; a watch that once began goes on as long as ctx
	patience := firstTry
	for began := false; ; {
		w, stop, err := beginWatchWith(ctx, bucket, keys, patience, opts...)
		if err == nil {
			began = true
			err = updates(ctx, w, connected, once, fresh)
			stop()
			if !errors.Is(err, errStale) {
				return err
			}
			continue
		}
		patience = min(2*patience, requestTime)
		if !began && (!transient(err) || time.Now().After(end)) || ctx.Err() != nil || b.nc.IsClosed() {
			return fmt.Errorf("watch %s: %w", bucket.Bucket(), err)
		}
		b.log.Debug().Err(err).Msg("watch begins anew")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-retry.C:
		}
	}
}

// beginWatch begins a watch of values that ends with ctx, or with stop. The server has to answer within patience: one that ends never does.
func beginWatch(ctx context.Context, bucket jetstream.KeyValue, keys []string, patience time.Duration) (_ jetstream.KeyWatcher, stop func(), _ error) {
	return beginWatchWith(ctx, bucket, keys, patience, jetstream.IgnoreDeletes())
}

func beginWatchWith(
	ctx context.Context, bucket jetstream.KeyValue, keys []string, patience time.Duration, opts ...jetstream.WatchOpt,
) (_ jetstream.KeyWatcher, stop func(), _ error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(patience, func() { cancel(context.DeadlineExceeded) })
	w, err := bucket.WatchFiltered(ctx, slices.Clone(keys), opts...) // it writes into the keys
	if late.Stop() && err == nil {
		return w, func() { cancel(nil) }, nil
	}
	if err == nil {
		stopWatch(w)
	}
	err = cmp.Or(context.Cause(ctx), err)
	cancel(nil)
	return nil, nil, err
}

// retryPause is between two tries to begin something anew on a server that is not ready yet.
const retryPause = 200 * time.Millisecond

// updates hands on what a watch brings until it ends.
func updates(ctx context.Context, w jetstream.KeyWatcher, connected <-chan nats.Status, synced func() error, fn func(jetstream.KeyValueEntry) error) error {
	defer stopWatch(w)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-connected:
			return errStale
		case kv, ok := <-w.Updates():
			var err error
			switch {
			case !ok && ctx.Err() != nil:
				return context.Cause(ctx)
			case !ok:
				return errors.New("watch: connection closed")
			case kv == nil:
				err = synced()
			default:
				err = fn(kv)
			}
			if errors.Is(err, errEnough) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
}

// stopWatch ends a watch. The client's callback may just be blocked on an update that nobody reads any more: there is room for it after
// the buffer was emptied, and no other comes.
func stopWatch(w jetstream.KeyWatcher) {
	_ = w.Stop() // of a closed connection: nothing is left to stop
	for {
		select {
		case _, open := <-w.Updates():
			if !open {
				return
			}
		default:
			return
		}
	}
}
