package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize/english"

	"muster/cmd/internal/app"
	"muster/cmd/internal/config"
	"muster/tools/skills"
	"muster/tools/workspace"
)

// discover finds the skills that agents are offered on a folder.
func discover(dir string) (found []skills.Skill, problems []skills.Problem, err error) {
	p, err := app.FindProject(dir)
	if err != nil {
		return nil, nil, err
	}
	scratch, err := p.ScratchDir()
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(scratch)
	tree, err := workspace.OpenDir(p.Dir, filepath.Join(scratch, "look"))
	if err != nil {
		return nil, nil, err
	}
	found, problems = skills.Find(tree, config.SkillFolders())
	return found, problems, tree.Close()
}

// shownProblems is how many problems of skills doctor tells one by one.
const shownProblems = 30

func (p patient) skills(context.Context) []finding {
	found, problems, err := discover(p.dir)
	var fault *app.Fault
	switch {
	case errors.As(err, &fault):
		return nil // a finding of the folders
	case err != nil:
		return []finding{{"skills", "warn", err.Error(), ""}}
	}
	var all []finding
	if len(found) > 0 || len(problems) > 0 {
		all = append(all, finding{"skills", "ok", skillText(found), ""})
	}
	for _, one := range problems[:min(len(problems), shownProblems)] {
		next := ""
		if one.Skipped {
			next = "agents do without it until that is mended"
		}
		all = append(all, finding{"skill", "warn", one.String(), next})
	}
	if more := len(problems) - shownProblems; more > 0 {
		all = append(all, finding{"skill", "warn", fmt.Sprintf("and %d more such faults", more), "mend these first"})
	}
	return all
}

// skillText names skills, those that come with the files apart.
func skillText(found []skills.Skill) string {
	var own, foreign []string
	for _, s := range found {
		if s.Foreign {
			foreign = append(foreign, s.Name)
		} else {
			own = append(own, s.Name)
		}
	}
	text := english.Plural(len(found), "skill", "")
	if len(foreign) > 0 {
		text += "; of the folder: " + strings.Join(foreign, ", ")
	}
	if len(own) > 0 {
		text += "; of the user: " + strings.Join(own, ", ")
	}
	return text
}
