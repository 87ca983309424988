package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/agents/llm"
)

func parse(t *testing.T, text string) llm.Model {
	t.Helper()
	m, err := llm.ParseScript("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(t *testing.T, m llm.Model, r llm.Request) llm.Response {
	t.Helper()
	resp, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func user(text string) llm.Message { return llm.Message{Role: "user", Text: text} }

// after is a conversation in which resp was given and its calls were answered.
func after(r llm.Request, resp llm.Response, answers ...string) llm.Request {
	r.Messages = append(append([]llm.Message{}, r.Messages...), llm.Message{Role: "assistant", Text: resp.Text, Calls: resp.Calls})
	for i, a := range answers {
		r.Messages = append(r.Messages, llm.Message{Role: "tool", Text: a, CallID: resp.Calls[i].ID, Tool: resp.Calls[i].Tool})
	}
	return r
}

const family = `
capture:
  a: {call: a, re: 'id: (\S+)'}
  b: {call: b, re: 'id: (\S+)'}
turns:
  - when: {depth: 1, title: left}
    text: "left did ${prompt}"
  - when: {depth: 1}
    text: "other"
  - when: {turn: 1}
    text: starting
    calls:
      - {id: a, tool: subagent, args: {task: one, background: true, n: 3}}
      - {id: b, tool: subagent, args: {task: two}}
  - when: {turn: 2, last_tool: subagent}
    calls: [{tool: agent_collect, args: {id: "${a}", note: "of ${b} and $${HOME}"}}]
  - when: {from_turn: 3}
    text: "parent ${title} says: ${last}"
`

func TestOneScriptPlaysParentAndChildren(t *testing.T) {
	m := parse(t, family)
	parent := llm.Request{Messages: []llm.Message{user("go")}, Agent: llm.Agent{Title: "P"}}
	one := ask(t, m, parent)
	want := []llm.ToolCall{
		{ID: "t1.a", Tool: "subagent", Args: json.RawMessage(`{"task":"one","background":true,"n":3}`)},
		{ID: "t1.b", Tool: "subagent", Args: json.RawMessage(`{"task":"two"}`)},
	}
	if d := cmp.Diff(want, one.Calls); d != "" {
		t.Errorf("calls of turn 1: %s", d)
	}
	if one.Stop != llm.StopToolUse || one.Text != "starting" || one.Usage.Output == 0 {
		t.Errorf("turn 1: %+v", one)
	}
	left := ask(t, m, llm.Request{Messages: []llm.Message{user("the left thing")}, Agent: llm.Agent{Title: "left", Depth: 1}})
	if left.Text != "left did the left thing" || left.Stop != llm.StopEnd {
		t.Errorf("child: %+v", left)
	}
	r2 := after(parent, one, "id: 11\"x", "id: 22")
	two := ask(t, m, r2)
	if got, want := string(two.Calls[0].Args), `{"id":"11\"x","note":"of 22 and ${HOME}"}`; got != want {
		t.Errorf("args %s, want %s", got, want)
	}
	three := ask(t, m, after(r2, two, "the left thing is done"))
	if three.Text != "parent P says: the left thing is done" {
		t.Errorf("turn 3: %q", three.Text)
	}
	if again := ask(t, m, r2); !cmp.Equal(again, two) {
		t.Errorf("the same request got another answer: %s", cmp.Diff(two, again))
	}
}

func TestNoTurnIsAClearError(t *testing.T) {
	m := parse(t, "turns:\n  - when: {turn: 7}\n    text: x\n")
	_, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{user("please do " + strings.Repeat("a lot ", 100))}, Agent: llm.Agent{Title: "scout", Profile: "explore", Depth: 2}})
	var le *llm.Error
	if !errors.As(err, &le) || le.Kind != llm.Permanent {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"s.yaml", `"scout"`, `"explore"`, "depth 2", "turn 1", "please do a lot"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if n := len(err.Error()); n > 500 {
		t.Errorf("the error has %d bytes", n)
	}
}

func TestConditions(t *testing.T) {
	said := llm.Request{Attempt: 2, Agent: llm.Agent{Name: "n[1]", Title: "tidy up", Profile: "general"}, Messages: []llm.Message{
		user("clean the house"),
		{Role: "assistant", Text: "ok"},
		{Role: "tool", Text: "ERROR [input]: bad", Tool: "grep", IsError: true},
		{Role: "tool", Text: "fine", Tool: "glob"},
	}}
	for when, want := range map[string]bool{
		"{name: 'n[1]'}":                            true,
		"{name: n}":                                 false,
		"{title: {has: tidy}}":                      true,
		"{title: {has: tidy, not: up}}":             false,
		"{title: {re: '^tidy.*p$'}}":                true,
		"{profile: general}":                        true,
		"{profile: {is: explore}}":                  false,
		"{depth: 0}":                                true,
		"{depth: 1}":                                false,
		"{turn: 2}":                                 true,
		"{turn: 1}":                                 false,
		"{from_turn: 2}":                            true,
		"{from_turn: 3}":                            false,
		"{attempt: 2}":                              true,
		"{attempt: 1}":                              false,
		"{prompt: house}":                           true,
		"{prompt: {is: house}}":                     false,
		"{last: fine}":                              true,
		"{last: {re: '(?s)ERROR.*fine'}}":           true,
		"{last: house}":                             false,
		"{last_tool: grep}":                         true,
		"{last_tool: {re: lob}}":                    true,
		"{last_tool: run_command}":                  false,
		"{last_error: true}":                        true,
		"{last_error: false}":                       false,
		"{turn: 2, last: fine, profile: general}":   true,
		"{turn: 2, last: fine, profile: explorers}": false,
		"{}": true,
	} {
		m := parse(t, "turns:\n  - when: "+when+"\n    text: 'yes'\n  - text: 'no'\n")
		if got := ask(t, m, said).Text == "yes"; got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
}

func TestFaultsCanBePlayed(t *testing.T) {
	m := parse(t, `
turns:
  - when: {prompt: cut}
    stop: length
    calls: [{tool: write_file, raw_args: '{"path": "a", "content": "half'}]
  - when: {prompt: odd}
    calls: [{tool: write_file, raw_args: '[1]'}]
  - when: {prompt: empty}
    stop: end
  - when: {prompt: drop, attempt: 1}
    error: {kind: dropped, text: connection closed}
  - when: {prompt: drop}
    text: second time
  - when: {prompt: long}
    text: "0123456789"
    repeat: 1000
    usage: {input: 5, output: 7}
`)
	say := func(p string) llm.Request { return llm.Request{Messages: []llm.Message{user(p)}} }
	cut := ask(t, m, say("cut"))
	if c := cut.Calls[0]; cut.Stop != llm.StopLength || string(c.Args) != "{}" || c.Broken != `{"path": "a", "content": "half` {
		t.Errorf("cut: %+v", cut)
	}
	if c := ask(t, m, say("odd")).Calls[0]; c.Broken != "[1]" || string(c.Args) != "{}" {
		t.Errorf("odd: %+v", c)
	}
	if e := ask(t, m, say("empty")); e.Text != "" || len(e.Calls) != 0 || e.Stop != llm.StopEnd {
		t.Errorf("empty: %+v", e)
	}
	_, err := m.Generate(t.Context(), say("drop"))
	var le *llm.Error
	if !errors.As(err, &le) || le.Kind != llm.Dropped || le.Text != "connection closed" {
		t.Errorf("drop: %v", err)
	}
	second := say("drop")
	second.Attempt = 2
	if got := ask(t, m, second).Text; got != "second time" {
		t.Errorf("second attempt: %q", got)
	}
	long := ask(t, m, say("long"))
	if len(long.Text) != 10_000 || long.Usage != (llm.Usage{Input: 5, Output: 7}) {
		t.Errorf("long: %d bytes, %+v", len(long.Text), long.Usage)
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	m := parse(t, "turns:\n  - {text: late, delay_ms: 60000}\n")
	why := errors.New("killed here")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	began := time.Now()
	if _, err := m.Generate(ctx, llm.Request{}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestBadScripts(t *testing.T) {
	for in, want := range map[string]string{
		"turns: []\n":                                                "s.yaml:1: a script needs turns",
		"turns:\n  - {}\n":                                           "s.yaml:2: a turn answers with text, calls",
		"turns:\n  - {txt: a}\n":                                     `s.yaml:2: unknown field "txt"`,
		"turns:\n  - {text: a, when: {lst: a}}\n":                    `s.yaml:2: unknown field "lst"`,
		"turns:\n  - {text: a, when: {last: {ha: a}}}\n":             `s.yaml:2: unknown field "ha"`,
		"turns:\n  - text: a\n    when:\n      last: {re: '('}\n":    "s.yaml:4: error parsing regexp",
		"turns:\n  - {text: '${x}'}\n":                               "s.yaml:2: text: unknown value ${x}",
		"turns:\n  - calls: [{tool: t, args: {a: '${x}'}}]\n":        "s.yaml:2: args: unknown value ${x}",
		"turns:\n  - calls: [{args: {}}]\n":                          "s.yaml:2: a call needs a tool",
		"turns:\n  - calls: [{tool: t, args: [1]}]\n":                "args must be a mapping",
		"turns:\n  - calls: [{tool: t, args: {}, raw_args: '{}'}]\n": "a call has args or raw_args",
		"turns:\n  - calls: [{tool: t, id: a}, {tool: t, id: a}]\n":  `id "a" must be`,
		"turns:\n  - {text: a, stop: never}\n":                       "stop must be end, tool_use, length or refusal",
		"turns:\n  - {error: {kind: odd, text: x}}\n":                "kind must be transient",
		"turns:\n  - {text: a, error: {kind: dropped, text: x}}\n":   "a turn with an error has no text",
		"turns:\n  - {text: a, delay_ms: -1}\n":                      "delay_ms must be",
		"turns:\n  - {text: abcdefgh, repeat: 10000000}\n":           "repeat: the text would have more than",
		"capture: {a: {}}\nturns:\n  - {text: a}\n":                  "s.yaml:1: a capture needs re",
		"capture: {last: x}\nturns:\n  - {text: a}\n":                `cannot be called "last"`,
	} {
		if _, err := llm.ParseScript("s.yaml", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", in, err, want)
		}
	}
}

func TestOpen(t *testing.T) {
	const text = `{"turns": [{"text": "hello"}]}`
	file := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sha := strings.Repeat("ab", 32)
	store := func(got string, w io.Writer) error {
		if got != sha {
			t.Errorf("asked for %s", got)
		}
		_, err := io.WriteString(w, text)
		return err
	}
	for _, spec := range []string{"script:" + file, "script:sha256:" + sha} {
		m, err := llm.Open(spec, store)
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, m, llm.Request{}).Text; got != "hello" {
			t.Errorf("%s says %q", spec, got)
		}
	}
	for spec, want := range map[string]string{
		"":                             "--model script:FILE",
		"anthropic:x":                  "this build has one provider, script",
		"script":                       "this build has one provider, script",
		"script:":                      "names no file",
		"script:sha256:zz":             "64 hexadecimal digits",
		"script:" + file + ".gone":     "no such file",
		"script:" + filepath.Dir(file): "not a regular file",
		"script:sha256:" + sha + "0":   "64 hexadecimal digits",
	} {
		if _, err := llm.Open(spec, store); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", spec, err, want)
		}
	}
	big := func(_ string, w io.Writer) error {
		_, err := w.Write(make([]byte, 5<<20))
		return err
	}
	if _, err := llm.Open("script:sha256:"+sha, big); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a huge script: %v", err)
	}
	if got := llm.ScriptFile("script:a.json") + llm.ScriptFile("script:sha256:"+sha) + llm.ScriptFile("other:x"); got != "a.json" {
		t.Errorf("ScriptFile: %q", got)
	}
}
