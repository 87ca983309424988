package tools

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// searchPlan is a pattern, compiled once for a call. A lineFinder of it works for one goroutine.
//
// Matching is by line: \n and the \r before it belong to no line, ^ and $ are the ends of a line. What a line must hold to match is looked for over
// the whole file at once, by the fastest means there is, and only lines that hold it are matched: a text by literalFinder, in any case by foldFinder;
// an expression by the texts of which every match holds one, then by lineDFA.
type searchPlan struct {
	text *literalFinder // a literal that needs no more; nil otherwise
	fold *foldFinder    // the same in any case
	expr *regexp.Regexp // all other patterns
	prog *syntax.Prog   // of expr
	must []mustHold     // texts of which a line holds one if it matches expr; none: nothing is known
}

// compileSearch compiles a pattern of grep.
func compileSearch(pattern string, isRegex, ignoreCase bool) (*searchPlan, error) {
	if !isRegex {
		if !ignoreCase {
			return &searchPlan{text: newLiteralFinder(pattern)}, nil
		}
		if fold := newFoldFinder(pattern); fold != nil {
			return &searchPlan{fold: fold}, nil
		}
		pattern = regexp.QuoteMeta(pattern)
	}
	source := pattern
	if ignoreCase {
		source = "(?i)" + pattern
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	var expr *regexp.Regexp
	if err == nil {
		expr, err = regexp.Compile(source)
	}
	if err != nil {
		return nil, badRegex(pattern, err)
	}
	plan := &searchPlan{expr: expr}
	plan.must = requiredTexts(tree)
	plan.prog, err = syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, badRegex(pattern, err)
	}
	return plan, nil
}

// badRegex is the error for a pattern that is no regular expression; it says where.
func badRegex(pattern string, err error) error {
	where := ""
	code := err.Error()
	if e := new(syntax.Error); errors.As(err, &e) {
		code = e.Code.String()
		if at := strings.Index(pattern, e.Expr); at >= 0 && e.Expr != "" {
			where = " at character " + strconv.Itoa(utf8.RuneCountInString(pattern[:at])+1)
		}
		if e.Expr != "" {
			code += ": `" + shorten(e.Expr, 60) + "`"
		}
	}
	return fail(Input, "pattern is no regular expression (RE2 syntax)%s: %s; correct it, or leave regex out to search for the text itself", where, code)
}

// finder makes a lineFinder.
func (p *searchPlan) finder() *lineFinder {
	f := &lineFinder{plan: p}
	switch {
	case p.text != nil:
		f.look = p.text
	case p.fold != nil:
		own := *p.fold
		f.look = &own
	default:
		f.dfa = newLineDFA(p.prog)
		f.look = finderOf(p.must)
	}
	return f
}

// span is where the first match in a line is.
func (p *searchPlan) span(line string) (from, to int) {
	switch {
	case p.text != nil:
		from = p.text.find([]byte(line), 0)
		to = from + len(p.text.text)
	case p.fold != nil:
		own := *p.fold
		from, to = own.span([]byte(line), 0)
	default:
		if at := p.expr.FindStringIndex(line); at != nil {
			return at[0], at[1]
		}
		return 0, 0
	}
	if from < 0 {
		return 0, 0
	}
	return from, to
}

// lineFinder finds matching lines, one file after the other; begin is a new file.
type lineFinder struct {
	plan *searchPlan
	look bytesFinder // finds what a line must hold, nil where nothing is known; of a literal that is all that it takes
	dfa  *lineDFA    // of an expression

	misses int // lines that hold what they must and do not match
	passed int // bytes from one to the next
}

func (f *lineFinder) begin() {
	if f.look != nil {
		f.look.begin()
	}
}

// next returns a position in the first matching line from at on, where a line begins; -1 for none. In a file at only grows.
func (f *lineFinder) next(data []byte, at int) int {
	switch {
	case at >= len(data):
		return -1
	case f.dfa == nil:
		return f.look.find(data, at)
	case f.look != nil:
		return f.nextWith(data, at)
	}
	return f.nextMatch(data, at)
}

// nextMatch matches line by line.
func (f *lineFinder) nextMatch(data []byte, at int) int {
	at, ok := f.dfa.find(data, at)
	if ok {
		return at
	}
	for at < len(data) {
		end, next := lineFrom(data, at)
		if f.plan.expr.Match(data[at:end]) {
			return at
		}
		at = next
	}
	return -1
}

// nextWith matches only lines that hold what they must.
func (f *lineFinder) nextWith(data []byte, at int) int {
	for at < len(data) && !f.dense() {
		hit := f.look.find(data, at)
		if hit < 0 {
			return -1
		}
		start := bytes.LastIndexByte(data[at:hit], '\n') + 1 + at
		end, next := lineFrom(data, start)
		if f.matches(data[start:end]) {
			return start
		}
		f.misses++
		f.passed += next - at
		at = next
	}
	if at == len(data) {
		return -1
	}
	return f.nextMatch(data, at)
}

// dense tells whether so many lines hold what a match must, and do not match, that looking for it costs more than it saves.
func (f *lineFinder) dense() bool {
	const fewMisses, wideApart = 256, 128
	return f.misses > fewMisses && f.passed/f.misses < wideApart
}

// matches tells whether one line, which is not empty, matches the expression. The automaton gives up on few; they go to the library's own.
func (f *lineFinder) matches(line []byte) bool {
	if at, ok := f.dfa.find(line, 0); ok {
		return at >= 0
	}
	return f.plan.expr.Match(line)
}

// count returns how many lines of a file match.
func (f *lineFinder) count(data []byte) int64 {
	f.begin()
	n := int64(0)
	for at := 0; at < len(data); {
		hit := f.next(data, at)
		if hit < 0 {
			break
		}
		n++
		i := bytes.IndexByte(data[hit:], '\n')
		if i < 0 {
			break
		}
		at = hit + i + 1
	}
	return n
}

// offset moves an index into the part of data that begins at at.
func offset(index, at int) int {
	if index < 0 {
		return -1
	}
	return at + index
}
