package agents

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed system.md
var systemText string

// situation is what the system prompt tells of one agent.
type situation struct {
	Prompt    string // of the profile
	Title     string
	Child     bool
	ReadOnly  bool
	InPlace   bool
	Delegates bool
}

// systemPrompt renders the system prompt. It depends on nothing that changes while the agent works.
func systemPrompt(s situation) (string, error) {
	t, err := template.New("system").Parse(systemText)
	if err != nil {
		return "", fmt.Errorf("parse system prompt: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, s); err != nil {
		return "", fmt.Errorf("render system prompt: %w", err)
	}
	return b.String(), nil
}
