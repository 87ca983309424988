package tools

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster/board/secrets"
)

// The values are in no file of this folder as they are, so that a test that finds one found a leak.
var planted = map[string]string{
	"API":  "Kq7-" + strings.Repeat("xY3", 10),
	"PASS": `p"a\ss<w&rd/ ` + "wörd 4711",
	"PEM":  "-----BEGIN TEST-----\n" + strings.Repeat("QUJDMTIz", 8) + "\n" + strings.Repeat("REVGNDU2", 8) + "\n-----END TEST-----",
}

// leaks lists the planted values that a text holds, in whatever form.
func leaks(text string) (found []string) {
	for name, v := range planted {
		j, err := json.Marshal(v)
		if err != nil {
			return []string{err.Error()}
		}
		forms := []string{v, string(j[1 : len(j)-1]), hex.EncodeToString([]byte(v)), url.QueryEscape(v), base64.StdEncoding.EncodeToString([]byte(v)), strings.ReplaceAll(v, "\n", "")}
		for line := range strings.Lines(v) {
			if len(line) > 40 {
				forms = append(forms, strings.TrimSpace(line))
			}
		}
		for _, f := range forms {
			if strings.Contains(text, f) {
				found = append(found, name+": "+f)
			}
		}
	}
	return found
}

// secretSet is a set that knows the planted values, two from its configuration and one from the environment of its commands.
func secretSet(t *testing.T, j *journal) *Set {
	t.Helper()
	r, err := secrets.New(map[string]string{"API": planted["API"], "PEM": planted["PEM"]})
	if err != nil {
		t.Fatal(err)
	}
	return newSet(t, func(c *Config) {
		c.Secrets, c.Env, c.Journal = r, map[string]string{"DB_PASSWORD": planted["PASS"], "PLAIN": "not hidden at all"}, j.append
	})
}

func TestNoSecretLeavesASet(t *testing.T) {
	var j journal
	s := secretSet(t, &j)
	for name, v := range planted {
		put(t, s, name+".txt", "first line\n"+v+"\nlast line\n")
	}
	put(t, s, "dir/"+planted["API"], "in a folder\n")
	half := len(planted["API"]) / 2
	for _, c := range []struct {
		tool  string
		pairs []any
		want  string // of what stands in place
	}{
		{"read_file", []any{"path", "API.txt"}, "2→[redacted API]\n"},
		{"read_file", []any{"path", "PASS.txt"}, "2→[redacted DB_PASSWORD]\n"},
		{"read_file", []any{"path", "PEM.txt"}, "2→[redacted PEM]\n6→last line"},
		{"read_file", []any{"path", "PEM.txt", "offset", 3, "limit", 1}, "3→[redacted PEM]"},
		{"grep", []any{"pattern", "Kq7"}, "API.txt:2:[redacted API]"},
		{"glob", []any{"pattern", "dir/*"}, "dir/[redacted API]"},
		{"list_dir", []any{"path", "dir"}, "[redacted API]"},
		{"read_file", []any{"path", "nothing-" + planted["API"]}, "nothing-[redacted API]"},
		{"no_such_" + planted["API"], nil, `unknown tool "no_such_[redacted API]`},
		{"run_command", []any{"command", "cat API.txt PASS.txt PEM.txt"}, "[redacted API]"},
		{"run_command", []any{"command", fmt.Sprintf("printf %%s %s; printf '\\033[1m'; printf %%s %s", planted["API"][:half], planted["API"][half:])}, "[redacted API]"},
		{"run_command", []any{"command", "printf %s " + planted["API"][:half] + "; sleep 0.1; printf %s " + planted["API"][half:] + " >&1"}, "[redacted API]"},
		{"run_command", []any{"command", "base64 API.txt; base64 PEM.txt | fold -w 40"}, "[redacted API]"},
		{"run_command", []any{"command", "od -An -v -tx1 API.txt | tr -d ' \\n'"}, "[redacted API]"},
		{"run_command", []any{"command", `printf %s "$DB_PASSWORD"; echo; echo "$PLAIN"; exit 3`}, "[redacted DB_PASSWORD]\nnot hidden at all"},
		{"run_command", []any{"command", "cat API.txt >&2"}, "[redacted API]"},
		{"write_file", []any{"path", "new-" + planted["API"] + ".txt", "content", planted["PEM"]}, "new-[redacted API].txt"},
		{"edit_file", []any{"path", "API.txt", "old_string", "last line", "new_string", "last " + planted["API"]}, "[redacted API]"},
		{"todo_write", []any{"items", []todoItem{{"use " + planted["API"], ""}}}, ""},
		{"todo_read", nil, "use [redacted API]"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			r := next(t, s, c.tool, c.pairs...)
			if !strings.Contains(r.Text, c.want) {
				t.Errorf("lacks %q: %s", c.want, r.Text)
			}
			facts, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if found := append(leaks(r.Text), leaks(string(facts))...); len(found) > 0 {
				t.Errorf("%s %v shows %q: %s", c.tool, c.pairs, found, facts)
			}
		})
	}
	data, err := json.Marshal(j.data)
	if err != nil {
		t.Fatal(err)
	}
	if found := leaks(string(data)); len(found) > 0 || len(j.data) < 30 {
		t.Errorf("the journal of %d events holds %q", len(j.data), found)
	}
	if !strings.Contains(string(data), "nothing-[redacted API]") || !strings.Contains(get(t, s, "new-"+planted["API"]+".txt"), planted["PEM"]) {
		t.Error("the arguments are not on record, or the file did not get what it should")
	}
}

// The whole output of a command is kept on disk as it was, and comes back without secrets.
func TestKeptOutputComesBackWithoutSecrets(t *testing.T) {
	var j journal
	s := secretSet(t, &j)
	put(t, s, "api.txt", planted["API"])
	r := next(t, s, "run_command", "command", "seq 1 20000; cat api.txt; echo; seq 1 20000")
	at := regexp.MustCompile(`\S+command-\d+-stdout\.txt`).FindString(r.Text)
	if at == "" {
		t.Fatalf("no file is named: %s", r.Text)
	}
	kept, err := os.ReadFile(filepath.Clean(at))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err == nil && !strings.Contains(string(kept), planted["API"]) {
		t.Error("the file is not as it was")
	}
	g := next(t, s, "grep", "pattern", "Kq7", "path", at)
	line := next(t, s, "read_file", "path", at, "offset", 20001, "limit", 1)
	if !strings.Contains(g.Text, "[redacted API]") || !strings.Contains(line.Text, "20001→[redacted API]") {
		t.Errorf("grep: %s\nread_file: %s", g.Text, line.Text)
	}
	if found := slices.Concat(leaks(r.Text), leaks(g.Text), leaks(line.Text)); len(found) > 0 {
		t.Errorf("shows %q", found)
	}
}

// A line that is cut within a value shows less than half of it, on whichever side.
func TestCutLinesShowNoHalf(t *testing.T) {
	var j journal
	s := secretSet(t, &j)
	s.cfg.Caps.ReadLineChars, s.cfg.Caps.GrepLineChars = 80, 80
	secret := planted["API"]
	for at := range len(secret) {
		put(t, s, "long.txt", strings.Repeat("x ", (80-at)/2)+strings.Repeat(".", (80-at)%2)+secret+strings.Repeat(" y", 200)+" needle\n")
		r := next(t, s, "read_file", "path", "long.txt")
		longest := 0
		for n := range len(secret) + 1 {
			if strings.Contains(r.Text, secret[:n]) {
				longest = n
			}
		}
		if longest > len(secret)/2 {
			t.Errorf("%d of %d characters are shown: %s", longest, len(secret), r.Text)
		}
	}
}
