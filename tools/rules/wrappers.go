package rules

import (
	"slices"
	"strings"
)

// options is how a program reads its options, up to the first word that is none.
type options struct {
	flags    string   // letters without a value
	values   string   // letters with one
	optional string   // letters whose value, if there is one, stands in the same word
	long     []string // "name", "name=" with a value, "name?" with one in the same word or none
	digits   bool     // -10 is one
}

// option is one that was given.
type option struct {
	name  string
	value word
}

// scan splits the words after a program's name. ok is false where they are not understood.
func (o options) scan(ws []word) (given []option, rest []word, ok bool) {
	for len(ws) > 0 {
		w := ws[0]
		if !w.known() {
			return given, ws, strings.IndexAny(w.text, unknown+"-") != 0 && (!w.many || w.prefixed)
		}
		if len(w.text) < 2 || w.text[0] != '-' {
			return given, ws, true
		}
		ws = ws[1:]
		if w.text == "--" {
			return given, ws, true
		}
		var more []option
		if name, isLong := strings.CutPrefix(w.text, "--"); isLong {
			more, ws, ok = o.longOption(name, ws)
		} else if o.digits && strings.Trim(w.text[1:], "0123456789-") == "" {
			continue
		} else {
			more, ws, ok = o.letters(w.text[1:], ws)
		}
		if !ok {
			return given, nil, false
		}
		given = append(given, more...)
	}
	return given, nil, true
}

func (o options) longOption(name string, ws []word) ([]option, []word, bool) {
	name, value, attached := strings.Cut(name, "=")
	switch {
	case slices.Contains(o.long, name) && !attached, slices.Contains(o.long, name+"?"):
		return []option{{name, literal(value)}}, ws, true
	case !slices.Contains(o.long, name+"="):
		return nil, ws, false
	case attached:
		return []option{{name, literal(value)}}, ws, true
	case len(ws) == 0:
		return nil, ws, false
	}
	return []option{{name, ws[0]}}, ws[1:], !ws[0].many
}

func (o options) letters(text string, ws []word) (given []option, rest []word, ok bool) {
	for i := range len(text) {
		name, value := text[i:i+1], literal(text[i+1:])
		switch {
		case strings.Contains(o.flags, name):
			given = append(given, option{name: name})
			continue
		case strings.Contains(o.optional, name):
		case !strings.Contains(o.values, name):
			return nil, ws, false
		case value.text == "" && len(ws) == 0:
			return nil, ws, false
		case value.text == "":
			value, ws = ws[0], ws[1:]
		}
		return append(given, option{name, value}), ws, !value.many
	}
	return given, ws, true
}

// prefix is a program that runs the words after its options and some words of its own.
type prefix struct {
	options
	skip int // words before the command
	own  bool
}

// prefixes lists programs that only run another one, and those that do more.
func prefixes(name string) (prefix, bool) {
	switch name {
	case "nohup":
		return prefix{}, true
	case "timeout":
		return prefix{options: options{flags: "vfp", values: "ks", long: []string{"signal=", "kill-after=", "foreground", "preserve-status", "verbose"}}, skip: 1}, true
	case "nice":
		return prefix{options: options{values: "n", long: []string{"adjustment="}, digits: true}}, true
	case "ionice":
		return prefix{options: options{flags: "t", values: "cn", long: []string{"class=", "classdata=", "ignore"}}}, true
	case "setsid":
		return prefix{options: options{flags: "cfw", long: []string{"ctty", "fork", "wait"}}}, true
	case "stdbuf":
		return prefix{options: options{values: "ioe", long: []string{"input=", "output=", "error="}}}, true
	case "taskset":
		return prefix{options: options{flags: "c", long: []string{"cpu-list"}}, skip: 1}, true
	case "chrt":
		return prefix{options: options{flags: "bfiorRv"}, skip: 1}, true
	case "time":
		return prefix{options: options{flags: "apqv", values: "f", long: []string{"portability", "verbose", "quiet", "format="}}}, true
	case "builtin", "unbuffer":
		return prefix{}, true
	case "exec":
		return prefix{options: options{flags: "cl", values: "a"}}, true
	case "chroot":
		return prefix{options: options{long: []string{"userspec=", "groups=", "skip-chdir"}}, skip: 1, own: true}, true
	case "doas":
		return prefix{options: options{flags: "n", values: "u"}, own: true}, true
	}
	return prefix{}, false
}

// unwrap finds what a command runs; false where it is a command like any other.
func (a *analysis) unwrap(name string, ws []word, in input) (inside, bool) {
	if shell, _ := isShell(name); shell {
		return shellInside(name, ws, in)
	}
	if p, ok := prefixes(name); ok {
		_, rest, ok := p.scan(ws[1:])
		switch {
		case !ok:
			return inside{hidden: "its options are not understood", own: p.own}, true
		case len(rest) <= p.skip:
			return inside{}, name == "exec"
		}
		return inside{runs: [][]word{rest[p.skip:]}, own: p.own, passes: true}, true
	}
	switch name {
	case "env":
		return a.env(ws)
	case "sudo":
		return a.sudo(ws)
	case "command":
		if len(ws) > 1 && (ws[1].text == "-v" || ws[1].text == "-V") {
			return inside{}, false
		}
		return after(options{flags: "p"}, ws, inside{passes: true})
	case "busybox", "toybox":
		if len(ws) > 1 && strings.HasPrefix(ws[1].text, "-") {
			return inside{}, false
		}
		return after(options{}, ws, inside{passes: true})
	case "eval":
		return inside{code: []text{{joined(ws[1:]), false}}, passes: true}, true
	case "trap":
		return trapInside(ws)
	case "jobs":
		if len(ws) > 2 && ws[1].text == "-x" {
			return inside{runs: [][]word{ws[2:]}}, true
		}
	case "xargs":
		return xargs(ws)
	case "find", "gfind":
		return find(ws)
	case "watch":
		return watch(ws)
	case "ssh", "su", "runuser", "script", "flock", "parallel", "fd", "fdfind":
		return remote(name, ws)
	case "strace", "ltrace", "gdb", "valgrind", "perf", "unshare", "nsenter", "setpriv", "systemd-run", "prlimit", "numactl", "firejail", "bwrap", "cgexec",
		"dbus-run-session", "xvfb-run", "rlwrap", "proxychains", "torsocks", "faketime", "fakeroot", "catchsegv", "rr", "entr", "hyperfine", "start-stop-daemon", "at", "batch",
		"setarch", "linux32", "linux64", "i386", "x86_64", "uname26", "ssh-agent", "gosu", "su-exec", "setuidgid", "chpst", "softlimit", "envdir", "tini",
		"dumb-init", "catatonit", "aa-exec", "capsh", "choom", "uclampset", "eatmydata", "nocache", "pkexec", "run0", "sg", "coreutils",
		".", "source": // what they read may be a program that is found by its name
		return inside{maybe: true}, false
	}
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld.so") { // the loader runs what it is told to load
		return inside{maybe: true}, false
	}
	return inside{}, false
}

// after is the words after a program's options.
func after(o options, ws []word, r inside) (inside, bool) {
	_, rest, ok := o.scan(ws[1:])
	if !ok {
		r.hidden = "its options are not understood"
	} else if len(rest) > 0 {
		r.runs = [][]word{rest}
	}
	return r, !ok || len(rest) > 0
}

// assignments takes the words NAME=value off the front.
func (a *analysis) assignments(ws []word, source string) []word {
	for len(ws) > 0 {
		name, _, is := strings.Cut(ws[0].text, "=")
		if !is || ws[0].many || strings.Contains(name, unknown) {
			break
		}
		a.checkName(name, source)
		a.taint(name)
		ws = ws[1:]
	}
	return ws
}

func (a *analysis) env(ws []word) (inside, bool) {
	o := options{flags: "i0v", values: "uCSa", long: []string{
		"ignore-environment", "null", "debug", "unset=", "chdir=", "split-string=", "argv0=", "block-signal?", "default-signal?", "ignore-signal?", "list-signal-handling"}}
	r := inside{passes: true}
	rest := ws[1:]
	for {
		given, next, ok := o.scan(rest)
		rest = next
		split := false
		for _, g := range given {
			switch g.name {
			case "u", "unset":
				a.setName(g.value, show(ws))
			case "C", "chdir":
				r.alters, r.moved = "it runs the command in another folder", true
			case "S", "split-string":
				ok = ok && g.value.known() && !strings.ContainsAny(g.value.text, "\\'\"$#")
				var words []word
				for _, f := range strings.Fields(g.value.text) {
					words = append(words, literal(f))
				}
				rest, split = append(words, rest...), true
			}
		}
		if !ok {
			r.hidden = "its options are not understood"
			return r, true
		}
		for len(rest) > 0 && rest[0].text == "-" {
			rest, split = rest[1:], true
		}
		if !split {
			break
		}
	}
	rest = a.assignments(rest, show(ws))
	if len(rest) > 0 {
		r.runs = [][]word{rest}
	}
	return r, len(rest) > 0
}

func (a *analysis) sudo(ws []word) (inside, bool) {
	r := inside{own: true, passes: true}
	o := options{flags: "ABbEHknPSis", values: "CDghpRrTtUu", long: []string{"preserve-env?", "non-interactive", "user=", "group=", "set-home", "stdin", "background", "login", "shell"}}
	given, rest, ok := o.scan(ws[1:])
	rest = a.assignments(rest, show(ws))
	for _, g := range given {
		r.moved = r.moved || g.name == "D"
		if slices.Contains([]string{"i", "s", "login", "shell"}, g.name) {
			if len(rest) == 0 {
				r.hidden = "it runs a shell on what it reads"
			}
			r.code, rest = append(r.code, text{joined(rest), true}), nil
			break
		}
	}
	if len(rest) > 0 {
		r.runs = [][]word{rest}
	}
	if !ok {
		r.hidden = "its options are not understood"
	}
	return r, true
}

func trapInside(ws []word) (inside, bool) {
	rest := ws[1:]
	if len(rest) > 0 && rest[0].text == "--" {
		rest = rest[1:]
	}
	if len(rest) < 2 || rest[0].known() && (rest[0].text == "" || strings.HasPrefix(rest[0].text, "-")) {
		return inside{}, false
	}
	return inside{code: []text{{rest[0], false}}}, true
}
