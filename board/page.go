package board

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

const (
	pageBatch = 1000    // messages of one answer
	pageBytes = 4 << 20 // of one answer
)

// Page returns at most limit jobs of a filter, the one that changed last first, that changed before a revision (0: the newest), without reading more of the
// board than it takes to find them. next is before which the following page begins, 0 after the last; total counts the jobs of the run or the
// parent, or of the board. What changes meanwhile moves to the front: it is then on an earlier page than one that is asked for.
func (b *Board) Page(ctx context.Context, f Filter, before uint64, limit int) (page []Entry, total int, next uint64, err error) {
	if f.Run != "" && !isRun(f.Run) || f.Parent != "" && !isID(f.Parent) {
		return nil, 0, 0, nil // no job has those
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("list jobs: %w", err)
		}
	}()
	subject := b.names.entrySubject(f.keys()[0])
	if total, err = b.countFrom(ctx, subject); err != nil {
		return nil, 0, 0, err
	}
	last, err := b.readLeader(ctx, b.names.boardStream(), query{Last: subject})
	if errors.Is(err, ErrNotFound) {
		return nil, total, 0, nil
	}
	if err != nil {
		return nil, 0, 0, err
	}
	end := last.seq + 1
	if before > 0 {
		end = min(end, before)
	}
	// Backwards, each time further where less was found: what lies between revisions that live is nothing to read.
	for window := uint64(2 * limit); end > 1; window *= 2 {
		start := uint64(1)
		if end > window {
			start = end - window
		}
		var found []Entry
		err := b.batch(ctx, subject, start, end, func(e Entry) {
			if f.matches(e) {
				found = append(found, e)
			}
		})
		if err != nil {
			return nil, 0, 0, err
		}
		slices.SortFunc(found, func(x, y Entry) int { return cmp.Compare(y.Revision, x.Revision) })
		page = append(page, found...)
		if end = start; len(page) > limit {
			return page[:limit:limit], total, page[limit-1].Revision, nil
		}
	}
	return page, total, 0, nil
}

// batchQuery asks for many messages at once.
type batchQuery struct {
	Seq   uint64 `json:"seq"`
	Next  string `json:"next_by_subj"`
	Batch int    `json:"batch"`
	Bytes int    `json:"max_bytes,omitempty"`
}

// countFrom is how many entries a subject has.
func (b *Board) countFrom(ctx context.Context, subject string) (n int, err error) {
	_, left, err := b.askMany(ctx, batchQuery{Seq: 1, Next: subject, Batch: 1}, func(record) error { n = 1; return nil })
	return n + left, err
}

// batch calls fn with the entries of a subject whose revisions are from start on, and before end.
func (b *Board) batch(ctx context.Context, subject string, start, end uint64, fn func(Entry)) error {
	for start < end {
		last, left, err := b.askMany(ctx, batchQuery{Seq: start, Next: subject, Batch: pageBatch, Bytes: pageBytes}, func(r record) error {
			if r.seq >= end {
				return nil
			}
			e, err := decodeEntry(r, nil)
			if err == nil && len(r.data) > 0 {
				fn(e)
			}
			return err
		})
		if err != nil || left == 0 || last == 0 {
			return err
		}
		start = last + 1
	}
	return nil
}

// askMany sends a query of many and calls fn with each answer. last is the sequence of the newest, left how many more there are.
func (b *Board) askMany(ctx context.Context, q batchQuery, fn func(record) error) (last uint64, left int, err error) {
	req, err := json.Marshal(q)
	if err != nil {
		return 0, 0, fmt.Errorf("encode query: %w", err)
	}
	type answer struct {
		records []record
		left    int
	}
	got, err := persist(ctx, func(ctx context.Context) (a answer, err error) {
		inbox := b.nc.NewRespInbox()
		sub, err := b.nc.SubscribeSync(inbox)
		if err != nil {
			return a, err
		}
		defer func() { _ = sub.Unsubscribe() }() // of a closed connection: nothing is left to end
		if err := b.nc.PublishRequest("$JS.API.DIRECT.GET."+b.names.boardStream(), inbox, req); err != nil {
			return a, err
		}
		for {
			m, err := sub.NextMsgWithContext(ctx)
			if err != nil {
				return a, err
			}
			if len(m.Data) == 0 && m.Header.Get("Status") == "204" {
				return a, nil
			}
			r, err := decodeDirect(m)
			if errors.Is(err, ErrNotFound) {
				return a, nil
			}
			if err != nil {
				return a, err
			}
			a.records = append(a.records, r)
			if _, err := fmt.Sscan(m.Header.Get("Nats-Num-Pending"), &a.left); err != nil {
				return a, fmt.Errorf("read from the store: %w", err)
			}
			if q.Batch == 1 {
				return a, nil
			}
		}
	})
	if err != nil {
		return 0, 0, err
	}
	for _, r := range got.records {
		last = r.seq
		if err := fn(r); err != nil {
			return last, got.left, err
		}
	}
	return last, got.left, nil
}
