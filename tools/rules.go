package tools

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"muster/budget"
	"muster/tools/rules"
	"muster/tools/sandbox"
	"muster/tools/workspace"
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

// allowed checks mode, then deny list, then allow list, then rules that deny every call of the tool. The answer of a mode that wants to be asked is asked with no error.
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
	for _, set := range s.cfg.Rules {
		if rule := set.Hides(t.Name); rule != "" {
			return refused, fail(Permission, "%s is forbidden by the rule %s; finish without it", t.Name, rule)
		}
	}
	if err := s.confined(t); err != nil {
		return refused, err
	}
	return v, nil
}

// Judge says what sets of rules say of a call by its arguments. Paths are looked up in tree; env are the variables of the job's commands.
func Judge(tree *workspace.Tree, sets []*rules.Set, env map[string]string, tool string, args json.RawMessage) (rules.Decision, error) {
	c, err := rules.CallOf(tool, args)
	if err != nil {
		return rules.Decision{}, err
	}
	c.Env = slices.Sorted(maps.Keys(env))
	if tool == "apply_patch" {
		var a patchArgs
		if err := json.Unmarshal(args, &a); err != nil {
			return rules.Decision{}, err
		}
		c.Paths = patchPaths(tree, a.Diff)
	}
	c.Resolve = func(path string) (rules.Place, error) { return placeOf(tree, path) }
	if shell, ok := findProgram(sandbox.Policy{}, programFolders(), shells...); ok {
		c.POSIX = filepath.Base(shell) != "bash"
	}
	return rules.Judge(sets, c), nil
}

func placeOf(tree *workspace.Tree, path string) (rules.Place, error) {
	clean, err := tree.Rel(path)
	if err != nil {
		return rules.Place{}, err
	}
	real, folder, err := tree.Resolve(path)
	return rules.Place{Clean: clean, Real: real, Folder: folder, Scratch: filepath.IsAbs(real)}, err
}

// approve weighs what the mode says of a call against the rules: they may grant what it asks, and ask or refuse what it grants. reason is what is asked.
func (s *Set) approve(t Tool, args json.RawMessage, v verdict) (_ verdict, reason string, err error) {
	reason = "in mode " + s.cfg.Mode
	if len(s.cfg.Rules) == 0 {
		return v, reason, nil
	}
	if err := readable(s.cfg.Tree, t.Name, args); err != nil {
		return refused, "", err
	}
	d, err := Judge(s.cfg.Tree, s.cfg.Rules, s.cfg.Env, t.Name, args)
	switch {
	case err != nil:
		return refused, "", fail(Input, "%v", err)
	case d.Verdict == rules.Deny:
		return refused, "", fail(Permission, "%s is forbidden by the %s; finish without it", t.Name, d)
	case d.Verdict == rules.Ask:
		return asked, "(" + d.String() + ")", nil
	case d.Verdict == rules.Allow:
		return granted, "", nil
	}
	return v, reason, nil
}

// leftOut says of each file that a walk from start finds whether rules keep it from the agent; nil where they keep nothing.
func (c *Call) leftOut(tool, start string) func(path string) bool {
	var filters []func(string) bool
	for _, set := range c.set.cfg.Rules {
		at, err := placeOf(c.Tree, start)
		if err != nil {
			return nil // the walk will not begin either
		}
		if f := set.Filter(tool, at); f != nil {
			filters = append(filters, f)
		}
	}
	if filters == nil {
		return nil
	}
	return func(path string) bool {
		return slices.ContainsFunc(filters, func(f func(string) bool) bool { return f(path) })
	}
}

// nearest lists the visible tools whose names are closest to name.
func (s *Set) nearest(name string) string {
	var names []string
	for _, t := range s.Tools() {
		names = append(names, t.Name)
	}
	return strings.Join(budget.Nearest(name, names, 3), ", ")
}
