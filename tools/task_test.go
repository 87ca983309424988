package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/budget"
)

// background starts a task and returns its id.
func background(t *testing.T, s *Set, command string) string {
	t.Helper()
	begun := time.Now()
	r := call(t, s, "run_command", "command", command, "background", true)
	if !r.OK || r.Facts.TaskID == "" || !strings.HasPrefix(r.Text, "id: "+r.Facts.TaskID+"\n") {
		t.Fatalf("got %+v", r)
	}
	if d := time.Since(begun); d > patience {
		t.Errorf("a background start took %v", d)
	}
	return r.Facts.TaskID
}

// toTheEnd reads a task until it has ended and nothing is left, and returns all replies' texts.
func toTheEnd(t *testing.T, s *Set, id string) (texts []string, last Reply) {
	t.Helper()
	for range 10_000 {
		last = call(t, s, "task_output", "id", id, "wait_secs", 20)
		if !last.OK {
			t.Fatalf("got %s", last.Text)
		}
		texts = append(texts, last.Text)
		if strings.Contains(last.Text, "exit: ") && !strings.Contains(last.Text, "wait for the next") {
			return texts, last
		}
	}
	t.Fatal("never at the end")
	return nil, last
}

// Check 8 of the tool contract.
func TestBackgroundStderr(t *testing.T) {
	t.Run("background_stderr_megabyte_ends", func(t *testing.T) {
		s := newSet(t)
		id := background(t, s, "head -c 1048576 /dev/zero | tr '\\0' e >&2; echo all-done; exit 5")
		texts, last := toTheEnd(t, s, id)
		all := strings.Join(texts, "\n")
		if last.Facts.ExitCode == nil || *last.Facts.ExitCode != 5 || last.Facts.Seen != 1048576+9 || !strings.Contains(last.Text, "exit: 5") {
			t.Errorf("got %+v", last)
		}
		inOrder(t, all, "all-done")
		// Every byte was shown or counted.
		shown, dropped := strings.Count(all, "e")-strings.Count(strings.ReplaceAll(all, strings.Repeat("e", 100), ""), "e"), 0
		for _, line := range strings.Split(all, "\n") {
			var n int
			if i := strings.Index(line, " were dropped unread"); i > 0 {
				before := line[:i]
				if _, err := fmt.Sscanf(before[strings.LastIndex(before, "; ")+2:], "%d bytes", &n); err != nil {
					t.Fatalf("%v in %s", err, line)
				}
				dropped += n
			}
		}
		if got := shown + dropped; got < 1048576-100*len(texts) || got > 1048576 {
			t.Errorf("%d shown and %d dropped of 1048576", shown, dropped)
		}
	})
}

func TestTaskOutputGoesOn(t *testing.T) {
	s := newSet(t)
	id := background(t, s, "echo one; echo err >&2; until test -e go; do sleep 0.02; done; echo two; sleep 0.3")
	r := call(t, s, "task_output", "id", id, "wait_secs", 20)
	inOrder(t, r.Text, id+" · running · ", "stdout: 4 new bytes\none\nstderr: 4 new bytes\nerr")
	r = call(t, s, "task_output", "id", strings.TrimPrefix(id, "task-"))
	inOrder(t, r.Text, "running", "stdout: (nothing new)", "stderr: (nothing new)")
	put(t, s, "go", "")
	texts, last := toTheEnd(t, s, id)
	inOrder(t, strings.Join(texts, "\n"), "two")
	inOrder(t, last.Text, id+" · exit: 0 · ")
	if r := call(t, s, "task_output", "id", id, "wait_secs", 20); !strings.Contains(r.Text, "(nothing new)") || r.Facts.Millis > 15000 {
		t.Errorf("an ended task was waited for: %+v", r)
	}
	// What does not wait is no poll.
	stuck := 0
	for n := 1; n <= 10 && stuck == 0; n++ {
		if r := call(t, s, "task_output", "id", id, "wait_secs", 20); r.Stuck {
			stuck = n
		}
	}
	if stuck < 3 || stuck > 5 {
		t.Errorf("asked about a task that has ended, it is stuck at %d", stuck)
	}
}

func TestWaitIsBounded(t *testing.T) {
	s := newSet(t)
	id := background(t, s, "sleep 300")
	begun := time.Now()
	r := call(t, s, "task_output", "id", id, "wait_secs", 1)
	if d := time.Since(begun); d < time.Second || d > patience || !strings.Contains(r.Text, "running") || !strings.Contains(r.Text, "stdout: (empty)") {
		t.Errorf("after %v: %s", d, r.Text)
	}
}

func TestTaskKill(t *testing.T) {
	s := newSet(t)
	id := background(t, s, "trap '' TERM; setsid -f sleep 300; echo up; while :; do sleep 300; done")
	call(t, s, "task_output", "id", id, "wait_secs", 20)
	r := call(t, s, "task_kill", "id", id)
	inOrder(t, r.Text, id+" killed, ", "processes ended")
	for range 2 {
		if r = call(t, s, "task_kill", "id", id); !r.OK || !strings.Contains(r.Text, "had ended before") {
			t.Errorf("got %+v", r)
		}
	}
	r = call(t, s, "task_output", "id", id)
	inOrder(t, r.Text, "exit: killed (by task_kill)")
	if r.Facts.Signal != "SIGKILL" {
		t.Errorf("got %+v", r.Facts)
	}

	natural := background(t, s, "exit 0")
	toTheEnd(t, s, natural)
	call(t, s, "task_kill", "id", natural)
	if r := call(t, s, "task_output", "id", natural); strings.Contains(r.Text, "killed") || !strings.Contains(r.Text, "exit: 0") {
		t.Errorf("a task that ended by itself: %s", r.Text)
	}
}

func TestTaskList(t *testing.T) {
	s := newSet(t)
	if r := call(t, s, "task_list"); !r.OK || !strings.Contains(r.Text, "no background tasks") {
		t.Errorf("got %+v", r)
	}
	first := background(t, s, "echo 1234567; exit 3")
	toTheEnd(t, s, first)
	background(t, s, "sleep 300\n# second line \x1b[31m")
	r := call(t, s, "task_list")
	rows := strings.Split(r.Text, "\n")
	if len(rows) != 2 {
		t.Fatalf("got %s", r.Text)
	}
	inOrder(t, rows[0], "task-1 · exit: 3 · ", " · 8 B · echo 1234567; exit 3")
	inOrder(t, rows[1], "task-2 · running · ", " · 0 B · sleep 300 # second line")
}

func TestUnknownTask(t *testing.T) {
	s := newSet(t)
	for _, tool := range []string{"task_output", "task_kill"} {
		if r := call(t, s, tool, "id", "task-1"); r.OK || r.Class != Input || !strings.Contains(r.Text, "nothing was started") {
			t.Errorf("%s: %s", tool, r.Text)
		}
	}
	background(t, s, "true")
	if r := call(t, s, "task_output", "id", "task-7"); r.Class != Input || !strings.Contains(r.Text, "there are task-1") {
		t.Errorf("got %s", r.Text)
	}
}

func TestTasksAreBounded(t *testing.T) {
	s := newSet(t)
	for range tasksLive {
		background(t, s, "sleep 300")
	}
	r := call(t, s, "run_command", "command", "touch ran", "background", true)
	if r.OK || !strings.Contains(r.Text, "32 background tasks are running") {
		t.Errorf("got %s", r.Text)
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Tree.Dir, "ran")); err == nil {
		t.Error("a refused task ran")
	}
	if r := call(t, s, "run_command", "command", "echo foreground"); !r.OK {
		t.Errorf("got %s", r.Text)
	}
	for i := range tasksLive {
		call(t, s, "task_kill", "id", fmt.Sprintf("task-%d", i+1))
	}
	for range 3 {
		toTheEnd(t, s, background(t, s, "true"))
	}
	last := background(t, s, "sleep 300")
	if n := len(s.tasks.list()); n > tasksKept+1 {
		t.Errorf("%d tasks are kept", n)
	}
	if r := call(t, s, "task_output", "id", "task-1"); r.Class != Input || !strings.Contains(r.Text, "kept no longer") {
		t.Errorf("got %s", r.Text)
	}
	if ended, survivors := s.Close(); ended != 1 || survivors != 0 {
		t.Errorf("%s: %d ended, %d survive", last, ended, survivors)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s := newSet(t)
	background(t, s, "setsid -f sleep 300; setsid -f sleep 300; echo up; sleep 300; :")
	call(t, s, "task_output", "id", "task-1", "wait_secs", 20)
	toTheEnd(t, s, background(t, s, "true"))
	var foreground Reply
	var running sync.WaitGroup
	running.Go(func() {
		foreground = call(t, s, "run_command", "command", "touch up; exec sleep 300")
	})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(filepath.Join(s.cfg.Tree.Dir, "up")); err == nil {
			break
		}
	}
	ended, survivors := s.Close()
	running.Wait()
	if ended != 5 || survivors != 0 { // bash, its sleep and two daemons; the foreground sleep
		t.Errorf("%d ended, %d survive", ended, survivors)
	}
	inOrder(t, foreground.Text, "exit: killed (the session ended)")
	for _, b := range []bool{false, true} {
		if r := call(t, s, "run_command", "command", "true", "background", b); r.OK || !strings.Contains(r.Text, "session is ending") {
			t.Errorf("got %s", r.Text)
		}
	}
	if ended, _ := s.Close(); ended != 0 {
		t.Errorf("a second close ended %d", ended)
	}
}

func TestTaskOutputFitsTightCaps(t *testing.T) {
	for _, limit := range []int{1000, 3000, 20_000} {
		s := newSet(t, func(c *Config) { c.Caps.OutputChars = limit })
		id := background(t, s, "seq 30000; seq 30000 >&2")
		texts, _ := toTheEnd(t, s, id)
		next := map[string]int{"stdout": 1, "stderr": 1}
		stream := ""
		for _, text := range texts {
			if n := budget.Chars(text); n > limit {
				t.Fatalf("%d characters of %d", n, limit)
			}
			for _, line := range strings.Split(text, "\n") {
				if name, _, ok := strings.Cut(line, ": "); ok && next[name] > 0 {
					stream = name
				}
				var n int
				if _, err := fmt.Sscanf(line, "%d", &n); err == nil {
					if n != next[stream] {
						t.Fatalf("limit %d: %s goes on with %d after %d", limit, stream, n, next[stream]-1)
					}
					next[stream]++
				}
			}
		}
		if next["stdout"] != 30001 || next["stderr"] != 30001 {
			t.Errorf("limit %d: read up to %v", limit, next)
		}
	}
}

func TestPagesOfATaskComeInOrder(t *testing.T) {
	s := newSet(t)
	id := background(t, s, "for i in $(seq 20000); do echo line $i; done; sleep 300")
	if r := call(t, s, "task_output", "id", id, "wait_secs", 20); !strings.Contains(r.Text, "line 1\n") {
		t.Fatalf("the first page: %s", r.Text)
	}
	var turn []Request
	for _, key := range []string{"a", "b", "c", "d"} {
		turn = append(turn, Request{ID: key, Tool: "task_output", Args: obj(t, "id", id)})
	}
	var order []string
	s.InvokeAll(t.Context(), turn, func(r Reply) { order = append(order, r.ID) })
	if got := strings.Join(order, ""); got != "abcd" {
		t.Errorf("calls that move on ended in the order %s", got)
	}
}
