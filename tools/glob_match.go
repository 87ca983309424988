package tools

import (
	"errors"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pathGlob matches paths with / as doublestar.Match does, with braces read first: * ? […] {a,b} within an element, ** over zero or more. What most patterns are, "any file that
// ends so", is decided without going over the path.
type pathGlob struct {
	alts []globAlt
}

// globAlt is one of the patterns that braces stand for.
type globAlt struct {
	pattern string
	onName  bool   // pattern is matched against the last element alone
	tail    string // what a match must end with
	tailAll bool   // ending with tail is all that it takes
	levels  int    // of folders that a match can lie in, 0 for any number
}

// globAlternatives bounds what the braces of one pattern may stand for.
const globAlternatives = 1000

var (
	errGlobSyntax = errors.New("the pattern is not valid: every [ and { needs its end, and a backslash something to follow it")
	errGlobBraces = errors.New("its braces stand for more than 1000 patterns; use fewer")
)

func compilePathGlob(pattern string) (*pathGlob, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, errGlobSyntax
	}
	patterns, ok := expandBraces(pattern)
	if !ok {
		return nil, errGlobBraces
	}
	g := &pathGlob{}
	for _, p := range patterns {
		if !strings.HasSuffix(p, "/") { // only folders match that
			g.alts = append(g.alts, newGlobAlt(p))
		}
	}
	return g, nil
}

// globMeta is the characters that mean something in a pattern.
const globMeta = `*?[]{}\`

func newGlobAlt(p string) globAlt {
	if strings.HasSuffix(p, "/**") {
		p += "/*" // doublestar also matches the folder itself, and this matches files
	}
	a := globAlt{pattern: p}
	if rest, ok := strings.CutPrefix(p, "**/"); ok && rest != "" && !strings.Contains(rest, "/") && rest != "**" {
		a.pattern, a.onName = rest, true
	}
	if !strings.Contains(p, "**") {
		a.levels = strings.Count(p, "/") + 1
	}
	a.tail = a.pattern[strings.LastIndexAny(a.pattern, globMeta+"/")+1:]
	a.tailAll = a.onName && a.pattern == "*"+a.tail
	a.pattern = withinElement(a.pattern)
	return a
}

// withinElement keeps negated classes from matching a slash, which doublestar lets them.
func withinElement(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		b.WriteByte(p[i])
		switch {
		case p[i] == '\\' && i+1 < len(p):
			i++
			b.WriteByte(p[i])
		case p[i] == '[':
			if p[i+1] == '!' || p[i+1] == '^' {
				i++
				b.WriteString(p[i:i+1] + "/-/") // as a range, so that what follows begins anew
			}
			for i++; p[i] != ']'; i++ {
				b.WriteByte(p[i])
				if p[i] == '\\' {
					i++
					b.WriteByte(p[i])
				}
			}
			b.WriteByte(']')
		}
	}
	return b.String()
}

// match matches a path. A name is what stands after its last slash.
func (g *pathGlob) match(path string) bool {
	for i := range g.alts {
		a := &g.alts[i]
		if !strings.HasSuffix(path, a.tail) {
			continue
		}
		text := path
		if a.onName {
			text = path[strings.LastIndexByte(path, '/')+1:]
			if a.tailAll {
				if len(text) >= len(a.tail) {
					return true
				}
				continue
			}
		}
		if doublestar.MatchUnvalidated(a.pattern, text) {
			return true
		}
	}
	return false
}

// levels is how many levels of folders a match can lie in, 0 for any number.
func (g *pathGlob) levels() int {
	most := 0
	for _, a := range g.alts {
		if a.levels == 0 {
			return 0
		}
		most = max(most, a.levels)
	}
	return most
}

// expandBraces lists the patterns that braces stand for, before anything else is read, as shells do; ok is false where there are too many.
func expandBraces(pattern string) (patterns []string, ok bool) {
	todo := []string{pattern}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		marks := braces(p)
		if len(marks) == 0 {
			patterns = append(patterns, p)
			continue
		}
		last := marks[len(marks)-1]
		for i, from := range marks[:len(marks)-1] {
			todo = append(todo, p[:marks[0]]+p[from+1:marks[i+1]]+p[last+1:])
		}
		if len(todo)+len(patterns) > globAlternatives {
			return nil, false
		}
	}
	return patterns, true
}

// braces returns where the first brace of a valid pattern is, its commas, and its end; nothing where there is none.
func braces(p string) (marks []int) {
	depth := 0
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\':
			i++
		case c == '[':
			for i++; i < len(p) && p[i] != ']'; i++ {
				if p[i] == '\\' {
					i++
				}
			}
		case c == '{':
			if depth++; depth == 1 {
				marks = append(marks, i)
			}
		case c == ',' && depth == 1:
			marks = append(marks, i)
		case c == '}':
			if depth--; depth == 0 {
				return append(marks, i)
			}
		}
	}
	return nil
}
