package board_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
	"muster/budget"
)

func allEnded(children []board.Entry) bool {
	return !slices.ContainsFunc(children, func(e board.Entry) bool { return !e.State.Terminal() })
}

// One worker with one slot runs a tree of depth 3: who waits gives its slot away.
func TestTreeOnOneSlot(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	var mu sync.Mutex
	active, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		active += n
		most = max(most, active)
	}
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		count(1)
		defer count(-1)
		depth := len(l.Job().Path)
		sum := 1
		if depth < 3 {
			for i := range 2 {
				if _, err := l.Submit(ctx, strconv.Itoa(i), board.Job{Title: fmt.Sprintf("depth %d", depth+1)}); err != nil {
					return board.Result{}, err
				}
			}
			count(-1)
			children, err := l.WaitChildren(ctx, -1, allEnded)
			count(1)
			if err != nil {
				return board.Result{}, err
			}
			check(t, "state after waiting", l.Entry().State, board.Running)
			for _, c := range children {
				n, err := strconv.Atoi(c.Preview)
				if err != nil {
					return board.Result{}, err
				}
				sum += n
			}
		}
		return board.Result{State: board.Done, Text: strconv.Itoa(sum)}, nil
	})
	e := wait(t, b, submit(t, b, board.Job{Title: "root"})[0].ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "jobs of the tree", e.Preview, "15")
	check(t, "handlers that ran at once", most, 1)
	all, err := b.List(boardtest.Context(t), board.Filter{Run: e.Run, Parent: e.ID})
	if err != nil || len(all) != 2 || all[0].Path[0] != e.ID {
		t.Errorf("children %+v, %v", all, err)
	}
}

func TestLimitsOfChildren(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	caps := budget.Choice{Numbers: map[string]int{"children_total": 5, "children_live": 2, "depth": 1}}
	release := make(chan struct{})
	deep := make(chan error, 5)
	boardtest.Serve(t, b, board.Worker{Slots: 8}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if len(l.Job().Path) > 0 {
			<-release
			_, err := l.Submit(ctx, "x", board.Job{Title: "too deep"})
			deep <- err
			return echo(ctx, l)
		}
		for i := range 5 {
			e, err := l.Submit(ctx, strconv.Itoa(i), board.Job{Title: "child", Caps: caps})
			if err != nil {
				t.Error(err)
			}
			check(t, fmt.Sprintf("state of child %d", i), e.State, map[bool]board.State{true: board.Queued, false: board.Blocked}[i < 2])
		}
		if _, err := l.Submit(ctx, "one more", board.Job{Title: "child"}); !errors.Is(err, board.ErrLimit) || !strings.Contains(err.Error(), "5 of 5") {
			t.Errorf("over the total: %v", err)
		}
		again, err := l.Submit(ctx, "0", board.Job{Title: "child"})
		if err != nil || again.Created.IsZero() {
			t.Errorf("the same call again: %+v, %v", again, err)
		}
		close(release)
		live := 0
		children, err := l.WaitChildren(ctx, -1, func(c []board.Entry) bool {
			n := 0
			for _, e := range c {
				if !e.State.Terminal() && e.State != board.Blocked {
					n++
				}
			}
			live = max(live, n)
			return allEnded(c)
		})
		if live > 2 {
			t.Errorf("%d children had a place, 2 may", live)
		}
		return board.Result{State: board.Done, Text: strconv.Itoa(len(children))}, err
	})
	e := wait(t, b, submit(t, b, board.Job{Title: "root", Caps: caps})[0].ID)[0]
	check(t, "children", e.Preview, "5")
	for range 5 {
		if err := <-deep; !errors.Is(err, board.ErrLimit) {
			t.Errorf("over the depth: %v", err)
		}
	}
}

// A parent that ends takes along who lives, but for the detached.
func TestParentEndsBeforeItsChildren(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	up, free := make(chan struct{}, 2), make(chan struct{})
	boardtest.Serve(t, b, board.Worker{Slots: 4}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if len(l.Job().Path) > 0 {
			up <- struct{}{}
			select {
			case <-free:
				return board.Result{State: board.Done}, nil
			case <-ctx.Done():
				return board.Result{}, context.Cause(ctx)
			}
		}
		for _, detach := range []bool{true, false} {
			if _, err := l.Submit(ctx, fmt.Sprint(detach), board.Job{Title: fmt.Sprint(detach), Detach: detach}); err != nil {
				t.Error(err)
			}
		}
		<-up
		<-up
		return board.Result{State: board.Done}, nil
	})
	root := wait(t, b, submit(t, b, board.Job{Title: "root"})[0].ID)[0]
	check(t, "root", root.State, board.Done)
	children, err := b.List(boardtest.Context(t), board.Filter{Run: root.Run, Parent: root.ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		check(t, "detached "+c.Title, c.State, map[bool]board.State{true: board.Running, false: board.Killed}[c.Detach])
	}
	close(free)
	for _, c := range wait(t, b, ids(children)...) {
		check(t, "detached "+c.Title, c.State, map[bool]board.State{true: board.Done, false: board.Killed}[c.Detach])
	}
}

func TestAfter(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	var mu sync.Mutex
	var order []string
	boardtest.Serve(t, b, board.Worker{Slots: 4}, func(_ context.Context, l *board.Lease) (board.Result, error) {
		mu.Lock()
		order = append(order, l.Job().Title)
		mu.Unlock()
		return board.Result{State: board.State(l.Job().Prompt), Error: l.Job().Prompt}, nil
	})
	id := func(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012d", n) }
	var many []string
	jobs := []board.Job{
		{ID: id(3), Title: "third", Prompt: "done", After: []string{id(2)}},
		{ID: id(2), Title: "second", Prompt: "partial", After: []string{id(1)}},
		{ID: id(1), Title: "first", Prompt: "done"},
		{ID: id(4), Title: "bad", Prompt: "failed", After: []string{id(1)}},
		{ID: id(5), Title: "never", Prompt: "done", After: []string{id(3), id(4)}},
	}
	for n := range 40 {
		many = append(many, id(100+n))
		jobs = append(jobs, board.Job{ID: id(100 + n), Title: "one of many", Prompt: "done"})
	}
	jobs = append(jobs, board.Job{ID: id(6), Title: "last", Prompt: "done", After: append(many, id(3))})
	es := wait(t, b, ids(submit(t, b, jobs...))...)
	for i, want := range []board.State{board.Done, board.Partial, board.Done, board.Failed, board.Failed} {
		check(t, es[i].Title, es[i].State, want)
	}
	if !strings.Contains(es[4].Preview, "after job "+id(4)+" ended failed") {
		t.Errorf("reason %q", es[4].Preview)
	}
	check(t, "last", es[len(es)-1].State, board.Done)
	mu.Lock()
	defer mu.Unlock()
	check(t, "never ran", slices.Contains(order, "never"), false)
	check(t, "last ran last", order[len(order)-1] == "last" || slices.Index(order, "last") > slices.Index(order, "third"), true)
	if a, c := slices.Index(order, "first"), slices.Index(order, "third"); a > c {
		t.Errorf("order %v", order)
	}
}

func TestDeadlines(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{Pools: []string{"served"}}, func(ctx context.Context, _ *board.Lease) (board.Result, error) {
		<-ctx.Done()
		return board.Result{Text: "so far"}, context.Cause(ctx)
	})
	soon := time.Now().Add(time.Second)
	es := wait(t, b, ids(submit(t, b,
		board.Job{Title: "running", Pool: "served", Deadline: soon},
		board.Job{Title: "queued", Pool: "nobody's: pool.*", Deadline: soon},
	))...)
	for i, want := range []string{"deadline passed: so far", "deadline passed before it ran"} {
		check(t, es[i].Title, es[i].State, board.Failed)
		check(t, es[i].Title, es[i].Preview, want)
	}
}

func TestPriorities(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	var jobs []board.Job
	for _, p := range []board.Priority{"low", "normal", "high"} {
		for range 5 {
			jobs = append(jobs, board.Job{Title: string(p), Priority: p, Pool: "qwen2.5:7b"})
		}
	}
	es := submit(t, b, jobs...)
	var order []string
	boardtest.Serve(t, b, board.Worker{Pools: []string{"qwen2.5:7b"}}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		order = append(order, l.Job().Title) // one slot: no two at once
		return echo(ctx, l)
	})
	wait(t, b, ids(es)...)
	want := slices.Concat(slices.Repeat([]string{"high"}, 5), slices.Repeat([]string{"normal"}, 5), slices.Repeat([]string{"low"}, 5))
	if !slices.Equal(order, want) {
		t.Errorf("order %v", order)
	}
}
