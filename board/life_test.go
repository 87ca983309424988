package board_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster/board"
	"muster/board/boardtest"
)

func echo(_ context.Context, l *board.Lease) (board.Result, error) {
	return board.Result{State: board.Done, Text: l.Job().Prompt}, nil
}

func submit(t testing.TB, b *board.Board, jobs ...board.Job) []board.Entry {
	t.Helper()
	es, err := b.Submit(boardtest.Context(t), jobs...)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

func wait(t testing.TB, b *board.Board, ids ...string) []board.Entry {
	t.Helper()
	es, err := b.Wait(boardtest.Context(t), ids...)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

func ids(es []board.Entry) []string {
	var all []string
	for _, e := range es {
		all = append(all, e.ID)
	}
	return all
}

// kinds is a job's log, an event a word.
func kinds(t testing.TB, b *board.Board, id string) []string {
	t.Helper()
	var all []string
	err := b.Events(boardtest.Context(t), id, false, func(e board.Event) error {
		all = append(all, fmt.Sprintf("%s/%d", e.Kind, e.Epoch))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func check[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestLifeOfAJob(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	e := submit(t, b, board.Job{Title: "say hello", Prompt: "hello <world> & 世界"})[0]
	check(t, "state", e.State, board.Queued)
	if _, err := b.Collect(boardtest.Context(t), e.ID); !errors.Is(err, board.ErrNotFinished) {
		t.Errorf("collect before the end: %v", err)
	}
	boardtest.Serve(t, b, board.Worker{Name: "w1", Slots: 2}, echo)
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "epoch", e.Epoch, 1)
	check(t, "attempt", e.Attempt, 1)
	check(t, "preview", e.Preview, "hello <world> & 世界")
	if !strings.HasPrefix(e.Worker, "w1-") || e.Ended.Before(e.Started) || e.Started.Before(e.Created) {
		t.Errorf("entry %+v", e)
	}
	res, err := b.Collect(boardtest.Context(t), e.ID[len(e.ID)-8:])
	if err != nil {
		t.Fatal(err)
	}
	check(t, "text", res.Text, "hello <world> & 世界")
	want := []string{"spec/0", "claimed/1", "result/1"}
	if got := kinds(t, b, e.ID); !slices.Equal(got, want) {
		t.Errorf("log %v, want %v", got, want)
	}
	job, err := b.Spec(boardtest.Context(t), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "pool", job.Pool, "default")
}

func TestRetryUntilLost(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{}, func(_ context.Context, l *board.Lease) (board.Result, error) {
		switch a := l.Entry().Attempt; a {
		case 1:
			return board.Result{}, errors.New("boom one")
		case 2:
			panic("boom two")
		default:
			return board.Result{State: board.Failed, Error: fmt.Sprintf("boom %d", a), Retry: true}, nil
		}
	})
	e := wait(t, b, submit(t, b, board.Job{Title: "fails"})[0].ID)[0]
	check(t, "state", e.State, board.Lost)
	check(t, "epoch", e.Epoch, 3)
	check(t, "attempt", e.Attempt, 3)
	if want := []string{"boom one", "handler panicked: boom two", "boom 3"}; !slices.Equal(e.Reasons, want) {
		t.Errorf("reasons %q, want %q", e.Reasons, want)
	}
	res, err := b.Collect(boardtest.Context(t), e.ID)
	if err != nil || !strings.Contains(res.Error, "3 of 3 attempts") || !strings.Contains(res.Error, "boom two") {
		t.Errorf("result %+v, %v", res, err)
	}
}

func TestFailedIsFinal(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{}, func(_ context.Context, l *board.Lease) (board.Result, error) {
		return board.Result{State: board.State(l.Job().Prompt), Error: "because"}, nil
	})
	for prompt, want := range map[string]board.State{
		"failed": board.Failed, "denied": board.Denied, "partial": board.Partial,
		"": board.Failed, "running": board.Failed, "killed": board.Failed, "lost": board.Failed,
	} {
		e := wait(t, b, submit(t, b, board.Job{Title: prompt, Prompt: prompt})[0].ID)[0]
		check(t, "end of a handler that returned "+prompt, e.State, want)
		check(t, "epoch", e.Epoch, 1)
	}
}

func TestSubmitTwice(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	first := submit(t, b, board.Job{Title: "once", Prompt: "x"})[0]
	job, err := b.Spec(boardtest.Context(t), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	second := submit(t, b, job)[0]
	check(t, "revision", second.Revision, first.Revision)
	boardtest.Serve(t, b, board.Worker{Slots: 4}, echo)
	wait(t, b, first.ID)
	third := submit(t, b, job)[0]
	check(t, "state", third.State, board.Done)
	if want, got := []string{"spec/0", "claimed/1", "result/1"}, kinds(t, b, first.ID); !slices.Equal(got, want) {
		t.Errorf("log %v, want %v", got, want)
	}
}

func TestSubmitRefusesWhatCannotRun(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	const a, c = "01890000-0000-7000-8000-00000000000a", "01890000-0000-7000-8000-00000000000c"
	for want, jobs := range map[string][]board.Job{
		"no such job":       {{Title: "t", After: []string{a}}},
		"whole id":          {{Title: "t", After: []string{"abc"}}},
		"comes after it":    {{ID: a, Title: "a", After: []string{c}}, {ID: c, Title: "c", After: []string{a}}},
		"given twice":       {{ID: a, Title: "a"}, {ID: a, Title: "b"}},
		"no UUID":           {{ID: "x.y", Title: "t"}},
		"priority":          {{Title: "t", Priority: "urgent"}},
		"run":               {{Title: "t", Run: "a.b"}},
		"UTF-8":             {{Title: "t", Prompt: "a\xff"}},
		"has a parent":      {{Title: "t", Parent: a}},
		"use 1 or more":     {{Title: "t", Attempts: -1}},
		"at most 100 are a": {{Title: "t", Pool: strings.Repeat("p", 101)}},
	} {
		if _, err := b.Submit(boardtest.Context(t), jobs...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	all, err := b.List(boardtest.Context(t), board.Filter{})
	if err != nil || len(all) != 0 {
		t.Errorf("something was stored: %v, %v", all, err)
	}
}

func TestGetByPartOfAnID(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	submit(t, b, board.Job{ID: "01890000-0000-7000-8000-00000000abcd", Title: "a"}, board.Job{ID: "01890000-0000-7000-8000-00000001abcd", Title: "b"})
	for part, want := range map[string]error{
		"1abcd": board.ErrNotFound, "00abcd": nil, "01abcd": nil, "01890000": board.ErrAmbiguous, "fffffff": board.ErrNotFound,
		"01890000-0000-7000-8000-00000001ABCD": nil, "01890000-0000-7000-8000-00000002abcd": board.ErrNotFound,
	} {
		if _, err := b.Get(boardtest.Context(t), part); !errors.Is(err, want) {
			t.Errorf("get %s: %v, want %v", part, err, want)
		}
	}
}
