package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/agents"
	"muster/agents/llm"
	"muster/board"
	"muster/board/boardtest"
	"muster/budget"
	"muster/tools"
)

// turns decodes the model's turns of a job.
func (h *house) turns(id string) []agents.Turn {
	h.t.Helper()
	var all []agents.Turn
	for _, e := range h.events(id, agents.EventTurn) {
		var t agents.Turn
		if err := json.Unmarshal(e.Data, &t); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, t)
	}
	return all
}

func TestLoopRunsToolsUntilTheModelAnswers(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	job := h.script(`
turns:
  - when: {turn: 1}
    text: I look first.
    calls:
      - {tool: read_file, args: {path: a.txt}}
      - {tool: grep, args: {pattern: one}}
  - when: {turn: 2, last: "1→one"}
    calls: [{tool: write_file, args: {path: b.txt, content: "b"}}]
  - when: {turn: 3}
    text: "All done: ${last}"
`)
	job.Base = h.base(map[string]string{"a.txt": "one\n"})
	id := h.submit(job)[0].ID
	res := h.result(id)
	if res.State != board.Done || !strings.HasPrefix(res.Text, "All done: ") || res.Files != 1 {
		t.Fatalf("got %+v\n%s", res, h.log(id))
	}
	e, err := h.b.Get(h.ctx(), id)
	if err != nil || e.Usage.Turns != 3 || e.Usage.ToolCalls != 3 || e.Usage.InputTokens == 0 || e.Usage.OutputTokens == 0 || e.LastTool != "write_file" {
		t.Errorf("entry %+v, %v", e, err)
	}
	var kinds []string
	err = h.b.Events(h.ctx(), id, false, func(e board.Event) error {
		if strings.HasPrefix(e.Kind, "tool_") || e.Kind == agents.EventTurn {
			kinds = append(kinds, e.Kind)
		}
		return nil
	})
	if err != nil || kinds[0] != agents.EventTurn || kinds[len(kinds)-1] != agents.EventTurn || len(kinds) != 3+6 {
		t.Errorf("log %v, %v", kinds, err)
	}
}

// cutOutputs are the ways of orch-25 in which a model's turn can be broken, and what must come of them.
var cutOutputs = map[string]struct {
	script string
	state  board.State
	text   string // in the result or its error
	turns  int
	calls  int // tool calls started
	errors int // failed requests in the log
}{
	"length": {`
turns:
  - stop: length
    calls: [{tool: write_file, raw_args: '{"path": "half.txt", "content": "half'}]
`, board.Failed, "3 times in a row; the last time its answer was cut at its output limit", 3, 0, 0},
	"length with whole arguments": {`
turns:
  - when: {turn: 1}
    stop: length
    calls: [{tool: write_file, args: {path: half.txt, content: half}}]
  - when: {last: "Take a smaller step"}
    text: smaller now
`, board.Done, "smaller now", 2, 0, 0},
	"badjson": {`
turns:
  - calls: [{tool: write_file, raw_args: '{"path": "half.txt", "content": }'}]
`, board.Failed, "3 times in a row; the last time the arguments of its calls were not valid JSON", 3, 0, 0},
	"badjson once": {`
turns:
  - when: {turn: 1}
    calls:
      - {tool: write_file, raw_args: '{"path": "half.txt", "content": }'}
      - {tool: list_dir}
  - when: {last: {re: 'ERROR .input.: .*not valid JSON at byte'}, last_error: true}
    text: told
`, board.Done, "told", 2, 1, 0},
	"empty": {`
turns:
  - stop: end
`, board.Failed, "3 times in a row; the last time its answer was empty", 3, 0, 0},
	"drop": {`
turns:
  - error: {kind: dropped, text: the connection closed before the answer was complete}
`, board.Failed, "(dropped): the connection closed", 0, 0, 4},
	"drop once": {`
turns:
  - when: {attempt: 1}
    error: {kind: dropped, text: closed}
  - text: second time
`, board.Done, "second time", 1, 0, 1},
	"wrong key": {`
turns:
  - error: {kind: permanent, text: 401 the key is not valid}
`, board.Failed, "(permanent): 401 the key is not valid", 0, 0, 1},
	"refusal": {`
turns:
  - {stop: refusal, text: I will not}
`, board.Failed, "the model refused: I will not", 1, 0, 0},
	"no turn": {`
turns:
  - {when: {turn: 9}, text: x}
`, board.Failed, `no turn answers agent "scripted"`, 0, 0, 1},
}

// TestCutOutput is orch-25: no cut call runs, the causes are told apart, and retries are bounded.
func TestCutOutput(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 4)
	for name, c := range cutOutputs {
		t.Run(name, func(t *testing.T) {
			job := h.script(c.script)
			job.Attempts = 1
			id := h.submit(job)[0].ID
			res := h.result(id)
			if (res.State != c.state && !(res.State == board.Lost && c.state == board.Failed)) || !strings.Contains(res.Text+res.Error, c.text) {
				t.Errorf("%s: %q %q", res.State, res.Text, res.Error)
			}
			if res.Files != 0 {
				t.Errorf("a cut call wrote %v", res.Stat)
			}
			got := []int{len(h.turns(id)), len(h.events(id, "tool_started")), len(h.events(id, agents.EventModelError))}
			if want := []int{c.turns, c.calls, c.errors}; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("turns, calls, errors: %v, want %v\n%s", got, want, h.log(id))
			}
		})
	}
}

func TestUnknownModelFailsAtOnce(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 4)
	began := time.Now()
	for model, want := range map[string]string{"": "--model script:FILE", "anthropic:x": "this build has one provider", "script:/none.yaml": "no such file"} {
		id := h.submit(board.Job{Title: "m", Prompt: "p", Model: model})[0].ID
		res := h.result(id)
		e, err := h.b.Get(h.ctx(), id)
		if err != nil || res.State != board.Failed || !strings.Contains(res.Error, want) || strings.Contains(res.Error, "\n") || e.Attempt != 1 {
			t.Errorf("%q: %s %q at attempt %d, %v", model, res.State, res.Error, e.Attempt, err)
		}
	}
	if d := time.Since(began); d > time.Minute {
		t.Errorf("took %v", d)
	}
}

func TestStuck(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	for turns, caps := range map[int]budget.Choice{5: {}, 2: {Numbers: map[string]int{"repeat_stop": 2}}} {
		job := h.script("turns:\n  - {calls: [{tool: list_dir}]}\n")
		job.Caps = caps
		id := h.submit(job)[0].ID
		res := h.result(id)
		if res.State != board.Failed || !strings.Contains(res.Error, "stuck") || len(h.turns(id)) != turns {
			t.Errorf("%s %q after %d turns, want %d", res.State, res.Error, len(h.turns(id)), turns)
		}
	}
}

func TestTheLimitOfTurnsHandsBack(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	job := h.script(`
turns:
  - when: {last: "This is your last turn"}
    text: "what I have at turn ${turn}"
    calls: [{tool: list_dir}]
  - calls: [{tool: glob, args: {pattern: "x${turn}"}}]
`)
	job.Profile = "explore"
	id := h.submit(job)[0].ID
	res := h.result(id)
	if res.State != board.Partial || res.Text != "what I have at turn 101" || !strings.Contains(res.Error, "limit of 100 model turns") {
		t.Errorf("%s %q %q", res.State, res.Text, res.Error)
	}
	if n := len(h.turns(id)); n != 101 {
		t.Errorf("%d turns", n)
	}
}

func TestProfilesNarrowTheTools(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	job := h.script(`
turns:
  - when: {turn: 1}
    calls: [{tool: write_file, args: {path: x, content: y}}, {tool: run_command, args: {command: "touch z"}}]
  - text: "${last}"
`)
	for _, profile := range []string{"explore", "plan"} {
		job.ID, job.Profile, job.Mode = "", profile, "goal" // widens nothing
		res := h.run(job)
		if res.State != board.Done || strings.Count(res.Text, "ERROR [permission]") != 2 || res.Files != 0 {
			t.Errorf("%s: %s %q %v", profile, res.State, res.Text, res.Stat)
		}
	}
	job.ID, job.Profile = "", "nobody"
	if res := h.run(job); res.State != board.Failed || !strings.Contains(res.Error, "there are explore, general, plan") {
		t.Errorf("%s %q", res.State, res.Error)
	}
}

func TestResumeAsksForNoTurnTwice(t *testing.T) {
	h := newHouse(t)
	stop := h.worker("first", 1)
	mark := filepath.Join(h.marks, "mark")
	job := h.script(`
turns:
  - {when: {turn: 1}, text: one, calls: [{tool: write_file, args: {path: a.txt, content: a}}]}
  - {when: {turn: 2}, text: two, calls: [{tool: list_dir}, {id: long, tool: run_command, args: {command: 'echo b > b.txt; touch ` + mark + `; sleep 1000'}}, {tool: run_command, args: {command: echo after}}]}
  - {when: {turn: 3, last: {re: '(?s)cancelled: worker stopping.*after.*go on at another place.*Your files are as they were, but'}}, text: "three: ${last}", calls: [{tool: glob, args: {pattern: "*"}}]}
  - {when: {turn: 4}, text: finished}
`)
	id := h.submit(job)[0].ID
	boardtest.Until(t, "the command runs", func() bool { _, err := os.Stat(mark); return err == nil })
	stop()
	h.worker("second", 1)
	res := h.result(id)
	if res.State != board.Done || res.Text != "finished" {
		t.Fatalf("%s %q %q\n%s", res.State, res.Text, res.Error, h.log(id))
	}
	has(t, h.patch(res), "+++ b/a.txt", "+++ b/b.txt")
	if n := len(h.events(id, agents.EventCheckpoint)); n != 2 {
		t.Errorf("%d checkpoints, want one after turn 1 and one at the stop", n)
	}
	turns := h.turns(id)
	for i, turn := range turns {
		if turn.Turn != i+1 {
			t.Errorf("turn %d is recorded as %d", i+1, turn.Turn)
		}
	}
	e, err := h.b.Get(h.ctx(), id)
	if err != nil || len(turns) != 4 || e.Epoch != 2 || e.Attempt != 1 || e.Usage.Turns != 4 {
		t.Errorf("%d turns, epoch %d, attempt %d, usage %+v, %v", len(turns), e.Epoch, e.Attempt, e.Usage, err)
	}
}

func TestResumeWhileTheModelThinks(t *testing.T) {
	h := newHouse(t)
	stop := h.worker("first", 1)
	job := h.script(`
turns:
  - {when: {turn: 1}, calls: [{tool: list_dir}]}
  - {when: {turn: 2}, text: answer, delay_ms: 1500}
`)
	id := h.submit(job)[0].ID
	h.until(id, "tool_finished", "list_dir")
	stop()
	h.worker("second", 1)
	if res := h.result(id); res.State != board.Done || res.Text != "answer" {
		t.Fatalf("%s %q %q", res.State, res.Text, res.Error)
	}
	if n := len(h.turns(id)); n != 2 {
		t.Errorf("%d turns recorded, want 2", n)
	}
}

func TestKillReachesTheRunningTool(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	secs := strconv.Itoa(200_000 + os.Getpid())
	job := h.script(`
turns:
  - {when: {turn: 1}, text: "I begin.", calls: [{tool: run_command, args: {command: 'trap "" TERM; sleep ` + secs + `'}}]}
  - {text: never}
`)
	id := h.submit(job)[0].ID
	boardtest.Until(t, "the command runs", func() bool { return len(sleepers(secs)) == 1 })
	if lines, err := h.b.Kill(h.ctx(), "enough", id); err != nil || lines[0].Outcome != "killed" || lines[0].Ended == 0 {
		t.Errorf("kill: %+v %v", lines, err)
	}
	res := h.result(id)
	if res.State != board.Killed || res.Text != "I begin." || len(sleepers(secs)) > 0 || len(h.turns(id)) != 1 {
		t.Errorf("%s %q, alive %v, %d turns", res.State, res.Text, sleepers(secs), len(h.turns(id)))
	}
}

func TestAnEndingParentIsRemindedOfItsChildrenOnce(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 3)
	job := h.script(`
turns:
  - {when: {depth: 1}, text: late, delay_ms: 300000}
  - {when: {turn: 1}, calls: [{tool: subagent, args: {title: Slow one, task: x, background: true}}]}
  - {when: {last: "still live and are killed when you end"}, text: "I end: ${last}"}
  - {text: I end}
`)
	id := h.submit(job)[0].ID
	res := h.result(id)
	if res.State != board.Done || !strings.Contains(res.Text, "Slow one") || len(h.turns(id)) != 3 {
		t.Fatalf("%s %q %q\n%s", res.State, res.Text, res.Error, h.log(id))
	}
	kids, err := h.b.List(h.ctx(), board.Filter{Parent: id})
	if err != nil || len(kids) != 1 {
		t.Fatalf("children %v, %v", kids, err)
	}
	if res := h.result(kids[0].ID); res.State != board.Killed {
		t.Errorf("the child is %s", res.State)
	}
}

// TestResumeAfterACrash lets a holder die between the start and the receipt of its calls.
func TestResumeAfterACrash(t *testing.T) {
	h := newHouse(t)
	job := h.script(`
turns:
  - when: {turn: 2, last: {re: '(?s)^two.*interrupted: its effect is unknown, check before you repeat it.*1→kept.*never started.*go on at another place.*Your files are those you began with'}}
    text: "I check."
    calls: [{tool: list_dir}]
  - {when: {turn: 3}, text: finished}
`)
	job.Base = h.base(map[string]string{"kept.txt": "kept"})
	call := func(id, tool, args string) llm.ToolCall {
		return llm.ToolCall{ID: id, Tool: tool, Args: json.RawMessage(args)}
	}
	began := make(chan struct{})
	stop := boardtest.Serve(t, h.b, board.Worker{Name: "dying", Slots: 1}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		for _, e := range []struct {
			kind string
			data any
		}{
			{agents.EventTurn, agents.Turn{Turn: 1, Text: "one", Stop: llm.StopToolUse, Calls: []llm.ToolCall{
				call("a", "run_command", `{"command": "echo one"}`), call("b", "run_command", `{"command": "echo lost"}`),
				call("c", "read_file", `{"path": "kept.txt"}`), call("d", "run_command", `{"command": "echo never started"}`),
			}}},
			{tools.EventStarted, tools.Started{ID: "a", Tool: "run_command"}},
			{tools.EventFinished, tools.Reply{ID: "a", Tool: "run_command", OK: true, Text: "two"}},
			{tools.EventStarted, tools.Started{ID: "b", Tool: "run_command"}},
			{tools.EventStarted, tools.Started{ID: "c", Tool: "read_file"}},
		} {
			if err := l.Append(ctx, e.kind, e.data); err != nil {
				return board.Result{}, err
			}
		}
		close(began)
		<-ctx.Done()
		return board.Result{}, context.Cause(ctx)
	})
	id := h.submit(job)[0].ID
	<-began
	stop()
	h.worker("heir", 1)
	if res := h.result(id); res.State != board.Done || res.Text != "finished" {
		t.Fatalf("%s %q\n%s", res.State, res.Error, h.log(id))
	}
	started := map[string]int{}
	for _, e := range h.events(id, tools.EventStarted) {
		var s tools.Started
		if err := json.Unmarshal(e.Data, &s); err != nil {
			t.Fatal(err)
		}
		started[s.ID]++
	}
	if d := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 2, "d": 1, "t2.1": 1}, started); d != "" {
		t.Errorf("calls started (-want +got): %s", d)
	}
}

// TestResumeAfterTheAnswer lets a holder die after the model's last turn: the next one asks for nothing.
func TestResumeAfterTheAnswer(t *testing.T) {
	h := newHouse(t)
	job := h.script("turns:\n  - {text: asked again}\n")
	began := make(chan struct{})
	stop := boardtest.Serve(t, h.b, board.Worker{Name: "dying", Slots: 1}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		defer close(began)
		if err := l.Append(ctx, agents.EventTurn, agents.Turn{Turn: 1, Text: "the answer", Stop: llm.StopEnd}); err != nil {
			t.Error(err)
		}
		return board.Result{}, errors.New("died here")
	})
	id := h.submit(job)[0].ID
	<-began
	stop()
	h.worker("heir", 1)
	if res := h.result(id); res.State != board.Done || res.Text != "the answer" || len(h.turns(id)) != 1 {
		t.Errorf("%s %q %q, %d turns", res.State, res.Text, res.Error, len(h.turns(id)))
	}
}

const foreground = `
turns:
  - {when: {depth: 1, turn: 1}, calls: [{tool: run_command, args: {command: 'touch "MARK"; sleep SECS'}}]}
  - {when: {depth: 1}, text: "child: ${last}"}
  - {when: {depth: 0, turn: 1}, calls: [{tool: subagent, args: {title: Kid, task: x}}]}
  - {when: {depth: 0}, text: "parent: ${last}"}
`

func TestKillOfAParentThatWaits(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	secs := strconv.Itoa(300_000 + os.Getpid())
	id := h.submit(h.script(strings.NewReplacer("MARK", filepath.Join(h.marks, "m"), "SECS", secs).Replace(foreground)))[0].ID
	boardtest.Until(t, "the child hangs", func() bool { return len(sleepers(secs)) == 1 })
	lines, err := h.b.Kill(h.ctx(), "enough", id)
	if err != nil || len(lines) != 2 || lines[0].Outcome != "killed" || lines[1].Outcome != "killed" {
		t.Errorf("kill: %+v, %v", lines, err)
	}
	if res := h.result(id); res.State != board.Killed || len(sleepers(secs)) > 0 {
		t.Errorf("%s, alive %v", res.State, sleepers(secs))
	}
}

// TestResumeOfAParentThatWaits stops the worker of a parent and its child: the next one makes no second child.
func TestResumeOfAParentThatWaits(t *testing.T) {
	h := newHouse(t)
	stop := h.worker("first", 2)
	mark := filepath.Join(h.marks, "m")
	id := h.submit(h.script(strings.NewReplacer("MARK", mark, "SECS", "1000").Replace(foreground)))[0].ID
	boardtest.Until(t, "the child works", func() bool { _, err := os.Stat(mark); return err == nil })
	stop()
	h.worker("second", 2)
	res := h.result(id)
	kids, err := h.b.List(h.ctx(), board.Filter{Parent: id})
	if err != nil || len(kids) != 1 || len(h.turns(id)) != 2 || res.State != board.Done || !strings.Contains(res.Text, "child: ") {
		t.Errorf("%s %q with %d children, %v\n%s", res.State, res.Text, len(kids), err, h.log(id))
	}
}
