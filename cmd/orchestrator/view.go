package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"muster/board"
	"muster/cmd/internal/app"
)

const redraw = 120 * time.Millisecond

// view is a live board: a table redrawn in place on a terminal, else a line for each change of state.
type view struct {
	w       io.Writer
	size    func() (columns, rows int) // nil: no terminal, lines
	mu      sync.Mutex
	entries map[string]board.Entry
	drawn   []string // lines of the table on the screen
	held    bool     // the table is off the screen: a person is asked something
	dirty   bool
}

// newView is a view on f; quiet: one that keeps the entries and shows nothing.
func newView(f *os.File, quiet bool) *view {
	v := &view{w: f, entries: map[string]board.Entry{}}
	switch {
	case quiet:
		v.w = io.Discard
	case app.Interactive(f):
		v.size = func() (int, int) {
			w, h, err := term.GetSize(int(f.Fd()))
			if err != nil || w <= 0 || h <= 0 {
				return 80, 24 // what a terminal is that does not say
			}
			return w, h
		}
	}
	return v
}

// apply takes in a new or changed entry.
func (v *view) apply(e board.Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, known := v.entries[e.ID]
	v.entries[e.ID] = e
	v.dirty = true
	if v.size == nil && (!known || old.State != e.State || old.Epoch != e.Epoch || old.Waits != e.Waits) {
		app.Note(v.w, "%s", changeLine(e, time.Now()))
	}
}

func changeLine(e board.Entry, now time.Time) string {
	text := fmt.Sprintf("%s  %-8s %s  %s", e.Updated.Local().Format(time.TimeOnly), e.State, short(e.ID), unconfined(e)+app.Field(e.Title, 60))
	switch {
	case waitsFor(e) != "":
		text += "  " + app.Field(waitsFor(e), 200)
	case e.State.Terminal():
		text += fmt.Sprintf("  (%s)", elapsed(e, now))
		if e.State != board.Done && len(e.Reasons) > 0 {
			text += "  " + app.Field(e.Reasons[len(e.Reasons)-1], 160)
		}
	case e.Worker != "":
		text += fmt.Sprintf("  (epoch %d, %s)", e.Epoch, app.Field(e.Worker, 40))
	}
	return text
}

// sorted is what the view holds, in order of creation.
func (v *view) sorted() []board.Entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]board.Entry, 0, len(v.entries))
	for _, e := range v.entries {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b board.Entry) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// draw brings the table on the screen up to date; the last time it shows what shall stay there.
func (v *view) draw(last bool) {
	if v.size == nil {
		return
	}
	entries := v.sorted()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.held && !last {
		return
	}
	v.dirty = false
	columns, rows := v.size()
	switch {
	case !last:
		v.write(nil, tableLines(entries, time.Now(), columns, rows))
	case len(entries) <= lastJobs:
		v.write(nil, tableLines(entries, time.Now(), columns, lastJobs+headRows))
	default:
		v.write(nil, []string{counts(entries)})
	}
}

// hold takes the table off the screen for a question, until release.
func (v *view) hold(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = true
	v.write([]byte(text), nil)
}

// say writes on while the table is held.
func (v *view) say(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.write([]byte(text), v.drawn)
}

func (v *view) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held, v.dirty = false, true
}

// print writes lines of another origin above the table.
func (v *view) print(p []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.write(p, v.drawn)
}

// write takes the table off the screen and writes text and table; callers hold mu.
func (v *view) write(text []byte, table []string) {
	var b strings.Builder
	if len(v.drawn) > 0 {
		fmt.Fprintf(&b, "\x1b[%dF\x1b[J", len(v.drawn))
	}
	b.Write(text)
	for _, l := range table {
		b.WriteString(l + "\n")
	}
	_, _ = io.WriteString(v.w, b.String()) // a terminal that is gone needs no board
	v.drawn = table
}

const (
	lastJobs = 40 // at most in the table that stays; of more it tells the number by state
	headRows = 5  // on a lower terminal a job is worth more than the head of its column
)

// tableLines is the table of the entries in at most rows-1 lines: what runs first stays, what ended long ago goes.
func tableLines(entries []board.Entry, now time.Time, columns, rows int) []string {
	head, room := tableHead(), rows-3
	if rows < headRows {
		head, room = nil, rows-2
	}
	room = max(room, 1)
	shown := tree(entries)
	hidden := 0
	if len(shown) > room {
		rank := map[string]int{}
		byNeed := slices.Clone(shown)
		slices.SortStableFunc(byNeed, func(a, b board.Entry) int { return need(a) - need(b) })
		for i, e := range byNeed {
			rank[e.ID] = i
		}
		shown = slices.DeleteFunc(shown, func(e board.Entry) bool { return rank[e.ID] >= room })
		hidden = len(entries) - len(shown)
	}
	cell := make([][]string, 0, len(shown))
	for _, e := range shown {
		cell = append(cell, cells(e, now))
	}
	lines := app.FormatTable(head, cell, columns)
	if rows < 3 && len(shown) > 0 {
		return lines
	}
	sum := counts(entries)
	if hidden > 0 {
		sum += fmt.Sprintf("  (%d of %d shown)", len(shown), len(entries))
	}
	return append(lines, app.FormatTable(nil, [][]string{{sum}}, columns)...)
}

// need orders entries by how much a person wants to see them.
func need(e board.Entry) int {
	switch e.State {
	case board.Running:
		return 0
	case board.Waiting:
		return 1
	case board.Failed, board.Lost, board.Denied, board.Killed, board.Partial:
		return 2
	case board.Queued:
		return 3
	case board.Blocked:
		return 4
	}
	return 5
}

// errEnough ends a watch that has seen what it waited for.
var errEnough = errors.New("enough")

// follow shows the jobs of a filter until enough (asked at each change, once the present ones are known) or the end of ctx.
func (s *session) follow(ctx context.Context, f board.Filter, v *view, each func(board.Entry) error, enough func([]board.Entry) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if v.size != nil && s.lines.Terminal() {
		s.lines.Through(v.print)
		defer s.lines.Through(nil)
	}
	drawn := make(chan struct{})
	go func() {
		defer close(drawn)
		v.keepDrawing(ctx)
	}()
	synced := false
	check := func() bool { return synced && enough(v.sorted()) }
	err := s.Board.Watch(ctx, f, func() {
		if synced = true; check() {
			cancel()
		}
	}, func(e board.Entry) error {
		v.apply(e)
		if each != nil {
			if err := each(e); err != nil {
				return err
			}
		}
		if check() {
			return errEnough
		}
		return nil
	})
	done := check()
	cancel()
	<-drawn
	v.draw(true)
	if done || errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (v *view) keepDrawing(ctx context.Context) {
	if v.size == nil {
		return
	}
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		v.mu.Lock()
		dirty := v.dirty
		v.mu.Unlock()
		if dirty || n%8 == 0 { // the clocks of what runs go on without any change
			v.draw(false)
		}
	}
}
