package rules

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parseCommand reads the words of a rule for commands as a shell would: quotes keep a word together, and keep a * from being a star.
func parseCommand(spec string, allows bool) (commandPattern, error) {
	f, err := syntax.NewParser().Parse(strings.NewReader(spec), "")
	if err != nil {
		return nil, fmt.Errorf("it can never match: it is not the words of a command (%s); quote what a shell would read as its own", parseFault(err))
	}
	if len(f.Stmts) != 1 {
		return nil, errOneByOne
	}
	words, err := specWords(f.Stmts[0])
	if err != nil {
		return nil, err
	}
	var p commandPattern
	for _, n := range words {
		t, err := specWord(n, allows)
		if err != nil {
			return nil, err
		}
		p = append(p, t)
	}
	if allows {
		return p, neverAllowed(p)
	}
	return p, nil
}

var errOneByOne = errors.New("it can never match: commands are matched one by one, wherever they stand; write a rule for each")

// specWords are the words of the one simple command that a rule is.
func specWords(s *syntax.Stmt) ([]*syntax.Word, error) {
	switch {
	case len(s.Redirs) > 0:
		return nil, errors.New("it can never match: redirects are no words of a command; a rule such as edit(build/**) allows what they write")
	case s.Background || s.Negated || s.Semicolon.IsValid():
		return nil, errOneByOne
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Assigns) > 0 {
			return nil, errors.New("it can never match: what is assigned before a command is none of its words; write the command alone")
		}
		return c.Args, nil
	case *syntax.BinaryCmd, *syntax.Subshell, *syntax.Block:
		return nil, errOneByOne
	case *syntax.DeclClause:
		words := []*syntax.Word{{Parts: []syntax.WordPart{c.Variant}}}
		for _, a := range c.Args {
			if a.Value == nil && a.Name != nil && a.Index == nil && a.Array == nil {
				words = append(words, &syntax.Word{Parts: []syntax.WordPart{a.Name}})
				continue
			}
			if a.Name != nil {
				return nil, errors.New("it can never match: what is assigned is none of a command's words")
			}
			words = append(words, a.Value)
		}
		return words, nil
	case *syntax.TimeClause:
		return nil, errors.New("it can never match: time only runs another command, which is what rules are matched on; write the rule for that")
	}
	return nil, errors.New("it can never match: it is syntax of the shell, not a command")
}

func specWord(n *syntax.Word, allows bool) (string, error) {
	var b strings.Builder
	for i, p := range n.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if allows && i == 0 && strings.HasPrefix(p.Value, "~") {
				return "", errors.New("it can never match: what ~ stands for is known only when a command runs; write *")
			}
			for j := 0; j < len(p.Value); j++ {
				switch c := p.Value[j]; {
				case c == '\\' && j+1 < len(p.Value):
					j++
					b.WriteByte(p.Value[j])
				case c == '*':
					b.WriteString(star)
				default:
					b.WriteByte(c)
				}
			}
			continue
		case *syntax.SglQuoted:
			if !p.Dollar {
				b.WriteString(p.Value)
				continue
			}
		case *syntax.DblQuoted:
			lit := ""
			for _, q := range p.Parts {
				l, ok := q.(*syntax.Lit)
				if !ok || p.Dollar {
					return "", errKnownLater
				}
				lit += unescape(l.Value, "$`\"\\")
			}
			if !p.Dollar {
				b.WriteString(lit)
				continue
			}
		}
		return "", errKnownLater
	}
	if t := b.String(); t == "" || strings.Trim(t, star) != "" {
		return t, nil
	}
	return star, nil
}

var errKnownLater = errors.New("it can never match: rules are matched on text, and what an expansion stands for is known only when a command runs; write *, or quote it")

// neverAllowed says of a rule that allows why no command needs it.
func neverAllowed(p commandPattern) error {
	if strings.Contains(p[0], star) {
		return nil
	}
	name := path.Base(programOf(p[0]))
	if declares(name) {
		return fmt.Errorf("it can never decide: %s needs no rule, since only its assignments count", name)
	}
	var a analysis
	in, wraps := a.unwrap(name, p.words(), input{})
	only := wraps && !in.own && in.hidden == "" && len(in.runs)+len(in.code) > 0
	if only || name == "eval" || name == "xargs" {
		return fmt.Errorf("it can never match: %s only runs another command, which is what rules are matched on; write the rule for that", name)
	}
	return nil
}
