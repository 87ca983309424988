package rules

import (
	"path"
	"slices"
	"strings"
)

// inside is what a command runs beside itself.
type inside struct {
	runs   [][]word // commands
	code   []text   // what a shell runs
	own    bool     // the command does more than run them: it needs a rule of its own too
	passes bool     // what it runs reads its input
	hidden string   // why what it runs is not known
	alters string   // why what it runs may not be what its name says
	moved  bool     // it runs them in another folder
	maybe  bool     // it runs some of its last words, which are not told apart from its options: it is a command like any other, but for what denies
}

// text is what is handed to a shell; posix: that may be another than bash.
type text struct {
	word
	posix bool
}

// guesses bounds at how many places the command inside another is looked for where the options are not understood.
const guesses = 64

// command lists a command and what it runs.
func (a *analysis) command(ws []word, in input) {
	if len(ws) == 0 {
		return
	}
	source := show(ws)
	if a.nested >= maxNesting {
		a.hide(source, "it is nested more than %d deep", maxNesting)
		return
	}
	a.nested++
	defer func() { a.nested-- }()
	if !ws[0].known() {
		a.list(part{words: ws})
		a.hide(source, "which command it is, is known only when it runs")
		return
	}
	program := programOf(ws[0].text)
	name := path.Base(program)
	if why := a.builtin(name, ws[1:], source); why != "" {
		a.hide(source, "%s", why)
	}
	i, wraps := a.unwrap(name, ws, in)
	a.list(part{words: ws, free: program == name && (wraps && !i.own || declares(name))})
	if i.hidden != "" {
		a.hide(source, "%s", i.hidden)
	}
	if i.alters != "" {
		a.alter(source, "%s", i.alters)
	}
	if i.hidden != "" || i.maybe {
		for n := 1; n < len(ws) && n <= guesses; n++ {
			a.list(part{words: ws[n:], free: true, guess: true})
		}
	}
	a.moved = a.moved || i.moved
	if !i.passes {
		in = input{other: true}
	}
	for _, run := range i.runs {
		a.command(run, in)
	}
	for _, c := range i.code {
		if !c.known() {
			a.hide(source, "what its shell runs is known only when it runs")
			continue
		}
		a.code(c.text, c.posix)
	}
}

// declares says of a builtin that it only sets variables. It needs no rule: what it does is told by its words.
func declares(name string) bool {
	return slices.Contains([]string{"declare", "typeset", "local", "export", "readonly"}, name)
}

// builtin notes what a builtin of the shell does to the shell itself; it returns why that hides what runs, "" for not.
func (a *analysis) builtin(name string, args []word, source string) string {
	has := func(flag string) bool {
		return slices.ContainsFunc(args, func(w word) bool {
			return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, flag) || !w.known()
		})
	}
	if declares(name) { // through command or builtin, or in another shell than bash
		for _, w := range args {
			a.declared(w, source)
		}
	}
	switch name {
	case "cd", "pushd", "popd", "chdir":
		a.moved = true
	case "let":
		for _, w := range args {
			if !w.known() || strings.Trim(w.text, "0123456789+-*/%()<>=!&|^~?:, ") != "" {
				return "the shell evaluates it"
			}
		}
	case "read", "mapfile", "readarray", "getopts", "unset":
		a.setNames(args, source)
	case "printf":
		if len(args) > 0 && (args[0].many || strings.HasPrefix(args[0].text, unknown)) {
			return "which variable it sets is not known"
		}
		if len(args) > 0 && strings.HasPrefix(args[0].text, "-v") {
			a.setNames(args[:min(2, len(args))], source)
		}
	case "wait":
		if has("p") {
			a.setNames(args, source)
		}
	case "test", "[":
		return testFault(name, args)
	case "alias":
		if len(args) > 0 {
			return "it gives another meaning to a command's name"
		}
	case "hash", "enable":
		if has("p") || has("f") {
			return "it gives another meaning to a command's name"
		}
	case "set", "shopt":
		return setFault(args)
	case "compgen", "complete", "bind", "fc":
		return "it may run what its arguments say"
	case ".", "source":
		if len(args) > 0 && (!args[0].known() || isInput(args[0].text)) {
			return "which script it runs is known only when it runs"
		}
	}
	return ""
}

// setNames notes the variables that a builtin sets; words that are none do no harm.
func (a *analysis) setNames(args []word, source string) {
	for _, w := range args {
		letter, attached := "", ""
		if len(w.text) > 2 && w.text[0] == '-' { // printf -vNAME
			letter, attached = w.text[:2], w.text[2:]
		}
		switch {
		case w.digits:
		case !w.known() || strings.Contains(w.text, "[") || isName(w.text):
			a.setName(w, source)
		case letter != "" && isName(attached):
			a.setName(literal(attached), source)
		}
	}
}

// testFault says why a test may run more than itself: -v evaluates the index of what it names.
func testFault(name string, args []word) string {
	const why = "it may test a variable whose index hides what it runs"
	if name == "[" && len(args) > 0 {
		args = args[:len(args)-1]
	}
	if allKnown(args) {
		for i, w := range args {
			if (w.text == "-v" || w.text == "-R") && i+1 < len(args) && strings.Contains(args[i+1].text, "[") {
				return why
			}
		}
		return ""
	}
	for len(args) > 1 && args[0].known() && args[0].text == "!" {
		args = args[1:]
	}
	for _, w := range args {
		if w.many {
			return why
		}
	}
	switch {
	case len(args) == 1:
	case len(args) == 2 && args[0].known() && args[0].text != "-v" && args[0].text != "-R":
	case len(args) == 3 && args[1].known() && (strings.HasPrefix(args[1].text, "-") || strings.Trim(args[1].text, "=!<>") == ""):
	default:
		return why
	}
	return ""
}

// setFault says why options of the shell change how it reads commands.
func setFault(args []word) string {
	for _, w := range args {
		switch {
		case w.known() && w.text == "--":
			return ""
		case !w.known(), strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "k"), w.text == "keyword", w.text == "expand_aliases", w.text == "extdebug":
			return "it changes how commands are read"
		}
	}
	return ""
}

// isShell says of a program that it runs shell code; other is a shell with a language of its own.
func isShell(name string) (shell, other bool) {
	switch name {
	case "bash", "sh", "dash", "ash", "rbash", "ksh", "ksh93", "mksh", "lksh", "posh", "yash":
		return true, false
	case "zsh", "rzsh", "fish", "csh", "tcsh", "xonsh", "nu", "elvish", "pwsh", "rc", "es", "osh", "ysh":
		return true, true
	}
	return false, false
}

// shellInside is what a shell runs: the text after -c, its input, or a script, which makes it a command like any other.
func shellInside(name string, ws []word, in input) (inside, bool) {
	_, other := isShell(name)
	r := inside{passes: true}
	run := func(w word) (inside, bool) {
		if other {
			r.hidden = "the language of " + name + " is not understood"
			return r, true
		}
		r.code = append(r.code, text{w, name != "bash"})
		return r, true
	}
	i, code, stdin := 1, false, false
options:
	for i < len(ws) {
		t := ws[i].text
		if !ws[i].known() {
			break
		}
		i++
		switch {
		case t == "--" || t == "-":
			break options
		case t == "--version" || t == "--help":
			return inside{}, false
		case t == "--rcfile" || t == "--init-file":
			r.alters = "it reads a start-up file"
			i++
		case t == "--login":
			r.alters = "it reads a start-up file"
		case slices.Contains([]string{"--norc", "--noprofile", "--posix", "--restricted", "--noediting", "--verbose"}, t):
		case len(t) > 1 && (t[0] == '-' || t[0] == '+'):
			if strings.Trim(t[1:], "abcefhiklmnoprstuvxBCDEHOPT") != "" {
				r.hidden = "its options are not understood"
				return r, true
			}
			code = code || t[0] == '-' && strings.Contains(t, "c")
			stdin = stdin || strings.Contains(t, "s")
			if strings.ContainsAny(t, "il") {
				r.alters = "it reads a start-up file"
			}
			values := strings.Count(t, "o") + strings.Count(t, "O")
			if strings.ContainsAny(t, "kO") || i+values > len(ws) || !allKnown(ws[i:i+values]) {
				r.hidden = "it changes how commands are read"
				return r, true
			}
			i += values
		default:
			i--
			break options
		}
	}
	switch {
	case code && i < len(ws):
		return run(ws[i])
	case code:
		return inside{}, false
	case i < len(ws) && !stdin && !ws[i].known():
		r.hidden = "which script it runs is known only when it runs"
		return r, true
	case i < len(ws) && !stdin && !isInput(ws[i].text):
		return inside{alters: r.alters, maybe: true}, false // the script may be a program that is found by its name
	case in.here != nil && !in.other:
		return run(*in.here)
	}
	r.hidden = "it runs what it reads, which is not known"
	return r, true
}

// isInput says of a file that it stands for what a command reads.
func isInput(name string) bool {
	return strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/")
}

// joined is words as a shell gets them that puts them together with blanks.
func joined(ws []word) word {
	if !allKnown(ws) {
		return anyWords()
	}
	texts := make([]string, len(ws))
	for i, w := range ws {
		texts[i] = w.text
	}
	return literal(strings.Join(texts, " "))
}
