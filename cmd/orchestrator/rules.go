package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"muster/agents/document"
	"muster/cmd/internal/app"
	"muster/tools"
	"muster/tools/rules"
	"muster/tools/workspace"
)

const maxRuleFileBytes = 256 << 10

type rulesOptions struct {
	json bool
	file string
}

// ruleFile is rules with examples of what they decide.
type ruleFile struct {
	rules.Lists `yaml:",inline"`
	Files       []string      `yaml:"files"`
	Examples    []ruleExample `yaml:"examples"`
}

// ruleExample is a call and what must become of it.
type ruleExample struct {
	Tool    string         `yaml:"tool"`
	Command string         `yaml:"command"`
	Path    string         `yaml:"path"`
	URL     string         `yaml:"url"`
	Args    document.Value `yaml:"args"`
	Expect  string         `yaml:"expect"`
	Why     string         `yaml:"why"`
}

// ruleRow is what rules test prints of an example.
type ruleRow struct {
	Line   int             `json:"line"`
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args"`
	Expect string          `json:"expect"`
	OK     bool            `json:"ok"`
	rules.Decision
	about string // the call, in a line
	why   string
}

// ruleReport is what rules test --json prints.
type ruleReport struct {
	Examples   []ruleRow `json:"examples"`
	Mismatches int       `json:"mismatches"`
}

func newRules() *cli.Command {
	return &cli.Command{
		Name: "rules", Usage: "try permission rules on the examples that are written beside them", ArgsUsage: "test FILE",
		UsageText: `orchestrator rules test examples/rules.yaml
orchestrator rules test --json FILE | jq '.examples[] | select(.ok | not)'`,
		Description: `Runs nothing: it says of each example what the rules of the file decide, and by which rule. FILE is YAML:

    allow: ["run_command(go test *)", "edit(src/**)", "web_fetch(domain:*.go.dev)"]
    ask:   ["run_command(git commit *)"]
    deny:  ["run_command(git * push *)", "read(**/.env)"]
    files: [src/main.go, secrets/, "src/link -> ../secrets"]  # there, in an empty folder, while the paths are looked up
    examples:
      - {command: go test ./... && git push, expect: deny, why: each command counts}
      - {tool: write_file, path: src/link/key, expect: ask, why: it leads out of src}
      - {url: "https://pkg.go.dev/os", expect: allow}

An example has a command (of run_command), a url (of web_fetch), or a tool with a path or with args: {…}. It expects allow, ask or deny, or mode
where no rule is to say anything. Deny wins over ask, ask over allow; where a tool has allow rules, a call that none of them covers is asked. What rules
can say is told in tools/rules/doc.go.

Exit codes: 0 every example holds, 1 some do not, 2 a mistake in the file.`,
		Flags: []cli.Flag{app.JSONFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 || c.Args().First() != "test" {
				return app.Usage("rules takes the word test and a file: orchestrator rules test FILE")
			}
			return runRules(c.Context, rulesOptions{json: c.Bool("json"), file: c.Args().Get(1)})
		},
	}
}

func runRules(ctx context.Context, o rulesOptions) error {
	data, err := readInput(ctx, o.file, maxRuleFileBytes)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return app.Usage("%w", err)
	}
	report, err := tryRules(o.file, data)
	if err != nil {
		return err
	}
	out := app.Stdout(o.json)
	if o.json {
		err = out.Value(report)
	} else {
		err = out.Table([]string{"", "VERDICT", "EXAMPLE", "BY"}, report.table())
	}
	if err == nil && report.Mismatches > 0 {
		err = fmt.Errorf("%d of %d examples do not hold", report.Mismatches, len(report.Examples))
	}
	return err
}

func (r ruleReport) table() [][]string {
	rows := make([][]string, 0, len(r.Examples)+1)
	for _, e := range r.Examples {
		mark, verdict, by := "ok", e.Verdict.String(), e.Decision.String()
		if !e.OK {
			mark, verdict = "MISMATCH", verdict+", not "+e.Expect
			if e.why != "" {
				by += " (line " + fmt.Sprint(e.Line) + ": " + e.why + ")"
			}
		}
		rows = append(rows, []string{mark, verdict, app.Field(e.about, 100), app.Field(by, 400)})
	}
	return append(rows, []string{fmt.Sprintf("%d examples", len(r.Examples)), fmt.Sprintf("%d mismatches", r.Mismatches)})
}

// tryRules reads a file of rules and decides its examples. What is wrong with the file is a mistake of usage.
func tryRules(name string, data []byte) (ruleReport, error) {
	var f ruleFile
	doc, err := document.Read(name, data, maxRuleFileBytes, &f)
	if err != nil {
		return ruleReport{}, app.Usage("%w", err)
	}
	set, err := rules.Parse(f.Lists)
	if err != nil {
		return ruleReport{}, app.Usage("%w", placedRules(doc, err))
	}
	report := ruleReport{Examples: make([]ruleRow, len(f.Examples))}
	var errs []error
	for i, e := range f.Examples {
		if report.Examples[i], err = e.row(); err != nil {
			errs = append(errs, doc.Errorf([]any{"examples", i}, "%v", err))
		}
		report.Examples[i].Line = doc.Line("examples", i)
	}
	if len(f.Examples) == 0 {
		errs = append(errs, doc.Errorf([]any{"examples"}, "it has no examples; without any nothing is tried"))
	}
	if err := errors.Join(errs...); err != nil {
		return ruleReport{}, app.Usage("%w", err)
	}
	dir, err := os.MkdirTemp("", "muster-rules-")
	if err != nil {
		return ruleReport{}, err
	}
	defer os.RemoveAll(dir)
	tree, err := openExampleTree(doc, dir, f.Files)
	if err != nil {
		return ruleReport{}, err
	}
	defer tree.Close()
	for i := range report.Examples {
		e := &report.Examples[i]
		if e.Decision, err = tools.Judge(tree, []*rules.Set{set}, nil, e.Tool, e.Args); err != nil {
			return ruleReport{}, app.Usage("%w", doc.Errorf([]any{"examples", i}, "%v", err))
		}
		if e.OK = e.Verdict.String() == e.Expect; !e.OK {
			report.Mismatches++
		}
	}
	return report, nil
}

// placedRules puts the line of its rule before each error.
func placedRules(doc *document.Doc, err error) error {
	all := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		all = joined.Unwrap()
	}
	for i, one := range all {
		var wrong *rules.Error
		if errors.As(one, &wrong) {
			all[i] = doc.Errorf([]any{wrong.List, wrong.Index}, "%v", one)
		}
	}
	return errors.Join(all...)
}

// row checks an example and makes the call of it.
func (e ruleExample) row() (ruleRow, error) {
	given := 0
	r := ruleRow{Tool: e.Tool, Expect: e.Expect, why: e.Why, Args: e.Args.JSON}
	arg := func(text, field, tool string) {
		if text == "" {
			return
		}
		given++
		if r.Tool == "" {
			r.Tool = tool
		}
		// Marshalling a text cannot fail.
		value, _ := json.Marshal(text)
		r.Args = json.RawMessage(`{"` + field + `":` + string(value) + `}`)
		r.about = r.Tool + " " + text
	}
	arg(e.Command, "command", "run_command")
	arg(e.URL, "url", "web_fetch")
	arg(e.Path, "path", "")
	if e.Args.JSON != nil {
		given++
		r.about = r.Tool + " " + string(e.Args.JSON)
	}
	if given == 0 {
		r.about, r.Args = r.Tool, json.RawMessage("{}")
	}
	switch {
	case given > 1:
		return r, errors.New("an example has one of command, path, url and args")
	case r.Tool == "":
		return r, errors.New("which tool? an example has a command, a url, or a tool")
	case !rules.Known(r.Tool):
		return r, fmt.Errorf("there is no tool %q", app.Field(r.Tool, 80))
	case !slices.Contains(rules.Verdicts(), e.Expect):
		return r, fmt.Errorf("expect: %q: there are %s", app.Field(e.Expect, 80), strings.Join(rules.Verdicts(), ", "))
	}
	return r, nil
}

// openExampleTree makes the files of the examples in a new folder.
func openExampleTree(doc *document.Doc, dir string, files []string) (*workspace.Tree, error) {
	ws := filepath.Join(dir, "workspace")
	if err := os.Mkdir(ws, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(ws)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for i, f := range files {
		if err := placeFile(root, f); err != nil {
			return nil, app.Usage("%w", doc.Errorf([]any{"files", i}, "%v", err))
		}
	}
	return workspace.OpenDir(ws, filepath.Join(dir, "scratch"))
}

// placeFile makes "name", the folder "name/" or the symlink "name -> target".
func placeFile(root *os.Root, entry string) error {
	name, target, link := strings.Cut(entry, " -> ")
	clean := path.Clean(name)
	if !filepath.IsLocal(clean) {
		return fmt.Errorf("%q is outside the folder of the examples; write a path below it", name)
	}
	if err := root.MkdirAll(path.Dir(clean), 0o700); err != nil {
		return err
	}
	switch {
	case link:
		return root.Symlink(target, clean)
	case strings.HasSuffix(name, "/"):
		return root.MkdirAll(clean, 0o700)
	}
	return root.WriteFile(clean, nil, 0o600)
}
