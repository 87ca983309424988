package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/agents"
	"muster/board"
	"muster/board/boardtest"
)

func TestStepsBecomeTextUnderHeadingsAndAPatch(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	res := h.run(board.Job{Title: "steps", Base: h.base(map[string]string{"a.txt": "one\n", "gone.txt": "x\n"}), Steps: []board.Step{
		step("read_file", `{"path": "a.txt"}`),
		{Title: "Write", Tool: "write_file", Args: []byte(`{"path": "new/b.txt", "content": "two\n"}`)},
		command("rm gone.txt; echo out; echo err >&2"),
	}})
	if res.State != board.Done || res.Error != "" {
		t.Fatalf("got %s %s\n%s", res.State, res.Error, res.Text)
	}
	has(t, res.Text, "## read_file a.txt\n", "1→one", "\n## Write\n", "## run_command rm gone.txt", "out", "err")
	has(t, h.patch(res), "+two", "-x", "new/b.txt")
	if res.Files != 2 || len(res.Stat) != 2 || res.Usage.ToolCalls != 3 {
		t.Errorf("files %d, stat %v, usage %+v", res.Files, res.Stat, res.Usage)
	}
}

func TestAFailingStepEndsTheJobUnlessAllowed(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	bad := command("echo before; echo kept > kept.txt; exit 3")
	allowed := bad
	allowed.AllowFailure = true
	res := h.run(board.Job{Title: "stops", Steps: []board.Step{command("echo first"), bad, command("echo never-reached")}})
	if res.State != board.Failed || !strings.Contains(res.Error, "step 2 of 3") || !strings.Contains(res.Error, "exit code 3") {
		t.Errorf("got %s %q", res.State, res.Error)
	}
	has(t, res.Text, "first", "before")
	has(t, h.patch(res), "+kept")
	if strings.Contains(res.Text, "never-reached") {
		t.Errorf("a step after the failed one ran:\n%s", res.Text)
	}
	res = h.run(board.Job{Title: "goes on", Steps: []board.Step{allowed, step("read_file", `{"path": "none"}`)}})
	if res.State != board.Failed || !strings.Contains(res.Error, "step 2 of 2 (read_file none)") {
		t.Errorf("got %s %q", res.State, res.Error)
	}
}

func TestADeniedStepEndsTheJobAsDenied(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	never := command("echo made > made.txt")
	res := h.run(board.Job{Title: "asks", Mode: "default", Steps: []board.Step{never, step("write_file", `{"path": "b.txt", "content": "x"}`)}})
	if res.State != board.Denied || !strings.Contains(res.Error, "step 1 of 2") || !strings.Contains(res.Error, "mode default") || res.Files != 0 {
		t.Errorf("got %s %q, %d files", res.State, res.Error, res.Files)
	}
	never.AllowFailure = true
	res = h.run(board.Job{Title: "goes on", Mode: "default", Steps: []board.Step{never, step("write_file", `{"path": "b.txt", "content": "x"}`)}})
	if res.State != board.Done || res.Files != 1 {
		t.Errorf("got %s %q, %d files", res.State, res.Error, res.Files)
	}
}

func TestAnItemIsALineOfText(t *testing.T) {
	for _, name := range []string{"two\nlines.txt", "b\xff.txt"} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, name), "x")
		got := expanded(t, []byte("jobs:\n  - id: a\n    foreach: {glob: '*.txt'}\n    steps: [{tool: read_file, args: {path: '${{ item }}'}}]\n"), dir)
		if !strings.Contains(got, "cannot be an item") || !strings.Contains(got, strconv.Quote(name)) {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestResultsReachLaterJobsAndNoShellEvaluatesThem(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 4)
	dir := t.TempDir()
	evil := `$(touch pwned) "q" 'r' ; touch pwned2`
	writeFile(t, filepath.Join(dir, evil+".txt"), "content of it")
	writeFile(t, filepath.Join(dir, "b.txt"), "content of b")
	p, err := agents.ParsePlan("p.yaml", []byte(`
jobs:
  - id: look
    foreach: {glob: "*.txt"}
    steps:
      - tool: run_command
        args: {command: 'cat "${{ item }}"; echo "`+"`touch pwned3`"+`$(touch pwned4)" | tr -d x; printf %s "\$(touch pwned5)"'}
  - id: none
    foreach: {glob: "*.rs"}
    prompt: x
  - id: sum
    after: [look, none]
    model: script:`+filepath.Join(h.dir, "s.yaml")+`
    prompt: "Sum: ${{ results.look }} / ${{ results.none }}"
  - id: end
    after: [sum, look]
    steps:
      - tool: run_command
        args: {command: 'printf "%s|" "${{ results.sum }}" "${{ results.look }}"'}
      - tool: write_file
        args: {path: out.txt, content: "${{ results.sum }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(h.dir, "s.yaml"), "turns:\n  - text: 'I was asked <${prompt}> $(touch pwned6)'\n")
	jobs, err := p.Jobs(h.ctx(), dir, board.Job{Base: h.snapshot(dir)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		jobs[i].Model = h.stored(jobs[i].Model)
	}
	if len(jobs) != 4 {
		t.Fatalf("%d jobs, want 4", len(jobs))
	}
	entries := h.submit(jobs...)
	res := h.result(entries[len(entries)-1].ID)
	if res.State != board.Done {
		t.Fatalf("%s %s", res.State, res.Error)
	}
	has(t, res.Text, "I was asked <Sum: # look: ", "content of it", "content of b", "$(touch pwned5)", "$(touch pwned6)", "(nothing: the foreach of none had no parts)")
	has(t, h.patch(res), "+I was asked <Sum: # look: ")
	for _, e := range entries {
		// pwned3 and pwned4 stand in the plan itself: a plan's author may run what he likes.
		for _, f := range h.result(e.ID).Stat {
			if strings.HasPrefix(f.Path, "pwned") && f.Path != "pwned3" && f.Path != "pwned4" {
				t.Errorf("%s: a shell evaluated what it was given: %s", e.Name, f.Path)
			}
		}
	}
}

func TestALongResultIsCutWithANotice(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 2)
	p, err := agents.ParsePlan("p.yaml", []byte(`
jobs:
  - id: long
    caps: {command_chars: 50000, output_chars: 60000}
    steps: [{tool: run_command, args: {command: "seq 1 9000"}}]
  - id: end
    after: [long]
    steps: [{tool: write_file, args: {path: out.txt, content: "${{ results.long }}"}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := p.Jobs(h.ctx(), t.TempDir(), board.Job{})
	if err != nil {
		t.Fatal(err)
	}
	entries := h.submit(jobs...)
	patch := h.patch(h.result(entries[1].ID))
	has(t, patch, "of the result of long", "orchestrator collect", "+9000")
	if n := len(patch); n > 40_000 {
		t.Errorf("the patch has %d bytes", n)
	}
}

// alive says that a process runs (a zombie does not).
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// sleepers are the processes that sleep for a number of seconds which only this test uses.
func sleepers(secs string) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, d := range dirs {
		line, err := os.ReadFile(d)
		if err != nil || !strings.HasPrefix(string(line), "sleep\x00"+secs+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(d))); err == nil && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestKillInTheMiddleOfAStep(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	secs := strconv.Itoa(100_000 + os.Getpid())
	stubborn := command(`trap "" TERM; echo begun; echo made > made.txt; (sleep ` + secs + ` & sleep ` + secs + ` & wait) & sleep ` + secs)
	id := h.submit(board.Job{Title: "hangs", Steps: []board.Step{command("echo one"), stubborn, command("echo three")}})[0].ID
	boardtest.Until(t, "three sleeps run", func() bool { return len(sleepers(secs)) == 3 })
	began := time.Now()
	lines, err := h.b.Kill(h.ctx(), "enough", id)
	if err != nil || len(lines) != 1 || lines[0].Outcome != "killed" {
		t.Fatalf("kill: %+v %v", lines, err)
	}
	res := h.result(id)
	if d := time.Since(began); d > time.Minute {
		t.Errorf("the kill took %v", d)
	}
	if left := sleepers(secs); len(left) > 0 {
		t.Errorf("still alive: %v", left)
	}
	if res.State != board.Killed {
		t.Errorf("state %s", res.State)
	}
	has(t, res.Text, "one", "begun")
	has(t, h.patch(res), "+made")
	if strings.Contains(res.Text, "three") {
		t.Errorf("went on after the kill:\n%s", res.Text)
	}
}

func TestDeadlineHandsBackWhatThereIs(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	res := h.run(board.Job{Title: "slow", Deadline: time.Now().Add(3 * time.Second), Steps: []board.Step{command("echo one > one.txt; echo said"), command("sleep 60")}})
	if res.State != board.Partial || !strings.Contains(res.Error, "deadline") {
		t.Errorf("got %s %q", res.State, res.Error)
	}
	has(t, res.Text, "said")
	has(t, h.patch(res), "+one")
}

func TestInPlaceWorksOnTheFolderItself(t *testing.T) {
	h := newHouse(t)
	h.worker("w", 1)
	dir := t.TempDir()
	res := h.run(board.Job{Title: "here", Base: board.Base{InPlace: dir}, Steps: []board.Step{step("write_file", `{"path": "x.txt", "content": "here"}`)}})
	if got, err := os.ReadFile(filepath.Join(dir, "x.txt")); err != nil || string(got) != "here" || res.State != board.Done {
		t.Errorf("%s %s: %q, %v", res.State, res.Error, got, err)
	}
	has(t, h.patch(res), "+here")
}
