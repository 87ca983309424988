package tools

import (
	"fmt"
	"slices"
	"strings"
)

// verdict is what a mode says of a tool; the greater is the stricter.
type verdict int

const (
	granted verdict = iota
	asked
	refused
)

// mode is a row of the table of modes: what it says by class, and by name where a name differs from its class.
type mode struct {
	classes map[Class]verdict
	names   map[string]verdict
}

// modes is the table of modes. It is stated over classes, so that it covers tools that nobody here has heard of.
func modes() map[string]mode {
	return map[string]mode{
		"default":      {map[Class]verdict{Execute: asked}, map[string]verdict{"git_commit": asked}},
		"accept-edits": {map[Class]verdict{Execute: asked}, map[string]verdict{"git_commit": asked}},
		"plan":         {map[Class]verdict{Write: refused, Execute: refused}, map[string]verdict{"git_commit": refused}},
		"debug":        {map[Class]verdict{Write: refused}, map[string]verdict{"git_commit": refused}},
		"goal":         {},
	}
}

// Modes lists the modes from the narrowest to the widest.
func Modes() []string { return []string{"plan", "default", "accept-edits", "debug", "goal"} }

func (m mode) verdict(name string, class Class) verdict {
	if v, ok := m.names[name]; ok {
		return v
	}
	return m.classes[class]
}

// within says that everything a child does in mode child would be allowed to its parent in mode m at least as freely: delegation widens nothing.
func (m mode) within(child mode) bool {
	for _, class := range []Class{Read, Write, Execute, Network, State, Delegate} {
		if child.classes[class] < m.classes[class] {
			return false
		}
	}
	return child.verdict("git_commit", Write) >= m.verdict("git_commit", Write)
}

// allowed checks mode, then deny list, then allow list. The answer of a mode that wants to be asked is asked with no error.
func (s *Set) allowed(t Tool) (verdict, error) {
	v := s.mode.verdict(t.Name, t.Class)
	switch {
	case v == refused:
		return refused, fail(Permission, "%s is not allowed in mode %s; finish without it", t.Name, s.cfg.Mode)
	case slices.Contains(s.cfg.Deny, t.Name):
		return refused, fail(Permission, "%s is on the deny list of this agent; finish without it", t.Name)
	case len(s.cfg.Allow) > 0 && !slices.Contains(s.cfg.Allow, t.Name):
		return refused, fail(Permission, "%s is not on the allow list of this agent; finish without it", t.Name)
	}
	return v, nil
}

// denied is the result of a question that nobody is there to answer: an instruction, not a failure.
func (s *Set) denied(t Tool) Output {
	return Output{Text: fmt.Sprintf("denied: %s needs an approval in mode %s, and nobody is there to give it; do not retry it; "+
		"finish without it, or say in your answer what you would have run and why", t.Name, s.cfg.Mode), Facts: Facts{Denied: true}}
}

// nearest lists the visible tools whose names are closest to name.
func (s *Set) nearest(name string) string {
	type row struct {
		name string
		far  int
	}
	var rows []row
	for _, t := range s.Tools() {
		d := distance(strings.ToLower(name), t.Name)
		if strings.Contains(t.Name, strings.ToLower(name)) && name != "" {
			d = 1
		}
		rows = append(rows, row{t.Name, d})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.far - b.far })
	var names []string
	for _, r := range rows[:min(3, len(rows))] {
		names = append(names, r.name)
	}
	return strings.Join(names, ", ")
}

// distance counts the letters to insert, delete or replace between a and b.
func distance(a, b string) int {
	ra, rb := []rune(shorten(a, 64)), []rune(b)
	row := make([]int, len(rb)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range ra {
		left := row[0]
		row[0] = i + 1
		for j, y := range rb {
			cost := left
			if x != y {
				cost = 1 + min(left, row[j], row[j+1])
			}
			left, row[j+1] = row[j+1], cost
		}
	}
	return row[len(rb)]
}
