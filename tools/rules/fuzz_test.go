package rules

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzCommand decides any text as a command: what is allowed stays what it is beside a denied command, and rules that deny never make a verdict milder.
func FuzzCommand(f *testing.F) {
	for _, seed := range scraps[:24] {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Add("cat <<-E | xargs -0I{} sh -c 'ok {}'\n\t${X//a/$((1 + ${#X}))}\n\tE", true)
	s := kitchen(f)
	laxer := parsed(f, Lists{Allow: s.Lists().Allow})
	f.Fuzz(func(t *testing.T, command string, posix bool) {
		decide := func(s *Set, command string) Decision {
			return s.Decide(Call{Tool: "run_command", Command: command, POSIX: posix})
		}
		d := decide(s, command)
		if free := decide(laxer, command); free.Verdict > d.Verdict {
			t.Errorf("%q: %v by %v, and %v by %v without rules that deny", command, d.Verdict, d, free.Verdict, free)
		}
		if d.Verdict != Allow || strings.HasSuffix(command, `\`) || len(command) > maxCommandBytes/2 {
			return
		}
		for _, more := range []string{command + "\nbad x", "bad x\n" + command, "{ " + command + "\n} | bad"} {
			if d := decide(s, more); d.Verdict != Deny {
				t.Errorf("%q: %v by %v, and alone it is allowed", more, d.Verdict, d)
			}
		}
	})
}

// FuzzDress wraps a denied command in any way that the bytes tell.
func FuzzDress(f *testing.F) {
	s := kitchen(f)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		command := dress(t, spell(t, "bad")+" x")
		if d := s.Decide(Call{Tool: "run_command", Command: command}); d.Verdict < Ask {
			t.Fatalf("%s: %v by %v", command, d.Verdict, d)
		}
	}))
}

// FuzzParse reads any text as a rule: it is refused with its text, or kept.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"run_command(go test *)", "edit({a,b}/**)", "web_fetch(domain:*.go.dev)", "mcp__a__*", "run_command(echo \"a b\" 'c'\\ d)", "read("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rule string) {
		for _, l := range []Lists{{Allow: []string{rule}}, {Deny: []string{rule}}} {
			s, err := Parse(l)
			if err != nil {
				continue
			}
			for _, c := range []Call{{Tool: "run_command", Command: rule}, {Tool: "read_file", Paths: []string{rule}}, {Tool: "web_fetch", URL: "http://" + rule}, {Tool: rule}} {
				if d := s.Decide(c); d.Verdict > Ask && l.Deny == nil {
					t.Errorf("%q denies %+v by %v", rule, c, d)
				}
			}
		}
	})
}
