package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster/board"
	"muster/budget"
)

// journal records what Invoke journals; refuse, when set, is the error of a kind.
type journal struct {
	mu     sync.Mutex
	kinds  []string
	data   []any
	live   []bool // the context was not cancelled
	refuse map[string]error
}

func (j *journal) append(ctx context.Context, kind string, data any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.kinds = append(j.kinds, kind)
	j.data = append(j.data, data)
	j.live = append(j.live, ctx.Err() == nil)
	return j.refuse[kind]
}

// withTool is a set that has one more tool.
func withTool(t *testing.T, j *journal, tool Tool) *Set {
	s := newSet(t, func(c *Config) {
		if j != nil {
			c.Journal = j.append
		}
	})
	s.tools = append(s.tools, mustFit(t, tool))
	return s
}

type sayArgs struct {
	Word string `json:"word,omitempty" jsonschema:"w"`
	N    int64  `json:"n,omitempty" default:"1" max:"3" jsonschema:"n"`
}

func say(class Class, run func(ctx context.Context, c *Call, a sayArgs) (Output, error)) Tool {
	return define("say", class, "says", run)
}

func TestJournalHasStartAndReceipt(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancel(context.Background())
	s := withTool(t, &j, say(Write, func(context.Context, *Call, sayArgs) (Output, error) {
		cancel()
		return Output{Text: "done"}, nil
	}))
	r := s.Invoke(ctx, Request{ID: "k7", Tool: "say", Args: obj(t, "word", "x")})
	if !slices.Equal(j.kinds, []string{EventStarted, EventFinished}) || !j.live[1] {
		t.Fatalf("journal %v, live %v", j.kinds, j.live)
	}
	started, ok := j.data[0].(Started)
	if !ok || started.ID != "k7" || started.Tool != "say" || string(started.Args) != `{"n":1,"word":"x"}` {
		t.Errorf("started %+v", j.data[0])
	}
	receipt, ok := j.data[1].(Reply)
	if !ok || receipt.Text != r.Text || receipt.ID != "k7" || !receipt.OK {
		t.Errorf("receipt %+v, reply %+v", j.data[1], r)
	}
	if r := s.Invoke(ctx, Request{ID: "k8", Tool: "say"}); r.OK || !strings.Contains(r.Text, "not started") || len(j.kinds) != 2 {
		t.Errorf("a call after the end: %+v, journal %v", r, j.kinds)
	}
}

func TestJournalRefusalEndsTheTurn(t *testing.T) {
	ran := 0
	tool := say(Write, func(context.Context, *Call, sayArgs) (Output, error) { ran++; return Output{Text: "done"}, nil })
	j := &journal{refuse: map[string]error{EventStarted: board.ErrLeaseLost}}
	s := withTool(t, j, tool)
	r := s.Invoke(t.Context(), Request{ID: "1", Tool: "say"})
	if r.OK || !errors.Is(r.Fault, board.ErrLeaseLost) || ran != 0 {
		t.Errorf("refused start: %+v, ran %d", r, ran)
	}
	j = &journal{refuse: map[string]error{EventFinished: board.ErrLeaseLost}}
	s = withTool(t, j, tool)
	rs := s.InvokeAll(t.Context(), []Request{{ID: "1", Tool: "say"}, {ID: "2", Tool: "say"}}, nil)
	if !errors.Is(rs[0].Fault, board.ErrLeaseLost) || !errors.Is(rs[1].Fault, board.ErrLeaseLost) || ran != 1 || len(j.kinds) != 2 {
		t.Errorf("refused receipt: %+v, ran %d, journal %v", rs, ran, j.kinds)
	}
}

func TestRefusedCallsAreOnRecord(t *testing.T) {
	var j journal
	s := newSet(t, func(c *Config) {
		c.Journal = j.append
		c.Deny = []string{"list_dir"}
		c.Allow = []string{"read_file", "list_dir"}
	})
	for _, c := range []struct {
		tool  string
		class ErrorClass
		want  string
	}{
		{"reed_file", Input, "unknown tool \"reed_file\"; the nearest are: read_file"},
		{"read", Input, "the nearest are: read_file"},
		{"list_dir", Permission, "deny list"},
		{"write_file", Permission, "not on the allow list"},
		{"read_file", Input, "missing string field `path`"},
	} {
		r := s.Invoke(t.Context(), Request{ID: "1", Tool: c.tool})
		if r.OK || r.Class != c.class || !strings.Contains(r.Text, c.want) {
			t.Errorf("%s: %+v", c.tool, r)
		}
	}
	if slices.Contains(j.kinds, EventStarted) || len(j.kinds) != 5 {
		t.Errorf("journal %v", j.kinds)
	}
	if seen := s.Tools(); len(seen) != 1 || seen[0].Name != "read_file" {
		t.Errorf("%d tools are shown", len(seen))
	}
}

func TestLoopIsHintedThenStuck(t *testing.T) {
	answer := "same"
	s := withTool(t, nil, say(Read, func(_ context.Context, _ *Call, a sayArgs) (Output, error) {
		return Output{Text: answer, Waited: a.Word == "wait"}, nil
	}))
	invoke := func(word string) Reply { return call(t, s, "say", "word", word) }
	for i := 1; i <= 6; i++ {
		r := invoke("x")
		if hinted := strings.Contains(r.Text, "in a row"); hinted != (i >= 3) || r.Stuck != (i >= 5) {
			t.Errorf("call %d: hint %v, stuck %v: %s", i, hinted, r.Stuck, r.Text)
		}
	}
	if r := invoke("y"); strings.Contains(r.Text, "in a row") {
		t.Errorf("other arguments: %s", r.Text)
	}
	invoke("y")
	answer = "other"
	if r := invoke("y"); strings.Contains(r.Text, "in a row") {
		t.Errorf("another result: %s", r.Text)
	}
	for range 6 {
		if r := invoke("wait"); strings.Contains(r.Text, "in a row") || r.Stuck {
			t.Errorf("a poll: %s", r.Text)
		}
	}
}

// How often is the caps' to say, at least twice; a stop that is chosen below the hint takes the hint's place.
func TestRepeatsAreConfigurable(t *testing.T) {
	for text, want := range map[string][2]int{"": {3, 5}, "repeat_hint=2": {2, 5}, "repeat_stop=8,repeat_hint=7": {7, 8}, "repeat_stop=2": {2, 2}} {
		choice, err := budget.ParseChoice(text)
		if err != nil {
			t.Fatal(err)
		}
		caps, err := choice.Caps()
		if err != nil {
			t.Fatal(err)
		}
		s := newSet(t, func(c *Config) { c.Caps = caps })
		for n := 1; n <= want[1]; n++ {
			r := call(t, s, "list_dir")
			if hinted := strings.Contains(r.Text, fmt.Sprintf("the same result %d times in a row", n)); hinted != (n >= want[0]) || r.Stuck != (n == want[1]) {
				t.Errorf("%q, call %d: hint %v, stuck %v", text, n, hinted, r.Stuck)
			}
		}
	}
	for _, text := range []string{"repeat_hint=1", "repeat_stop=1", "repeat_stop=1001", "repeat_hint=6", "repeat_hint=5,repeat_stop=4"} {
		if _, err := budget.ParseChoice(text); err == nil || !strings.Contains(err.Error(), "it must be from 2 to") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestHintKeepsTheCap(t *testing.T) {
	s := withTool(t, nil, say(Read, func(_ context.Context, c *Call, _ sayArgs) (Output, error) {
		return Output{Text: strings.Repeat("中", c.Room)}, nil
	}))
	for range 3 {
		r := call(t, s, "say", "n", 9)
		checkText(t, r, s.cfg.Caps.OutputChars)
		if !strings.Contains(r.Text, "[n 9 is out of range; 3 was used]") {
			t.Errorf("the clamped number is not said: %s", r.Text[len(r.Text)-300:])
		}
	}
}

func TestReadsOfATurnRunSideBySide(t *testing.T) {
	both := make(chan struct{}, 2)
	var order []string
	var mu sync.Mutex
	tool := say(Read, func(ctx context.Context, _ *Call, a sayArgs) (Output, error) {
		both <- struct{}{}
		for len(both) < 2 { // ends only when the other one is here too
			if ctx.Err() != nil {
				return Output{}, ctx.Err()
			}
		}
		return Output{Text: a.Word}, nil
	})
	s := withTool(t, nil, tool)
	writer := define("note", Write, "n", func(_ context.Context, _ *Call, a sayArgs) (Output, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, a.Word)
		return Output{Text: a.Word}, nil
	})
	s.tools = append(s.tools, mustFit(t, writer))
	var rs []Request
	for i, name := range []string{"say", "say", "note", "note", "note"} {
		rs = append(rs, Request{ID: fmt.Sprint(i), Tool: name, Args: obj(t, "word", fmt.Sprint(i))})
	}
	var each []string
	replies := s.InvokeAll(t.Context(), rs, func(r Reply) { each = append(each, r.ID) })
	for i, r := range replies {
		if r.ID != fmt.Sprint(i) || r.Text != fmt.Sprint(i) {
			t.Errorf("reply %d is %+v", i, r)
		}
	}
	if !slices.Equal(order, []string{"2", "3", "4"}) || len(each) != 5 || !slices.Equal(each[2:], order) {
		t.Errorf("order %v, each %v", order, each)
	}
}

func TestPanicAndDeadlineAreErrors(t *testing.T) {
	s := withTool(t, nil, say(Read, func(ctx context.Context, _ *Call, a sayArgs) (Output, error) {
		if a.Word == "panic" {
			panic("out of words")
		}
		if _, ok := ctx.Deadline(); !ok {
			return Output{}, errors.New("no deadline")
		}
		return Output{}, fmt.Errorf("walk: %w", context.DeadlineExceeded)
	}))
	if r := call(t, s, "say", "word", "panic"); r.OK || r.Class != Permanent || !strings.Contains(r.Text, "say broke: out of words") {
		t.Errorf("panic: %s", r.Text)
	}
	if r := call(t, s, "say"); r.Class != Transient || !strings.Contains(r.Text, "ask for less") {
		t.Errorf("deadline: %s", r.Text)
	}
}

func TestModesWidenNothing(t *testing.T) {
	for _, c := range []struct {
		parent, child string
		ok            bool
	}{
		{"plan", "plan", true}, {"plan", "debug", false}, {"plan", "default", false}, {"plan", "goal", false},
		{"debug", "plan", true}, {"debug", "default", false}, {"debug", "goal", false},
		{"default", "plan", true}, {"default", "accept-edits", true}, {"default", "debug", false}, {"default", "goal", false},
		{"accept-edits", "default", true}, {"goal", "default", true}, {"goal", "debug", true}, {"goal", "goal", true},
	} {
		if got := modes()[c.parent].within(modes()[c.child]); got != c.ok {
			t.Errorf("%s under %s: %v", c.child, c.parent, got)
		}
	}
	if _, err := New(Config{Tree: newTree(t), Caps: budget.Default(), Mode: "yolo"}); err == nil || !strings.Contains(err.Error(), "accept-edits") {
		t.Errorf("an unknown mode: %v", err)
	}
}

func TestRefusedCallsGetStuckToo(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Mode = "plan" })
	for _, tool := range []string{"no_such_tool", "write_file"} {
		for n := 1; n <= s.cfg.Caps.RepeatStop; n++ {
			r := call(t, s, tool, "path", "x", "content", "y")
			if r.OK || r.Stuck != (n == s.cfg.Caps.RepeatStop) || (n >= s.cfg.Caps.RepeatHint) != strings.Contains(r.Text, "the same call gave the same result") {
				t.Errorf("%s, call %d: stuck %v: %s", tool, n, r.Stuck, r.Text)
			}
		}
	}
}
