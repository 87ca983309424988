package rules

import "strings"

// xargs runs its words and what it reads behind them, or in place of a mark.
func xargs(ws []word) (inside, bool) {
	o := options{flags: "0oprtx", values: "adEILnPs", optional: "eil", long: []string{
		"null", "arg-file=", "delimiter=", "eof?", "replace?", "max-lines?", "max-args=", "no-run-if-empty", "max-procs=", "interactive", "verbose", "exit",
		"max-chars=", "open-tty", "show-limits"}}
	given, rest, ok := o.scan(ws[1:])
	mark := ""
	for _, g := range given {
		switch g.name {
		case "I", "i", "replace":
			mark = g.value.text
			if mark == "" {
				mark = "{}"
			}
			ok = ok && g.value.known()
		}
	}
	switch {
	case !ok:
		return inside{hidden: "its options are not understood"}, true
	case len(rest) == 0:
		rest = []word{literal("echo")}
	}
	run := replaced(rest, mark)
	if mark == "" {
		run = append(run, anyWords())
	}
	return inside{runs: [][]word{run}}, true
}

// replaced is words in which a mark stands for something that is not known.
func replaced(ws []word, mark string) []word {
	run := make([]word, len(ws))
	for i, w := range ws {
		if mark != "" {
			w.text = strings.ReplaceAll(w.text, mark, unknown)
		}
		run[i] = w
	}
	return run
}

// findValues lists the tests of find that are followed by a value: it is no action, whatever it is.
const findValues = " -name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -newer -anewer -cnewer -size -mtime -mmin -atime -amin -ctime -cmin " +
	"-user -group -uid -gid -perm -type -xtype -maxdepth -mindepth -links -inum -samefile -fstype -used -regextype -printf "

// find runs what stands between -exec and its end.
func find(ws []word) (inside, bool) {
	r := inside{own: true}
	for i := 1; i < len(ws); i++ {
		if !ws[i].known() {
			if value := i > 1 && strings.Contains(findValues, " "+ws[i-1].text+" ") && !ws[i].many; !value && strings.IndexAny(ws[i].text, unknown+"-") == 0 {
				r.hidden = "one of its words may be an action"
			}
			continue
		}
		switch ws[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(ws) && ws[end].text != ";" && (ws[end].text != "+" || ws[end-1].text != "{}") {
				end++
			}
			if end == len(ws) {
				r.hidden = "the end of its action is not found"
			}
			run := replaced(ws[i+1:end], "{}")
			r.moved = r.moved || strings.HasSuffix(ws[i].text, "dir")
			if len(run) > 0 && strings.HasSuffix(ws[i].text, "dir") && strings.Contains(run[0].text, "/") && !strings.HasPrefix(run[0].text, "/") {
				r.hidden = "it runs a file of another folder"
			}
			if end < len(ws) && ws[end].text == "+" && len(run) > 0 {
				run[len(run)-1] = anyWords()
			}
			r.runs = append(r.runs, run)
			i = end
		}
	}
	return r, r.hidden != "" || len(r.runs) > 0
}

func watch(ws []word) (inside, bool) {
	o := options{flags: "bcegptwxC", values: "nq", optional: "d", long: []string{
		"beep", "color", "no-color", "differences?", "errexit", "chgexit", "interval=", "equexit=", "precise", "no-title", "no-wrap", "no-rerun", "exec"}}
	given, rest, ok := o.scan(ws[1:])
	switch {
	case !ok:
		return inside{hidden: "its options are not understood"}, true
	case len(rest) == 0:
		return inside{}, false
	}
	for _, g := range given {
		if g.name == "x" || g.name == "exec" {
			return inside{runs: [][]word{rest}}, true
		}
	}
	return inside{code: []text{{joined(rest), true}}}, true
}

// remote is the programs that run a command elsewhere, as somebody else, or beside work of their own. Each needs a rule of its own.
func remote(name string, ws []word) (inside, bool) {
	r := inside{own: true}
	var given []option
	rest, ok := ws[1:], true
	switch name {
	case "ssh":
		o := options{flags: "46AaCfGgKkMNnqsTtVvXxYy", values: "BbcDEeFIiJLlmOopQRSWw"}
		given, rest, ok = o.scan(rest)
		if len(rest) > 1 {
			r.code = append(r.code, text{joined(rest[1:]), true})
		}
	case "script":
		given, _, ok = options{flags: "aefq", values: "cBEIOTmo", long: []string{"command=", "quiet", "append", "return"}}.scan(rest)
		r.hidden = "it runs a shell on what it reads"
	case "su", "runuser":
		given, _, ok = options{flags: "fmpl", values: "cCgGsuw", long: []string{"command=", "login", "shell=", "user="}}.scan(operandsLast(rest))
		r.hidden = "which shell runs is not known"
	case "flock":
		_, rest, ok = options{flags: "sxnueoFv", values: "wE", long: []string{"shared", "exclusive", "nonblock", "wait=", "timeout=", "close", "no-fork", "verbose"}}.scan(rest)
		if len(rest) > 2 && (rest[1].text == "-c" || rest[1].text == "--command") {
			r.code = append(r.code, text{rest[2], true})
		} else if len(rest) > 1 {
			r.runs = append(r.runs, rest[1:])
		}
	case "parallel":
		_, rest, ok = options{flags: "kt0vXm", values: "jnPaIL", long: []string{"jobs=", "keep-order", "null", "verbose", "bar", "dry-run", "halt=", "arg-file="}}.scan(rest)
		c, known := parallelCode(rest)
		r.code, ok = append(r.code, c), ok && known
	case "fd", "fdfind":
		return fdInside(ws)
	}
	for _, g := range given {
		if (g.name == "c" || g.name == "command") && name != "ssh" {
			r.code = append(r.code, text{g.value, true})
			r.hidden = ""
		}
	}
	if !ok {
		r.hidden = "its options are not understood"
	}
	return r, r.hidden != "" || len(r.runs)+len(r.code) > 0
}

// operandsLast moves the words that are no options, the user of su, behind them.
func operandsLast(ws []word) []word {
	for i, w := range ws {
		if w.known() && strings.HasPrefix(w.text, "-") && len(w.text) > 1 {
			return append(append([]word{}, ws[i:]...), ws[:i]...)
		}
	}
	return ws
}

// replaceMarks replaces the marks {}, {.}, {/} and such.
func replaceMarks(line, by string) string {
	var b strings.Builder
	for {
		start := strings.IndexByte(line, '{')
		if start < 0 {
			return b.String() + line
		}
		b.WriteString(line[:start])
		line = line[start:]
		size := strings.IndexAny(line[1:], "{} \t\n") + 2
		if size > 1 && line[size-1] == '}' {
			b.WriteString(by)
			line = line[size:]
			continue
		}
		b.WriteByte('{')
		line = line[1:]
	}
}

// parallelCode is what parallel hands to a shell; its arguments are one quoted word each.
func parallelCode(ws []word) (text, bool) {
	for i, w := range ws {
		if strings.HasPrefix(w.text, ":::") {
			ws = ws[:i]
			break
		}
	}
	line := joined(ws)
	if len(ws) == 0 || !line.known() {
		return text{}, false
	}
	marked := replaceMarks(line.text, `"$1"`)
	if marked == line.text {
		marked += ` "$1"`
	} else if strings.ContainsAny(line.text, "'\"`\\") {
		return text{}, false
	}
	return text{literal(marked), true}, true
}

// fdInside is what fd runs for what it finds.
func fdInside(ws []word) (inside, bool) {
	for i, w := range ws {
		switch {
		case i == 0:
		case !w.known() && strings.IndexAny(w.text, unknown+"-") == 0:
			return inside{own: true, hidden: "one of its words may be an action"}, true
		case w.text == "-x", w.text == "-X", w.text == "--exec", w.text == "--exec-batch":
			run := replaced(ws[i+1:], "{}")
			for j := range run {
				run[j].text = replaceMarks(run[j].text, unknown)
			}
			return inside{own: true, runs: [][]word{append(run, anyWords())}}, true
		case strings.HasPrefix(w.text, "--exec"), len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' && strings.ContainsAny(w.text, "xX"):
			return inside{own: true, hidden: "its options are not understood"}, true
		}
	}
	return inside{}, false
}
