package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// kitchen allows some commands, asks about one and denies one; what the denied one is called appears in no other.
func kitchen(t testing.TB) *Set {
	return parsed(t, Lists{
		Allow: []string{"run_command(ok *)", "run_command(echo *)", "run_command(cat *)", "run_command(find *)", "run_command(sudo *)", "run_command([ *)",
			"run_command(env)", "run_command(set *)", "run_command(read *)", "run_command(bash *)", "run_command(strace *)", "edit(out/**)"},
		Ask:  []string{"run_command(hm *)"},
		Deny: []string{"run_command(bad *)"},
	})
}

// verdicts decides commands by the rules of the kitchen.
func verdicts(t *testing.T, want map[string]Verdict) {
	t.Helper()
	s := kitchen(t)
	for command, v := range want {
		if d := s.Decide(Call{Tool: "run_command", Command: command}); d.Verdict != v {
			t.Errorf("%q: %v by %v, want %v", short(command), d.Verdict, d, v)
		}
	}
}

func TestProgramsThatRunPrograms(t *testing.T) {
	verdicts(t, map[string]Verdict{
		"xargs ok":                             Allow,
		"xargs -n1 -P 4 --null ok a":           Allow,
		"xargs -I {} ok {}":                    Allow,
		"xargs -I {} {} ok":                    Ask,
		"xargs --replace=X X":                  Ask,
		"xargs --odd ok":                       Ask,
		"xargs -a list bad":                    Deny,
		"xargs env ok":                         Allow,
		"xargs env":                            Ask,
		"xargs sh -c":                          Ask,
		"xargs sh -c 'ok \"$@\"' _":            Allow,
		"env -u X ok":                          Allow,
		"env -u PATH ok":                       Ask,
		"env - A=1 ok":                         Allow,
		"env -S 'A=1 ok -x' y":                 Allow,
		"env -S 'ok $X'":                       Ask,
		"env --chdir=/x ok":                    Ask,
		"env 'BASH_FUNC_ok%%=() { bad; }' ok":  Deny,
		"env \"$X\" ok":                        Ask,
		"nice -10 ok":                          Allow,
		"timeout -s KILL 1 ok":                 Allow,
		"timeout $T ok":                        Ask,
		"time -p ok":                           Allow,
		"/usr/bin/time -v ok":                  Allow,
		"/usr/bin/time -o f ok":                Ask,
		"./timeout 1 ok":                       Ask,
		"./timeout 1 bad":                      Deny,
		"exec -a x ok":                         Allow,
		"exec > out/x":                         Allow,
		"command -p ok":                        Allow,
		"command ok":                           Allow,
		"sudo ok":                              Allow,
		"sudo -u x A=1 ok":                     Allow,
		"sudo PATH=/x ok":                      Ask,
		"sudo -s 'ok; ok'":                     Allow,
		"sudo -i":                              Ask,
		"sudo hm":                              Ask,
		"doas ok":                              Ask,
		"find . -exec ok {} \\; -exec ok {} +": Allow,
		"find . -ok bad {} \\;":                Deny,
		"find . -exec {} \\;":                  Ask,
		"find . -execdir ./ok {} \\;":          Ask,
		"find . -exec ok":                      Ask,
		"find src/* -name x":                   Allow,
		"find * -name x":                       Ask,
		"find . -name \"$X\" -newer \"$Y\"":    Allow,
		"strace ok":                            Allow,
		"strace -f -e x ok bad":                Deny,
		"watch -n 1 'ok; bad'":                 Deny,
		"jobs -x bad":                          Deny,
		"script -qc bad f":                     Deny,
		"su nobody -c bad":                     Deny,
		"flock f -c bad":                       Deny,
		"flock f bad":                          Deny,
		"fd -x bad":                            Deny,
		"parallel -j4 bad {} ::: a":            Deny,
		"chroot /x bad":                        Deny,
	})
}

func TestShells(t *testing.T) {
	verdicts(t, map[string]Verdict{
		"bash -c ok -c bad":                      Allow, // the rest are its parameters
		"bash -c -e bad":                         Deny,
		"bash -ec bad":                           Deny,
		"bash -o errexit -c bad":                 Deny,
		"bash --norc -c bad":                     Deny,
		"bash --rcfile f -c ok":                  Ask,
		"bash -O expand_aliases -c ok":           Ask,
		"bash f.sh":                              Allow,
		"bash $F":                                Ask,
		"bash <(ok)":                             Ask,
		"bash /dev/stdin":                        Ask,
		"bash < f":                               Ask,
		"bash bad":                               Deny,
		"bash":                                   Ask,
		"ok | bash -s x":                         Ask,
		"bash -s x <<< ok":                       Allow,
		"bash <<< ok < f":                        Ask,
		"sh -c $'bad'":                           Deny,
		"sh -c 'x=$'\\''\\'\\''; bad #'":         Deny,
		"dash -c 'echo $'\\''\\\\'\\'' ; bad; '": Deny,
		"fish -c 'ok'":                           Ask,
		". bad":                                  Deny,
		". <(ok)":                                Ask,
	})
}

func TestWhatTheShellEvaluates(t *testing.T) {
	verdicts(t, map[string]Verdict{
		"set -e; ok":                          Allow,
		"set -k; ok":                          Ask,
		"set -- $X; ok":                       Allow,
		"shopt -s expand_aliases; ok":         Ask,
		"hash -p x ok":                        Ask,
		"enable -f x y":                       Ask,
		"read X; echo $X":                     Allow,
		"read X; echo $((X))":                 Ask,
		"read PATH":                           Ask,
		"read 'A[$(date)]'":                   Ask,
		"unset 'A[$(date)]'":                  Ask,
		"echo 'a[$(date)]'; echo $((_))":      Ask,
		"f() { echo $(($1)); }":               Ask,
		"X=$(cat f); echo $((X + 1))":         Ask,
		"X=4; echo $((X + 1)) ${#X} ${X:1:2}": Allow,
		"X='a[$(date)]'; echo ${Y:X}":         Ask,
		"X='a[$(date)]'; echo ${Y[X]}":        Ask,
		"X='a[$(date)]'; Y[X]=1":              Ask,
		"declare -i X; X='a[$(date)]'":        Ask,
		"declare -n X=PATH; X=/x; ok":         Ask,
		"declare \"$X\"":                      Ask,
		"command declare PATH=/x; ok":         Ask,
		"((PATH = 1)); ok":                    Ask,
		"for PATH in /x; do ok; done":         Ask,
		"coproc PATH { ok; }":                 Ask,
		"X=1 ${PATH:=/x} ok":                  Ask,
		"echo ${BASH_ENV:=x}":                 Ask,
		"BASH_ALIASES[ok]=bad; ok":            Deny,
		"[[ -v 'a[$(date)]' ]]":               Ask,
		"[ -v 'a[$(date)]' ]":                 Ask,
		"[ -n \"$X\" ]":                       Allow,
		"[ \"$X\" \"$Y\" ]":                   Ask,
		"[ ! \"$X\" != y ]":                   Allow,
		"[[ a =~ $(bad) ]]":                   Deny,
		"echo @($(bad)|b)":                    Deny,
		"echo $[ 1 + $(bad) ]":                Deny,
	})
}

func TestWordsAndRedirects(t *testing.T) {
	verdicts(t, map[string]Verdict{
		"exec {PATH}> out/x":         Ask,
		"echo {1..3}":                Allow,
		"echo a{b,c}":                Allow,
		"a{b,c}":                     Ask,
		"echo >&2":                   Allow,
		"echo 2>&1 >out/x":           Allow,
		"echo >&out/x":               Allow,
		"echo >& $X":                 Ask,
		"echo <> out/x":              Allow,
		"echo >| elsewhere":          Ask,
		"echo x >out/* ":             Ask,
		"cat <<'E'\n$(bad)\nE\nok":   Allow,
		"cat <<E\\F\n$(bad)\nEF\nok": Allow,
		"cat <<-E\n\t`bad`\n\tE":     Deny,
		"X=bad; $X":                  Deny,
		"X=ba; ${X}d":                Ask,
		"ok &>out/x; ok |& cat":      Allow,
		"hm x":                       Ask,
		"ok; hm":                     Ask,
		"$HM x":                      Ask,
		"ok # a \\\nbad":             Deny,
	})
}

func TestBoundsOfCommands(t *testing.T) {
	verdicts(t, map[string]Verdict{
		"echo ${X:-$Y<<<(other x)}":                    Ask,
		"echo ${X/a/b<<(bad x)}":                       Deny,
		"echo ${X:-<(bad)}":                            Deny,
		"echo \"$\\\n(bad)\"":                          Deny,
		"echo \"$\\\n(other)\"":                        Ask,
		"echo $\\\n{X@P}":                              Ask,
		"ok a \\\n  b":                                 Allow,
		"ok \\\n\\\n b":                                Allow,
		numbered("ok %d;", maxParts):                   Allow,
		numbered("ok %d;", maxParts+1):                 Ask,
		numbered("ok %d;", maxParts+1) + "bad":         Deny,
		"ok\u00a0bad":                                  Ask,
		"ok \x01":                                      Ask,
		"ok \xff":                                      Ask,
		strings.Repeat("ok;", maxCommandBytes/3):       Allow,
		strings.Repeat("ok;", maxCommandBytes/3+50):    Ask,
		strings.Repeat("ok;", maxCommandBytes) + "bad": Deny,
		strings.Repeat("( ", 40) + "ok" + strings.Repeat(" )", 40):     Allow,
		strings.Repeat("( ", 60) + "ok" + strings.Repeat(" )", 60):     Ask,
		strings.Repeat("( ", 60) + "bad" + strings.Repeat(" )", 60):    Deny,
		strings.Repeat("( ", 2000) + "ok" + strings.Repeat(" )", 2000): Ask,
		strings.Repeat("nice ", 60) + "ok":                             Ask,
		strings.Repeat("nice ", 60) + "bad":                            Deny,
	})
}

// numbered is a text n times, each with its number.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestHostileCommandsEndSoon gives texts that make a parser work hard: none takes longer than its size deserves.
func TestHostileCommandsEndSoon(t *testing.T) {
	l := kitchen(t).Lists()
	for i := range maxRules - len(l.Deny) {
		l.Deny = append(l.Deny, fmt.Sprintf("run_command(other%d * x)", i))
	}
	s := parsed(t, l)
	for _, piece := range []string{
		"(", "$(", "\"$(", "{ ", "if ", "$((", "a[", "${a:-", "<(", "[[ ! ", "f() ", "! ", "time ", "`", "'", "\"", "\\", "case x in x) ", "( ')' ", "$x", "*", "{a,", "eval ", "xargs ",
		"env ", "sh -c ", "find -exec ", "ok;", "a=(", "<<E\n", "x$y", "-", "ok $x ", "[", "{ ! ",
	} {
		for _, posix := range []bool{false, true} {
			began := time.Now()
			d := s.Decide(Call{Tool: "run_command", Command: strings.Repeat(piece, maxCommandBytes/len(piece)), POSIX: posix})
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%q again and again: %v after %v", piece, d.Verdict, took)
			}
		}
	}
}

func mustParse(t *rapid.T, l Lists) *Set {
	s, err := Parse(l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dress writes a command in another way that runs the same.
func dress(t *rapid.T, command string) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	double := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s) + `"`
	}
	for range rapid.IntRange(0, 5).Draw(t, "layers") {
		c := command
		command = rapid.SampledFrom([]func() string{
			func() string { return "sh -c " + quote(c) },
			func() string { return "bash -c " + double(c) },
			func() string { return "eval " + quote(c) },
			func() string { return "timeout 5 bash -c " + quote(c) },
			func() string { return "env X=1 sh -c " + quote(c) },
			func() string { return "ok; " + c },
			func() string { return c + " && ok" },
			func() string { return "ok | { " + c + "\n}" },
			func() string { return "( " + c + "\n)" },
			func() string { return "echo \"$(" + c + "\n)\"" },
			func() string { return "cat <(" + c + "\n)" },
			func() string { return "if " + c + "\nthen ok; fi" },
			func() string { return "X=$(" + c + "\n)" },
			func() string { return "for i in 1 2; do " + c + "\ndone" },
			func() string { return "find . -exec bash -c " + quote(c) + " \\;" },
			func() string { return "ok | xargs bash -c " + quote(c) },
			func() string { return "cat <<E\n$(" + c + "\n)\nE" },
			func() string { return "trap " + quote(c) + " EXIT" },
			func() string { return "f() { " + c + "\n}; ok" },
			func() string { return "nohup nice -n 5 sudo sh -c " + double(c) },
			func() string { return "echo ${X:-$(" + c + "\n)} $((1 + $(" + c + "\n)))" },
			func() string { return "bash <<'" + "END" + "'\n" + c + "\nEND" },
			func() string { return "case x in x) " + c + "\n;; esac" },
		}).Draw(t, "layer")()
	}
	return command
}

// spell writes a word with quotes and backslashes that mean nothing.
func spell(t *rapid.T, text string) string {
	var b strings.Builder
	for _, r := range text {
		switch rapid.IntRange(0, 5).Draw(t, "spelling") {
		case 0:
			b.WriteString(`\` + string(r))
		case 1:
			b.WriteString("'" + string(r) + "'")
		case 2:
			b.WriteString(`"` + string(r) + `"`)
		case 3:
			b.WriteString(string(r) + "''")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TestNothingDressesADeniedCommand: whatever it is wrapped in and however it is spelt, a denied command is never allowed; one that nobody allowed neither.
func TestNothingDressesADeniedCommand(t *testing.T) {
	s := kitchen(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"bad", "/usr/bin/bad", "other", "hm"}).Draw(t, "name")
		command := dress(t, spell(t, name)+" x")
		d := s.Decide(Call{Tool: "run_command", Command: command, POSIX: rapid.Bool().Draw(t, "posix")})
		if d.Verdict < Ask {
			t.Fatalf("%s is %v by %v", command, d.Verdict, d)
		}
		// Rules that only deny need no rule that allows beside them.
		only := mustParse(t, Lists{Deny: []string{"run_command(bad *)", "run_command(other *)", "run_command(hm *)"}})
		if d := only.Decide(Call{Tool: "run_command", Command: command}); d.Verdict < Ask {
			t.Fatalf("%s is %v by %v where rules only deny", command, d.Verdict, d)
		}
	})
}

// TestDressesDoNotHarmTheAllowed: the same wrappings around a command that is allowed mostly stay allowed; where they do not, it is asked.
func TestDressesDoNotHarmTheAllowed(t *testing.T) {
	s := kitchen(t)
	allowed := 0
	rapid.Check(t, func(t *rapid.T) {
		command := dress(t, "ok x")
		d := s.Decide(Call{Tool: "run_command", Command: command})
		if d.Verdict == Deny {
			t.Fatalf("%s is denied by %v", command, d)
		}
		if d.Verdict == Allow {
			allowed++
		}
	})
	if allowed < 30 {
		t.Errorf("%d of the wrapped commands are allowed", allowed)
	}
}
