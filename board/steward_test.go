package board_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/board"
	"muster/board/boardtest"
	"muster/budget"
)

// Whatever step of a submission is missing after a crash, the steward or a second submission repairs it.
func TestMissingSteps(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	es := submit(t, b, board.Job{Title: "no pointer"}, board.Job{Title: "no pointer, submitted again"}, board.Job{Title: "pointer first"})
	board.LosePointer(t, b, es[0])
	board.LosePointer(t, b, es[1])
	job, err := b.Spec(boardtest.Context(t), es[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	again := submit(t, b, job)[0]
	check(t, "pointer's number", again.Pointer, 2)
	restore := board.HideEntry(t, b, es[2])
	boardtest.Serve(t, b, board.Worker{Slots: 3}, echo)
	wait(t, b, es[1].ID)
	restore()
	for _, e := range wait(t, b, ids(es)...) {
		check(t, "state of "+e.Title, e.State, board.Done)
		check(t, "epoch of "+e.Title, e.Epoch, 1)
	}
}

// A holder that dies between its result and its terminal entry has done the job: nothing runs again.
func TestResultOfADeadHolderIsTaken(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	e := submit(t, b, board.Job{Title: "finished, but for the entry"})[0]
	board.DieAfterResult(t, b, e, board.Result{State: board.Done, Text: "the first's"})
	boardtest.Serve(t, b, board.Worker{}, func(context.Context, *board.Lease) (board.Result, error) {
		t.Error("ran again")
		return board.Result{State: board.Done}, nil
	})
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "text", oneResult(t, b, e.ID), "the first's")
}

// orch-12, smaller: a thousand children end, each once, and are listed without a round trip.
func TestAThousandChildren(t *testing.T) {
	const n = 1000
	b := boardtest.New(t, board.Config{})
	var ran atomic.Int32
	boardtest.Serve(t, b, board.Worker{Slots: 8}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if len(l.Job().Path) > 0 {
			ran.Add(1)
			return board.Result{State: board.Done, Text: "ok"}, nil
		}
		for i := range n {
			if _, err := l.Submit(ctx, strconv.Itoa(i), board.Job{Title: "child"}); err != nil {
				return board.Result{}, err
			}
		}
		children, err := l.WaitChildren(ctx, -1, allEnded)
		return board.Result{State: board.Done, Text: strconv.Itoa(len(children))}, err
	})
	caps := map[string]int{"children_total": n, "children_live": 100}
	root := wait(t, b, submit(t, b, board.Job{Title: "root", Caps: budget.Choice{Numbers: caps}})[0].ID)[0]
	check(t, "children", root.Preview, strconv.Itoa(n))
	check(t, "runs", ran.Load(), n)
	all, err := b.List(boardtest.Context(t), board.Filter{Parent: root.ID, States: []board.State{board.Done}})
	if err != nil || len(all) != n {
		t.Errorf("%d children are done, %v", len(all), err)
	}
}

func TestConnectAtOnce(t *testing.T) {
	s := boardtest.Server(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := board.Connect(boardtest.Context(t), s.Conn(), board.Config{Prefix: "team-7"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, bad := range []board.Config{{Prefix: "a.b"}, {Prefix: "*"}, {AckWait: time.Millisecond}} {
		if _, err := board.Connect(boardtest.Context(t), s.Conn(), bad); err == nil {
			t.Errorf("connected with %+v", bad)
		}
	}
	boardtest.Connect(t, s.Conn(), board.Config{Prefix: "other"}) // two boards on one server
}

// Start and stop, again and again, under load: no job is lost, none is done twice, nobody hangs.
func TestStartAndStop(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease}) // longer than the test: only a hand-back is in time
	begin := time.Now()
	var done atomic.Int32
	es := submit(t, b, make([]board.Job, 200)...)
	ended := make(chan []board.Entry, 1)
	ctx := boardtest.Context(t)
	go func() {
		defer close(ended)
		all, err := b.Wait(ctx, ids(es)...)
		if err != nil {
			t.Error(err)
		}
		ended <- all
	}()
	for i := 0; ; i++ {
		enough := make(chan struct{})
		var once sync.Once
		stop := boardtest.Serve(t, b, board.Worker{Name: fmt.Sprint(i), Slots: 4}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
			if done.Add(1)%20 == 0 {
				once.Do(func() { close(enough) })
			}
			return echo(ctx, l)
		})
		select {
		case <-enough:
			stop()
			continue
		case es := <-ended:
			stop()
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("a pointer came back only when its lease was over: %s", took)
			}
			for _, e := range es {
				if e.State != board.Done || e.Attempt != 1 {
					t.Errorf("job %s: %s at attempt %d", e.ID, e.State, e.Attempt)
				}
			}
			return
		}
	}
}

// Whatever is tried, in whatever order: an entry moves along the table only, and a terminal state is the end.
func TestTransitions(t *testing.T) {
	states := []board.State{
		board.Blocked, board.Queued, board.Running, board.Waiting,
		board.Done, board.Partial, board.Failed, board.Killed, board.Lost, board.Denied,
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(states[:2]).Draw(t, "first")
		visited := []board.State{s}
		for _, to := range rapid.SliceOfN(rapid.SampledFrom(states), 1, 40).Draw(t, "tried") {
			if board.May(s, to) {
				if s.Terminal() {
					t.Fatalf("%v left the end for %s", visited, to)
				}
				if to == board.Blocked && s != board.Blocked {
					t.Fatalf("%v went back to blocked", visited)
				}
				if to == board.Done && s != board.Running && s != board.Waiting {
					t.Fatalf("%v is done without a holder", visited)
				}
				s = to
				visited = append(visited, s)
			}
		}
		if !s.Terminal() && !board.May(s, board.Killed) {
			t.Fatalf("%v cannot be killed", visited)
		}
	})
}
