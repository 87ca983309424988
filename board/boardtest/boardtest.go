package boardtest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"muster/board"
	"muster/board/embedded"
)

const (
	ackWait = 2 * time.Second
	retry   = 50 * time.Millisecond
	timeout = time.Minute
)

// New returns a board on a server of its own in t.TempDir(), ended with the test. cfg's zero values get short leases (AckWait 2 s) and delays (Retry 50 ms).
func New(t testing.TB, cfg board.Config) *board.Board {
	t.Helper()
	return Connect(t, Server(t).Conn(), cfg)
}

// Server returns a server of its own in t.TempDir(), ended with the test.
func Server(t testing.TB) *embedded.Server {
	t.Helper()
	s, err := embedded.Attach(Context(t), embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("start a server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("end the server: %v", err)
		}
	})
	return s
}

// Connect returns a board on a connection; several boards on one server are several processes to each other.
func Connect(t testing.TB, nc *nats.Conn, cfg board.Config) *board.Board {
	t.Helper()
	cfg.AckWait, cfg.Retry = cmp.Or(cfg.AckWait, ackWait), cmp.Or(cfg.Retry, retry)
	b, err := board.Connect(Context(t), nc, cfg)
	if err != nil {
		t.Fatalf("connect to the board: %v", err)
	}
	return b
}

// Serve runs a worker until the test ends, or until the returned function is called; both wait for it.
func Serve(t testing.TB, b *board.Board, w board.Worker, h board.Handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, w, h) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// Context returns a context that ends with the test, or after a minute, whichever comes first.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
	t.Cleanup(cancel)
	return ctx
}

// Until calls look each 10 ms until it is true, and fails the test after a minute.
func Until(t testing.TB, what string, look func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(timeout)
	defer end.Stop()
	for !look() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("waited for a minute until %s", what)
		}
	}
}
