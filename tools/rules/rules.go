package rules

import (
	"errors"
	"fmt"
	"strings"

	"muster/board/policy"
)

// Lists is a set of rules as people write them.
type Lists struct {
	Allow []string `json:"allow,omitempty" yaml:"allow"`
	Ask   []string `json:"ask,omitempty" yaml:"ask"`
	Deny  []string `json:"deny,omitempty" yaml:"deny"`
}

// Bounds of a set.
const (
	maxRules     = 1000 // of one list
	maxRuleBytes = 1000
)

// Error is what is wrong with one rule.
type Error struct {
	List  string // "allow", "ask" or "deny"
	Index int    // in its list
	Rule  string
	Why   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s rule %q: %s", e.List, short(e.Rule), e.Why) }

// Set is rules that were parsed. A nil Set has none. It does not change, so that any number of calls may be judged at once.
type Set struct {
	lists            Lists
	allow, ask, deny []rule
	narrows          bool
}

// Lists returns the rules as they were written.
func (s *Set) Lists() Lists {
	if s == nil {
		return Lists{}
	}
	return s.lists
}

// Narrowing is the same rules from where nothing may be granted: a call that its allow rules match is left to the mode and to other sets.
func (s *Set) Narrowing() *Set {
	if s == nil {
		return nil
	}
	n := *s
	n.narrows = true
	return &n
}

// rule is one rule. At most one of its specs is set; a rule without any is for every call of its tool.
type rule struct {
	text    string
	tool    string // a name, a class word, or the name of MCP tools with stars
	command commandPattern
	path    pathPattern
	domain  *policy.Domain
}

func (r rule) bare() bool { return r.command == nil && r.path == "" && r.domain == nil }

// named is the rule as decisions name it.
func (r rule) named(list string) string { return list + " " + short(r.text) }

// Parse reads a set of rules. The error joins an *Error for each rule that is wrong, one that can never match included.
func Parse(l Lists) (*Set, error) {
	s := &Set{lists: l}
	var errs []error
	for _, list := range []struct {
		name  string
		texts []string
		rules *[]rule
	}{{"deny", l.Deny, &s.deny}, {"ask", l.Ask, &s.ask}, {"allow", l.Allow, &s.allow}} {
		if len(list.texts) > maxRules {
			errs = append(errs, fmt.Errorf("%d %s rules: there may be %d", len(list.texts), list.name, maxRules))
			continue
		}
		for i, text := range list.texts {
			r, err := parseRule(text, list.name == "allow")
			if err == nil {
				err = s.shadowed(r, list.name)
			}
			if err != nil {
				errs = append(errs, &Error{list.name, i, text, err.Error()})
				continue
			}
			*list.rules = append(*list.rules, r)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// parseRule reads a tool, or a tool and what stands in brackets behind it.
func parseRule(written string, allows bool) (rule, error) {
	text := strings.TrimSpace(written)
	if len(text) > maxRuleBytes {
		return rule{}, fmt.Errorf("it has %d bytes, a rule may have %d", len(text), maxRuleBytes)
	}
	if why := unreadable(text); why != "" || strings.ContainsAny(text, "\n\t") {
		return rule{}, errors.New(orElse(why, "it has a line end or a tab"))
	}
	name, spec, bracket := strings.Cut(text, "(")
	r := rule{text: text, tool: name}
	if bracket && !strings.HasSuffix(spec, ")") {
		return rule{}, errors.New("its bracket does not end; write tool or tool(spec)")
	}
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*.") != "" || name == "" {
		return rule{}, errors.New("it does not begin with the name of a tool; write tool or tool(spec)")
	}
	k, err := kindOf(name)
	if err != nil || !bracket {
		return r, err
	}
	spec = strings.TrimSpace(strings.TrimSuffix(spec, ")"))
	switch {
	case spec == "":
		err = fmt.Errorf("its brackets are empty; for every call of it write %s", name)
	case k == byCommand:
		r.command, err = parseCommand(spec, allows)
	case k == byPath:
		r.path, err = parsePath(spec)
	case k == byHost:
		r.domain, err = parseHostSpec(spec)
	default:
		err = fmt.Errorf("%s takes nothing in brackets", name)
	}
	return r, err
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// shadowed says that a rule decides nothing, since a stricter one matches all that it matches.
func (s *Set) shadowed(r rule, list string) error {
	stricter := map[string][]rule{"deny": s.deny}
	if list == "allow" {
		stricter["ask"] = s.ask
	}
	if list == "deny" {
		return nil
	}
	for _, name := range []string{"deny", "ask"} {
		for _, over := range stricter[name] {
			if over.coversAll(r, name, list) {
				return fmt.Errorf("it can never decide: %q matches all that it matches, and %s wins", over.named(name), name)
			}
		}
	}
	return nil
}

// coversAll says that r, of a list, matches every call that another rule matches.
func (r rule) coversAll(other rule, list, otherList string) bool {
	if strings.Contains(other.tool, "*") || strings.HasPrefix(other.tool, "mcp__") {
		return r.bare() && glob(strings.ReplaceAll(r.tool, "*", star), strings.ReplaceAll(other.tool, "*", unknown))
	}
	some := false
	for _, t := range toolTable() {
		if !other.covers(t, otherList) {
			continue
		}
		if some = true; !r.covers(t, list) {
			return false
		}
	}
	switch {
	case r.bare():
		return some
	case other.bare():
		return false
	case r.command != nil && other.command != nil:
		return r.command.match(other.command.words(), surely)
	case r.path != "" && other.path != "":
		return r.path.covers(other.path)
	case r.domain != nil && other.domain != nil:
		return r.domain.Covers(*other.domain)
	}
	return false
}
