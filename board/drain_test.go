package board_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
)

// serveUntilDrained runs a worker and returns its end.
func serveUntilDrained(t *testing.T, b *board.Board, w board.Worker, h board.Handler) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	ended := make(chan struct{})
	go func() { defer close(ended); done <- b.Serve(ctx, w, h) }()
	t.Cleanup(func() { cancel(); <-ended })
	return done
}

func drained(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("serve: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the worker drains for ever")
	}
}

// What runs is finished, not handed back; what is queued is left to others, at once.
func TestDrain(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease})
	drain, running, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
	done := serveUntilDrained(t, b, board.Worker{Name: "first", Slots: 2, Drain: drain}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		close(running)
		<-free
		return echo(ctx, l)
	})
	held := submit(t, b, board.Job{Title: "held", Prompt: "whole"})[0]
	<-running
	close(drain)
	boardtest.Until(t, "the worker asks for no more", func() bool { return board.OpenPulls(t, b) == 0 })
	left := submit(t, b, board.Job{Title: "left"})[0]
	second := boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease})
	boardtest.Serve(t, second, board.Worker{Name: "second"}, echo)
	left = wait(t, b, left.ID)[0]
	check(t, "epoch of what was left", left.Epoch, 1)
	select {
	case err := <-done:
		t.Fatalf("the worker ended while a handler runs: %v", err)
	default:
	}
	close(free)
	drained(t, done)
	held = wait(t, b, held.ID)[0]
	check(t, "state", held.State, board.Done)
	check(t, "epoch", held.Epoch, 1)
}

func TestDrainOfIdleWorkers(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	drain := make(chan struct{})
	close(drain)
	for _, slots := range []int{-1, 3} {
		w := board.Worker{Slots: slots, Drain: drain}
		drained(t, serveUntilDrained(t, b, w, func(context.Context, *board.Lease) (board.Result, error) {
			t.Error("claimed while draining")
			return board.Result{State: board.Done}, nil
		}))
	}
	all, err := b.Workers(boardtest.Context(t))
	if err != nil || len(all) != 0 {
		t.Errorf("workers %v, %v", all, err)
	}
}

// The only worker, with one slot, drains while it holds a parent whose tree has hardly begun: the tree is finished, three levels deep.
func TestDrainFinishesTheTree(t *testing.T) {
	b := boardtest.New(t, board.Config{AckWait: longLease})
	drain, running := make(chan struct{}), make(chan struct{})
	done := serveUntilDrained(t, b, board.Worker{Drain: drain}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		depth := len(l.Job().Path)
		if depth == 0 {
			close(running)
			<-drain
		}
		if depth == 2 {
			return board.Result{State: board.Done, Text: "leaf"}, nil
		}
		for i := range 2 {
			if _, err := l.Submit(ctx, fmt.Sprint(i), board.Job{Title: "child"}); err != nil {
				return board.Result{}, err
			}
		}
		_, err := l.WaitChildren(ctx, -1, allEnded)
		return board.Result{State: board.Done, Text: "whole"}, err
	})
	root := submit(t, b, board.Job{Title: "root"})[0]
	<-running
	close(drain)
	drained(t, done)
	all, err := b.List(boardtest.Context(t), board.Filter{Run: root.Run})
	if err != nil || len(all) != 7 {
		t.Fatalf("%d jobs, %v", len(all), err)
	}
	for _, e := range all {
		check(t, "state", e.State, board.Done)
	}
}
