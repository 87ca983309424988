package agents

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"muster/budget"
	"muster/tools"
	"muster/tools/skills"
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
	Skills    string // skillList
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

// foreignSkills is where the words of skills come from that lie in the files of a job.
const foreignSkills = "skills of the files that you work on"

// skillList tells of skills in at most room characters, the user's own before those that came with the files, whose words are fenced.
func skillList(all []skills.Skill, room int) string {
	if len(all) == 0 {
		return ""
	}
	var own, foreign []skills.Skill
	for _, s := range all {
		if s.Foreign {
			foreign = append(foreign, s)
		} else {
			own = append(own, s)
		}
	}
	rest := func(n int) string {
		return fmt.Sprintf("\n- and %d more: skill with a name that there is not lists the names", n)
	}
	room -= budget.Chars(rest(len(all)))
	if len(foreign) > 0 {
		room -= budget.Chars(tools.Fenced(foreignSkills, "")) + 1
	}
	text, shown := skills.List(own, room*len(own)/len(all)) // each kind has its share
	if list, n := skills.List(foreign, room-budget.Chars(text)); n > 0 {
		text, shown = strings.TrimPrefix(text+"\n"+tools.Fenced(foreignSkills, list), "\n"), shown+n
	}
	if n := len(all) - shown; n > 0 {
		text += rest(n)
	}
	return strings.TrimPrefix(text, "\n")
}
