package board

import (
	"testing"

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
