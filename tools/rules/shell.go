package rules

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of the analysis; what is larger is not looked into, and asked.
const (
	maxCommandBytes = 64 << 10
	maxNesting      = 50
	maxBrackets     = 1000    // open at once: the parser's stack grows with them
	maxParsed       = 1 << 20 // bytes in all, the texts that commands hand to shells included
	maxParts        = 2000    // simple commands
)

// script is what a command line would do, as far as its text tells.
type script struct {
	parts   []part
	targets []target
	doubts  []doubt
	moved   bool // it changes its folder: what it names by a relative path is elsewhere
}

// part is one simple command.
type part struct {
	words []word
	free  bool // it needs no rule of its own to be allowed: it only runs what is listed beside it
	guess bool // it may not be one: there is a doubt for it
}

// target is a file that a redirect opens.
type target struct {
	word  word
	write bool
}

// doubt is why the rest of the script does not tell everything. No rule for commands allows a script with a doubt.
type doubt struct {
	text   string // the part of the command that raises it
	why    string
	hidden bool // commands may be run that are not among the parts; else what a part is named may not be what runs
}

// analysis goes over the text of a command, and over the texts that it hands to further shells.
type analysis struct {
	script
	parsed int
	nested int // shells in shells, commands in commands
	listed map[string]bool
	full   bool
	vars   variables
}

// analyse lists what a command line does. posix says that the shell which runs it may be another one than bash; env are the variables that
// somebody set for it.
func analyse(text string, posix bool, env []string) script {
	var a analysis
	for _, name := range env {
		a.taint(name)
		a.checkName(name, "the environment of the job")
	}
	a.code(text, posix)
	a.settle()
	return a.script
}

// list adds a part, once where that is soon told: a text that is read as two shells read it mostly gives the same twice.
func (a *analysis) list(p part) {
	switch {
	case len(a.parts) == maxParts:
		if !a.full {
			a.full = true
			a.hide(show(p.words), "the line has more than %d commands", maxParts)
		}
		return
	case p.guess || len(p.words) > 100:
		a.parts = append(a.parts, p)
		return
	}
	var key strings.Builder
	if p.free {
		key.WriteString("free")
	}
	for _, w := range p.words {
		key.WriteString("\x02" + w.text)
		if w.many {
			key.WriteString("\x03")
		}
		if w.prefixed {
			key.WriteString("\x04")
		}
	}
	if a.listed == nil {
		a.listed = map[string]bool{}
	}
	if k := key.String(); !a.listed[k] {
		a.listed[k] = true
		a.parts = append(a.parts, p)
	}
}

func (a *analysis) hide(text, why string, v ...any) {
	a.doubts = append(a.doubts, doubt{text: short(text), why: fmt.Sprintf(why, v...), hidden: true})
}

func (a *analysis) alter(text, why string, v ...any) {
	a.doubts = append(a.doubts, doubt{text: short(text), why: fmt.Sprintf(why, v...)})
}

// code analyses a text that a shell runs. Another shell than bash sees other words in some texts, so both readings count.
func (a *analysis) code(text string, posix bool) {
	if a.parsed += len(text); a.parsed > maxParsed || len(text) > maxCommandBytes {
		a.hide(text, "it is longer than the %d KiB that are looked into", maxCommandBytes>>10)
		return
	}
	if a.nested >= maxNesting {
		a.hide(text, "it is nested more than %d deep", maxNesting)
		return
	}
	if why := unreadable(text); why != "" {
		a.hide(text, "%s", why)
		return
	}
	a.nested++
	defer func() { a.nested-- }()
	dialects := []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX}
	if !posix {
		dialects = dialects[:1]
	}
	for _, d := range dialects {
		f, err := syntax.NewParser(syntax.Variant(d)).Parse(strings.NewReader(text), "")
		if err != nil {
			a.hide(text, "it cannot be parsed (%s)", parseFault(err))
			continue
		}
		w := walker{analysis: a, text: text}
		syntax.Walk(f, w.visit)
	}
}

// parseFault is the parser's reason without its place.
func parseFault(err error) string {
	var wrong syntax.ParseError
	var foreign syntax.LangError
	switch {
	case errors.As(err, &wrong):
		return short(wrong.Text)
	case errors.As(err, &foreign):
		return short(foreign.Feature + " is no syntax of this shell")
	}
	return short(err.Error())
}

// unreadable says why a text may be read in another way by the shell than by us, "" for not.
func unreadable(text string) string {
	if !utf8.ValidString(text) {
		return "it is invalid UTF-8"
	}
	open, most := 0, 0
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
		case unicode.IsControl(r):
			return fmt.Sprintf("it has the control character %U", r)
		case r > unicode.MaxASCII && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)):
			return fmt.Sprintf("it has the blank or invisible character %U", r)
		case strings.ContainsRune("([{", r):
			open++
			most = max(most, open)
		case strings.ContainsRune(")]}", r):
			open = max(open-1, 0)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		// Shells and the parser do not agree about these: "$\ and a line end and (date)" runs date.
		switch begin, goesOn := strings.CutSuffix(line, `\`); {
		case goesOn && strings.Contains(line, "#"):
			return "it has a comment that may go on in the next line"
		case goesOn && strings.TrimRight(begin, " \t") == begin && begin != "":
			return "a word goes on in the next line"
		}
	}
	if most > maxBrackets {
		return fmt.Sprintf("it has more than %d open brackets", maxBrackets)
	}
	return ""
}

// walker goes over one parsed text.
type walker struct {
	*analysis
	text  string
	stack []bool // of the nodes above: does it count as a level
	level int
	told  bool // that it is nested too deep
}

// source is the text of a node.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.text) || from >= to {
		return short(w.text)
	}
	return short(w.text[from:to])
}

// visit is called for every node; nil ends the node that was visited last and not ended.
func (w *walker) visit(n syntax.Node) bool {
	if n == nil {
		last := len(w.stack) - 1
		if w.stack[last] {
			w.level--
		}
		w.stack = w.stack[:last]
		return true
	}
	counts := isLevel(n)
	if counts {
		if w.level++; w.level > maxNesting && !w.told {
			w.told = true
			w.hide(w.text, "it is nested more than %d deep", maxNesting)
		}
	}
	w.stack = append(w.stack, counts)
	switch n := n.(type) {
	case *syntax.Stmt:
		w.statement(n)
	case *syntax.DeclClause:
		w.declare(n)
	case *syntax.Assign:
		w.assign(n)
	case *syntax.ForClause:
		w.loop(n)
	case *syntax.ParamExp:
		w.parameter(n)
	case *syntax.CoprocClause:
		if n.Name != nil {
			w.setName(w.word(n.Name), w.source(n))
		}
		if _, simple := n.Stmt.Cmd.(*syntax.CallExpr); simple { // the parser takes assignments before it for its name
			w.hide(w.source(n), "what a coproc of a simple command runs is not told; put it in { }")
		}
	case *syntax.ExtGlob:
		if strings.ContainsAny(n.Pattern.Value, "$`<>") {
			w.hide(w.source(n), "a pattern hides what it runs")
		}
	case *syntax.ArithmExp:
		w.arithmetic(n.X)
	case *syntax.ArithmCmd:
		w.arithmetic(n.X)
	case *syntax.LetClause:
		for _, x := range n.Exprs {
			w.arithmetic(x)
		}
	case *syntax.BinaryTest:
		w.compare(n)
	case *syntax.UnaryTest:
		w.test(n)
	}
	return true
}

func isLevel(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.Subshell, *syntax.Block, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause,
		*syntax.CaseClause, *syntax.FuncDecl, *syntax.DblQuoted, *syntax.ParamExp, *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.ParenArithm,
		*syntax.ParenTest, *syntax.TimeClause, *syntax.CoprocClause:
		return true
	}
	return false
}

// statement lists a simple command with what it reads as its input, and the files of redirects.
func (w *walker) statement(s *syntax.Stmt) {
	in := input{}
	for _, r := range s.Redirs {
		w.redirect(r, &in)
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
		ws := make([]word, len(call.Args))
		for i, arg := range call.Args {
			ws[i] = w.word(arg)
		}
		w.command(ws, in)
	}
}

// input is what a command reads, where its text is in the script.
type input struct {
	here  *word
	other bool // it reads from elsewhere too
}

func (w *walker) redirect(r *syntax.Redirect, in *input) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		w.setName(literal(strings.Trim(r.N.Value, "{}")), w.source(r))
	}
	stdin := r.N == nil || r.N.Value == "0"
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		here := word{}
		switch {
		case r.Op == syntax.WordHdoc:
			here = w.word(r.Word)
		case r.Hdoc != nil:
			here = w.hereDocument(r)
		}
		if stdin && in.here == nil {
			in.here = &here
			return
		}
		in.other = true
	case syntax.DplIn:
		in.other = in.other || stdin
	case syntax.DplOut:
		if to := w.word(r.Word); !isDescriptor(to) {
			if !to.known() || strings.ContainsAny(to.text, "$`\\") { // bash expands a file's name behind >& twice
				w.hide(w.source(r), "the shell evaluates it")
			}
			w.target(to, true, w.source(r))
		}
	default:
		in.other = in.other || stdin && (r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut)
		w.target(w.word(r.Word), r.Op != syntax.RdrIn, w.source(r))
	}
}

// isDescriptor says of what follows >& that it is an open file, not one to open.
func isDescriptor(to word) bool {
	return to.known() && to.text != "" && strings.Trim(strings.TrimSuffix(to.text, "-"), "0123456789") == ""
}

func (w *walker) target(to word, write bool, source string) {
	if rest, ok := strings.CutPrefix(to.text, "/dev/"); ok && to.known() {
		_, network := strings.CutPrefix(rest, "tcp/")
		_, datagram := strings.CutPrefix(rest, "udp/")
		switch {
		case network || datagram:
			w.alter(source, "it opens a network connection")
		case rest == "null", rest == "stdin", rest == "stdout", rest == "stderr", strings.Trim(rest, "0123456789") == "fd/":
			return
		}
	}
	w.targets = append(w.targets, target{to, write})
}
