package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"

	"muster/board"
	"muster/board/boardtest"
	"muster/budget"
)

// hostile are sequences that a terminal would obey, hide behind, or be fooled by. FORGED begins a line of its own where a newline comes through.
var hostile = strings.Join([]string{
	"a",
	"\x1b]0;owned\a", "\x1b]8;;http://evil/\x1b\\link\x1b]8;;\x1b\\", "\x1b]52;c;ZXZpbA==\a", // title, link, clipboard
	"\x1b[2J\x1b[1;1H", "\x1b[31m", "\x1b[8m", "\x1bP+q544e\x1b\\", "\x1b_x\x1b\\", "\x1b[6n", "\x1bc", // erase, colour, conceal, DCS, APC, report, reset
	"\u009b2J", "\u009d0;owned\u009c", "\u0090x\u009c", "\u0085", // the same in C1
	"shown\rHIDDEN", "over\b\b\b\bXX", "\x00", "\x7f", "\v", "\f", "\x0e", "\x05",
	"\u202egnp.exe", "\u2066x\u2069", "\u061c", "\u200e", // bidi
	"\u200b", "\u200d", "\u200c", "\ufeff", "\u2060", "\u00ad", "\u180e", "\u3164", "\u115f", // without a width
	"\U000e0041\U000e0042\U000e007f", "\U000e0101", "\ufe01", "\ufff9x\ufffb", // tags, selectors, annotations
	"\nFORGED done", "\u2028FORGED done", "\u2029FORGED done", "\r\nFORGED done",
	"\xff\xfe", "\xc3", "\xed\xa0\x80",
	"z",
}, "")

var ownSequences = regexp.MustCompile(`\x1b\[(\d+F|J)`) // of the live board, which redraws its lines

// obeyed fails where an output holds anything that a terminal does not simply show.
func obeyed(t *testing.T, what, out string, lines bool) {
	t.Helper()
	out = strings.ReplaceAll(ownSequences.ReplaceAllString(out, ""), "\r\n", "\n")
	for i, r := range out {
		_, size := utf8.DecodeRuneInString(out[i:])
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' || budget.Hidden(r) {
			t.Errorf("%s: %U (%q) at byte %d: %q", what, r, out[i:i+size], i, out[max(0, i-60):min(len(out), i+40)])
			return
		}
	}
	if !lines {
		return
	}
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, "FORGED") { // what an error quotes is set in
			t.Errorf("%s: a line is forged: %q", what, out)
			return
		}
	}
}

// plantHostile makes a board on which everything that can be is hostile, and returns its data folder and a job that failed.
func plantHostile(t *testing.T) (data, job string) {
	t.Helper()
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{})
	valid := strings.ToValidUTF8(hostile, "\ufffd")
	patch, err := b.Put(t.Context(), strings.NewReader("diff --git a/x b/x\n"))
	if err != nil {
		t.Fatal(err)
	}
	facts, err := json.Marshal(struct {
		Left  []left `json:"not_in_patch"`
		Total int    `json:"not_in_patch_total"`
	}{[]left{{valid, valid}}, 1})
	if err != nil {
		t.Fatal(err)
	}
	boardtest.Serve(t, b, board.Worker{Name: valid, Version: valid, Sandbox: board.Sandbox{Rung: valid, Kill: valid, Memory: valid, Network: valid, Open: []string{valid}}},
		func(ctx context.Context, l *board.Lease) (board.Result, error) {
			l.Update(func(e *board.Entry) { e.LastTool = hostile })
			if err := l.Append(ctx, "hostile", map[string]string{valid: valid}); err != nil {
				return board.Result{}, err
			}
			if l.Entry().Attempt == 1 {
				return board.Result{}, errors.New(hostile)
			}
			return board.Result{State: board.Failed, Text: hostile, Error: hostile, Patch: patch, Files: 1, Stat: []board.FileStat{{Path: valid}}, Facts: facts}, nil
		})
	j := board.Job{Title: valid, Prompt: valid, Profile: budget.Preview("p", 9) + "\x1b[2J\u202e\nFORGED", Name: "n\x1b[2J\u202e\nFORGED", Model: valid, Mode: valid, Env: map[string]string{valid: valid}, Attempts: 2}
	steps := board.Job{Title: valid, Steps: []board.Step{{Title: valid, Tool: valid, Args: facts}}, Base: board.Base{Commit: strings.Repeat("c", 40), Origin: valid}, Attempts: 1}
	entries, err := b.Submit(t.Context(), j, steps)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Wait(boardtest.Context(t), entries[0].ID, entries[1].ID); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(s.KeyFile()), entries[0].ID
}

// onTerminal runs a command on a pseudo terminal and returns what comes out of it.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	c := program(t, args...)
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 400})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var screen bytes.Buffer
	_, _ = io.Copy(&screen, f) // ends with EIO when the last holder of the terminal has gone
	_ = c.Wait()               // most of these commands fail, and say so
	return screen.String()
}

func TestHostileTextIsShownAndNotObeyed(t *testing.T) {
	data, id := plantHostile(t)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(plan, []byte("jobs:\n  - id: a\n    title: \"x\\e[2J\\u202e\\nFORGED\"\n    steps: [{tool: \"no\\e]0;x\\atool\\nFORGED\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	arg := strings.ReplaceAll(hostile, "\x00", "") // no argument holds one
	for _, c := range []struct {
		name  string
		args  []string
		body  bool // prints a text of many lines as it is
		quiet bool // says little that is not the program's own
	}{
		{name: "list", args: []string{"list"}},
		{name: "show", args: []string{"show", id}},
		{name: "logs", args: []string{"logs", id}},
		{name: "collect", args: []string{"collect", id}, body: true},
		{name: "collect patch", args: []string{"collect", id, "--patch", filepath.Join(dir, "p\x1b[2J\u202e\nFORGED.patch")}, body: true},
		{name: "watch", args: []string{"watch", "--run", id}},
		{name: "workers", args: []string{"workers"}},
		{name: "kill", args: []string{"kill", id}},
		{name: "no such job", args: []string{"show", arg}, quiet: true},
		{name: "no such run", args: []string{"list", "--run", arg}, quiet: true},
		{name: "bad state", args: []string{"list", "--state", arg}, quiet: true},
		{name: "bad flag", args: []string{"list", "--no" + arg}, quiet: true},
		{name: "bad value", args: []string{"list", "--lease", arg}, quiet: true},
		{name: "bad level", args: []string{"list", "--log-level", arg}, quiet: true},
		{name: "bad profile", args: []string{"run", "x", "--profile", arg}, quiet: true},
		{name: "bad model", args: []string{"run", "x", "--model", arg}, quiet: true},
		{name: "bad prefix", args: []string{"list", "--prefix", arg}, quiet: true},
		{name: "no model", args: []string{"run", arg, "--title", arg}, quiet: true},
		{name: "bad plan", args: []string{"run", "--plan", plan}, quiet: true},
		{name: "no plan", args: []string{"run", "--plan", arg}, quiet: true},
		{name: "no folder", args: []string{"list", "--dir", arg}, quiet: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append(c.args, "--data", data)
			screen := onTerminal(t, args...)
			obeyed(t, "terminal", screen, !c.body)
			if len(screen) < 10 {
				t.Errorf("nothing is shown: %q", screen)
			}
			if !c.quiet && !strings.Contains(screen, "gnp.exe") {
				t.Errorf("the text itself is not there: %q", screen)
			}
			var stdout, stderr bytes.Buffer
			p := program(t, args...)
			p.Stdout, p.Stderr = &stdout, &stderr
			_ = p.Run() // most of these commands fail, and say so
			obeyed(t, "stderr", stderr.String(), true)
			if c.body { // byte for byte
				if !strings.Contains(stdout.String(), hostile) {
					t.Errorf("a pipe gets %q", stdout.String())
				}
				return
			}
			obeyed(t, "stdout", stdout.String(), true)
		})
	}
}

func TestHostileTextInJSON(t *testing.T) {
	data, id := plantHostile(t)
	valid, err := json.Marshal(strings.ToValidUTF8(hostile, "\ufffd"))
	if err != nil {
		t.Fatal(err)
	}
	var want string
	if err := json.Unmarshal(valid, &want); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"list", "--json"}, {"show", id, "--json"}, {"logs", id, "--json"}, {"collect", id, "--json"}, {"watch", "--run", id, "--json"}, {"workers", "--json"}, {"kill", id, "--json"},
	} {
		t.Run(args[0], func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			p := program(t, append(args, "--data", data)...)
			p.Stdout, p.Stderr = &stdout, &stderr
			_ = p.Run() // of a job that failed
			obeyed(t, "stdout", stdout.String(), true)
			obeyed(t, "stderr", stderr.String(), true)
			dec := json.NewDecoder(&stdout)
			whole := false
			for {
				tok, err := dec.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("no JSON: %v", err)
				}
				s, ok := tok.(string)
				whole = whole || ok && s == want
			}
			if keeps := args[0] != "kill"; whole != keeps { // it tells of entries, whose texts are previews
				t.Errorf("a value that is as it was planted: %v", whole)
			}
			screen := onTerminal(t, append(args, "--data", data)...)
			obeyed(t, "terminal", screen, true)
		})
	}
}

// What a tool brings is the text of an answer of call, and so is what is wrong with a call.
func TestHostileTextInCall(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f\x1b[2J\u202e\nFORGED.txt"), []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(strings.ToValidUTF8(hostile, "?"))
	if err != nil {
		t.Fatal(err)
	}
	calls := `{"tool":"list_dir"}
{"tool":"glob","args":{"pattern":"*"}}
{"tool":"grep","args":{"pattern":"gnp"}}
{"tool":"run_command","args":{"command":"cat *; cat * >&2; exit 3"}}
{"id":` + string(quoted) + `,"tool":` + string(quoted) + `}
{"tool":"read_file","args":{"path":` + string(quoted) + `}}
{"tool":"read_file","args":{` + string(quoted) + `:1}}
{` + string(quoted) + `:1}
` + hostile + "\n"
	p := program(t, "call", "--dir", dir)
	p.Stdin = strings.NewReader(calls)
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	if err := p.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	obeyed(t, "stdout", stdout.String(), true)
	obeyed(t, "stderr", stderr.String(), true)
	if n := strings.Count(stdout.String(), "\n"); n < 9 {
		t.Errorf("%d answers: %q", n, stdout.String())
	}
	for l := range strings.Lines(stdout.String()) {
		if !json.Valid([]byte(l)) {
			t.Errorf("no JSON: %q", l)
		}
	}
}
