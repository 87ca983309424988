package board_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
)

func TestDoneAgain(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	broken := true
	stop := boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if l.Job().Title == "first" && broken {
			return board.Result{State: board.Failed, Error: "broken"}, nil
		}
		return echo(ctx, l)
	})
	first := board.Job{ID: "01990000-0000-7000-8000-000000000001", Title: "first", Prompt: "do it", Env: map[string]string{"A": "b"}, Deadline: time.Now().Add(time.Hour), Attempts: 2}
	second := board.Job{ID: "01990000-0000-7000-8000-000000000002", Run: first.ID, Title: "second", After: []string{first.ID}}
	es := submit(t, b, first, second)
	for _, e := range wait(t, b, ids(es)...) {
		check(t, "state of "+e.Title, e.State, board.Failed)
	}
	stop()
	ctx := boardtest.Context(t)
	if _, err := b.Again(ctx, false, second.ID); err == nil {
		t.Error("a job is done again after one that failed")
	}
	again, err := b.Again(ctx, false, first.ID, second.ID, first.ID)
	if err != nil || len(again) != 2 {
		t.Fatal(again, err)
	}
	if _, err := b.Again(ctx, true, again[0].ID); !errors.Is(err, board.ErrNotFinished) {
		t.Errorf("a job that is queued, again: %v", err)
	}
	broken = false
	boardtest.Serve(t, b, board.Worker{}, echo)
	for i, e := range wait(t, b, again[0].ID, again[1].ID) {
		check(t, "state of "+e.Title, e.State, board.Done)
		check(t, "run of "+e.Title, e.Run, first.ID)
		check(t, "again of "+e.Title, e.Again, es[i].ID)
		check(t, "attempts of "+e.Title, e.Attempt, 1)
	}
	spec, err := b.Spec(ctx, again[0].ID)
	if err != nil || spec.Prompt != "do it" || spec.Env["A"] != "b" || spec.Attempts != 2 || time.Until(spec.Deadline) < 50*time.Minute {
		t.Errorf("%+v, %v", spec, err)
	}
	for _, e := range wait(t, b, ids(es)...) {
		check(t, "the old "+e.Title, e.State, board.Failed)
	}
	if _, err := b.Again(ctx, false, again[0].ID); err == nil {
		t.Error("a job that is done is done again without force")
	}
}
