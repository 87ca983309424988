package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"muster/agents"
	"muster/agents/llm"
	"muster/board"
	"muster/board/boardtest"
	"muster/board/policy"
	"muster/tools/sandbox"
	"muster/tools/workspace"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// house is a board with workers for one test.
type house struct {
	t     *testing.T
	b     *board.Board
	cache *workspace.Cache
	dir   string
	marks string // a folder in which commands leave a mark that a test waits for
}

func newHouse(t *testing.T) *house {
	t.Helper()
	dir := t.TempDir()
	cache, err := workspace.OpenCache(filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return &house{t: t, b: boardtest.New(t, board.Config{}), cache: cache, dir: dir, marks: t.TempDir()}
}

// worker serves until stop is called or the test ends.
func (h *house) worker(name string, slots int) (stop func()) {
	h.t.Helper()
	r := &agents.Runner{Cache: h.cache, Policy: sandbox.Policy{Mode: "auto", Writable: []string{h.marks}}, Allows: policy.Sandbox{Min: "limits"}, Log: zerolog.New(zerolog.NewTestWriter(h.t))}
	return boardtest.Serve(h.t, h.b, board.Worker{Name: name, Slots: slots}, r.Run)
}

func (h *house) ctx() context.Context { return boardtest.Context(h.t) }

// script makes a job with a prompt that the turns answer.
func (h *house) script(turns string) board.Job {
	h.t.Helper()
	return board.Job{Title: "scripted", Prompt: "do it", Model: h.stored("script:" + h.file(turns))}
}

// file writes a text into a file of its own.
func (h *house) file(text string) string {
	h.t.Helper()
	f, err := os.CreateTemp(h.dir, "script-*.yaml")
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		h.t.Fatal(err)
	}
	return f.Name()
}

// stored puts a local script into the artifact store and returns the model's new name.
func (h *house) stored(model string) string {
	h.t.Helper()
	file := llm.ScriptFile(model)
	if file == "" {
		return model
	}
	f, err := os.Open(file)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	a, err := h.b.Put(h.ctx(), f)
	if err != nil {
		h.t.Fatal(err)
	}
	return "script:sha256:" + a.SHA256
}

// base is a snapshot of files.
func (h *house) base(files map[string]string) board.Base {
	h.t.Helper()
	dir := h.t.TempDir()
	for name, text := range files {
		writeFile(h.t, filepath.Join(dir, name), text)
	}
	return h.snapshot(dir)
}

func (h *house) snapshot(dir string) board.Base {
	h.t.Helper()
	var pack bytes.Buffer
	s, err := h.cache.Snapshot(h.ctx(), dir, &pack)
	if err != nil {
		h.t.Fatal(err)
	}
	a, err := h.b.Put(h.ctx(), &pack)
	if err != nil {
		h.t.Fatal(err)
	}
	return board.Base{Commit: s.Commit, Pack: a}
}

func (h *house) submit(jobs ...board.Job) []board.Entry {
	h.t.Helper()
	es, err := h.b.Submit(h.ctx(), jobs...)
	if err != nil {
		h.t.Fatal(err)
	}
	return es
}

// result waits for a job to end.
func (h *house) result(id string) board.Result {
	h.t.Helper()
	if _, err := h.b.Wait(h.ctx(), id); err != nil {
		h.t.Fatalf("wait for %s: %v\n%s", id, err, h.log(id))
	}
	res, err := h.b.Collect(h.ctx(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return res
}

// run submits a job and waits for it.
func (h *house) run(job board.Job) board.Result {
	h.t.Helper()
	return h.result(h.submit(job)[0].ID)
}

// events are those of a kind in a job's log.
func (h *house) events(id, kind string) []board.Event {
	h.t.Helper()
	var all []board.Event
	err := h.b.Events(h.ctx(), id, false, func(e board.Event) error {
		if e.Kind == kind {
			all = append(all, e)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// until waits for an event of a job whose data holds a text.
func (h *house) until(id, kind, has string) {
	h.t.Helper()
	found := false
	ctx, cancel := context.WithCancel(h.ctx())
	defer cancel()
	err := h.b.Events(ctx, id, true, func(e board.Event) error {
		if e.Kind == kind && strings.Contains(string(e.Data), has) {
			found = true
			cancel()
		}
		return nil
	})
	if !found {
		h.t.Fatalf("job %s: no event %s with %q: %v", id, kind, has, err)
	}
}

func (h *house) log(id string) string {
	var b strings.Builder
	_ = h.b.Events(h.ctx(), id, false, func(e board.Event) error {
		b.WriteString(e.Kind + " " + string(e.Data[:min(len(e.Data), 300)]) + "\n")
		return nil
	})
	return b.String()
}

// patch is what a result changed.
func (h *house) patch(r board.Result) string {
	h.t.Helper()
	if r.Patch.SHA256 == "" {
		return ""
	}
	var b bytes.Buffer
	if err := h.b.Fetch(h.ctx(), r.Patch, &b); err != nil {
		h.t.Fatal(err)
	}
	return b.String()
}

func step(tool, args string) board.Step {
	return board.Step{Tool: tool, Args: json.RawMessage(args)}
}

// command is a step that runs a command.
func command(text string) board.Step {
	args, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		return board.Step{}
	}
	return board.Step{Tool: "run_command", Args: args}
}

func has(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}
