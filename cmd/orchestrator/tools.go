package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"muster/budget"
	"muster/cmd/internal/app"
	"muster/cmd/internal/config"
	"muster/tools"
)

type toolsOptions struct {
	json bool
	dir  string
	file string // of the configuration
	mode string
	caps budget.Choice
}

// definition is a tool as a model is told of it: what its bytes are counted from.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// toolRow is what tools and @tools print of a tool.
type toolRow struct {
	Name        string          `json:"name"`
	Class       tools.Class     `json:"class"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Bytes       int             `json:"bytes"`  // of the definition as compact JSON
	Tokens      int             `json:"tokens"` // bytes/4, rounded up: a model's own count differs by some percent
}

// toolTable is what tools --json prints.
type toolTable struct {
	Tools  []toolRow `json:"tools"`
	Bytes  int       `json:"bytes"`
	Tokens int       `json:"tokens"`
}

func newTools() *cli.Command {
	return &cli.Command{
		Name: "tools", Usage: "list the tools of an agent and what their definitions cost",
		UsageText: `orchestrator tools
orchestrator tools --mode plan
orchestrator tools --json | jq '.tools[].name'`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "as an agent on this `FOLDER` sees them: skill is there only where a skill is"},
			config.FileFlag(),
			&cli.StringFlag{Name: "mode", Value: "goal", Usage: "as an agent in this mode sees them: " + strings.Join(tools.Modes(), ", ")},
			&cli.StringFlag{Name: "caps", Usage: "as an agent with these limits sees them, `KEY=VALUE,…`"},
			app.JSONFlag(),
		},
		Action: func(c *cli.Context) error {
			o := toolsOptions{json: c.Bool("json"), dir: c.String("dir"), file: c.String("config"), mode: c.String("mode")}
			if !slices.Contains(tools.Modes(), o.mode) {
				return app.Usage("--mode %q: there are %s", o.mode, strings.Join(tools.Modes(), ", "))
			}
			var err error
			if o.caps, err = choice(c.String("caps")); err != nil {
				return err
			}
			return runTools(o)
		},
	}
}

func runTools(o toolsOptions) error {
	caps, err := o.caps.Caps()
	if err != nil {
		return app.Usage("--caps: %w", err)
	}
	list, err := tools.Catalog(caps, o.mode)
	if err != nil {
		return err
	}
	found, _, err := discover(o.dir)
	if err != nil {
		return err
	}
	f, err := config.ReadFile(o.file)
	if err != nil {
		return app.Usage("%w", err)
	}
	if f.Search == (config.Search{}) {
		list = slices.DeleteFunc(list, func(t tools.Tool) bool { return t.Name == "web_search" })
	}
	if len(found) == 0 {
		list = slices.DeleteFunc(list, func(t tools.Tool) bool { return t.Name == "skill" })
	}
	if caps.Depth == 0 {
		list = slices.DeleteFunc(list, func(t tools.Tool) bool { return t.Name == "subagent" })
	}
	if _, err := exec.LookPath("git"); err != nil {
		list = slices.DeleteFunc(list, func(t tools.Tool) bool { return strings.HasPrefix(t.Name, "git_") })
	}
	t, err := tableOf(list)
	if err != nil {
		return err
	}
	out := app.Stdout(o.json)
	if o.json {
		return out.Value(t)
	}
	rows := make([][]string, 0, len(t.Tools)+1)
	for _, r := range t.Tools {
		rows = append(rows, []string{r.Name, string(r.Class), strconv.Itoa(r.Tokens), app.Field(r.Description, 400)})
	}
	rows = append(rows, []string{fmt.Sprintf("%d tools", len(t.Tools)), "", strconv.Itoa(t.Tokens), fmt.Sprintf("%d bytes of definitions", t.Bytes)})
	return out.Table([]string{"NAME", "CLASS", "TOKENS", "DESCRIPTION"}, rows)
}

func tableOf(list []tools.Tool) (toolTable, error) {
	t := toolTable{Tools: []toolRow{}}
	for _, tool := range list {
		b, err := json.Marshal(definition{tool.Name, tool.Description, tool.Schema})
		if err != nil {
			return t, fmt.Errorf("definition of %s: %w", tool.Name, err)
		}
		t.Tools = append(t.Tools, toolRow{tool.Name, tool.Class, tool.Description, tool.Schema, len(b), (len(b) + 3) / 4})
		t.Bytes += len(b)
	}
	t.Tokens = (t.Bytes + 3) / 4
	return t, nil
}
