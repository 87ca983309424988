package main

import (
	"fmt"
	"strconv"
	"time"

	"muster/board"
	"muster/board/policy"
	"muster/cmd/internal/app"
)

// row is what --json prints of a job: its entry, and its state in the words of A2A.
type row struct {
	board.Entry
	A2A string `json:"a2a_state"`
}

func rowOf(e board.Entry) row { return row{e, a2a(e)} }

func rowsOf(entries []board.Entry) []row {
	rows := make([]row, 0, len(entries)) // never null in JSON
	for _, e := range entries {
		rows = append(rows, rowOf(e))
	}
	return rows
}

func a2a(e board.Entry) string {
	switch e.State {
	case board.Done, board.Partial:
		return "completed"
	case board.Failed, board.Lost:
		return "failed"
	case board.Killed:
		return "canceled"
	case board.Denied:
		return "rejected"
	case board.Running, board.Waiting:
		return "working"
	}
	return "submitted"
}

// short is as much of an id as people need: its end, since the ids of one second begin alike.
func short(id string) string { return id[max(0, len(id)-8):] }

// elapsed is how long a job has run, or ran, or has waited for its turn.
func elapsed(e board.Entry, now time.Time) string {
	from, to := e.Started, e.Ended
	if from.IsZero() {
		from = e.Created
	}
	if to.IsZero() {
		to = now
	}
	return span(to.Sub(from))
}

func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

func tableHead() []string {
	return []string{"ID", "STATE", "EPOCH", "WORKER", "TIME", "TITLE", "RESULT OR LAST TOOL"}
}

// cells is a job as a row of the table, children below their parents by indent.
func cells(e board.Entry, now time.Time) []string {
	news := e.Preview
	switch {
	case e.Killing != "" && !e.State.Terminal():
		news = "being killed: " + e.Killing
	case waitsFor(e) != "":
		news = waitsFor(e)
	case news == "" && len(e.Reasons) > 0:
		news = e.Reasons[len(e.Reasons)-1]
	case news == "" && !e.State.Terminal():
		news = e.LastTool
		if e.TodoTotal > 0 {
			news = fmt.Sprintf("%d/%d %s", e.TodoDone, e.TodoTotal, news)
		}
	}
	title := unconfined(e) + app.Field(e.Title, 48)
	for range e.Path {
		title = "  " + title
	}
	return []string{
		short(e.ID), string(e.State), strconv.FormatUint(e.Epoch, 10), dash(app.Field(e.Worker, 24)), elapsed(e, now), title, app.Field(news, 160),
	}
}

// waitsFor says what a job waits for that a person can do something about.
func waitsFor(e board.Entry) string {
	switch {
	case e.Waits == "":
		return ""
	case e.State == board.Queued:
		return "waits for a worker: " + e.Waits
	case e.State == board.Waiting:
		return "waits for " + e.Waits + " (orchestrator approvals)"
	}
	return ""
}

// unconfined stands before the title of a job whose commands nothing confines.
func unconfined(e board.Entry) string {
	if e.Sandbox == policy.Off {
		return "[SANDBOX OFF] "
	}
	return ""
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// tree orders entries so that children follow their parent.
func tree(entries []board.Entry) []board.Entry {
	below := map[string][]board.Entry{}
	known := map[string]bool{}
	for _, e := range entries {
		known[e.ID] = true
	}
	var roots []board.Entry
	for _, e := range entries {
		if e.Parent != "" && known[e.Parent] {
			below[e.Parent] = append(below[e.Parent], e)
		} else {
			roots = append(roots, e)
		}
	}
	out := make([]board.Entry, 0, len(entries))
	var add func([]board.Entry)
	add = func(es []board.Entry) {
		for _, e := range es {
			out = append(out, e)
			add(below[e.ID])
		}
	}
	add(roots)
	return out
}

// counts is "3 done, 1 failed", in the order of a job's life.
func counts(entries []board.Entry) string {
	n := map[board.State]int{}
	for _, e := range entries {
		n[e.State]++
	}
	text := ""
	for _, s := range states {
		if n[s] > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", n[s], s)
		}
	}
	if text == "" {
		return "no jobs"
	}
	return text
}
