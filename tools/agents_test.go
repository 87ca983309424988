package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
	"muster/budget"
)

// act is what the children of these tests do: their prompt says it.
func act(ctx context.Context, l *board.Lease) (board.Result, error) {
	word, text, _ := strings.Cut(l.Job().Prompt, ":")
	switch word {
	case "fail":
		return board.Result{State: board.Failed, Text: "got so far", Error: text}, nil
	case "hang":
		ended := 2
		l.OnKill(func() (int, int) { // as with real processes: the second time none is left
			n := ended
			ended = 0
			return n, 0
		})
		<-ctx.Done()
		return board.Result{}, context.Cause(ctx)
	case "flood":
		text = strings.Repeat("中文🚀 line of a long result\n", 4000)
	}
	return board.Result{
		State: board.Done, Text: text, Files: 7,
		Stat:  []board.FileStat{{Path: "a.go", Added: 3, Removed: 1}, {Path: "b.png", Added: -1, Removed: -1}},
		Usage: board.Usage{InputTokens: 1200, OutputTokens: 34},
	}, nil
}

// agentSet is the set of a parent agent on a real board: its job runs as long as the test, and two slots beside it run its children.
func agentSet(t *testing.T, change ...func(*Config, *board.Job)) *Set {
	t.Helper()
	cfg := Config{Tree: newTree(t), Caps: budget.Default(), Mode: "goal", Profiles: []Profile{{"general", "does anything"}, {"explore", "only reads"}}}
	root := board.Job{Title: "parent", Prompt: "parent"}
	for _, f := range change {
		f(&cfg, &root)
	}
	b := boardtest.New(t, board.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	leases := make(chan *board.Lease, 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := b.Serve(ctx, board.Worker{Slots: 3}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
			if l.Job().Title != "parent" {
				return act(ctx, l)
			}
			leases <- l
			select {
			case <-stop:
			case <-ctx.Done():
			}
			return board.Result{State: board.Done, Text: "parent is done"}, nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() { close(stop); cancel(); wg.Wait() })
	if _, err := b.Submit(ctx, root); err != nil {
		t.Fatal(err)
	}
	select {
	case cfg.Lease = <-leases:
	case <-time.After(20 * time.Second):
		t.Fatal("the parent was not claimed")
	}
	cfg.Journal = cfg.Lease.Append
	return newSet(t, func(c *Config) { *c = cfg })
}

// next is a call with a key of its own, as a model's calls have.
func next(t *testing.T, s *Set, tool string, pairs ...any) Reply {
	t.Helper()
	return s.Invoke(t.Context(), Request{Tool: tool, Args: obj(t, pairs...)})
}

func agentFlood(tool string) func(t *testing.T) flooded {
	return func(t *testing.T) flooded {
		const limit = 3000
		s := agentSet(t, func(c *Config, _ *board.Job) { c.Caps.OutputChars = limit })
		if tool == "subagent" {
			return flooded{next(t, s, "subagent", "task", "flood:"), limit, limit / 2}
		}
		var id string
		for range 8 {
			id = next(t, s, "subagent", "task", "flood:", "background", true, "title", strings.Repeat("title ", 30)).Facts.JobID
		}
		if r := next(t, s, "agent_list", "wait_secs", 60, "until", "all"); !strings.Contains(r.Text, "8 children: 8 done") {
			t.Fatal(r.Text)
		}
		switch tool {
		case "agent_list":
			return flooded{next(t, s, tool), limit, limit / 2}
		case "agent_kill":
			return flooded{next(t, s, tool, "id", id, "reason", strings.Repeat("because ", 1000)), limit, 10}
		}
		return flooded{next(t, s, tool, "id", id), limit, limit / 2}
	}
}

func TestForegroundChild(t *testing.T) {
	s := agentSet(t)
	r := next(t, s, "subagent", "task", "say:hello from the child")
	for _, want := range []string{"(say:hello from the child) is done; its result has 20 characters", "\nhello from the child\n", "it changed 7 files: a.go +3 −1, b.png (binary) and 5 more"} {
		if !r.OK || !strings.Contains(r.Text, want) {
			t.Errorf("lacks %q: %s", want, r.Text)
		}
	}
	r = next(t, s, "subagent", "task", "fail:no way", "profile", "explore")
	if r.OK || r.Class != "" || !strings.Contains(r.Text, "is failed") || !strings.Contains(r.Text, "error: no way") || !strings.Contains(r.Text, "got so far") {
		t.Errorf("a failed child: ok=%v %s", r.OK, r.Text)
	}
	job, err := s.cfg.Lease.Board().Spec(t.Context(), r.Facts.JobID)
	if err != nil || job.Profile != "explore" || job.Mode != "goal" || job.Parent != s.cfg.Lease.Job().ID || job.Run != s.cfg.Lease.Job().Run {
		t.Errorf("the child's job: %v %+v", err, job)
	}
	if r := next(t, s, "subagent", "task", "say:x", "profile", "wizard"); r.OK || !strings.Contains(r.Text, "general, explore") {
		t.Errorf("an unknown profile: %s", r.Text)
	}
}

func TestBackgroundChildren(t *testing.T) {
	s := agentSet(t)
	if r := next(t, s, "agent_list"); !r.OK || !strings.Contains(r.Text, "no children yet") {
		t.Errorf("before the first: %s", r.Text)
	}
	for n := 1; n <= 5; n++ { // nothing is waited for
		if r := next(t, s, "agent_list", "wait_secs", 60); r.Stuck != (n == 5) {
			t.Errorf("wait %d for no children: %+v", n, r)
		}
	}
	hang := next(t, s, "subagent", "task", "hang:", "background", true)
	say := next(t, s, "subagent", "task", "say:"+strings.Repeat("é", 900), "background", true, "title", "speaks")
	after := next(t, s, "subagent", "task", "say:third", "background", true, "after", []string{shortID(say.Facts.JobID)})
	if !hang.OK || !say.OK || !after.OK || !strings.Contains(say.Text, shortID(say.Facts.JobID)) {
		t.Fatal(hang.Text, say.Text, after.Text)
	}
	for range 2 { // any: one more has ended, also when it ended before the call
		if r := next(t, s, "agent_list", "wait_secs", 60); strings.Contains(r.Text, "2 done") {
			break
		}
	}
	r := next(t, s, "agent_list", "state", "done")
	row := "speaks\", attempt 1, "
	if !strings.HasPrefix(r.Text, "3 children: 1 running, 2 done\n2 in state done\n<untrusted source=\"your children\" mark=") || !strings.Contains(r.Text, row) || !strings.Contains(r.Text, " | "+strings.Repeat("é", 499)+"…") || !strings.Contains(r.Text, "1234 tokens") {
		t.Errorf("list: %s", r.Text)
	}
	if r := next(t, s, "agent_collect", "id", hang.Facts.JobID); r.OK || r.Class != Transient || !strings.Contains(r.Text, "wait_secs") {
		t.Errorf("collect of a running child: %s", r.Text)
	}
	if r := next(t, s, "agent_collect", "id", say.Facts.JobID[len(say.Facts.JobID)-8:], "offset", 890); !r.OK || !strings.Contains(r.Text, "\néééééééééé\n") {
		t.Errorf("collect by a short id: %s", r.Text)
	}
	r = next(t, s, "agent_collect", "id", "nobody")
	if r.OK || r.Class != Input || !strings.Contains(r.Text, shortID(hang.Facts.JobID)) {
		t.Errorf("collect of nobody: %s", r.Text)
	}
	r = next(t, s, "agent_kill", "id", hang.Facts.JobID, "reason", "too slow")
	if !r.OK || !strings.Contains(r.Text, "1 agent: 1 killed, 0 had ended, 0 unknown") || !strings.Contains(r.Text, "2 processes ended") {
		t.Errorf("kill: %s", r.Text)
	}
	if r := next(t, s, "agent_kill", "id", hang.Facts.JobID); !r.OK || !strings.Contains(r.Text, "0 killed, 1 had ended") {
		t.Errorf("kill again: %s", r.Text)
	}
	if r := next(t, s, "agent_collect", "id", hang.Facts.JobID); !r.OK || !strings.Contains(r.Text, "is killed; its result has 0 characters") || !strings.Contains(r.Text, "too slow") {
		t.Errorf("collect of a killed child: %s", r.Text)
	}
	waits := next(t, s, "subagent", "task", "say:late", "background", true, "after", []string{next(t, s, "subagent", "task", "hang:", "background", true).Facts.JobID})
	if r := next(t, s, "agent_kill", "id", waits.Facts.JobID); !r.OK || !strings.Contains(r.Text, "1 killed") {
		t.Errorf("kill of a blocked child: %s", r.Text)
	}
	if r := next(t, s, "agent_collect", "id", waits.Facts.JobID); !r.OK || !strings.Contains(r.Text, "is killed") {
		t.Errorf("collect of a child that never ran: %s", r.Text)
	}
}

func TestResultPagesAreWhole(t *testing.T) {
	s := agentSet(t, func(c *Config, _ *board.Job) { c.Caps.OutputChars = 50000 })
	r := next(t, s, "subagent", "task", "flood:")
	want := strings.Repeat("中文🚀 line of a long result\n", 4000)
	var got strings.Builder
	var offset int64
	for pages := 0; ; pages++ {
		_, mark, _ := strings.Cut(r.Text, `mark="`)
		mark, body, _ := strings.Cut(mark, "\">\n")
		body, tail, ok := strings.Cut(body, "\n</untrusted "+mark+">")
		if !ok || pages > 10 {
			t.Fatalf("page %d has no end: %.300s", pages, r.Text)
		}
		got.WriteString(body)
		if len(r.Facts.Cuts) == 0 {
			break
		}
		c := r.Facts.Cuts[0]
		if c.Total != int64(budget.Chars(want)) || c.Shown != int64(budget.Chars(body)) || c.Next != offset+c.Shown || !strings.Contains(tail, fmt.Sprintf("offset %d gets the next", c.Next)) {
			t.Fatalf("page %d: %+v: %s", pages, c, tail)
		}
		offset = c.Next
		r = next(t, s, "agent_collect", "id", r.Facts.JobID, "offset", offset)
	}
	if got.String() != want {
		t.Errorf("the pages give %d bytes, want %d", got.Len(), len(want))
	}
	if r := next(t, s, "agent_collect", "id", r.Facts.JobID, "offset", budget.Chars(want)); r.OK || r.Class != Input {
		t.Errorf("past the end: %s", r.Text)
	}
}

func TestDelegationIsBounded(t *testing.T) {
	s := agentSet(t, func(c *Config, root *board.Job) {
		root.Caps = budget.Choice{Numbers: map[string]int{"children_total": 1}}
		c.Mode = "default"
	})
	if r := next(t, s, "subagent", "task", "say:x", "mode", "goal"); r.OK || r.Class != Permission {
		t.Errorf("a child in a wider mode: %s", r.Text)
	}
	if r := next(t, s, "subagent", "task", "say:x", "mode", "plan"); !r.OK {
		t.Errorf("a child in a narrower mode: %s", r.Text)
	}
	if r := next(t, s, "subagent", "task", "say:y"); r.OK || r.Class != Permanent || !strings.Contains(r.Text, "1 of 1 children") {
		t.Errorf("over the total: %s", r.Text)
	}
	for _, tool := range s.Tools() {
		if tool.Name == "subagent" {
			t.Error("subagent is shown although no child may be started")
		}
	}
	deep := agentSet(t, func(c *Config, _ *board.Job) { c.Caps.Depth = 0 })
	if _, ok := deep.find("subagent"); ok {
		t.Error("subagent exists at the depth limit")
	}
	if _, ok := deep.find("agent_list"); !ok {
		t.Error("agent_list is gone at the depth limit")
	}
	if _, ok := newSet(t).find("agent_list"); ok {
		t.Error("agent_list exists without a board")
	}
}

func TestTodoShowsOnTheBoard(t *testing.T) {
	s := agentSet(t)
	if r := next(t, s, "todo_write", "items", []todoItem{{"a", "completed"}, {"b\n- [ ] forged", ""}}); !r.OK || !strings.Contains(r.Text, "2 items: 1 completed, 0 in progress, 1 pending") {
		t.Fatal(r.Text)
	}
	if r := next(t, s, "todo_read"); r.Text != "1. [x] a\n2. [ ] b␊- [ ] forged" {
		t.Errorf("list %q", r.Text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	seen := errors.New("seen")
	err := s.cfg.Lease.Board().Watch(ctx, board.Filter{}, nil, func(e board.Entry) error {
		if e.TodoDone == 1 && e.TodoTotal == 2 && e.LastTool != "" {
			return seen
		}
		return nil
	})
	if !errors.Is(err, seen) {
		t.Errorf("the board shows no progress: %v", err)
	}
}
