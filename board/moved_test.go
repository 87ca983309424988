package board_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"muster/board"
	"muster/board/boardtest"
	"muster/board/embedded"
)

const longLease = 10 * time.Minute // a test that needs a lease to run out fails by its time

// attach is one process more on a data folder.
func attach(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s, err := embedded.Attach(boardtest.Context(t), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("end the server: %v", err)
		}
	})
	return s
}

func shut(t *testing.T, s *embedded.Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// stopped is a handler that works until it is stopped, and says when it has begun.
func stopped(running chan<- struct{}) board.Handler {
	return func(ctx context.Context, _ *board.Lease) (board.Result, error) {
		running <- struct{}{}
		<-ctx.Done()
		return board.Result{}, context.Cause(ctx)
	}
}

// The server ends right after a hand-back: nothing of it may be only in the server's memory.
func TestHandBackSurvivesTheServer(t *testing.T) {
	dir := t.TempDir()
	first := attach(t, dir)
	b := boardtest.Connect(t, first.Conn(), board.Config{AckWait: longLease})
	running := make(chan struct{}, 1)
	stop := boardtest.Serve(t, b, board.Worker{Name: "first"}, stopped(running))
	e := submit(t, b, board.Job{Title: "handed back"})[0]
	<-running
	stop()
	shut(t, first)

	b = boardtest.Connect(t, attach(t, dir).Conn(), board.Config{AckWait: longLease})
	boardtest.Serve(t, b, board.Worker{Name: "second"}, echo)
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "epoch", e.Epoch, 2)
	check(t, "attempt", e.Attempt, 1)
	check(t, "pointer", e.Pointer, 2)
}

// A failed attempt is tried again by another worker although the one that ran it, and the server, ended during the delay.
func TestRetrySurvivesTheServer(t *testing.T) {
	dir := t.TempDir()
	first := attach(t, dir)
	b := boardtest.Connect(t, first.Conn(), board.Config{AckWait: longLease})
	stop := boardtest.Serve(t, b, board.Worker{Name: "first"}, func(context.Context, *board.Lease) (board.Result, error) {
		return board.Result{}, errors.New("boom")
	})
	e := submit(t, b, board.Job{Title: "retried"})[0]
	boardtest.Until(t, "the first attempt has failed", func() bool {
		now, err := b.Get(boardtest.Context(t), e.ID)
		return err == nil && now.State == board.Queued && now.Attempt == 1
	})
	stop()
	shut(t, first)

	b = boardtest.Connect(t, attach(t, dir).Conn(), board.Config{AckWait: longLease})
	boardtest.Serve(t, b, board.Worker{Name: "second"}, echo)
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "reasons", len(e.Reasons), 1)
}

// A writer that dies between the entry and the new pointer: the older pointer in the queue does not hide that.
func TestStewardSeesAnOlderPointer(t *testing.T) {
	b := boardtest.New(t, board.Config{AckWait: longLease})
	e := submit(t, b, board.Job{Title: "points to nothing"})[0]
	board.Renumber(t, b, e)
	boardtest.Serve(t, b, board.Worker{}, echo)
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "pointer", e.Pointer, 3)
}

// Others connect, and move content, again and again while the server goes from one process to the next.
func TestConnectWhileTheServerMoves(t *testing.T) {
	dir := t.TempDir()
	owner, next, third := attach(t, dir), attach(t, dir), attach(t, dir)
	boardtest.Connect(t, owner.Conn(), board.Config{})
	content := make([]byte, 3<<20)
	_, _ = rand.Read(content) // never fails
	ctx, cancel := context.WithCancel(boardtest.Context(t))
	defer cancel()
	var wg sync.WaitGroup
	round := make(chan struct{}, 64)
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				cctx, end := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
				connectAndMove(t, cctx, third, content)
				end()
				select {
				case round <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	<-round
	shut(t, owner)
	for range 6 {
		<-round
	}
	shut(t, next)
	for range 6 {
		<-round
	}
	cancel()
	wg.Wait()
}

func connectAndMove(t *testing.T, ctx context.Context, s *embedded.Server, content []byte) {
	begin := time.Now()
	b, err := board.Connect(ctx, s.Conn(), board.Config{})
	if err != nil {
		t.Errorf("connect after %s: %v", time.Since(begin), err)
		return
	}
	a, err := b.Put(ctx, bytes.NewReader(content))
	if err != nil {
		t.Errorf("put after %s: %v", time.Since(begin), err)
		return
	}
	var back bytes.Buffer
	if err := b.Fetch(ctx, a, &back); err != nil || !bytes.Equal(back.Bytes(), content) {
		t.Errorf("fetch after %s: %d bytes, %v", time.Since(begin), back.Len(), err)
	}
	if _, err := b.Workers(ctx); err != nil {
		t.Errorf("workers after %s: %v", time.Since(begin), err)
	}
}

// A beat that comes after the job was ended or given back writes nothing and complains about nothing.
func TestBeatAfterTheEnd(t *testing.T) {
	var log lockedBuffer
	b := boardtest.New(t, board.Config{Log: logger(&log)})
	leases := make(chan *board.Lease, 2)
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		leases <- l
		return echo(ctx, l)
	})
	e := submit(t, b, board.Job{Title: "ends"})[0]
	e = wait(t, b, e.ID)[0]
	l := <-leases
	boardtest.Until(t, "the holder knows of the end", func() bool { return l.Entry().State == board.Done })
	board.Beat(l)
	after, err := b.Get(boardtest.Context(t), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "revision", after.Revision, e.Revision)
	if got := log.String(); got != "" {
		t.Errorf("logged: %s", got)
	}
}

// A worker stops soon although the server is away and nothing can be written any more.
func TestStopWithoutAServer(t *testing.T) {
	s := boardtest.Server(t)
	key, err := nats.NkeyOptionFromSeed(s.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.URL(), nats.MaxReconnects(-1), key)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	b := boardtest.Connect(t, nc, board.Config{AckWait: longLease})
	running := make(chan struct{}, 1)
	stop := boardtest.Serve(t, b, board.Worker{}, stopped(running))
	submit(t, b, board.Job{Title: "held"})
	<-running
	shut(t, s)
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("the stop took %s", took)
	}
}
