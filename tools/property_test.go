package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"pgregory.net/rapid"

	"muster/board"
	"muster/board/boardtest"
	"muster/budget"
	"muster/tools/skills"
	"muster/tools/workspace"
)

// world is a generated workspace and a set with small caps on it.
type world struct {
	*Set
	files map[string]string
	names []string
}

var awkward = []string{"a", "needle", " ", "\t", "\n", "\n", "\r\n", "中文", "🚀", "👩🏽‍💻", "e\u0301", "\x1b[31mred\x1b[0m", "\x1b]0;title\a", "\xff\xfe", "\xc3", "\u202e", "\x7f", "\b", strings.Repeat("long ", 60), strings.Repeat("中", 500)}

// newWorld draws files of awkward pieces. The folder is the caller's to remove.
func newWorld(rt *rapid.T, dir string, change ...func(*Config)) *world {
	caps := budget.Default()
	caps.OutputChars = rapid.IntRange(1000, 4000).Draw(rt, "output_chars")
	caps.ReadLines = rapid.IntRange(1, 30).Draw(rt, "read_lines")
	caps.ReadLineChars = rapid.IntRange(80, 1500).Draw(rt, "read_line_chars")
	caps.GrepMatches = rapid.IntRange(1, 10).Draw(rt, "grep_matches")
	caps.GrepLineChars = rapid.IntRange(80, 300).Draw(rt, "grep_line_chars")
	caps.GlobFiles = rapid.IntRange(1, 10).Draw(rt, "glob_files")
	caps.ListEntries = rapid.IntRange(10, 20).Draw(rt, "list_entries")
	caps.CommandChars = rapid.IntRange(500, 6000).Draw(rt, "command_chars")
	caps.CommandHead = rapid.IntRange(0, 90).Draw(rt, "command_head")
	caps.TodoItems = rapid.IntRange(1, 30).Draw(rt, "todo_items")
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		rt.Fatal(err)
	}
	w := &world{files: map[string]string{}}
	for i := range rapid.IntRange(1, 40).Draw(rt, "files") {
		name := fmt.Sprintf("%s%d%s.txt", rapid.SampledFrom([]string{"", "d/", "d/e/", "中/"}).Draw(rt, "folder"), i, rapid.SampledFrom([]string{"", " b", "\n", "🚀", "\x1b", "\xff"}).Draw(rt, "name"))
		body := strings.Join(rapid.SliceOfN(rapid.SampledFrom(awkward), 0, 60).Draw(rt, "body"), "")
		if err := os.MkdirAll(filepath.Join(ws, filepath.Dir(name)), 0o755); err != nil {
			rt.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), []byte(body), 0o644); err != nil {
			rt.Fatal(err)
		}
		w.files[name] = body
		w.names = append(w.names, name)
	}
	if rapid.Bool().Draw(rt, "git") {
		w.history(rt, ws)
	}
	tree, err := workspace.OpenDir(ws, filepath.Join(dir, "scratch"))
	if err != nil {
		rt.Fatal(err)
	}
	cfg := Config{Tree: tree, Caps: caps, Mode: "goal"}
	for _, f := range change {
		f(&cfg)
	}
	if w.Set, err = New(cfg); err != nil {
		rt.Fatal(err)
	}
	return w
}

// history makes a repository of the files, with some of them committed, some staged and some changed.
func (w *world) history(rt *rapid.T, ws string) {
	cmd := exec.Command("bash", "-ec", "git init -q -b main .\n"+identity+`git ls-files -o -z | head -z -n 7 | xargs -0 git add --; git commit -q --allow-empty -m "$1"
		git ls-files -z | while IFS= read -r -d '' f; do printf '%s' "$1" >> "$f"; done; git add -A -- d || true`,
		"-", rapid.SampledFrom(awkward[:10]).Draw(rt, "subject")+"x")
	cmd.Dir, cmd.Env = ws, append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		rt.Fatalf("make a repository: %v\n%s", err, out)
	}
}

// skillsOf are the skills of a tree that gets one.
func skillsOf(rt *rapid.T, tree *workspace.Tree, text string) []skills.Skill {
	dir := filepath.Join(tree.Dir, ".claude", "skills", "tide")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644)); err != nil {
		rt.Fatal(err)
	}
	found, _ := skills.Find(tree, nil)
	if len(found) != 1 {
		rt.Fatalf("found %v", found)
	}
	return found
}

func (w *world) close(rt *rapid.T) {
	w.Close()
	if err := w.cfg.Tree.Close(); err != nil {
		rt.Error(err)
	}
}

// drawArgs draws arguments that mostly fit: real paths and patterns, numbers in and out of range, and sometimes nonsense.
func (w *world) drawArgs(rt *rapid.T, tool Tool) json.RawMessage {
	var pairs []any
	for _, name := range order(tool.shape) {
		p := tool.shape.Properties[name]
		if !contains(tool.shape.Required, name) && rapid.Bool().Draw(rt, "skip "+name) {
			continue
		}
		pairs = append(pairs, name, w.drawValue(rt, name, p.Type))
	}
	return pairsJSON(rt, pairs)
}

func (w *world) drawValue(rt *rapid.T, name, kind string) any {
	switch {
	case name == "path":
		return rapid.SampledFrom(append([]string{".", "d", "nowhere", "../out", "new/file.txt"}, w.valid()...)).Draw(rt, name)
	case name == "command":
		return rapid.SampledFrom([]string{"cat *.txt", "seq 1 20000", "printf '\\033[1mx\\000\\r\\ny\\n'; exit 3", "yes 中 | head -c 100001", "seq 1 3000 >&2", "kill -9 $$"}).Draw(rt, name)
	case name == "workdir":
		return "."
	case name == "paths":
		return rapid.SliceOfN(rapid.SampledFrom(append([]string{".", "d", "nowhere", "../out"}, w.valid()...)), 0, 4).Draw(rt, name)
	case name == "ref":
		return rapid.SampledFrom([]string{"HEAD", "main..HEAD", "nothing", "--all", "HEAD:d", "HEAD...main", "中"}).Draw(rt, name)
	case name == "wait_secs" || name == "timeout_secs":
		return 5
	case name == "pattern" || name == "old_string":
		return rapid.SampledFrom([]string{"needle", "中", "*", "**/*.txt", "*.txt", "a", "\n", "e\u0301", "long long"}).Draw(rt, name)
	case name == "diff":
		return w.drawDiff(rt)
	case name == "include":
		return "*.txt"
	case kind == "integer":
		return rapid.SampledFrom([]int64{-1, 0, 1, 2, 5, 12, 1000, 1 << 60}).Draw(rt, name)
	case kind == "boolean":
		return name == "background" || rapid.Bool().Draw(rt, name)
	case name == "tags":
		return rapid.SliceOfN(rapid.SampledFrom(awkward[:10]), 0, 4).Draw(rt, name)
	case name == "name":
		return rapid.SampledFrom([]string{"tide", "tied", ""}).Draw(rt, name)
	case kind == "array":
		return todoFlood(rapid.IntRange(0, 40).Draw(rt, name), 40)
	}
	return rapid.SampledFrom([]string{"1", "x", "中文\n", strings.Repeat("🚀", 3000), "a\r\nb"}).Draw(rt, name)
}

// drawDiff draws a patch that fits a file of the world, or nearly.
func (w *world) drawDiff(rt *rapid.T) string {
	names := append([]string{"new/file.txt"}, w.valid()...)
	name := rapid.SampledFrom(names).Draw(rt, "patched")
	text := w.files[name]
	now := text + rapid.SampledFrom([]string{"more\n", "中", ""}).Draw(rt, "more")
	if text == "" || strings.ContainsRune(text, '\n') && rapid.Bool().Draw(rt, "first line") {
		now = "first\n" + now
	}
	diff := udiff.Unified("a/"+name, "b/"+name, text, now)
	return strings.Replace(diff, "needle", rapid.SampledFrom([]string{"needle", "NEEDLE", "needle "}).Draw(rt, "needle"), 1)
}

// valid are the names that JSON can carry.
func (w *world) valid() []string {
	var out []string
	for _, n := range w.names {
		if n == strings.ToValidUTF8(n, "") {
			out = append(out, n)
		}
	}
	return out
}

func contains(all []string, one string) bool {
	for _, a := range all {
		if a == one {
			return true
		}
	}
	return false
}

func pairsJSON(rt *rapid.T, pairs []any) json.RawMessage {
	var b bytes.Buffer
	for i := 0; i < len(pairs); i += 2 {
		v, err := json.Marshal(pairs[i+1])
		if err != nil {
			rt.Fatal(err)
		}
		fmt.Fprintf(&b, ",%q:%s", pairs[i], v)
	}
	return json.RawMessage("{" + strings.TrimPrefix(b.String(), ",") + "}")
}

// TestEveryToolHoldsItsPromises runs all tools on generated files and arguments: the output keeps its cap in characters, is valid UTF-8 without control
// bytes, has a notice exactly when something was cut, and the notice's numbers are those of the facts.
func TestEveryToolHoldsItsPromises(t *testing.T) {
	parent := t.TempDir()
	round := 0
	b := boardtest.New(t, board.Config{})
	rapid.Check(t, func(rt *rapid.T) {
		round++
		dir := filepath.Join(parent, fmt.Sprint(round))
		if err := os.Mkdir(dir, 0o755); err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w := newWorld(rt, dir, func(c *Config) {
			c.Memory = memoryOn(b, dir)
			body := strings.Join(rapid.SliceOfN(rapid.SampledFrom(awkward), 0, 60).Draw(rt, "skill"), "")
			c.Skills = skillsOf(rt, c.Tree, skillFile("tide", body))
		})
		defer w.close(rt)
		var names []string
		for _, tool := range w.tools {
			names = append(names, tool.Name)
		}
		for _, tool := range builtins() { // a new tool is among them, or this world lacks what it needs
			if apart := tool.Class == Delegate || tool.Name == "web_search"; !apart && !contains(names, tool.Name) {
				rt.Fatalf("%s is not tried: give the world what it needs", tool.Name)
			}
		}
		for range 8 {
			tool, _ := w.find(rapid.SampledFrom(names).Draw(rt, "tool"))
			args := w.drawArgs(rt, tool)
			r := w.Invoke(context.Background(), Request{ID: "p", Tool: tool.Name, Args: args})
			checkText(rt, r, w.cfg.Caps.OutputChars)
			checkNotices(rt, r, args)
			if strings.Contains(r.Text, " broke: ") {
				rt.Errorf("%s %s panicked: %s", tool.Name, args, r.Text)
			}
			if tool.Name == "read_file" && r.OK {
				w.checkRead(rt, r, args)
			}
		}
	})
}

var noticed = regexp.MustCompile(`\[… showing \d+|… \(\+\d+ chars\)|\(\d+ total in \d+ files?, showing`)

// checkNotices holds text and facts together.
func checkNotices(rt *rapid.T, r Reply, args json.RawMessage) {
	for _, c := range r.Facts.Cuts {
		if c.Shown >= c.Total || c.Shown < 0 || c.Unit == "" {
			rt.Errorf("%s %s: a cut that cuts nothing: %+v", r.Tool, args, c)
		}
		if r.Tool == "grep" && c.Unit == "characters" { // cut on both sides of the match, each side marked
			if !strings.Contains(r.Text, "…") {
				rt.Errorf("%s %s: the text does not mark %+v", r.Tool, args, c)
			}
			continue
		}
		if c.Unit == "characters" && strings.HasPrefix(c.What, "line ") {
			if !strings.Contains(r.Text, fmt.Sprintf("… (+%d chars)", c.Total-c.Shown)) {
				rt.Errorf("%s %s: the text does not say %+v", r.Tool, args, c)
			}
			continue
		}
		if !strings.Contains(r.Text, fmt.Sprint(c.Shown)) || !strings.Contains(r.Text, fmt.Sprint(c.Total)) {
			rt.Errorf("%s %s: the text does not say %+v:\n%s", r.Tool, args, c, r.Text)
		}
		if c.Next > 0 && !strings.Contains(r.Text, fmt.Sprint(c.Next)) {
			rt.Errorf("%s %s: the text does not say how to get the rest of %+v", r.Tool, args, c)
		}
	}
	if r.OK && r.Tool == "read_file" || r.Tool == "list_dir" {
		if said := noticed.MatchString(r.Text); said != (len(r.Facts.Cuts) > 0) {
			rt.Errorf("%s %s: notice %v, cuts %+v\n%s", r.Tool, args, said, r.Facts.Cuts, r.Text)
		}
	}
}

// checkRead compares the window with the file.
func (w *world) checkRead(rt *rapid.T, r Reply, raw json.RawMessage) {
	var a readArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return // numbers beyond int64 were clamped; the text is checked elsewhere
	}
	body, ok := w.files[a.Path]
	if !ok || body == "" {
		return
	}
	now, err := os.ReadFile(filepath.Join(w.cfg.Tree.Dir, a.Path))
	if err != nil || string(now) != body {
		return // an earlier call of this round changed it
	}
	enc, _ := sniff([]byte(body))
	text, _ := enc.decode([]byte(body))
	if text == "" {
		return
	}
	var from, to, total int64
	if _, err := fmt.Sscanf(r.Text, "lines %d–%d of %d\n", &from, &to, &total); err != nil {
		rt.Fatalf("no window: %v: %q", err, r.Text)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if total != int64(len(lines)) || from != max(1, a.Offset) {
		rt.Errorf("%s: lines %d–%d of %d, the file has %d", raw, from, to, total, len(lines))
	}
	rows := strings.Split(r.Text, "\n")[1:]
	for n := from; n <= to; n++ {
		row := rows[n-from]
		number, text, _ := strings.Cut(row, "→")
		if strings.TrimSpace(number) != fmt.Sprint(n) || len(number) != len(fmt.Sprint(to)) {
			rt.Fatalf("row %q is not line %d", row, n)
		}
		want, _, _ := visible(strings.TrimSuffix(lines[n-1], "\r"))
		if head, more, cut := strings.Cut(text, "… (+"); cut {
			rest := fmt.Sprintf("%d chars)", budget.Chars(want)-budget.Chars(head))
			if !strings.HasPrefix(want, head) || more != rest {
				rt.Errorf("line %d: cut to %q (+%s, want %s) of %q", n, head, more, rest, want)
			}
		} else if text != want {
			rt.Errorf("line %d is %q, want %q", n, text, want)
		}
	}
}
