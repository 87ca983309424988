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

func kill(t testing.TB, b *board.Board, id string) []board.KillLine {
	t.Helper()
	lines, err := b.Kill(boardtest.Context(t), "the test says so", id)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// orch-05: a child that is still queued is killed while the only slot is busy.
func TestKillQueued(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	busy, free := make(chan struct{}), make(chan struct{})
	var ran atomic.Int32
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		ran.Add(1)
		if l.Job().Title == "busy" {
			close(busy)
			<-free
		}
		if l.Job().Title == "c2" {
			t.Error("the killed job ran")
		}
		return echo(ctx, l)
	})
	first := submit(t, b, board.Job{Title: "busy"})[0]
	<-busy
	es := submit(t, b, board.Job{Title: "c1"}, board.Job{Title: "c2"}, board.Job{Title: "c3"})
	lines := kill(t, b, es[1].ID)
	if len(lines) != 1 || lines[0].Outcome != "killed" {
		t.Errorf("kill: %+v", lines)
	}
	res, err := b.Collect(boardtest.Context(t), es[1].ID)
	if err != nil || res.State != board.Killed || !strings.Contains(res.Error, "the test says so") {
		t.Errorf("collect: %+v, %v", res, err)
	}
	if again := kill(t, b, es[1].ID); again[0].Outcome != "was already killed" {
		t.Errorf("second kill: %+v", again)
	}
	close(free)
	for _, e := range wait(t, b, first.ID, es[0].ID, es[2].ID) {
		check(t, "state of "+e.Title, e.State, board.Done)
	}
	check(t, "handlers", ran.Load(), 3)
	if e, err := b.Get(boardtest.Context(t), es[1].ID); err != nil || e.Epoch != 0 {
		t.Errorf("the killed job was claimed: %+v, %v", e, err)
	}
}

func TestKillRunning(t *testing.T) {
	b := boardtest.New(t, board.Config{AckWait: longLease}) // so that only the nudge can be this fast
	running := make(chan struct{})
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		processes := 3
		l.OnKill(func() (int, int) {
			if ctx.Err() != nil && processes > 0 {
				t.Error("the handler was told before its processes were ended")
			}
			n := processes
			processes = 0
			return n, 0
		})
		close(running)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), board.ErrKilled) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		return board.Result{State: board.Done, Text: "half of it"}, nil
	})
	e := submit(t, b, board.Job{Title: "running"})[0]
	<-running
	begin := time.Now()
	lines := kill(t, b, e.ID)
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("the kill took %s", took)
	}
	if len(lines) != 1 || lines[0].Outcome != "killed" || lines[0].Ended != 3 {
		t.Errorf("kill: %+v", lines)
	}
	res, err := b.Collect(boardtest.Context(t), e.ID)
	if err != nil || res.State != board.Killed || res.Text != "half of it" {
		t.Errorf("result %+v, %v", res, err)
	}
}

func TestKillSaysWhatSurvives(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	running := make(chan struct{})
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		l.OnKill(func() (int, int) { return 1, 2 })
		close(running)
		<-ctx.Done()
		return board.Result{}, context.Cause(ctx)
	})
	e := submit(t, b, board.Job{Title: "tough"})[0]
	<-running
	lines := kill(t, b, e.ID)
	if len(lines) != 1 || lines[0].Outcome != "unknown" || !strings.Contains(lines[0].Detail, "2 processes survived") {
		t.Errorf("kill: %+v", lines)
	}
}

// A tree: the root waits, one child runs, one is queued behind the others, a grandchild runs; all die, and so does nobody else.
func TestKillTree(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	up := make(chan string, 8)
	boardtest.Serve(t, b, board.Worker{Slots: 3}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		title := l.Job().Title
		spawn := map[string][]string{"root": {"child", "parent"}, "parent": {"grandchild", "queued"}}[title]
		for _, s := range spawn {
			if _, err := l.Submit(ctx, s, board.Job{Title: s}); err != nil {
				t.Error(err)
			}
		}
		up <- title
		if len(spawn) > 0 {
			_, err := l.WaitChildren(ctx, -1, func(c []board.Entry) bool { return false })
			return board.Result{}, err
		}
		<-ctx.Done()
		return board.Result{}, context.Cause(ctx)
	})
	bystander := submit(t, b, board.Job{Title: "bystander"}, board.Job{Title: "root"})
	seen := map[string]bool{}
	for len(seen) < 5 { // two wait without a slot: three run, and "queued" is queued
		seen[<-up] = true
		if seen["bystander"] && seen["child"] && (seen["grandchild"] || seen["queued"]) && seen["parent"] && seen["root"] {
			break
		}
	}
	lines := kill(t, b, bystander[1].ID)
	check(t, "agents", len(lines), 5)
	for i, l := range lines {
		check(t, "outcome of "+l.Title, l.Outcome, "killed")
		if i == 0 {
			check(t, "first line", l.Title, "root")
		}
	}
	all, err := b.List(boardtest.Context(t), board.Filter{Run: bystander[1].Run})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		check(t, "state of "+e.Title, e.State, board.Killed)
	}
	if e, err := b.Get(boardtest.Context(t), bystander[0].ID); err != nil || e.State != board.Running {
		t.Errorf("the bystander: %+v, %v", e, err)
	}
}

func TestKillOfASilentWorkerIsUnknown(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: ackWait})
	p := startWorker(t, s)
	e := submit(t, b, board.Job{Title: "out of reach"})[0]
	started(t, b, e.ID)
	p.signal(t, syscall.SIGSTOP)
	lines := kill(t, b, e.ID)
	p.signal(t, syscall.SIGKILL)
	p.wait()
	if len(lines) != 1 || lines[0].Outcome != "unknown" || !strings.Contains(lines[0].Detail, "silent") {
		t.Errorf("kill: %+v", lines)
	}
	boardtest.Serve(t, b, board.Worker{Name: "second"}, func(context.Context, *board.Lease) (board.Result, error) {
		t.Error("a killed job ran again")
		return board.Result{State: board.Done}, nil
	})
	e = wait(t, b, e.ID)[0]
	check(t, "state in the end", e.State, board.Killed)
	oneResult(t, b, e.ID)
}

func TestKilledParentSpawnsNothing(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	running, refused := make(chan struct{}), make(chan error, 1)
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		close(running)
		<-ctx.Done()
		_, err := l.Submit(context.WithoutCancel(ctx), "late", board.Job{Title: "late"})
		refused <- err
		return board.Result{}, context.Cause(ctx)
	})
	e := submit(t, b, board.Job{Title: "parent"})[0]
	<-running
	kill(t, b, e.ID)
	if err := <-refused; !errors.Is(err, board.ErrKilled) {
		t.Errorf("submit: %v", err)
	}
}

// Many jobs of a worker that is gone: all are answered together and at once, with the time of its last sign of life, also when asked again.
func TestKillManyOfADeadWorker(t *testing.T) {
	b := boardtest.New(t, board.Config{AckWait: longLease})
	es := submit(t, b, make([]board.Job, 60)...)
	heard := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	for _, e := range es {
		board.Abandon(t, b, e, "gone-1", heard)
	}
	for range 2 {
		begin := time.Now()
		lines, err := b.Kill(boardtest.Context(t), "enough", ids(es)...)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the kill took %s", took)
		}
		check(t, "lines", len(lines), len(es))
		for _, l := range lines {
			check(t, "outcome", l.Outcome, "unknown")
			check(t, "detail", l.Detail, "worker gone-1 silent since "+heard.Format(time.RFC3339))
		}
	}
}

// Jobs that are killed together are all killed, also those that come after one another; one that comes after a killed one has failed.
func TestKillSeveral(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	running := make(chan struct{}, 2)
	boardtest.Serve(t, b, board.Worker{Slots: 2}, stopped(running))
	id := func(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012d", n) }
	var jobs []board.Job
	for n := range 40 {
		j := board.Job{ID: id(n), Run: "whole", Title: "chain"}
		if n > 0 {
			j.After = []string{id(n - 1)}
		}
		jobs = append(jobs, j)
	}
	other := board.Job{ID: id(100), Run: "part", Title: "killed alone"}
	after := board.Job{ID: id(101), Run: "part", Title: "after it", After: []string{other.ID}}
	es := submit(t, b, jobs...)
	part := submit(t, b, other, after)
	<-running
	<-running
	kill(t, b, part[0].ID)
	lines, err := b.Kill(boardtest.Context(t), "enough", ids(es)...)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "lines", len(lines), len(es))
	for _, l := range lines {
		check(t, "outcome", l.Outcome, "killed")
	}
	for _, e := range wait(t, b, ids(es)...) {
		check(t, "state", e.State, board.Killed)
	}
	part = wait(t, b, ids(part)...)
	check(t, "killed alone", part[0].State, board.Killed)
	check(t, "after it", part[1].State, board.Failed)
	check(t, "reason", part[1].Preview, "after job "+other.ID+" ended killed")
	if _, err := b.Kill(boardtest.Context(t), "x", es[0].ID, "01890000-0000-7000-8000-0000000fffff"); !errors.Is(err, board.ErrNotFound) {
		t.Errorf("kill of an unknown job: %v", err)
	}
}

// What nobody could prove stays so when asked again, and an earlier holder that fell silent is named although the last one is gone.
func TestKillNeverProvesMoreThanItKnows(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	es := submit(t, b, board.Job{Title: "out of reach"}, board.Job{Title: "at its second epoch"})
	for _, e := range es {
		board.Abandon(t, b, e, "gone-1", time.Now().Add(-time.Hour))
	}
	if lines := kill(t, b, es[0].ID); lines[0].Outcome != "unknown" {
		t.Errorf("first kill: %+v", lines)
	}
	running := make(chan struct{}, 2)
	boardtest.Serve(t, b, board.Worker{}, stopped(running))
	<-running // the second, requeued by the steward
	wait(t, b, es[0].ID)
	for range 2 {
		if lines := kill(t, b, es[0].ID); lines[0].Outcome != "unknown" || !strings.Contains(lines[0].Detail, "gone-1") {
			t.Errorf("kill of what was never proved: %+v", lines)
		}
	}
	for _, want := range []string{"killed", "was already killed"} {
		lines := kill(t, b, es[1].ID)
		if l := lines[0]; l.Outcome != want || len(l.Unproved) != 1 || !strings.Contains(l.Detail, "worker gone-1 fell silent at epoch 1") {
			t.Errorf("kill of the second epoch: %+v", lines)
		}
	}
	e := wait(t, b, es[0].ID)[0]
	check(t, "preview", e.Preview, "killed: the test says so")
}
