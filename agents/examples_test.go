package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/agents"
	"muster/board"
	"muster/board/boardtest"
)

// example submits a plan of ../examples over a folder and returns its jobs.
func (h *house) example(name, dir string) []board.Entry {
	h.t.Helper()
	file := filepath.Join("..", "examples", name)
	data, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	p, err := agents.ParsePlan(file, data)
	if err != nil {
		h.t.Fatal(err)
	}
	jobs, err := p.Jobs(h.ctx(), dir, board.Job{Base: h.snapshot(dir)})
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range jobs {
		jobs[i].Model = h.stored(jobs[i].Model)
	}
	return h.submit(jobs...)
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestAuditReviewsAnyFolder(t *testing.T) {
	code := map[string]string{
		"go.mod": "module x\n\ngo 1.26\n\nrequire (\n\ta.b/c v1.0.0\n\td.e/f v1.0.0 // indirect\n)\n",
		"a.go":   "package x // TODO later\n", "a_test.go": "package x\n", "sub/we ird $(touch pwned).py": "# FIXME: `touch pwned`\n",
		"key.pem": "-----BEGIN RSA PRIVATE KEY-----\n", "README.md": "# x\n", "big.bin": strings.Repeat("\x00\x01", 1<<20),
	}
	for name, c := range map[string]struct {
		files map[string]string
		git   bool
		want  []string
	}{
		"empty": {want: []string{
			"- Layout: 0 files", "- Markers: 0 markers", "- History: no git history", "- Dependencies: no dependency files",
			"- Tests: no source files", "- Papers: 0 of 5", "- Risks: 0 findings",
		}},
		"plain": {files: code, want: []string{
			"- Layout: 7 files in 2 folders", "- Markers: 2 markers", "- Largest files: 2.0 MiB in all, 1 files over 1 MiB",
			"- Dependencies: 1 dependency files", "./go.mod: go 1.26, 1 direct, 1 indirect", "- Tests: 1 test files beside 2 other source files (33 %)",
			"- Papers: 1 of 5", "- Risks: 1 findings", "./key.pem", "a.go:1:package x // TODO later", "a_test.go",
		}},
		"git": {files: code, git: true, want: []string{"- History: 1 commits by 1 authors", "Ada: first of all", "- Markers: 2 markers"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.worker("w", 8)
			dir := t.TempDir()
			for n, text := range c.files {
				writeFile(t, filepath.Join(dir, n), text)
			}
			if c.git {
				git(t, dir, "init", "-q")
				git(t, dir, "add", "-A")
				git(t, dir, "commit", "-q", "-m", "first of all")
			}
			entries := h.example("audit.yaml", dir)
			for _, e := range entries {
				res := h.result(e.ID)
				if res.State != board.Done || res.Files != 0 || strings.Contains(res.Text, "exit: 1") {
					t.Errorf("%s is %s %q, changed %v\n%s", e.Name, res.State, res.Error, res.Stat, res.Text)
				}
			}
			report := entries[len(entries)-1]
			text := h.result(report.ID).Text
			has(t, text, c.want...)
			if name == os.Getenv("SHOW") {
				t.Log(text)
			}
			if strings.Contains(text, "characters of the result of") {
				t.Errorf("a result was cut:\n%s", text)
			}
			if len(report.After) < 6 || len(entries) != len(report.After)+1 {
				t.Errorf("the report comes after %d of %d jobs", len(report.After), len(entries))
			}
		})
	}
}

func TestTeamCollectsTwoAndKillsTheThird(t *testing.T) {
	for name, slots := range map[string]int{"one slot": 1, "four slots": 4} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.worker("w", slots)
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "a.txt"), "TODO\n")
			writeFile(t, filepath.Join(dir, "b.txt"), "fine\n")
			lead := h.example("team.yaml", dir)[0]
			boardtest.Until(t, "the third child hangs", func() bool { return len(sleepers("602")) > 0 || h.ended(lead.ID) })
			res := h.result(lead.ID)
			killed := time.Now()
			if res.State != board.Done {
				t.Fatalf("%s %q\n%s", res.State, res.Error, h.log(lead.ID))
			}
			has(t, res.Text, "This folder has 2 files.", "Markers stand in 1 files.", "killed")
			if left := len(sleepers("600")) + len(sleepers("601")) + len(sleepers("602")); left > 0 || time.Since(killed) > time.Second {
				t.Errorf("%d sleeps left after %v", left, time.Since(killed))
			}
			kids, err := h.b.List(h.ctx(), board.Filter{Parent: lead.ID})
			if err != nil || len(kids) != 3 || kids[0].State != board.Done || kids[1].State != board.Done || kids[2].State != board.Killed {
				t.Errorf("children %+v, %v", kids, err)
			}
			if kids[2].LastTool != "run_command" {
				t.Errorf("the third child was killed before it hung")
			}
			lists := 0
			for _, e := range h.events(lead.ID, "tool_finished") {
				if strings.Contains(string(e.Data), `"tool":"agent_list"`) {
					lists++
				}
			}
			if lists == 0 {
				t.Error("the parent did not poll")
			}
		})
	}
}

func (h *house) ended(id string) bool {
	e, err := h.b.Get(h.ctx(), id)
	return err == nil && e.State.Terminal()
}
