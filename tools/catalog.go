package tools

import (
	"fmt"
	"strings"

	"muster/budget"
)

// Catalog lists what an agent with these caps sees in a mode when it may delegate: for who wants to know before there is an agent.
func Catalog(caps budget.Caps, modeName string) ([]Tool, error) {
	m, ok := modes()[modeName]
	if !ok {
		return nil, fmt.Errorf("mode %q: there are %s", modeName, strings.Join(Modes(), ", "))
	}
	s := &Set{mode: m}
	for _, t := range builtins() {
		fitted, err := t.fit(caps)
		if err != nil {
			return nil, err
		}
		s.tools = append(s.tools, fitted)
	}
	return s.Tools(), nil
}
