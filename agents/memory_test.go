package agents_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"muster/agents"
	"muster/board"
	"muster/board/boardtest"
	"muster/board/policy"
	"muster/tools"
	"muster/tools/sandbox"
)

func texts(t *testing.T, h *house, id string) string {
	t.Helper()
	var all []string
	for _, e := range h.events(id, tools.EventFinished) {
		var r tools.Reply
		if err := json.Unmarshal(e.Data, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Text)
	}
	return strings.Join(all, "\n")
}

// What one agent saves another finds, in a later run and on another worker, when both are of one project.
func TestAgentsShareMemories(t *testing.T) {
	h := newHouse(t)
	stop := h.worker("first", 1)
	save := board.Job{Title: "learn it", Project: "p", Steps: []board.Step{step("memory_save", `{"text":"The parser is in parse.go","tags":["parser"]}`)}}
	if res := h.run(save); res.State != board.Done {
		t.Fatalf("%+v", res)
	}
	stop()
	h.worker("second", 1)
	find := board.Job{Title: "use it", Project: "p", Steps: []board.Step{step("memory_search", `{"query":"where is the parser"}`)}}
	res := h.run(find)
	if res.State != board.Done || !strings.Contains(res.Text, "1. The parser is in parse.go [parser] (since ") || !strings.Contains(res.Text, `"learn it")`) {
		t.Errorf("%+v", res)
	}
	find.Project = "another"
	if res := h.run(find); !strings.Contains(res.Text, "the project has no memories yet") {
		t.Errorf("of another project: %+v", res)
	}
}

// A model is told of the skills in its files and in the folders of the worker's user, and reads one.
func TestAgentsUseSkills(t *testing.T) {
	h := newHouse(t)
	own := t.TempDir()
	writeFile(t, filepath.Join(own, "tide", "SKILL.md"), "---\nname: tide\ndescription: Reads tides.\n---\nOpen refs/table.md.\n")
	writeFile(t, filepath.Join(own, "tide", "refs", "table.md"), "high at six\n")
	r := &agents.Runner{
		Cache: h.cache, Policy: sandbox.Policy{Mode: "auto"}, Allows: policy.Sandbox{Min: "limits"}, Skills: []string{own, filepath.Join(own, "missing")}, Log: zerolog.New(zerolog.NewTestWriter(t)),
	}
	boardtest.Serve(t, h.b, board.Worker{Name: "w", Slots: 1}, r.Run)
	job := h.script(`
turns:
  - when: {turn: 1}
    calls: [{tool: skill, args: {name: ebb}}, {tool: skill, args: {name: tide}}]
  - when: {turn: 2, last: "Open refs/table.md."}
    text: done
`)
	job.Base = h.base(map[string]string{".claude/skills/ebb/SKILL.md": "---\nname: ebb\ndescription: Waits.\n---\nWait for it.\n", ".claude/skills/bad/SKILL.md": "no head"})
	id := h.submit(job)[0].ID
	if res := h.result(id); res.State != board.Done || res.Text != "done" {
		t.Fatalf("%+v\n%s", res, h.log(id))
	}
	got := texts(t, h, id)
	has(t, got, `<untrusted source=".claude/skills/ebb/SKILL.md"`, "Wait for it.", "skill tide; the files that it names are in ", "(2 files)\nOpen refs/table.md.")
	if left, err := os.ReadDir(own); err != nil || len(left) != 1 {
		t.Errorf("the user's folder holds %v, %v", left, err)
	}
}
