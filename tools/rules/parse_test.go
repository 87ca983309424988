package rules

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestWrongRulesAreNamedAllAtOnce(t *testing.T) {
	for _, c := range []struct {
		lists Lists
		want  []string // one a wrong rule, in the order of deny, ask, allow
	}{
		{Lists{Allow: []string{"read_flie"}}, []string{`allow rule "read_flie": there is no tool "read_flie"; did you mean read_file?`}},
		{Lists{Deny: []string{"bash(ls)"}, Ask: []string{""}}, []string{`deny rule "bash(ls)": there is no tool "bash"`, `ask rule "": it does not begin with the name of a tool`}},
		{Lists{Allow: []string{"run_command(ls", "run_command()", "run_command ( ls )", "(ls)", "run_command(ls\nrm)"}}, []string{
			"its bracket does not end", "its brackets are empty; for every call of it write run_command", "does not begin with the name", "does not begin with the name", "a line end"}},
		{Lists{Deny: []string{"todo_write(x)", "mcp__a__b(x)", "subagent(y)"}}, []string{"todo_write takes nothing in brackets", "mcp__a__b takes nothing", "subagent takes nothing"}},
		{Lists{Deny: []string{"*", "read_*", "mcp__github", "mcp__*x"}}, []string{"a * may stand in the names of MCP tools only", "a * may stand", "for all of them write mcp__github__*"}},
		{Lists{Allow: []string{"run_command(" + strings.Repeat("x", 1001) + ")", "run_command(a\x1bb)", "run_command(a\u202eb)"}}, []string{"a rule may have 1000", "control character U+001B", "invisible character U+202E"}},
	} {
		checkFaults(t, c.lists, c.want)
	}
}

func TestRulesThatCanNeverMatchAreErrors(t *testing.T) {
	const oneByOne = "commands are matched one by one"
	for rule, want := range map[string]string{
		"run_command(git status && ls)":                       oneByOne,
		"run_command(git status | cat)":                       oneByOne,
		"run_command(git status; ls)":                         oneByOne,
		"run_command(git status &)":                           oneByOne,
		"run_command(! git status)":                           oneByOne,
		"run_command((git status))":                           oneByOne,
		"run_command({ git status; })":                        oneByOne,
		"run_command(go test > out)":                          "redirects are no words of a command",
		"run_command(cat <<< x)":                              "redirects are no words of a command",
		"run_command(CGO=1 go test)":                          "what is assigned before a command",
		"run_command(export X=1)":                             "what is assigned",
		"run_command(export PATH)":                            "export needs no rule",
		"run_command(echo $HOME)":                             "known only when a command runs",
		"run_command(echo \"$HOME\")":                         "known only when a command runs",
		"run_command(echo $(date))":                           "known only when a command runs",
		"run_command(echo $'a')":                              "known only when a command runs",
		"run_command(cat ~/x)":                                "what ~ stands for",
		"run_command(git 'x)":                                 "cannot", // its quote does not end
		"run_command(if x; then y; fi)":                       "syntax of the shell",
		"run_command([[ -f x ]])":                             "syntax of the shell",
		"run_command(time go test)":                           "time only runs another command",
		"run_command(timeout 5 go test)":                      "timeout only runs another command",
		"run_command(sh -c ls)":                               "sh only runs another command",
		"run_command(bash -c *)":                              "bash only runs another command",
		"run_command(env A=1 ls)":                             "env only runs another command",
		"run_command(xargs *)":                                "xargs only runs another command",
		"run_command(eval ls)":                                "eval only runs another command",
		"run_command(nohup nice ls)":                          "nohup only runs another command",
		"edit(/etc/**)":                                       "relative to the root",
		"edit(~/x)":                                           "outside the workspace",
		"edit(../x)":                                          "outside the workspace",
		"edit(a/../../x)":                                     "outside the workspace",
		"edit(src/../x)":                                      "write x",
		"edit(./src/**)":                                      "write src/**",
		"edit(src//x)":                                        "write src/x",
		"edit(src/)":                                          "write src/**",
		"edit(src/[a)":                                        "needs its end",
		"edit(src/{a)":                                        "needs its end",
		"edit(src/[^a])":                                      "may not be negated",
		"edit({a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b})": "more than 8 lists",
		"web_fetch(go.dev)":                                   "behind domain:",
		"web_fetch(domain:https://go.dev)":                    "it has a scheme",
		"web_fetch(domain:go.dev/x)":                          "it has a path",
		"web_fetch(domain:go.dev:443)":                        "it has a port",
		"web_fetch(domain:me@go.dev)":                         "it has a user",
		"web_fetch(domain:*)":                                 "a * stands only before the first dot",
		"web_fetch(domain:go.*)":                              "a * stands only before the first dot",
		"web_fetch(domain:*dev)":                              "a * stands only before the first dot",
		"web_fetch(domain:gö.dev)":                            "xn-- form",
		"web_fetch(domain:go..dev)":                           "no name of a host",
		"web_fetch(domain:*.192.0.2.1)":                       "no host is below an address",
		"web_fetch(domain:0x7f000001)":                        "number in an odd form",
		"web_fetch(domain:192.0.2)":                           "number in an odd form",
		"web_fetch(domain:fe80::1%eth0)":                      "zone",
		"web_fetch(domain:)":                                  "no name of a host",
		"read(src/**)x":                                       "bracket does not end",
	} {
		if want == "cannot" {
			want = "not the words of a command"
		}
		checkFaults(t, Lists{Allow: []string{rule}}, []string{want})
	}
}

func TestRulesThatAStricterOneCoversAreErrors(t *testing.T) {
	for _, c := range []struct {
		lists Lists
		want  string // "" where the rules may stand beside each other
	}{
		{Lists{Allow: []string{"run_command(go test *)"}, Deny: []string{"run_command"}}, `"deny run_command" matches all that it matches, and deny wins`},
		{Lists{Allow: []string{"run_command(go test *)"}, Ask: []string{"run_command"}}, "and ask wins"},
		{Lists{Allow: []string{"run_command(go test *)"}, Deny: []string{"run_command(go test *)"}}, "deny wins"},
		{Lists{Allow: []string{"run_command(go test ./...)"}, Deny: []string{"run_command(go *)"}}, "deny wins"},
		{Lists{Allow: []string{"run_command(go * -v)"}, Deny: []string{"run_command(g* * -v)"}}, "deny wins"},
		{Lists{Ask: []string{"run_command(go test *)"}, Deny: []string{"run_command(go *)"}}, "deny wins"},
		{Lists{Allow: []string{"run_command(go *)"}, Deny: []string{"run_command(go test *)"}}, ""},
		{Lists{Allow: []string{"run_command(go test *)"}, Deny: []string{"run_command(go test -x *)"}}, ""},
		{Lists{Allow: []string{"write_file(src/**)"}, Deny: []string{"edit(src/**)"}}, "deny wins"},
		{Lists{Allow: []string{"write_file(src/a/*.go)"}, Deny: []string{"edit_file(src/**)"}}, "deny wins"},
		{Lists{Allow: []string{"edit(src/**)"}, Deny: []string{"write_file"}}, ""},
		{Lists{Allow: []string{"write_file(src/**)"}, Deny: []string{"edit"}}, "deny wins"},
		{Lists{Allow: []string{"edit(srcs/**)"}, Deny: []string{"edit(src/**)"}}, ""},
		{Lists{Allow: []string{"read(src/**)"}, Deny: []string{"edit(src/**)"}}, ""},
		{Lists{Allow: []string{"web_fetch(domain:a.go.dev)"}, Deny: []string{"web_fetch(domain:*.go.dev)"}}, "deny wins"},
		{Lists{Allow: []string{"web_fetch(domain:go.dev)"}, Deny: []string{"web_fetch(domain:*.go.dev)"}}, ""},
		{Lists{Allow: []string{"mcp__a__b"}, Deny: []string{"mcp__a__*"}}, "deny wins"},
		{Lists{Allow: []string{"mcp__a__*"}, Deny: []string{"mcp__a__b"}}, ""},
		{Lists{Allow: []string{"todo_write"}, Deny: []string{"todo_write"}}, "deny wins"},
	} {
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		checkFaults(t, c.lists, want)
	}
}

// checkFaults parses lists of which each rule with a fault is wanted to have one.
func checkFaults(t *testing.T, l Lists, want []string) {
	t.Helper()
	s, err := Parse(l)
	if len(want) == 0 {
		if err != nil {
			t.Errorf("%+v: %v", l, err)
		}
		return
	}
	if err == nil || s != nil {
		t.Errorf("%+v: no error, want %q", l, want)
		return
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != len(want) {
		t.Errorf("%+v: want %d errors, have: %v", l, len(want), err)
		return
	}
	for i, one := range joined.Unwrap() {
		var fault *Error
		if !errors.As(one, &fault) || !slices.Contains(map[string][]string{"allow": l.Allow, "ask": l.Ask, "deny": l.Deny}[fault.List], fault.Rule) {
			t.Errorf("an error without its rule: %v", one)
		}
		if !strings.Contains(one.Error(), want[i]) {
			t.Errorf("%v\nwant %s", one, want[i])
		}
	}
}

func TestSetKeepsItsRules(t *testing.T) {
	l := Lists{Allow: []string{" run_command(ls) "}, Ask: []string{"edit(a)"}, Deny: []string{"memory_save"}}
	s := parsed(t, l)
	if got := s.Lists(); !slices.Equal(got.Allow, l.Allow) || !slices.Equal(got.Deny, l.Deny) {
		t.Errorf("lists are %+v", got)
	}
	var none *Set
	if d := none.Decide(Call{Tool: "run_command", Command: "rm x"}); d.Verdict != None || none.Hides("run_command") != "" || none.Narrowing() != nil || none.Filter("grep", Place{}) != nil {
		t.Errorf("a set of no rules decides %v", d)
	}
	if s.Hides("memory_save") == "" || s.Hides("run_command") != "" {
		t.Error("what is denied wholly is hidden, and nothing else")
	}
}

func parsed(t testing.TB, l Lists) *Set {
	t.Helper()
	s, err := Parse(l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
