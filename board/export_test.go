package board

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// May is the transition table.
func May(from, to State) bool { return from.may(to) }

// TakeOver claims a running job as another worker does after the queue delivered its pointer again, dies, and is replaced.
func TakeOver(t *testing.T, b *Board, id string) {
	t.Helper()
	e := must(b.Get(t.Context(), id))(t)
	next := e
	next.Epoch, next.Worker = e.Epoch+1, "another"
	next = must(b.swap(t.Context(), e, next))(t)
	must(b.remark(t.Context(), next, kindClaimed, kindClaimed, note{Worker: "another"}))(t)
	must(newStewardship(b, "test", 0, b.log).requeue(t.Context(), next))(t)
}

// DieAfterResult claims a queued job as a worker does that stores its result and dies before it writes the entry.
func DieAfterResult(t *testing.T, b *Board, e Entry, res Result) {
	t.Helper()
	next := e
	next.State, next.Epoch, next.Attempt, next.Worker = Running, 1, 1, "dead"
	next = must(b.swap(t.Context(), e, next))(t)
	must(b.remark(t.Context(), next, kindClaimed, kindClaimed, note{Worker: "dead"}))(t)
	must(b.remark(t.Context(), next, kindResult, kindResult, res.stored()))(t)
}

// LosePointer takes a job's pointer from the queue.
func LosePointer(t *testing.T, b *Board, e Entry) {
	t.Helper()
	if err := b.jobs.Purge(t.Context(), jetstream.WithPurgeSubject(b.names.pointer(e))); err != nil {
		t.Fatal(err)
	}
}

// HideEntry takes an entry from the board until the returned function is called.
func HideEntry(t *testing.T, b *Board, e Entry) (restore func()) {
	t.Helper()
	if err := b.board.Purge(t.Context(), e.key()); err != nil {
		t.Fatal(err)
	}
	s := must(b.js.Stream(t.Context(), b.names.boardStream()))(t)
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject(b.names.entrySubject(e.key()))); err != nil {
		t.Fatal(err)
	}
	return func() {
		data := must(e.encode())(t)
		must(b.board.Create(t.Context(), e.key(), data))(t)
	}
}

// EntryBytes is the size of a stored entry.
func EntryBytes(t *testing.T, b *Board, e Entry) (int, error) {
	t.Helper()
	r, err := b.read(t.Context(), b.names.boardStream(), query{Last: b.names.entrySubject(e.key())})
	return len(r.data), err
}

// ArtifactNames counts what is in the artifact store.
func ArtifactNames(t *testing.T, b *Board) int {
	t.Helper()
	return len(must(b.objects.List(t.Context()))(t))
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Renumber is the entry of a writer that died before it pointed again.
func Renumber(t *testing.T, b *Board, e Entry) {
	t.Helper()
	next := e
	next.queue()
	must(b.swap(t.Context(), e, next))(t)
}

// Beat is one more beat of a lease.
func Beat(l *Lease) {
	l.mu.Lock()
	l.confirmed = now()
	l.mu.Unlock()
	l.beat(l.s.life)
}

// OpenPulls counts the pulls that wait for a job.
func OpenPulls(t *testing.T, b *Board) int {
	t.Helper()
	n := 0
	for c := range b.jobs.ListConsumers(t.Context()).Info() {
		n += c.NumWaiting
	}
	return n
}

// Abandon claims a queued job as a worker does that dies at once, last heard of at a time.
func Abandon(t *testing.T, b *Board, e Entry, worker string, heard time.Time) {
	t.Helper()
	next := e
	next.State, next.Epoch, next.Attempt, next.Worker, next.Heard = Running, 1, 1, worker, heard
	must(b.swap(t.Context(), e, next))(t)
}

// LeaseOf is the lease that a board works with.
func LeaseOf(b *Board) time.Duration { return b.ackWait }

// FillLog lets the log take small events only, until the returned function is called.
func FillLog(t *testing.T, b *Board) (room func()) {
	info, err := b.events.Info(t.Context())
	if err != nil {
		t.Error(err)
		return func() {}
	}
	limit := func(n int64) {
		cfg := info.Config
		cfg.MaxBytes = n
		if _, err := b.js.UpdateStream(t.Context(), cfg); err != nil {
			t.Error(err)
		}
	}
	limit(50_000)
	return func() { limit(-1) }
}
