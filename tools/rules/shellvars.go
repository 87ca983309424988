package rules

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variables is what the texts do to variables. It matters because bash runs what stands in the value of a variable in some places: `x='a[$(date)]';
// echo $((x))` runs date. So a variable may be a number there only where everything that is put into it is one.
type variables struct {
	texts map[string]bool // names that are given something else than a number
	all   bool            // anything may be given anything
	uses  []use
}

// use is a variable that stands where its value is run.
type use struct{ name, source string }

// settle judges the uses of variables, after all that is given to them is known.
func (a *analysis) settle() {
	for _, u := range a.vars.uses {
		if a.vars.all || a.vars.texts[u.name] || holdsText(u.name) {
			a.hide(u.source, "the shell evaluates the value of %s here, and that is not known to be a number", u.name)
		}
	}
}

// holdsText says of a variable that the shell itself puts texts into it that a script chooses.
func holdsText(name string) bool {
	return slices.Contains([]string{"_", "REPLY", "MAPFILE", "OPTARG", "PWD", "OLDPWD", "FUNCNAME", "DIRSTACK", "COPROC", "HOSTNAME"}, name) || strings.HasPrefix(name, "BASH_") || strings.HasPrefix(name, "COMP_")
}

func (a *analysis) taint(name string) {
	if a.vars.texts == nil {
		a.vars.texts = map[string]bool{}
	}
	a.vars.texts[name] = true
}

// setName notes that a command or a redirect puts anything into a variable.
func (a *analysis) setName(name word, source string) {
	switch {
	case !name.known():
		a.vars.all = true
		a.hide(source, "which variable it sets is not known")
	case strings.Contains(name.text, "["):
		a.hide(source, "an index may hide what it runs")
	default:
		a.taint(name.text)
		a.checkName(name.text, source)
	}
}

// checkName doubts a variable that changes what runs.
func (a *analysis) checkName(name, source string) {
	switch {
	case name == "BASH_ALIASES", name == "BASH_CMDS", strings.HasPrefix(name, "BASH_FUNC_"):
		a.hide(source, "%s gives names to other commands", name)
	case steers(name):
		a.alter(source, "%s changes what runs, or how", name)
	}
}

// steers says of a variable that programs are found, started or configured by it. What the lists do not name is known by its beginning or
// ending: an innocent variable so named costs a question, a missed one would be a way round.
func steers(name string) bool {
	if slices.Contains(innocent, name) {
		return false
	}
	has := func(list []string, in func(string, string) bool) bool {
		return slices.ContainsFunc(list, func(s string) bool { return in(name, s) })
	}
	return slices.Contains(steering, name) || has(steeringStarts, strings.HasPrefix) || has(steeringEnds, strings.HasSuffix)
}

var (
	innocent = []string{"NODE_ENV", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "CARGO_TERM_COLOR"}
	steering = []string{
		"IFS", "ENV", "HOME", "SHELL", "BASHOPTS", "SHELLOPTS", "GLOBIGNORE", "EXECIGNORE", "FUNCNEST", "POSIXLY_CORRECT", "INPUTRC", "TEXTDOMAIN",
		"PS0", "PS1", "PS2", "PS3", "PS4", "FCEDIT", "VISUAL", "BROWSER", "CC", "CXX", "CPP", "LD", "AR", "AS", "GOENV", "GOROOT", "GOWORK", "GOBIN",
		"GOTOOLCHAIN", "GOCACHEPROG", "GOAUTH", "GOVCS", "GOPROXY", "HOSTALIASES", "LOCALDOMAIN", "TERMINFO", "TERMCAP", "MAILCHECK",
		"RANDOM", "SRANDOM", "SECONDS", "LINENO", "OPTIND", "HISTCMD", "DIRSTACK", "EPOCHSECONDS", "EPOCHREALTIME", // bash evaluates what is put into some
	}
	steeringStarts = []string{
		"LD_", "DYLD_", "GLIBC_", "GCONV_", "MALLOC_", "BASH_", "GIT_", "SSH_", "SUDO_", "XDG_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_CONFIG_", "npm_config_",
		"CARGO_", "RUSTC", "RUSTUP_", "LESS", "DOCKER_", "JAVA_", "JDK_", "_JAVA", "MAKE", "DOTNET_", "CORECLR_", "PIP_", "UV_", "LUA_", "PHP_", "GUILE_", "ERL_",
	}
	steeringEnds = []string{
		"PATH", "FLAGS", "OPTS", "OPTIONS", "COMMAND", "_CMD", "EDITOR", "PAGER", "_SHELL", "_HOME", "_CONFIG", "_WRAPPER", "_PROGRAM", "_EXEC", "_SSH", "_RSH",
		"_PROXY", "_proxy", "_HOOK", "_HOOKS", "_LOADER", "ASKPASS", "PRELOAD", "RCFILE",
	}
)

// assign is name=value, before a command, alone, or of declare.
func (w *walker) assign(n *syntax.Assign) {
	if n.Name == nil {
		return
	}
	source := w.source(n)
	w.checkName(n.Name.Value, source)
	w.index(n.Index)
	switch {
	case n.Naked && n.Value == nil && n.Array == nil:
	case n.Array != nil:
		for _, e := range n.Array.Elems {
			w.index(e.Index)
		}
		w.taint(n.Name.Value)
	case n.Value != nil && !isNumber(n.Value):
		w.taint(n.Name.Value)
	}
}

// isNumber says of a word that it is one whatever happens.
func isNumber(n *syntax.Word) bool {
	if len(n.Parts) == 0 {
		return true
	}
	if len(n.Parts) != 1 {
		return false
	}
	switch p := n.Parts[0].(type) {
	case *syntax.Lit:
		return strings.Trim(p.Value, "0123456789") == ""
	case *syntax.ArithmExp:
		return true // what is in it is judged where it stands
	case *syntax.ParamExp:
		return isNumeric(p)
	case *syntax.DblQuoted:
		return !p.Dollar && isNumber(&syntax.Word{Parts: p.Parts})
	case *syntax.SglQuoted:
		return !p.Dollar && strings.Trim(p.Value, "0123456789") == ""
	}
	return false
}

// declare is declare, export, local and such. They need no rule: what they do is told by their assignments.
func (w *walker) declare(n *syntax.DeclClause) {
	source := w.source(n)
	ws := []word{literal(n.Variant.Value)}
	for _, arg := range n.Args {
		if arg.Name != nil {
			ws = append(ws, word{text: arg.Name.Value, many: !arg.Naked})
			continue
		}
		value := w.word(arg.Value)
		ws = append(ws, value)
		w.declared(value, source)
	}
	w.list(part{words: ws, free: true})
}

// declared is an argument of declare that is not written as a name or an assignment.
func (a *analysis) declared(v word, source string) {
	name, value, assigns := strings.Cut(v.text, "=")
	switch {
	case !v.known():
		a.vars.all = true
		a.hide(source, "what it declares is not known")
	case strings.HasPrefix(v.text, "-") || strings.HasPrefix(v.text, "+"):
		if strings.ContainsAny(v.text, "in") {
			a.hide(source, "the shell evaluates what is put into such a variable")
		}
	case strings.Contains(name, "["):
		a.hide(source, "an index may hide what it runs")
	default:
		a.checkName(name, source)
		if assigns && strings.Trim(value, "0123456789") != "" {
			a.taint(name)
		}
	}
}

// loop is a variable that goes over words.
func (w *walker) loop(n *syntax.ForClause) {
	over, ok := n.Loop.(*syntax.WordIter)
	if !ok {
		c := n.Loop.(*syntax.CStyleLoop)
		for _, x := range []syntax.ArithmExpr{c.Init, c.Cond, c.Post} {
			if x != nil {
				w.arithmetic(x)
			}
		}
		return
	}
	w.checkName(over.Name.Value, w.source(over))
	if n.Select || !over.InPos.IsValid() || !allNumbers(over.Items) {
		w.taint(over.Name.Value)
	}
}

func allNumbers(ws []*syntax.Word) bool {
	for _, n := range ws {
		if isNumber(n) {
			continue
		}
		// {1..9} is numbers too
		text := strings.NewReplacer("..", "", "{", "", "}", "").Replace(n.Lit())
		if n.Lit() == "" || strings.Trim(text, "0123456789") != "" {
			return false
		}
	}
	return true
}

// parameter is an expansion: some of them evaluate what a variable holds.
func (w *walker) parameter(n *syntax.ParamExp) {
	source := w.source(n)
	w.index(n.Index)
	if n.Excl && n.Names == 0 && !isAll(n.Index) {
		w.hide(source, "it stands for a variable whose name is not known")
	}
	if n.Slice != nil {
		for _, x := range []syntax.ArithmExpr{n.Slice.Offset, n.Slice.Length} {
			if x != nil {
				w.arithmetic(x)
			}
		}
	}
	if n.Repl != nil {
		w.inner(n.Repl.Orig, source)
		w.inner(n.Repl.With, source)
	}
	if n.Exp == nil {
		return
	}
	w.inner(n.Exp.Word, source)
	switch n.Exp.Op {
	case syntax.OtherParamOps:
		if n.Exp.Word == nil || strings.ContainsAny(n.Exp.Word.Lit(), "P") || n.Exp.Word.Lit() == "" {
			w.hide(source, "the shell evaluates what the variable holds")
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if n.Param == nil {
			return
		}
		w.checkName(n.Param.Value, source)
		if n.Exp.Word != nil && !isNumber(n.Exp.Word) {
			w.taint(n.Param.Value)
		}
	}
}

// inner doubts a word within an expansion that may hold a process substitution: the parser does not find all that bash does.
func (w *walker) inner(n *syntax.Word, source string) {
	if n == nil {
		return
	}
	for _, p := range n.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.ContainsAny(lit.Value, "<>") {
			w.hide(source, "it may hide what it runs")
			return
		}
	}
}

// isAll says that an index is @ or *.
func isAll(x syntax.ArithmExpr) bool {
	n, ok := x.(*syntax.Word)
	return ok && (n.Lit() == "@" || n.Lit() == "*")
}

func (w *walker) index(x syntax.ArithmExpr) {
	if x != nil && !isAll(x) {
		w.arithmetic(x)
	}
}

// arithmetic judges an expression: its numbers are fine, its variables are settled later, anything else is evaluated text.
func (w *walker) arithmetic(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		if op := x.Op.String(); strings.HasSuffix(op, "=") && !slices.Contains([]string{"==", "!=", "<=", ">="}, op) {
			w.assigned(x.X)
		}
		w.arithmetic(x.X)
		w.arithmetic(x.Y)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.assigned(x.X)
		}
		w.arithmetic(x.X)
	case *syntax.ParenArithm:
		w.arithmetic(x.X)
	case *syntax.Word:
		w.operand(x.Parts, w.source(x))
	default:
		w.hide(w.source(x), "the shell evaluates it")
	}
}

// assigned is what an expression gives a number to.
func (w *walker) assigned(x syntax.ArithmExpr) {
	if n, ok := x.(*syntax.Word); ok {
		w.checkName(n.Lit(), w.source(n))
	}
}

func (w *walker) operand(parts []syntax.WordPart, source string) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if isName(p.Value) {
				w.vars.uses = append(w.vars.uses, use{p.Value, source})
			} else if strings.Trim(p.Value, "0123456789abcdefABCDEFxX#") != "" {
				w.hide(source, "the shell evaluates it")
			}
		case *syntax.DblQuoted:
			w.operand(p.Parts, source)
		case *syntax.ArithmExp: // judged where it stands
		case *syntax.ParamExp:
			switch {
			case isNumeric(p):
			case p.Param != nil && isName(p.Param.Value) && p.Exp == nil && p.Repl == nil && p.Slice == nil && !p.Excl && !isAll(p.Index):
				w.vars.uses = append(w.vars.uses, use{p.Param.Value, source})
			default:
				w.hide(source, "the shell evaluates it")
			}
		default:
			w.hide(source, "the shell evaluates it")
		}
	}
}

// isName says whether a text may be the name of a variable.
func isName(text string) bool {
	for i, c := range text {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

// compare is a test of two words in [[ ]]; comparisons of numbers evaluate both.
func (w *walker) compare(n *syntax.BinaryTest) {
	switch n.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, side := range []syntax.TestExpr{n.X, n.Y} {
			if x, ok := side.(*syntax.Word); ok {
				w.operand(x.Parts, w.source(n))
			}
		}
	}
}

// test is a test of one word in [[ ]]; those of a variable evaluate its index.
func (w *walker) test(n *syntax.UnaryTest) {
	if n.Op != syntax.TsVarSet && n.Op != syntax.TsRefVar {
		return
	}
	if x, ok := n.X.(*syntax.Word); !ok || !isName(x.Lit()) {
		w.hide(w.source(n), "an index may hide what it runs")
	}
}
