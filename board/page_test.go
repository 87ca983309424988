package board_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
)

// pages reads a list to its end, and checks what holds of every page.
func pages(t testing.TB, b *board.Board, f board.Filter, limit int) (all []board.Entry, total int) {
	t.Helper()
	for before := uint64(0); ; {
		page, of, next, err := b.Page(boardtest.Context(t), f, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit || next != 0 && len(page) != limit {
			t.Fatalf("a page of %d, at most %d, next %d", len(page), limit, next)
		}
		for _, e := range page {
			if before != 0 && e.Revision >= before {
				t.Fatalf("revision %d on a page before %d", e.Revision, before)
			}
			before = e.Revision
		}
		all = append(all, page...)
		if total = of; next == 0 {
			return all, total
		}
		before = next
	}
}

func TestPages(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	if all, total := pages(t, b, board.Filter{}, 10); len(all) != 0 || total != 0 {
		t.Errorf("an empty board has %d of %d", len(all), total)
	}
	begun := time.Now()
	var jobs []board.Job
	for i := range 700 {
		j := board.Job{Title: fmt.Sprint("job ", i), Run: fmt.Sprint("run", i%7), Pool: []string{"one", "two"}[i%2], Profile: []string{"explore", "general", "plan"}[i%3]}
		if i%10 == 0 {
			j.Created = begun.Add(-time.Hour)
		}
		jobs = append(jobs, j)
	}
	es := submit(t, b, jobs...)
	kill(t, b, es[3].ID) // it changed last
	for _, limit := range []int{7, 100, 699, 700, 5000} {
		all, total := pages(t, b, board.Filter{}, limit)
		seen := map[string]bool{}
		for _, e := range all {
			seen[e.ID] = true
		}
		if total != 700 || len(all) != 700 || len(seen) != 700 || all[0].ID != es[3].ID {
			t.Fatalf("by %d: %d entries, %d different, %d in all, first %s", limit, len(all), len(seen), total, all[0].Title)
		}
	}
	whole, err := b.List(boardtest.Context(t), board.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]board.Filter{
		"run": {Run: "run3"}, "state": {States: []board.State{board.Killed}}, "pool": {Pool: "two"}, "profile": {Profile: "plan", Run: "run1"},
		"since": {Since: begun.Add(-time.Minute)}, "until": {Until: begun.Add(-time.Minute), Pool: "one"}, "nothing": {Pool: "three"}, "no run": {Run: "run9"}, "no run's name": {Run: "*"},
	} {
		all, _ := pages(t, b, f, 40)
		want := 0
		for _, e := range whole {
			if (f.Run == "" || e.Run == f.Run) && (f.Pool == "" || e.Pool == f.Pool) && (f.Profile == "" || e.Profile == f.Profile) &&
				(f.States == nil || slices.Contains(f.States, e.State)) && (f.Since.IsZero() || e.Created.After(f.Since)) && (f.Until.IsZero() || e.Created.Before(f.Until)) {
				want++
			}
		}
		if len(all) != want || want == 0 != (name == "nothing" || strings.HasPrefix(name, "no run")) {
			t.Errorf("%s: %d entries, want %d", name, len(all), want)
		}
	}
}
