package tools

import (
	"encoding/json"

	"muster/budget"
)

// Builtins lists every tool of this package, whatever one agent may see of it: for who checks a plan or a profile before there is an agent.
func Builtins() []Tool { return builtins() }

// Check says of a call, before there is an agent, what Invoke would say of its name and arguments.
func Check(tool string, args json.RawMessage) error {
	s := &Set{mode: modes()["goal"], tools: builtins()}
	t, ok := s.find(tool)
	if !ok {
		return fail(Input, "unknown tool %q; the nearest are: %s", shorten(tool, 80), s.nearest(tool))
	}
	t, err := t.fit(budget.Default())
	if err != nil {
		return err
	}
	_, _, err = arguments(t, args)
	return err
}

// Narrow returns the widest mode that allows nothing which a or b forbids or asks about. An empty one sets no limit.
func Narrow(a, b string) string {
	if a == "" {
		return b
	}
	if b == "" {
		return a
	}
	all := modes()
	widest := "plan"
	for _, name := range append(Modes(), b, a) { // of equal ones a stays
		if m := all[name]; all[a].within(m) && all[b].within(m) && m.within(all[widest]) {
			widest = name
		}
	}
	return widest
}
