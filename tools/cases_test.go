package tools

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
	"muster/tools/skills"
)

// sharedCase is a line of a case file; the README beside the files tells the form.
type sharedCase struct {
	ID       string      `json:"id"`
	Area     string      `json:"area"`
	Title    string      `json:"title"`
	Setup    []caseSetup `json:"setup"`
	Steps    []caseStep  `json:"steps"`
	Requires []string    `json:"requires"`
	Strict   bool        `json:"strict"`
	caseStep             // a case without steps is its own only step
}

type caseSetup struct {
	Path    string  `json:"path"`
	Text    *string `json:"text"`
	Base64  []byte  `json:"base64"`
	Symlink string  `json:"symlink"`
	Mode    string  `json:"mode"`
	Cmd     string  `json:"cmd"`
}

type caseStep struct {
	Tool    string            `json:"tool"`
	Args    json.RawMessage   `json:"args"`
	Expect  *expectation      `json:"expect"`
	OneOf   []expectation     `json:"one_of"`
	Wait    float64           `json:"wait"` // seconds before the step
	Capture map[string]string `json:"capture"`
}

// caseFolder finds the shared cases, or skips.
func caseFolder(t *testing.T) string {
	dir := os.Getenv("MUSTER_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "cases")
	}
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
		t.Skipf("no shared cases: %v; set MUSTER_CASES to their folder", err)
	}
	return dir
}

// TestCases runs the shared cases of the tools that exist here. A case that is advice only (strict: false) must hold too: none of ours is let off.
func TestCases(t *testing.T) {
	dir := caseFolder(t)
	ran := 0
	for _, area := range []string{"read", "write", "edit", "list", "todo", "run", "task", "grep", "glob", "subagent", "git", "memory", "skill", "patch", "web"} {
		f, err := os.Open(filepath.Join(dir, area+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewReader(f)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 1 {
				var c sharedCase
				if err := json.Unmarshal(line, &c); err != nil {
					t.Fatalf("%s: %v", area, err)
				}
				ran++
				t.Run(c.ID, func(t *testing.T) { c.run(t) })
			}
			if err != nil {
				break
			}
		}
	}
	if ran < 100 {
		t.Errorf("only %d cases were found", ran)
	}
}

func (c sharedCase) run(t *testing.T) {
	s := caseSet(t, c.Requires)
	out := filepath.Join(filepath.Dir(s.cfg.Tree.Dir), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"WS": s.cfg.Tree.Dir, "OUT": out, "SKILLS": filepath.Join(filepath.Dir(s.cfg.Tree.Dir), "skills")}
	for _, one := range c.Setup {
		one.apply(t, vars)
	}
	switch c.Area {
	case "memory":
		s = reopened(t, s, func(cfg *Config) { cfg.Memory = memoryOn(boardtest.New(t, board.Config{}), "project") })
	case "web":
		base, reach := caseWeb(t)
		vars["HTTP"] = base
		s = reopened(t, s, reach)
	case "skill":
		found, _ := skills.Find(s.cfg.Tree, []string{vars["SKILLS"]})
		s = reopened(t, s, func(cfg *Config) { cfg.Skills = found })
	}
	steps := c.Steps
	if len(steps) == 0 {
		steps = []caseStep{c.caseStep}
	}
	for i, step := range steps {
		if step.Tool == "@restart" {
			s = reopened(t, s, func(cfg *Config) { cfg.Tree = nil })
			continue
		}
		if _, ok := s.find(step.Tool); !ok && step.Tool != skillListCase {
			t.Fatalf("step %d: no tool %s", i+1, step.Tool)
		}
		step.run(t, s, vars)
	}
	if t.Failed() {
		t.Logf("%s (strict: %v): %s", c.ID, c.Strict, c.Title)
	}
}

// reopened is a new session with the configuration of s but for a change, as a new process would have it. Without a tree it gets a new one.
func reopened(t *testing.T, s *Set, change func(*Config)) *Set {
	return newSet(t, func(c *Config) {
		*c = s.cfg
		change(c)
	})
}

// skillListCase is the word of the cases for what a model is told of skills before it asks.
const skillListCase = "skill_list"

// caseSet is the session of a case, or a skip where its requirements cannot be met.
func caseSet(t *testing.T, requires []string) *Set {
	for _, r := range requires {
		switch r {
		case "nonroot":
			if os.Geteuid() == 0 {
				t.Skip("needs a user that is not root")
			}
		case "agents":
			return agentSet(t)
		case "grep_regex", "parallel", "restart", "http":
		default:
			t.Skipf("needs %s", r)
		}
	}
	return newSet(t)
}

func expand(s string, vars map[string]string) string {
	for name, v := range vars {
		s = strings.ReplaceAll(s, "${"+name+"}", v)
	}
	return s
}

// place is a path of a case: relative ones are below the workspace.
func place(path string, vars map[string]string) string {
	path = expand(path, vars)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(vars["WS"], path)
}

func (s caseSetup) apply(t *testing.T, vars map[string]string) {
	if s.Cmd != "" {
		if out, err := shell(s.Cmd, vars); err != nil {
			t.Fatalf("setup %q: %v\n%s", s.Cmd, err, out)
		}
		return
	}
	p := place(s.Path, vars)
	err := os.MkdirAll(filepath.Dir(p), 0o755)
	switch {
	case err != nil:
	case s.Symlink != "":
		err = os.Symlink(expand(s.Symlink, vars), p)
	case s.Text != nil:
		err = os.WriteFile(p, []byte(*s.Text), 0o644)
	default:
		err = os.WriteFile(p, s.Base64, 0o644)
	}
	if err == nil && s.Mode != "" {
		var mode uint32
		if _, err = fmt.Sscanf(s.Mode, "%o", &mode); err == nil {
			err = os.Chmod(p, os.FileMode(mode))
		}
	}
	if err != nil {
		t.Fatalf("setup %s: %v", s.Path, err)
	}
}

func shell(command string, vars map[string]string) (string, error) {
	cmd := exec.Command("bash", "-c", expand(command, vars))
	cmd.Dir = vars["WS"]
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// argNames maps argument names of the cases to ours.
var argNames = map[string]map[string]string{
	"todo_write":  {"todos": "items"},
	"grep":        {"case_insensitive": "ignore_case"},
	"memory_save": {"content": "text"},
}

func (step caseStep) args(t *testing.T, vars map[string]string) json.RawMessage {
	raw := string(step.Args)
	for name, v := range vars {
		quoted, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		raw = strings.ReplaceAll(raw, "${"+name+"}", string(quoted[1:len(quoted)-1]))
	}
	names := argNames[step.Tool]
	if names == nil {
		return json.RawMessage(raw)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &fields); err != nil {
		t.Fatal(err)
	}
	for theirs, ours := range names {
		if v, ok := fields[theirs]; ok {
			delete(fields, theirs)
			fields[ours] = v
		}
	}
	mapped, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return mapped
}

func (step caseStep) run(t *testing.T, s *Set, vars map[string]string) {
	if step.Wait > 0 { // the case measures what is there after a time, so the time must pass
		select {
		case <-time.After(time.Duration(step.Wait * float64(time.Second))):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	before := map[string]string{}
	options := step.OneOf
	if step.Expect != nil {
		options = append(options, *step.Expect)
	}
	for _, o := range options {
		for _, p := range o.Unchanged {
			before[p] = content(place(p, vars))
		}
	}
	begun := time.Now()
	var reply Reply
	if step.Tool == skillListCase {
		reply.Text, _ = skills.List(s.cfg.Skills, s.cfg.Caps.SkillListChars)
		reply.OK = true
	} else {
		reply = s.Invoke(t.Context(), Request{ID: "case", Tool: step.Tool, Args: step.args(t, vars)})
	}
	got := outcome{reply: reply, took: time.Since(begun), vars: vars, before: before}
	var faults []string
	for _, o := range options {
		f := o.check(got)
		if len(f) == 0 {
			faults = nil
			break
		}
		faults = append(faults, f...)
	}
	for _, f := range append(faults, got.always()...) {
		t.Error(f)
	}
	for name, re := range step.Capture {
		m := mustMatch(re).FindStringSubmatch(reply.Text)
		if m == nil {
			t.Fatalf("nothing to capture as %s with %s", name, re)
		}
		vars[name] = m[1]
	}
	if t.Failed() {
		t.Logf("%s %s\nok=%v class=%s\n%s", step.Tool, clip(string(step.Args)), reply.OK, reply.Class, clip(reply.Text))
	}
}

func clip(s string) string { return shorten(s, 1500) }

// content is what a path holds, for "unchanged": bytes of a file, target of a link, or that it is missing.
func content(path string) string {
	if target, err := os.Readlink(path); err == nil {
		return "link to " + target
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}
