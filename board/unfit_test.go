package board_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
)

// A worker that can do nothing leaves the jobs to one that can, and spends no attempt of any.
func TestUnfitWorker(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease})
	var tried atomic.Int32
	tookOne := make(chan struct{}, 1000)
	boardtest.Serve(t, b, board.Worker{Name: "unfit", Slots: 2}, func(context.Context, *board.Lease) (board.Result, error) {
		tried.Add(1)
		tookOne <- struct{}{}
		return board.Result{}, fmt.Errorf("no git: %w", board.ErrUnfit)
	})
	jobs := make([]board.Job, 60)
	for i := range jobs {
		jobs[i].Attempts = 1
	}
	es := submit(t, b, jobs...)
	<-tookOne
	good := boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease})
	boardtest.Serve(t, good, board.Worker{Name: "fit", Slots: 2}, echo)
	handed := 0
	for _, e := range wait(t, b, ids(es)...) {
		check(t, "state", e.State, board.Done)
		check(t, "attempt", e.Attempt, 1)
		for _, k := range kinds(t, b, e.ID) {
			if strings.HasPrefix(k, "handed_back/") {
				handed++
			}
		}
	}
	if n := int(tried.Load()); n > 12 || handed != n {
		t.Errorf("the unfit worker took %d jobs and handed back %d", n, handed)
	}
}

// A result that the store does not take is kept by its holder and stored when there is room: the work is done once.
func TestResultWaitsForTheStore(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	var runs atomic.Int32
	full := make(chan func(), 1)
	boardtest.Serve(t, b, board.Worker{}, func(context.Context, *board.Lease) (board.Result, error) {
		if runs.Add(1) == 1 {
			full <- board.FillLog(t, b)
		}
		return board.Result{State: board.Done, Text: strings.Repeat("x", 100_000)}, nil
	})
	e := submit(t, b, board.Job{Title: "large", Attempts: 1})[0]
	room := <-full
	boardtest.Until(t, "the lease was renewed three times meanwhile", func() bool {
		now, err := b.Get(boardtest.Context(t), e.ID)
		return err == nil && now.State == board.Running && now.Updated.Sub(now.Claimed) > ackWait
	})
	room()
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "epoch", e.Epoch, 1)
	check(t, "runs", runs.Load(), 1)
	check(t, "text", len(oneResult(t, b, e.ID)), 100_000)
}

// Failed attempts come after growing delays.
func TestRetryDelaysGrow(t *testing.T) {
	b := boardtest.New(t, board.Config{Retry: 200 * time.Millisecond})
	var at []time.Time
	boardtest.Serve(t, b, board.Worker{}, func(context.Context, *board.Lease) (board.Result, error) {
		at = append(at, time.Now()) // one slot: no two at once
		return board.Result{}, errors.New("boom")
	})
	e := wait(t, b, submit(t, b, board.Job{Title: "fails"})[0].ID)[0]
	check(t, "state", e.State, board.Lost)
	if len(at) != 3 || at[1].Sub(at[0]) < 200*time.Millisecond || at[2].Sub(at[1]) < 800*time.Millisecond {
		t.Errorf("attempts at %v", at)
	}
}

// A worker process that was stopped for longer than its heartbeat's life is woken: what it claims then is not taken from it.
func TestWokenWorkerKeepsItsNewJobs(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: ackWait})
	boardtest.Serve(t, b, board.Worker{Slots: -1}, nil) // a steward
	p := startWorker(t, s)
	boardtest.Until(t, "the worker is there", func() bool { return len(workers(t, b)) == 2 })
	p.signal(t, syscall.SIGSTOP)
	boardtest.Until(t, "its heartbeat is gone", func() bool { return len(workers(t, b)) == 1 })
	e := submit(t, b, board.Job{Title: "claimed by a woken worker", Attempts: 1})[0]
	p.signal(t, syscall.SIGCONT)
	started(t, b, e.ID)
	boardtest.Until(t, "it has beaten longer than a heartbeat lives", func() bool {
		now, err := b.Get(boardtest.Context(t), e.ID)
		if err == nil && (now.Epoch != 1 || now.State != board.Running) {
			t.Fatalf("the job was taken from it: %s at epoch %d, %v", now.State, now.Epoch, now.Reasons)
		}
		return err == nil && now.Updated.Sub(now.Claimed) > ackWait
	})
	p.signal(t, syscall.SIGINT)
	p.wait()
}

func workers(t *testing.T, b *board.Board) []board.WorkerInfo {
	t.Helper()
	all, err := b.Workers(boardtest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The first lease that is set is the deployment's.
func TestLeaseIsOne(t *testing.T) {
	s := boardtest.Server(t)
	if _, err := board.Connect(boardtest.Context(t), s.Conn(), board.Config{}); err != nil {
		t.Fatal(err)
	}
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: ackWait})
	if _, err := board.Connect(boardtest.Context(t), s.Conn(), board.Config{AckWait: longLease}); err == nil || !strings.Contains(err.Error(), "this board's is 2s") {
		t.Errorf("another lease: %v", err)
	}
	adopts, err := board.Connect(boardtest.Context(t), s.Conn(), board.Config{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "lease", board.LeaseOf(adopts), board.LeaseOf(b))
	late := boardtest.Connect(t, s.Conn(), board.Config{Prefix: "late"})
	check(t, "lease of another prefix", board.LeaseOf(late), ackWait)
}

// A stop does not wait long for a store that takes nothing.
func TestStopOnAFullStore(t *testing.T) {
	b := boardtest.New(t, board.Config{AckWait: longLease})
	full := make(chan func(), 1)
	stop := boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, _ *board.Lease) (board.Result, error) {
		full <- board.FillLog(t, b)
		<-ctx.Done()
		return board.Result{State: board.Done, Text: strings.Repeat("x", 100_000)}, nil
	})
	e := submit(t, b, board.Job{Title: "large"})[0]
	room := <-full
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("the stop took %s", took)
	}
	room()
	now, err := b.Get(boardtest.Context(t), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "attempt", now.Attempt, 1)
}
