package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/tools/rules"
)

// ruled puts sets of rules into a configuration.
func ruled(t testing.TB, lists ...rules.Lists) func(*Config) {
	t.Helper()
	var sets []*rules.Set
	for _, l := range lists {
		set, err := rules.Parse(l)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	return func(c *Config) { c.Rules = append(c.Rules, sets...) }
}

func inMode(mode string) func(*Config) { return func(c *Config) { c.Mode = mode } }

func TestRulesKnowEveryTool(t *testing.T) {
	for _, tool := range Builtins() {
		if !rules.Known(tool.Name) {
			t.Errorf("no rule can name %s: give it a row in the table of package rules", tool.Name)
		}
		var shape struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		fitted := mustFit(t, tool)
		if err := json.Unmarshal(fitted.Schema, &shape); err != nil {
			t.Fatal(err)
		}
		_, takesPath := shape.Properties["path"]
		if _, err := rules.Parse(rules.Lists{Deny: []string{tool.Name + "(x)"}}); takesPath && err != nil {
			t.Errorf("%s has a path that no rule can be about: %v", tool.Name, err)
		}
	}
}

func TestRulesDenyWithTheirName(t *testing.T) {
	s := newSet(t, ruled(t, rules.Lists{Deny: []string{"run_command(touch *)", "edit(secrets/**)", "read(**/.env)"}}))
	put(t, s, "secrets/key", "k\n")
	put(t, s, ".env", "KEY=1\n")
	if err := os.Symlink("secrets", filepath.Join(s.cfg.Tree.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool string
		args []any
		want string
	}{
		{"run_command", []any{"command", "true && touch x"}, "rule deny run_command(touch *): touch x"},
		{"run_command", []any{"command", "echo x > link/key"}, "rule deny edit(secrets/**): redirect to link/key"},
		{"write_file", []any{"path", "secrets/new", "content", "x"}, "rule deny edit(secrets/**): secrets/new"},
		{"write_file", []any{"path", "link/key", "content", "x"}, "rule deny edit(secrets/**): secrets/key"},
		{"write_file", []any{"path", "a/../secrets/key", "content", "x"}, "rule deny edit(secrets/**)"},
		{"edit_file", []any{"path", ".env", "old_string", "K", "new_string", "x"}, "rule deny read(**/.env): .env"},
		{"read_file", []any{"path", filepath.Join(s.cfg.Tree.Dir, ".env")}, "rule deny read(**/.env): .env"},
	} {
		r := call(t, s, c.tool, c.args...)
		if r.OK || r.Class != Permission || !strings.Contains(r.Text, c.want) || !strings.Contains(r.Text, "finish without it") {
			t.Errorf("%s %v: %+v", c.tool, c.args, r)
		}
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Tree.Dir, "x")); err == nil || get(t, s, "secrets/key") != "k\n" {
		t.Error("a denied call did something")
	}
	if r := call(t, s, "run_command", "command", "echo fine"); !r.OK || r.Facts.Denied {
		t.Errorf("what no rule speaks of: %+v", r)
	}
	if r := call(t, s, "list_dir"); !r.OK || strings.Contains(r.Text, ".env") || !strings.HasSuffix(r.Text, "[skipped: 1 that rules keep from you]") {
		t.Errorf("a listing: %+v", r)
	}
	if r := call(t, s, "read_file", "path", "../x"); r.Class != Permission || !strings.Contains(r.Text, "outside the workspace") {
		t.Errorf("a path outside has its own words: %+v", r)
	}
}

func TestRulesAskForWhatTheyDoNotCover(t *testing.T) {
	s := newSet(t, ruled(t, rules.Lists{Allow: []string{"run_command(echo *)", "edit(src/**)"}, Ask: []string{"run_command(echo secret *)"}}))
	for _, c := range []struct {
		tool string
		args []any
		want string
	}{
		{"run_command", []any{"command", "echo a; touch x"}, "(no allow rule covers it: touch x)"},
		{"run_command", []any{"command", "echo a > log"}, "(no allow rule such as edit(log) covers it: redirect to log)"},
		{"run_command", []any{"command", "echo secret x"}, "(rule ask run_command(echo secret *): echo secret x)"},
		{"run_command", []any{"command", "$X"}, "(which command it is, is known only when it runs: …)"},
		{"write_file", []any{"path", "go.mod", "content", "x"}, "(no allow rule covers it: go.mod)"},
	} {
		r := call(t, s, c.tool, c.args...)
		if !r.OK || !r.Facts.Denied || !strings.Contains(r.Text, "denied: "+c.tool+" needs an approval "+c.want) || !strings.Contains(r.Text, "do not retry it") {
			t.Errorf("%s %v: %+v", c.tool, c.args, r)
		}
	}
	for _, c := range [][]any{{"run_command", "command", "echo a | (echo b)"}, {"write_file", "path", "src/a", "content", "x"}, {"list_dir"}} {
		if r := call(t, s, c[0].(string), c[1:]...); !r.OK || r.Facts.Denied {
			t.Errorf("%v: %+v", c, r)
		}
	}
	if r := call(t, s, "run_command", "command", ""); r.Class != Input {
		t.Errorf("arguments come first: %+v", r)
	}
}

func TestRulesGrantWhatTheModeAsks(t *testing.T) {
	allow := rules.Lists{Allow: []string{"run_command(echo *)", "write_file"}}
	for _, c := range []struct {
		mode   string
		rules  func(*Config)
		denied bool
		class  ErrorClass
	}{
		{"default", ruled(t), true, ""},
		{"default", ruled(t, allow), false, ""},
		{"default", ruled(t, rules.Lists{Deny: []string{"run_command(rm *)"}}), true, ""},
		{"default", ruled(t, allow, rules.Lists{Ask: []string{"run_command"}}), true, ""},
		{"default", func(c *Config) { ruled(t, allow)(c); c.Rules[0] = c.Rules[0].Narrowing() }, true, ""},
		{"goal", ruled(t, rules.Lists{Ask: []string{"run_command"}}), true, ""},
		{"plan", ruled(t, allow), false, Permission},
	} {
		r := call(t, newSet(t, inMode(c.mode), c.rules), "run_command", "command", "echo hi")
		if r.Facts.Denied != c.denied || r.Class != c.class || (!c.denied && c.class == "") != strings.Contains(r.Text, "hi\n") {
			t.Errorf("mode %s: %+v, want denied %v, class %q", c.mode, r, c.denied, c.class)
		}
	}
	r := call(t, newSet(t, inMode("plan"), ruled(t, allow)), "write_file", "path", "x", "content", "y")
	if r.Class != Permission || !strings.Contains(r.Text, "mode plan") {
		t.Errorf("a rule lifts what the mode refuses: %+v", r)
	}
}

// TestTheJobsEnvironmentIsJudged: variables of the job steer its commands as assignments before them would.
func TestTheJobsEnvironmentIsJudged(t *testing.T) {
	allow := ruled(t, rules.Lists{Allow: []string{"run_command(echo *)"}})
	for name, asks := range map[string]bool{"PATH": true, "BASH_ENV": true, "LD_PRELOAD": true, "GIT_EXTERNAL_DIFF": true, "ITEM": false, "CI": false} {
		s := newSet(t, allow, func(c *Config) { c.Env = map[string]string{name: "evil"} })
		if r := call(t, s, "run_command", "command", "echo hi"); r.Facts.Denied != asks || asks != strings.Contains(r.Text, name+" changes what runs") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestToolsThatRulesDenyAreHidden(t *testing.T) {
	s := newSet(t, ruled(t, rules.Lists{Deny: []string{"edit", "glob", "read_file(x)"}}))
	var names []string
	for _, tool := range s.Tools() {
		names = append(names, tool.Name)
	}
	for _, name := range []string{"write_file", "edit_file", "glob"} {
		if r := call(t, s, name, "path", "x"); slices.Contains(names, name) || r.Class != Permission || !strings.Contains(r.Text, "rule deny ") {
			t.Errorf("%s: shown %v, %+v", name, slices.Contains(names, name), r)
		}
	}
	if !slices.Contains(names, "read_file") || !slices.Contains(names, "grep") {
		t.Errorf("shown are %v", names)
	}
}

func TestWalksLeaveOutWhatRulesKeep(t *testing.T) {
	s := newSet(t, ruled(t, rules.Lists{Deny: []string{"read(**/.env)", "glob(hidden/**)"}}, rules.Lists{Ask: []string{"read_file(secrets/*)"}}))
	for _, name := range []string{".env", "src/.env", "src/a.go", "secrets/key", "secrets/deep/b", "hidden/c"} {
		put(t, s, name, "needle\n")
	}
	if err := os.Symlink("secrets", filepath.Join(s.cfg.Tree.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool  string
		args  []any
		shown []string
		left  string
	}{
		{"grep", []any{"pattern", "needle"}, []string{"hidden/c", "secrets/deep/b", "src/a.go"}, "3 that rules keep from you"},
		{"grep", []any{"pattern", "needle", "path", "link"}, []string{"link/deep/b"}, "1 that rules keep from you"},
		{"grep", []any{"pattern", "needle", "path", "src", "include", "*.go"}, []string{"src/a.go"}, ""},
		{"glob", []any{"pattern", "**"}, []string{"secrets/deep/b", "secrets/key", "src/a.go"}, "3 that rules keep from you"},
	} {
		r := call(t, s, c.tool, c.args...)
		for _, name := range []string{".env", "src/.env", "src/a.go", "secrets/key", "secrets/deep/b", "hidden/c", "link/key", "link/deep/b"} {
			if shown := slices.ContainsFunc(strings.Split(r.Text, "\n"), func(l string) bool { return l == name || strings.HasPrefix(l, name+":") }); shown != slices.Contains(c.shown, name) {
				t.Errorf("%s %v shows %s: %v\n%s", c.tool, c.args, name, shown, r.Text)
			}
		}
		if !r.OK || c.left == "" && strings.Contains(r.Text, "rules") || !strings.Contains(r.Text, c.left) {
			t.Errorf("%s %v: %+v", c.tool, c.args, r)
		}
	}
	if r := call(t, s, "grep", "pattern", "needle", "path", "link/key"); !r.Facts.Denied || strings.Contains(r.Text, "needle\n") {
		t.Errorf("a file that is named: %+v", r)
	}
}

func TestKeptOutputIsReadWhateverTheRules(t *testing.T) {
	s := newSet(t, ruled(t, rules.Lists{Allow: []string{"read_file(src/**)", "run_command(seq *)"}}))
	r := call(t, s, "run_command", "command", "seq 1 20000")
	i := strings.Index(r.Text, s.cfg.Tree.Scratch)
	if !r.OK || i < 0 {
		t.Fatalf("no kept output is named: %+v", r)
	}
	file := strings.FieldsFunc(r.Text[i:], func(c rune) bool { return strings.ContainsRune(" ]\"`;,)\n", c) })[0]
	if r := call(t, s, "read_file", "path", file, "limit", 5); !r.OK || r.Facts.Denied || !strings.Contains(r.Text, "→2") {
		t.Errorf("%s: %+v", file, r)
	}
	if r := call(t, s, "read_file", "path", "go.mod"); !r.Facts.Denied {
		t.Errorf("another file: %+v", r)
	}
}
