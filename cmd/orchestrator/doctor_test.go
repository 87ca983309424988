package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/policy"
	"muster/tools/sandbox"
)

// A check that hangs in the kernel holds up neither Ctrl-C nor the others.
func TestACheckThatHangsIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hangs := make(chan struct{})
	defer close(hangs)
	got := bounded(ctx, "folders", func(context.Context) []finding {
		cancel()
		<-hangs
		return nil
	})
	if len(got) != 1 || got[0].Check != "folders" || got[0].Status != "fail" {
		t.Errorf("got %+v", got)
	}
}

func TestPlaceIsTheNearestFolderThatIsThere(t *testing.T) {
	dir := t.TempDir()
	if f := place("data", filepath.Join(dir, "a", "b")); f.Status == "fail" || !strings.Contains(f.Text, " free") {
		t.Errorf("a folder that is not there yet: %+v", f)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("it left %v, %v", names, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := place("data", filepath.Join(file, "below")); f.Status != "fail" || f.Next == "" {
		t.Errorf("below a file: %+v", f)
	}
}

func TestRungs(t *testing.T) {
	r := sandbox.Report{Rung: "landlock", Lacking: []sandbox.Lack{{Rung: "full", Why: "make its namespaces: not permitted", Get: "allow user namespaces"}}}
	for _, c := range []struct{ rung, need, status, text, next string }{
		{"full", "full", "warn", "full: make its namespaces: not permitted", "allow user namespaces"},
		{"full", "landlock", "warn", "full: make its namespaces: not permitted", "allow user namespaces (serve and worker ask for it unless --sandbox-min says otherwise)"},
		{"full-no-proc", "full", "warn", "full-no-proc: not to be had here", ""},
		{"landlock", "full", "ok", "landlock: commands get this one", ""},
		{"limits", "full", "ok", "limits: weaker, not needed", ""},
	} {
		if got := rungOf(c.rung, c.need, r); got != (finding{"rung", c.status, c.text, c.next}) {
			t.Errorf("%s for %s: %+v", c.rung, c.need, got)
		}
	}
}

func TestWorkersAreCountedByRung(t *testing.T) {
	on := func(rung string, slots int) board.WorkerInfo {
		return board.WorkerInfo{Slots: slots, Sandbox: board.Sandbox{Rung: rung}}
	}
	f := workersFinding([]board.WorkerInfo{on("full", 4), on("", 0), on("off", 1), on("full", 4), on("", 1)})
	if f.Status != "warn" || f.Text != "4: 2 on full, 1 on off, 1 on -" {
		t.Errorf("got %+v", f)
	}
	if f := workersFinding([]board.WorkerInfo{on("", 0)}); f.Status != "ok" || !strings.HasPrefix(f.Text, "none") {
		t.Errorf("stewards alone: %+v", f)
	}
}

func TestRowsTellOfTheSandbox(t *testing.T) {
	now := time.Now()
	off := strings.Join(cells(board.Entry{Title: "look", State: board.Done, Sandbox: policy.Off}, now), "|")
	if !strings.Contains(off, "|[SANDBOX OFF] look|") {
		t.Errorf("off: %s", off)
	}
	e := board.Entry{Title: "look", State: board.Queued, Waits: "it asks for sandbox full"}
	if row := strings.Join(cells(e, now), "|"); !strings.HasSuffix(row, "|waits for a worker: it asks for sandbox full") {
		t.Errorf("waiting: %s", row)
	}
	if line := changeLine(e, now); !strings.HasSuffix(line, "look  waits for a worker: it asks for sandbox full") {
		t.Errorf("waiting: %s", line)
	}
	e.State, e.Sandbox = board.Running, "full"
	if row := strings.Join(cells(e, now), "|"); strings.Contains(row, "waits") || strings.Contains(row, "OFF") {
		t.Errorf("running: %s", row)
	}
}
