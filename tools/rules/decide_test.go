package rules

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestSetsNarrow(t *testing.T) {
	host := parsed(t, Lists{Allow: []string{"run_command(go *)", "run_command(git *)"}, Ask: []string{"run_command(git commit *)"}, Deny: []string{"run_command(git push *)"}})
	job := parsed(t, Lists{Allow: []string{"run_command(go test *)", "run_command(git *)", "run_command(make *)"}})
	quiet := parsed(t, Lists{Deny: []string{"memory_save"}})
	for command, want := range map[string]Verdict{
		"go test":              Allow,
		"go build":             Ask, // the job does not allow it
		"make":                 Ask, // the host does not
		"git commit":           Ask, // an allow of the job does not lift the host's ask
		"git push":             Deny,
		"go test && git diff":  Allow,
		"go test && go build":  Ask,
		"go build && git push": Deny,
	} {
		c := Call{Tool: "run_command", Command: command}
		for name, sets := range map[string][]*Set{
			"host, job": {host, job}, "job, host": {job, host}, "and those with nothing to say": {nil, quiet, host, job, quiet},
		} {
			if d := Judge(sets, c); d.Verdict != want {
				t.Errorf("%s by %s: %v by %v, want %v", command, name, d.Verdict, d, want)
			}
		}
	}
}

func TestNarrowingGrantsNothing(t *testing.T) {
	s := parsed(t, Lists{Allow: []string{"run_command(go test *)", "memory_save"}, Deny: []string{"run_command(rm *)"}}).Narrowing()
	for command, want := range map[string]Verdict{"go test": None, "make": Ask, "rm x": Deny} {
		if d := s.Decide(Call{Tool: "run_command", Command: command}); d.Verdict != want {
			t.Errorf("%s: %v by %v, want %v", command, d.Verdict, d, want)
		}
	}
	wide := parsed(t, Lists{Allow: []string{"run_command"}})
	if d := Judge([]*Set{s, wide}, Call{Tool: "run_command", Command: "go test"}); d.Verdict != Allow {
		t.Errorf("what another set grants: %v by %v", d.Verdict, d)
	}
}

func TestBareRulesAreForEveryCall(t *testing.T) {
	for _, c := range []struct {
		lists Lists
		call  Call
		want  Verdict
	}{
		{Lists{Allow: []string{"run_command"}}, Call{Tool: "run_command", Command: "$X > /etc/x '"}, Allow},
		{Lists{Allow: []string{"run_command"}, Deny: []string{"edit(secrets/**)"}}, Call{Tool: "run_command", Command: "x > secrets/a"}, Deny},
		{Lists{Allow: []string{"run_command"}, Deny: []string{"write_file"}}, Call{Tool: "run_command", Command: "x > a"}, Deny},
		{Lists{Allow: []string{"run_command"}, Deny: []string{"run_command(rm *)"}}, Call{Tool: "run_command", Command: "$X"}, Ask},
		{Lists{Ask: []string{"run_command"}, Deny: []string{"run_command(rm *)"}}, Call{Tool: "run_command", Command: "rm"}, Deny},
		{Lists{Ask: []string{"run_command"}}, Call{Tool: "run_command", Command: "ls"}, Ask},
		{Lists{Deny: []string{"run_command"}}, Call{Tool: "run_command", Command: "ls"}, Deny},
		{Lists{Allow: []string{"run_command(x *)", "write_file"}}, Call{Tool: "run_command", Command: "x > a"}, Allow},
		{Lists{Allow: []string{"run_command(x *)", "write_file"}}, Call{Tool: "run_command", Command: "x > /a"}, Ask},
		{Lists{Allow: []string{"run_command(x *)"}, Ask: []string{"edit"}}, Call{Tool: "run_command", Command: "x > a"}, Ask},
		{Lists{Deny: []string{"edit(a)"}}, Call{Tool: "run_command", Command: "x > b"}, None},
		{Lists{Deny: []string{"edit(a)"}}, Call{Tool: "run_command", Command: "x > $B"}, Ask},
		{Lists{Deny: []string{"edit(a)"}}, Call{Tool: "run_command", Command: "x '"}, Ask},
		{Lists{Allow: []string{"edit(a)"}}, Call{Tool: "run_command", Command: "x > b"}, None},
		{Lists{Deny: []string{"memory_save"}}, Call{Tool: "run_command", Command: "x '"}, None},
		{Lists{Allow: []string{"edit"}}, Call{Tool: "apply_patch"}, Allow},
		{Lists{Allow: []string{"edit"}, Deny: []string{"edit(a)"}}, Call{Tool: "apply_patch"}, Ask},
		{Lists{Allow: []string{"apply_patch(src/**)"}}, Call{Tool: "apply_patch", Paths: []string{"src/a", "b"}}, Ask},
		{Lists{Allow: []string{"apply_patch(src/**)"}}, Call{Tool: "apply_patch", Paths: []string{"src/a", "src/b"}}, Allow},
		{Lists{Deny: []string{"apply_patch(src/**)"}}, Call{Tool: "write_file", Paths: []string{"src/a"}}, Deny},
		{Lists{Allow: []string{"apply_patch(src/**)"}}, Call{Tool: "write_file", Paths: []string{"src/a"}}, None},
		{Lists{Deny: []string{"read"}}, Call{Tool: "grep", Paths: []string{"."}}, Deny},
		{Lists{Deny: []string{"read"}}, Call{Tool: "edit_file", Paths: []string{"a"}}, None},
		{Lists{Deny: []string{"read_file(a)"}}, Call{Tool: "edit_file", Paths: []string{"a"}}, Deny},
		{Lists{Deny: []string{"read_file(a)"}}, Call{Tool: "list_dir", Paths: []string{"a"}}, None},
		{Lists{Deny: []string{"read(a/**)"}}, Call{Tool: "list_dir", Paths: []string{"a/b"}}, Deny},
		{Lists{Deny: []string{"git_diff(a)"}}, Call{Tool: "read_file", Paths: []string{"a"}}, Deny},
		{Lists{Deny: []string{"read(a/*.pem)"}}, Call{Tool: "git_diff", Paths: []string{"."}}, Ask},
		{Lists{Deny: []string{"read(a/*.pem)"}}, Call{Tool: "git_diff", Paths: []string{"b"}}, None},
		{Lists{Deny: []string{"read(a/*.pem)"}}, Call{Tool: "grep", Paths: []string{"a"}}, None}, // the tool leaves them out
		{Lists{Allow: []string{"git_commit(src/**)"}}, Call{Tool: "git_commit", Paths: []string{"src"}}, Allow},
		{Lists{Allow: []string{"git_commit(src/**)"}}, Call{Tool: "git_commit", Paths: []string{"."}}, Ask},
		{Lists{Allow: []string{"web_fetch"}}, Call{Tool: "web_fetch", URL: ":"}, Allow},
		{Lists{Deny: []string{"web_fetch(domain:a.b)"}}, Call{Tool: "web_fetch", URL: "http://a.b/"}, Deny},
		{Lists{Deny: []string{"web_fetch(domain:a.b)"}}, Call{Tool: "web_fetch", URL: "http://c.b/"}, None},
		{Lists{Deny: []string{"web_fetch(domain:a.b)"}}, Call{Tool: "web_fetch", URL: "http://０x7f.1/"}, Ask},
		{Lists{Ask: []string{"web_fetch"}, Allow: []string{"memory_save"}}, Call{Tool: "web_fetch", URL: "http://a.b"}, Ask},
		{Lists{Allow: []string{"mcp__a__*"}}, Call{Tool: "mcp__a__b"}, Allow},
		{Lists{Deny: []string{"mcp__*"}}, Call{Tool: "mcp__a__b"}, Deny},
		{Lists{Deny: []string{"mcp__a*"}}, Call{Tool: "read_file", Paths: []string{"a"}}, None},
		{Lists{Allow: []string{"memory_save"}}, Call{Tool: "say"}, None},
	} {
		if d := parsed(t, c.lists).Decide(c.call); d.Verdict != c.want {
			t.Errorf("%+v on %+v: %v by %v, want %v", c.lists, c.call, d.Verdict, d, c.want)
		}
	}
}

func TestDecisionsNameTheirRule(t *testing.T) {
	s := parsed(t, Lists{Allow: []string{"run_command(go *)"}, Deny: []string{"run_command(git * push *)", "read(secrets/**)"}})
	for command, want := range map[string]string{
		"go test | git -C x push":  "rule deny run_command(git * push *): git -C x push",
		"go test && make all":      "no allow rule covers it: make all",
		"go test; ${X} y":          "which command it is, is known only when it runs: … y",
		"go test; git $X":          "git …, which may be what it is about",
		"go test > $X":             "which file it opens is known only when it runs: redirect to …",
		"go test > log":            "no allow rule such as edit(log) covers it: redirect to log",
		"cat < secrets/x":          "rule deny read(secrets/**): redirect from secrets/x",
		"go test; go vet; go list": "rule allow run_command(go *): go test, and 2 more by theirs",
	} {
		if got := s.Decide(Call{Tool: "run_command", Command: command}).String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", command, got, want)
		}
	}
	b, err := json.Marshal(s.Decide(Call{Tool: "run_command", Command: "go test"}))
	if want := `{"verdict":"allow","rule":"allow run_command(go *)","part":"go test"}`; err != nil || string(b) != want {
		t.Errorf("as JSON: %s, %v", b, err)
	}
}

func TestPlacesDecideByWhereTheyLead(t *testing.T) {
	s := parsed(t, Lists{Allow: []string{"read(src/**)"}, Deny: []string{"read(secrets/**)", "read(**/.env)"}})
	places := map[string]Place{
		"link":     {Clean: "link", Real: "secrets/key"},
		"src/link": {Clean: "src/link", Real: "secrets/key"},
		"secrets":  {Clean: "secrets", Real: "src/x"}, // its own name is denied too
		"in":       {Clean: "in", Real: "src/a"},
		"log":      {Clean: "/scratch/log", Real: "/scratch/log", Scratch: true},
		"src/log":  {Clean: "src/log", Real: "/scratch/.env", Scratch: true},
	}
	resolve := func(p string) (Place, error) {
		if at, ok := places[p]; ok {
			return at, nil
		}
		return Place{}, errors.New("outside")
	}
	for path, want := range map[string]Verdict{"link": Deny, "src/link": Deny, "secrets": Deny, "in": Allow, "log": Allow, "src/log": Allow, "/etc/passwd": Ask} {
		if d := s.Decide(Call{Tool: "read_file", Paths: []string{path}, Resolve: resolve}); d.Verdict != want {
			t.Errorf("%s: %v by %v, want %v", path, d.Verdict, d, want)
		}
	}
	if d := s.Decide(Call{Tool: "run_command", Command: "x < link", Resolve: resolve}); d.Verdict != Deny {
		t.Errorf("a redirect through a symlink: %v by %v", d.Verdict, d)
	}
	keep := s.Filter("grep", Place{Clean: "link", Real: "secrets", Folder: true})
	for found, want := range map[string]bool{"link/key": true, "link/a/b": true} {
		if keep(found) != want {
			t.Errorf("below a symlink %s is left out: %v", found, !want)
		}
	}
	keep = s.Filter("grep", Place{Clean: ".", Real: ".", Folder: true})
	for found, want := range map[string]bool{"secrets/key": true, "src/.env": true, ".env": true, "src/a": false, "secret": false} {
		if keep(found) != want {
			t.Errorf("%s is left out: %v", found, !want)
		}
	}
	if s.Filter("grep", Place{Clean: "/scratch", Real: "/scratch", Scratch: true}) != nil {
		t.Error("patterns are not about the scratch folder")
	}
}

func TestCallsAreReadFromArguments(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a"}`:                    "glob a",
		`{"pattern":"**/*.go"}`:           "glob .",
		`{"pattern":"a/b/*.go"}`:          "glob a/b",
		`{"path":"x","pattern":"a/*"}`:    "glob x/a",
		`{"path":"x","pattern":"/w/a/*"}`: "glob /w/a",
	} {
		c, err := CallOf("glob", json.RawMessage(args))
		if got := c.Tool + " " + strings.Join(c.Paths, ","); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", args, got, err, want)
		}
	}
	c, err := CallOf("run_command", json.RawMessage(`{"command":"ls","workdir":"w","timeout_secs":1}`))
	if err != nil || c.Command != "ls" || c.Workdir != "w" {
		t.Errorf("a command: %+v, %v", c, err)
	}
	if c, err = CallOf("git_commit", json.RawMessage(`{"message":"m","paths":["a","b"]}`)); err != nil || strings.Join(c.Paths, ",") != "a,b" {
		t.Errorf("paths: %+v, %v", c, err)
	}
	if _, err := CallOf("read_file", json.RawMessage(`{"path":1}`)); err == nil {
		t.Error("a path that is no text is taken")
	}
	if c, err := CallOf("say", json.RawMessage(`[1]`)); err != nil || c.Tool != "say" {
		t.Errorf("a tool that nobody knows: %+v, %v", c, err)
	}
}
