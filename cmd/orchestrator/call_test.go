package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// session runs the lines of in through call on a folder and returns the answers.
func callLines(t testing.TB, dir, in string) []map[string]json.RawMessage {
	t.Helper()
	var out bytes.Buffer
	if err := runCall(t.Context(), callOptions{boardOptions: boardOptions{dir: dir}, mode: "goal"}, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var answers []map[string]json.RawMessage
	for l := range strings.Lines(out.String()) {
		var a map[string]json.RawMessage
		if err := json.Unmarshal([]byte(l), &a); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		answers = append(answers, a)
	}
	return answers
}

func ids(answers []map[string]json.RawMessage) []string {
	var out []string
	for _, a := range answers {
		out = append(out, string(a["id"]))
	}
	return out
}

func TestCallBoundsALine(t *testing.T) {
	in := `{"id":"a","tool":"todo_read"}` + "\n" + `{"id":"b","tool":"` + strings.Repeat("x", maxLineBytes) + `"}` + "\n" + `{"id":"c","tool":"todo_read"}`
	got := callLines(t, t.TempDir(), in)
	if diff := cmp.Diff([]string{`"a"`, "2", `"c"`}, ids(got)); diff != "" {
		t.Fatal(diff)
	}
	if text := string(got[1]["text"]); !strings.Contains(text, "more than 16777216 bytes") || string(got[1]["ok"]) != "false" || string(got[1]["class"]) != `"input"` {
		t.Errorf("the long line is answered with %s", text)
	}
}

func TestCallKeepsOrderButForReads(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var in strings.Builder
	fmt.Fprintln(&in, `{"id":0,"tool":"read_file","args":{"path":"f"}}`)
	for i := range 20 {
		fmt.Fprintf(&in, `{"id":%d,"tool":"edit_file","args":{"path":"f","old_string":"%d","new_string":"%d"}}`+"\n", i+1, i+1, i+2)
	}
	got := callLines(t, dir, in.String())
	for i, a := range got {
		if string(a["id"]) != fmt.Sprint(i) || string(a["ok"]) != "true" {
			t.Errorf("answer %d: %s", i, a["text"])
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(b) != "21\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

func TestCallAnswersEveryLineOnce(t *testing.T) {
	dir := t.TempDir()
	line := rapid.OneOf(
		rapid.SampledFrom([]string{`{"tool":"todo_read"}`, `{"id":null,"tool":"@tools"}`, `{"id":{"a":[1]},"tool":"glob","args":{"pattern":"*"}}`, `{"tool":7}`, `null`, `"x"`, `{"tool":"@none"}`, `{"id":1e400,"tool":""}`}),
		rapid.StringMatching(`[ -~]{0,40}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return strings.ReplaceAll(string(b), "\n", "") }),
	)
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 12).Draw(rt, "lines")
		want := 0
		for _, l := range lines {
			if strings.TrimSpace(l) != "" {
				want++
			}
		}
		got := callLines(t, dir, strings.Join(lines, "\n"))
		if len(got) != want {
			rt.Fatalf("%d answers to %d lines", len(got), want)
		}
		for _, a := range got {
			for _, key := range []string{"id", "tool", "ok", "text", "facts"} {
				if len(a[key]) == 0 {
					rt.Fatalf("no %s in %v", key, a)
				}
			}
			if class, there := a["class"]; there && string(class) == `""` {
				rt.Fatalf("an empty class in %v", a)
			}
		}
	})
}

func TestCallToolsAreWhatTheSessionSees(t *testing.T) {
	got := callLines(t, t.TempDir(), `{"tool":"@tools"}`)
	var text string
	var rows []toolRow
	if err := json.Unmarshal(got[0]["text"], &text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range rows {
		names[r.Name] = true
		if r.Tokens == 0 || len(r.Schema) == 0 || r.Class == "" || r.Description == "" {
			t.Errorf("row %+v", r)
		}
	}
	if !names["run_command"] || names["subagent"] {
		t.Errorf("a session without a board sees %v", names)
	}
}
