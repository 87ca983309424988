package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/budget"
)

// TestContract holds the checks of the tool contract by their names (7 and 8 are with the commands).
func TestContract(t *testing.T) {
	t.Run("exit_clamp_covers_every_tool", exitClamp)
	t.Run("every_tool_caps_itself", capsItself)
	t.Run("units_are_what_the_notice_says", units)
	t.Run("binary_file_is_refused", binaryFile)
	t.Run("ten_megabyte_log_reads_in_windows", bigLog)
	t.Run("five_thousand_entry_dir_pages", bigFolder)
	t.Run("empty_arguments_fail_before_io", emptyArguments)
	t.Run("plan_mode_hides_and_refuses", planMode)
	t.Run("denied_command_is_an_instruction", deniedCommand)
	t.Run("caps_of_three_show_their_notice", capsOfThree)
}

// least is the value that validation accepts for every required field.
func least(t *testing.T, tool Tool) json.RawMessage {
	var pairs []any
	for _, name := range tool.shape.Required {
		switch p := tool.shape.Properties[name]; p.Type {
		case "array":
			pairs = append(pairs, name, []string{})
		case "integer":
			pairs = append(pairs, name, 1)
		default:
			pairs = append(pairs, name, "x")
		}
	}
	return obj(t, pairs...)
}

// exitClamp makes every tool flood, as a text and as an error: the one exit bounds both.
func exitClamp(t *testing.T) {
	flood := strings.Repeat("\x1b[31m中 flood 🚀\x1b[0m\x00\xff\n", 50_000)
	s := newSet(t, func(c *Config) { c.Caps.OutputChars = 5000 })
	s.tools = every(t)
	for i := range s.tools {
		for name, run := range map[string]func(context.Context, *Call, json.RawMessage) (Output, error){
			"text":  func(context.Context, *Call, json.RawMessage) (Output, error) { return Output{Text: flood}, nil },
			"error": func(context.Context, *Call, json.RawMessage) (Output, error) { return Output{}, errors.New(flood) },
			"panic": func(context.Context, *Call, json.RawMessage) (Output, error) { panic(flood) },
		} {
			s.tools[i].run = run
			r := s.Invoke(t.Context(), Request{ID: "1", Tool: s.tools[i].Name, Args: least(t, s.tools[i])})
			checkText(t, r, 5000)
			if !strings.Contains(r.Text, "[… showing") || len(r.Facts.Cuts) == 0 {
				t.Errorf("%s %s: no notice: %.200s", r.Tool, name, r.Text)
			}
			if name != "text" && (r.OK || !strings.HasPrefix(r.Text, "ERROR [permanent]: ")) {
				t.Errorf("%s %s: ok=%v %.80s", r.Tool, name, r.OK, r.Text)
			}
		}
	}
}

// checkText is what holds of every reply.
func checkText(t interface {
	Helper()
	Errorf(string, ...any)
}, r Reply, limit int) {
	t.Helper()
	if n := budget.Chars(r.Text); n > limit {
		t.Errorf("%s: %d characters, cap %d", r.Tool, n, limit)
	}
	if r.Text != strings.ToValidUTF8(r.Text, "") {
		t.Errorf("%s: not valid UTF-8: %q", r.Tool, r.Text)
	}
	if i := strings.IndexFunc(r.Text, func(c rune) bool { return c < 0x20 && c != '\n' && c != '\t' || c == 0x7F || c >= 0x80 && c < 0xA0 }); i >= 0 {
		t.Errorf("%s: control character at byte %d: %q", r.Tool, i, r.Text[max(0, i-20):min(len(r.Text), i+20)])
	}
}

// capsItself gives every tool more than fits: each must shape its own output, so that the exit clamp has nothing to do.
func capsItself(t *testing.T) {
	floods := floodsByTool(t)
	for _, tool := range builtins() {
		flood, ok := floods[tool.Name]
		if !ok {
			t.Errorf("%s: no flood here; add one", tool.Name)
			continue
		}
		t.Run(tool.Name, func(t *testing.T) {
			s := flood(t)
			r := s.last
			checkText(t, r, s.cap)
			for _, c := range r.Facts.Cuts {
				if c.What == "the output" {
					t.Errorf("the exit clamp had to cut: %+v\n%.300s", c, r.Text)
				}
			}
			if n := budget.Chars(r.Text); n < s.least {
				t.Errorf("only %d characters: no flood\n%s", n, r.Text)
			}
		})
	}
}

func units(t *testing.T) {
	for _, letter := range []string{"中", "🚀", "é", "e\u0301", "👩🏽‍💻"} {
		s := newSet(t, func(c *Config) { c.Caps.ReadLineChars = 100 })
		line := strings.Repeat(letter, 300)
		put(t, s, "x.txt", line+"\n")
		r := call(t, s, "read_file", "path", "x.txt")
		shown, rest, ok := strings.Cut(strings.Split(r.Text, "→")[1], "… (+")
		var more int
		if _, err := fmt.Sscanf(rest, "%d chars)", &more); err != nil || !ok {
			t.Fatalf("%s: no notice: %v %.200s", letter, err, r.Text)
		}
		if n := budget.Chars(shown); n != 100 || n+more != budget.Chars(line) {
			t.Errorf("%s: shown %d characters, +%d, of %d", letter, n, more, budget.Chars(line))
		}
		if c := r.Facts.Cuts[0]; c.Unit != "characters" || c.Shown != 100 || c.Total != int64(budget.Chars(line)) {
			t.Errorf("%s: facts %+v", letter, c)
		}
	}
}

func binaryFile(t *testing.T) {
	s := newSet(t)
	put(t, s, "p.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	put(t, s, "late.bin", strings.Repeat("a", sniffBytes-1)+"\x00")
	for name, kind := range map[string]string{"p.png": "image/png, 16 bytes", "late.bin": "application/octet-stream, 8192 bytes"} {
		for tool, more := range map[string][]any{"read_file": nil, "edit_file": {"old_string", "a", "new_string", "b"}} {
			r := call(t, s, tool, append([]any{"path", name}, more...)...)
			if r.OK || r.Class != Input || !strings.Contains(r.Text, "is binary ("+kind) {
				t.Errorf("%s %s: ok=%v %s", tool, name, r.OK, r.Text)
			}
		}
	}
	put(t, s, "wide.txt", "\xff\xfeh\x00i\x00\n\x00")
	if r := call(t, s, "read_file", "path", "wide.txt"); !r.OK || !strings.Contains(r.Text, "1→hi") || !strings.Contains(r.Text, "UTF-16LE") {
		t.Errorf("UTF-16 with a byte order mark: %s", r.Text)
	}
}

func bigLog(t *testing.T) {
	s := newSet(t)
	var b strings.Builder
	lines := 0
	for b.Len() < 10<<20 {
		lines++
		fmt.Fprintf(&b, "line %d of the log %s\n", lines, strings.Repeat("·", lines%40))
	}
	put(t, s, "big.log", b.String())
	r := call(t, s, "read_file", "path", "big.log")
	if r.OK || r.Class != Input || !strings.Contains(r.Text, "offset and limit") {
		t.Errorf("whole read: ok=%v %s", r.OK, r.Text)
	}
	offset := int64(lines - 5000)
	seen := int(offset) - 1
	for offset > 0 {
		r := call(t, s, "read_file", "path", "big.log", "offset", offset, "limit", 2000)
		if !r.OK {
			t.Fatal(r.Text)
		}
		rows := numberedLines(r.Text)
		for i := seen + 1; i <= seen+len(rows); i++ {
			if got := rows[fmt.Sprint(i)]; !strings.HasPrefix(got, fmt.Sprintf("line %d of the log", i)) {
				t.Fatalf("line %d is %q", i, got)
			}
		}
		seen += len(rows)
		if want := fmt.Sprintf("lines %d–%d of %d", offset, seen, lines); !strings.HasPrefix(r.Text, want+"\n") {
			t.Errorf("first line %.40q, want %q", r.Text, want)
		}
		offset = 0
		if len(r.Facts.Cuts) > 0 {
			offset = r.Facts.Cuts[0].Next
		}
	}
	if seen != lines {
		t.Errorf("the windows end at line %d of %d", seen, lines)
	}
}

func bigFolder(t *testing.T) {
	s := newSet(t)
	for i := range 5000 {
		name := filepath.Join(s.cfg.Tree.Dir, fmt.Sprintf("f%04d.txt", i))
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.cfg.Tree.Dir, "zfolder"), 0o755); err != nil {
		t.Fatal(err)
	}
	var names []string
	pages := 0
	for offset := int64(1); offset > 0; pages++ {
		r := call(t, s, "list_dir", "offset", offset)
		if !r.OK || !strings.Contains(r.Text, "5001 entries (1 folder, 5000 files)") {
			t.Fatalf("page %d: %.300s", pages+1, r.Text)
		}
		rows := strings.Split(r.Text, "\n")[1:]
		offset = 0
		if cuts := r.Facts.Cuts; len(cuts) > 0 {
			notice := rows[len(rows)-1]
			rows = rows[:len(rows)-1]
			offset = cuts[0].Next
			if want := fmt.Sprintf("showing %d of 5001 entries", len(rows)); !strings.Contains(notice, want) || !strings.Contains(notice, fmt.Sprint(offset)) {
				t.Fatalf("page %d: notice %q, want %q and %d", pages+1, notice, want, offset)
			}
		}
		names = append(names, rows...)
	}
	if len(names) != 5001 || names[0] != "zfolder/" || names[1] != "f0000.txt  0 bytes" || names[5000] != "f4999.txt  0 bytes" || pages != 17 {
		t.Errorf("%d names in %d pages, first %q, last %q", len(names), pages, names[0], names[len(names)-1])
	}
}

// emptyArguments counts what runs: nothing may.
func emptyArguments(t *testing.T) {
	s := newSet(t)
	s.tools = every(t)
	for i, tool := range s.tools {
		ran := false
		s.tools[i].run = func(context.Context, *Call, json.RawMessage) (Output, error) {
			ran = true
			return Output{}, nil
		}
		for _, name := range tool.shape.Required {
			p := tool.shape.Properties[name]
			for _, bad := range []json.RawMessage{json.RawMessage(`{}`), obj(t, name, nil), obj(t, name, json.RawMessage(`{}`))} {
				r := s.Invoke(t.Context(), Request{ID: "1", Tool: tool.Name, Args: bad})
				if want := fmt.Sprintf("missing %s field `%s`", p.Type, name); r.Class != Input || !strings.Contains(r.Text, "missing ") || len(tool.shape.Required) == 1 && !strings.Contains(r.Text, want) {
					t.Errorf("%s %s: %s", tool.Name, bad, r.Text)
				}
			}
			if p.MinLength == nil {
				continue
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(least(t, tool), &fields); err != nil {
				t.Fatal(err)
			}
			fields[name] = json.RawMessage(`""`)
			raw, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Invoke(t.Context(), Request{ID: "1", Tool: tool.Name, Args: raw}); r.Class != Input || !strings.Contains(r.Text, "`"+name+"` is empty") {
				t.Errorf("%s with empty %s: %s", tool.Name, name, r.Text)
			}
		}
		if ran {
			t.Errorf("%s ran", tool.Name)
		}
	}
	if r := call(t, s, "edit_file", "path", "x", "old_string", "", "new_string", "y"); !strings.Contains(r.Text, "write_file") {
		t.Errorf("an empty old_string does not name write_file: %s", r.Text)
	}
}

func planMode(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Mode = "plan" })
	put(t, s, "a.txt", "one\n")
	var names []string
	for _, tool := range s.Tools() {
		names = append(names, tool.Name)
		if tool.Class == Write || tool.Class == Execute {
			t.Errorf("%s is shown in mode plan", tool.Name)
		}
	}
	if !strings.Contains(strings.Join(names, " "), "read_file") {
		t.Errorf("mode plan shows %s", names)
	}
	for tool, pairs := range map[string][]any{
		"write_file":  {"path", "b.txt", "content", "x"},
		"edit_file":   {"path", "a.txt", "old_string", "one", "new_string", "two"},
		"run_command": {"command", "echo x > b.txt"},
	} {
		if _, ok := s.find(tool); !ok {
			continue
		}
		if r := call(t, s, tool, pairs...); r.OK || r.Class != Permission || !strings.Contains(r.Text, "mode plan") {
			t.Errorf("%s: ok=%v %s", tool, r.OK, r.Text)
		}
	}
	if got := get(t, s, "a.txt"); got != "one\n" {
		t.Errorf("a.txt holds %q", got)
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Tree.Dir, "b.txt")); err == nil {
		t.Error("b.txt was made")
	}
}

func deniedCommand(t *testing.T) {
	for _, mode := range []string{"default", "accept-edits"} {
		s := newSet(t, func(c *Config) { c.Mode = mode })
		s.tools = append(s.tools, mustFit(t, define("mcp__x__y", Execute, "a tool of somebody else", func(context.Context, *Call, struct{}) (Output, error) {
			t.Error("it ran")
			return Output{}, nil
		})))
		r := call(t, s, "mcp__x__y")
		if !r.OK || r.Class != "" || !strings.HasPrefix(r.Text, "denied") || !strings.Contains(r.Text, "do not retry it") {
			t.Errorf("mode %s: ok=%v %s", mode, r.OK, r.Text)
		}
		if _, ok := s.find("run_command"); ok {
			r := call(t, s, "run_command", "command", "touch made")
			if !r.OK || !strings.HasPrefix(r.Text, "denied") {
				t.Errorf("mode %s: ok=%v %s", mode, r.OK, r.Text)
			}
			if _, err := os.Stat(filepath.Join(s.cfg.Tree.Dir, "made")); err == nil {
				t.Errorf("mode %s: the command ran", mode)
			}
		}
		put(t, s, "a.txt", "one\n")
		if r := call(t, s, "edit_file", "path", "a.txt", "old_string", "one", "new_string", "two"); !r.OK || strings.HasPrefix(r.Text, "denied") {
			t.Errorf("mode %s: an edit asks: %s", mode, r.Text)
		}
	}
}

func mustFit(t testing.TB, tool Tool) Tool {
	t.Helper()
	fitted, err := tool.fit(budget.Default())
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}

// capsOfThree sets the row caps to three: a fourth row gives a notice with exact numbers, three rows give none.
func capsOfThree(t *testing.T) {
	set := func(rows int) *Set {
		s := newSet(t, func(c *Config) {
			c.Caps.ReadLines, c.Caps.ListEntries, c.Caps.GrepMatches, c.Caps.GlobFiles, c.Caps.TodoItems = 3, 3, 3, 3, 3
		})
		for i := range rows {
			put(t, s, fmt.Sprintf("d/f%d.txt", i), "needle\n")
		}
		put(t, s, "lines.txt", strings.Repeat("row\n", rows))
		return s
	}
	calls := map[string][]any{
		"read_file": {"path", "lines.txt"},
		"list_dir":  {"path", "d"},
		"grep":      {"pattern", "needle"},
		"glob":      {"pattern", "d/*.txt"},
	}
	three, four := set(3), set(4)
	for tool, pairs := range calls {
		if _, ok := three.find(tool); !ok {
			continue
		}
		if r := call(t, three, tool, pairs...); !r.OK || len(r.Facts.Cuts) > 0 || strings.Contains(r.Text, "showing") {
			t.Errorf("%s of exactly three: %+v\n%s", tool, r.Facts.Cuts, r.Text)
		}
		r := call(t, four, tool, pairs...)
		if len(r.Facts.Cuts) != 1 || r.Facts.Cuts[0].Shown != 3 || r.Facts.Cuts[0].Total != 4 || r.Facts.Cuts[0].Next != 4 || !strings.Contains(r.Text, "showing") {
			t.Errorf("%s of four: %+v\n%s", tool, r.Facts.Cuts, r.Text)
		}
	}
	items := []string{`{"content":"a"}`, `{"content":"b"}`, `{"content":"c"}`, `{"content":"d"}`}
	if r := call(t, three, "todo_write", "items", json.RawMessage("["+strings.Join(items[:3], ",")+"]")); !r.OK {
		t.Errorf("three items: %s", r.Text)
	}
	if r := call(t, three, "todo_write", "items", json.RawMessage("["+strings.Join(items, ",")+"]")); r.OK || !strings.Contains(r.Text, "4 items, 3 are allowed") {
		t.Errorf("four items: ok=%v %s", r.OK, r.Text)
	}
	if r := call(t, three, "todo_read"); strings.Count(r.Text, "\n") != 2 {
		t.Errorf("after the refusal the list is %q", r.Text)
	}
}
