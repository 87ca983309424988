package agents_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/approval"
	"muster/board/boardtest"
	"muster/tools"
)

// asked waits until a job asks, and returns what.
func (h *house) asked(id string) (a approval.Approval) {
	h.t.Helper()
	boardtest.Until(h.t, "the job asks", func() (found bool) {
		var err error
		a, err = h.b.Find(h.ctx(), id, 0)
		return err == nil
	})
	return a
}

func (h *house) answer(a approval.Approval, ans approval.Answer) {
	h.t.Helper()
	if _, err := h.b.Answer(h.ctx(), a, ans); err != nil {
		h.t.Fatal(err)
	}
}

func replies(t *testing.T, h *house, id string) (all []tools.Reply) {
	t.Helper()
	for _, e := range h.events(id, tools.EventFinished) {
		var r tools.Reply
		if err := json.Unmarshal(e.Data, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// A person says yes, no, and yes to all of a kind; what was not approved did not run, and what was is on record with who said so.
func TestAPersonDecides(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	job := h.script(`
turns:
  - when: {turn: 1}
    calls: [{tool: run_command, args: {command: "echo o''ne >> said; cat said"}}]
  - when: {turn: 2, last: "one"}
    calls: [{tool: run_command, args: {command: "echo two >> said"}}]
  - when: {turn: 3, last: "ada refused it: not that one; do not retry it"}
    calls:
      - {tool: run_command, args: {command: "echo three >> said"}}
      - {tool: run_command, args: {command: "echo four >> said; echo five >> said"}}
      - {tool: run_command, args: {command: "cat said"}}
  - when: {turn: 4}
    text: done
`)
	job.Mode, job.AskFor = "default", time.Hour
	id := h.submit(job)[0].ID
	first := h.asked(id)
	var args struct{ Command string }
	if err := json.Unmarshal(first.Args, &args); err != nil || first.Tool != "run_command" || args.Command != "echo o''ne >> said; cat said" || first.Why != "in mode default" {
		t.Errorf("it asks %+v", first)
	}
	h.answer(first, approval.Answer{Approve: true, By: "ada"})
	h.answer(h.asked(id), approval.Answer{By: "ada", Reason: "not that one"})
	h.answer(h.asked(id), approval.Answer{Approve: true, By: "bob", Always: []string{"run_command(echo *)"}})
	// A redirect is a write, of which that rule says nothing.
	fourth := h.asked(id)
	h.answer(fourth, approval.Answer{Approve: true, By: "bob", Always: []string{"edit(said)"}})
	h.answer(h.asked(id), approval.Answer{Approve: true, By: "bob"})
	if res := h.result(id); res.State != board.Done {
		t.Fatalf("%+v\n%s", res, h.log(id))
	}
	all := replies(t, h, id)
	if len(all) != 5 || all[0].Facts.Approved != "ada" || !all[1].Facts.Denied || all[1].Facts.Approved != "" {
		t.Fatalf("%+v", all)
	}
	has(t, all[4].Text, "one\nthree\nfour\nfive\n")

	// The same calls of another job of the run need no person now; of another run they do.
	steps := []board.Step{step("run_command", `{"command":"echo six >> said; echo seven >> said"}`)}
	again := board.Job{Title: "again", Run: first.Run, Steps: steps, Mode: "default", AskFor: time.Hour}
	more := h.submit(again)[0].ID
	if res := h.result(more); res.State != board.Done {
		t.Fatalf("%+v", res)
	}
	if r := replies(t, h, more)[0]; !strings.HasPrefix(r.Facts.Approved, "bob: always ") {
		t.Errorf("%+v", r)
	}
	again.Run = ""
	other := h.submit(again)[0].ID
	h.answer(h.asked(other), approval.Answer{By: "ada"})
	if res := h.result(other); res.State != board.Denied {
		t.Errorf("%+v", res)
	}
}

// A rule of the job that denies stands above every approval, and an answer serves the resumed job.
func TestAnAnswerOutlivesItsWorker(t *testing.T) {
	h := newHouse(t)
	stop := h.worker("first", 1)
	job := h.script(`
turns:
  - when: {turn: 1}
    calls: [{tool: run_command, args: {command: "echo once"}}]
  - when: {turn: 2, last: "once"}
    text: done
`)
	job.Mode, job.AskFor = "default", time.Hour
	id := h.submit(job)[0].ID
	a := h.asked(id)
	stop()
	h.answer(a, approval.Answer{Approve: true, By: "ada"})
	h.worker("second", 1)
	if res := h.result(id); res.State != board.Done || res.Usage.Turns != 2 {
		t.Fatalf("%+v\n%s", res, h.log(id))
	}
	if all := replies(t, h, id); len(all) != 1 || all[0].Facts.Approved != "ada" {
		t.Errorf("%+v", all)
	}
	if n := len(h.events(id, "approval_asked")); n != 1 {
		t.Errorf("it asked %d times", n)
	}
}
