package rules

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// spelling puts a word together from its parts.
type spelling struct {
	text strings.Builder
	word
	lost bool // what follows is not known either
}

func (s *spelling) add(text string) {
	if !s.lost {
		s.text.WriteString(text)
	}
}

// guess adds a part that only the running shell knows; many says that it may make the word several, or none.
func (s *spelling) guess(many, prefixed bool) {
	s.add(unknown)
	if many {
		s.prefixed = prefixed && (s.prefixed || !s.many)
		s.many = true
	}
}

func (s *spelling) done() word {
	s.word.text = s.text.String()
	s.digits = s.digits && strings.Trim(s.word.text, "0123456789"+unknown) == ""
	return s.word
}

// word is what a word of the shell comes to.
func (w *walker) word(n *syntax.Word) word {
	s := spelling{word: word{digits: true}}
	for i, p := range n.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			s.plain(lit.Value, n.Parts[i+1:], i == 0)
			continue
		}
		s.part(p, false)
	}
	return s.done()
}

// part adds anything but an unquoted text.
func (s *spelling) part(p syntax.WordPart, quoted bool) {
	switch p := p.(type) {
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) {
			s.guess(false, false)
			s.digits = false
			return
		}
		s.add(p.Value)
	case *syntax.DblQuoted:
		if p.Dollar { // it may be translated
			s.guess(false, false)
			s.digits = false
			return
		}
		for _, q := range p.Parts {
			if lit, ok := q.(*syntax.Lit); ok {
				s.add(unescape(lit.Value, "$`\"\\"))
				continue
			}
			s.part(q, true)
		}
	case *syntax.ParamExp:
		s.guess(isMany(p) || !quoted && !isNumeric(p), false)
		s.digits = s.digits && isNumeric(p)
	case *syntax.CmdSubst:
		s.guess(!quoted, false)
		s.digits = false
	case *syntax.ExtGlob:
		s.guess(true, true)
		s.digits = false
	case *syntax.ArithmExp:
		s.guess(false, false)
	default: // the name of a pipe
		s.guess(false, false)
		s.digits = false
	}
}

// unescape removes the backslashes before some characters, which are the only ones that lose it there.
func unescape(text, some string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if text[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(some, text[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// plain adds an unquoted text: backslashes go, and globs, braces and tildes become what is not known.
func (s *spelling) plain(text string, rest []syntax.WordPart, first bool) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			if i++; text[i] != '\n' {
				s.add(text[i : i+1])
			}
		case c == '*' || c == '?':
			s.guess(true, true)
			s.digits = false
		case c == '[' && unquoted(text[i+1:], rest, "]"),
			c == '{' && unquoted(text[i+1:], rest, "}") && (unquoted(text[i+1:], rest, ",") || unquoted(text[i+1:], rest, "..")):
			s.guess(true, true)
			s.lost, s.digits = true, false
		case c == '~' && (first && i == 0 || i > 0 && (text[i-1] == '=' || text[i-1] == ':')):
			s.guess(false, false)
			s.digits = false
			for i+1 < len(text) && strings.IndexByte(`/:\`, text[i+1]) < 0 {
				i++
			}
		default:
			s.add(text[i : i+1])
		}
	}
}

// unquoted looks for what ends a glob or makes a list of braces in what follows in the word.
func unquoted(text string, rest []syntax.WordPart, what string) bool {
	if strings.Contains(text, what) {
		return true
	}
	for _, p := range rest {
		if lit, ok := p.(*syntax.Lit); ok && strings.Contains(lit.Value, what) {
			return true
		}
	}
	return false
}

// isNumeric says of a parameter that its value is a number whatever happens.
func isNumeric(p *syntax.ParamExp) bool {
	if p.Length {
		return true
	}
	if p.Param == nil || p.Exp != nil || p.Repl != nil || p.Slice != nil || p.Excl || p.Index != nil {
		return false
	}
	switch p.Param.Value {
	case "#", "?", "$", "!":
		return true
	}
	return false
}

// isMany says of a parameter that it may be several words even in double quotes.
func isMany(p *syntax.ParamExp) bool {
	if p.Length {
		return false
	}
	if p.Names != 0 || p.Excl || p.Param != nil && (p.Param.Value == "@" || p.Param.Value == "*") {
		return true
	}
	if p.Exp != nil && !isPlain(p.Exp.Word) || p.Repl != nil && !isPlain(p.Repl.With) {
		return true
	}
	if p.Index == nil {
		return false
	}
	index, ok := p.Index.(*syntax.Word)
	return !ok || strings.ContainsAny(index.Lit(), "@*") || index.Lit() == ""
}

// isPlain says that a word has no expansions.
func isPlain(n *syntax.Word) bool {
	return n == nil || len(n.Parts) == 0 || n.Lit() != ""
}

// hereDocument is the text of a here-document.
func (w *walker) hereDocument(r *syntax.Redirect) word {
	var s spelling
	raw := false // a quoted end makes the text one without expansions
	for _, p := range r.Word.Parts {
		lit, ok := p.(*syntax.Lit)
		raw = raw || !ok || strings.Contains(lit.Value, `\`)
	}
	for _, p := range r.Hdoc.Parts {
		switch lit, ok := p.(*syntax.Lit); {
		case ok && raw:
			s.add(lit.Value)
		case ok:
			s.add(unescape(lit.Value, "$`\\"))
		default:
			s.part(p, true)
		}
	}
	return s.done()
}
