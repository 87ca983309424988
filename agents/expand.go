package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/uuid"

	"muster/board"
	"muster/budget"
	"muster/tools/workspace"
)

// titleChars is how much of a file name or item a title of a part shows.
const titleChars = 120

// part is one job of a foreach, or the only one of a job without it.
type part struct {
	items    []string
	index, n int // from 1; 0 without foreach
}

// Jobs expands foreach over dir and returns the jobs of one run, parents before what comes after them, with ids and After filled.
// base gives what neither the job nor the plan says, the files included; see apply for its mode and caps. A foreach whose glob matches nothing has no parts.
func (p *Plan) Jobs(ctx context.Context, dir string, base board.Job) ([]board.Job, error) {
	run := base.Run
	if run == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make run id: %w", err)
		}
		run = id.String()
	}
	e := &expander{plan: p, dir: dir, run: run, base: base, now: time.Now(), ids: map[string][]string{}}
	for _, i := range p.sort {
		if err := e.job(ctx, i); err != nil {
			return nil, err
		}
	}
	if len(e.jobs) == 0 {
		return nil, p.doc.Errorf([]any{"jobs"}, "no job is left: every foreach matched nothing in %s", dir)
	}
	return e.jobs, nil
}

type expander struct {
	plan *Plan
	dir  string
	run  string
	base board.Job
	now  time.Time
	ids  map[string][]string // of the parts, by the id in the plan
	jobs []board.Job
}

func (e *expander) job(ctx context.Context, i int) error {
	j := e.plan.jobs[i]
	parts, err := e.parts(ctx, j.Foreach)
	at := []any{"jobs", i, "foreach"}
	if err != nil {
		return e.plan.doc.Errorf(at, "%v", err)
	}
	if len(parts) > maxParts {
		return e.plan.doc.Errorf(at, "%d parts, at most %d are allowed: set or raise chunk", len(parts), maxParts)
	}
	if len(e.jobs)+len(parts) > maxJobs {
		return e.plan.doc.Errorf(at, "more than %d jobs in all: raise chunk", maxJobs)
	}
	e.ids[j.ID] = nil
	for _, pt := range parts {
		out, err := e.make(j, pt)
		if err != nil {
			return e.plan.doc.Errorf([]any{"jobs", i}, "%v", err)
		}
		e.ids[j.ID] = append(e.ids[j.ID], out.ID)
		e.jobs = append(e.jobs, out)
	}
	return nil
}

// parts splits what a foreach goes over.
func (e *expander) parts(ctx context.Context, f *foreach) ([]part, error) {
	if f == nil {
		return []part{{}}, nil
	}
	items := f.Items
	if f.Glob != "" {
		var err error
		if items, err = globFiles(ctx, e.dir, f.Glob); err != nil {
			return nil, err
		}
	}
	var parts []part
	for chunk := range slices.Chunk(items, max(f.Chunk, 1)) {
		parts = append(parts, part{items: chunk, index: len(parts) + 1})
	}
	for i := range parts {
		parts[i].n = len(parts)
	}
	return parts, nil
}

// globFiles lists the files of dir that a pattern matches, as the tool glob would: sorted, ignored ones left out.
func globFiles(ctx context.Context, dir, pattern string) ([]string, error) {
	scratch, err := os.MkdirTemp("", "muster-glob-")
	if err != nil {
		return nil, fmt.Errorf("glob %s: %w", pattern, err)
	}
	defer os.RemoveAll(scratch)
	tree, err := workspace.OpenDir(dir, scratch)
	if err != nil {
		return nil, fmt.Errorf("glob %s: %w", pattern, err)
	}
	defer tree.Close()
	caps := budget.Default()
	found := make(chan string)
	var files []string
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for f := range found {
			files = append(files, f)
		}
	}()
	limits := workspace.WalkOptions{MaxFiles: caps.WalkFiles, MaxTime: time.Duration(caps.WalkSecs) * time.Second}
	skipped, err := tree.Walk(ctx, ".", limits, func(w workspace.Walked) error {
		if doublestar.MatchUnvalidated(pattern, w.Path) {
			found <- w.Path
		}
		return nil
	})
	close(found)
	<-collected
	if err != nil {
		return nil, fmt.Errorf("glob %s: %w", pattern, err)
	}
	if skipped.Stopped != "" {
		return nil, fmt.Errorf("glob %s: %s", pattern, skipped.Stopped)
	}
	slices.Sort(files)
	for _, f := range files {
		if !utf8.ValidString(f) || strings.ContainsAny(f, "\n\x00") {
			return nil, fmt.Errorf("glob %s: the file name %q cannot be an item, which is one line of UTF-8: rename it, or choose a pattern without it", pattern, f)
		}
	}
	return files, nil
}

// make builds the board's job of one part.
func (e *expander) make(j planJob, pt part) (board.Job, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return board.Job{}, fmt.Errorf("make job id: %w", err)
	}
	out := e.plan.apply(j.settings, e.base, e.now)
	out.ID, out.Run, out.Created = id.String(), e.run, e.now
	out.Name = j.ID
	if pt.n > 0 {
		out.Name = fmt.Sprintf("%s[%d]", j.ID, pt.index)
		out.Env[envPrefix+"INDEX"] = strconv.Itoa(pt.index)
		items := strings.Join(pt.items, "\n")
		if len(items) > envBytes {
			return board.Job{}, fmt.Errorf("the items of part %d have %d bytes, at most %d fit a variable: lower chunk", pt.index, len(items), envBytes)
		}
		out.Env[envPrefix+"ITEMS"] = items
		if len(pt.items) == 1 {
			out.Env[envPrefix+"ITEM"] = pt.items[0]
		}
	}
	out.Title = partTitle(j, pt)
	out.Prompt = fill(j.Prompt, pt.value)
	out.Steps = nil
	for _, s := range j.Steps {
		args, err := mapTexts(s.Tool, s.Args.JSON, func(p place, text string) (string, error) {
			if p.shell() {
				return fill(text, func(r ref) (string, bool) { return "${" + r.env() + "}", r.kind != "results" }), nil
			}
			return fill(text, pt.value), nil
		})
		if err != nil {
			return board.Job{}, err
		}
		out.Steps = append(out.Steps, board.Step{Title: fill(s.Title, pt.value), Tool: s.Tool, Args: json.RawMessage(args), AllowFailure: s.AllowFailure})
	}
	for _, name := range j.After {
		out.After = append(out.After, e.ids[name]...)
	}
	return out, nil
}

// value is what an expression stands for in a part. Results are known only when the job runs.
func (pt part) value(r ref) (string, bool) {
	switch r.kind {
	case "item", "items":
		return strings.Join(pt.items, "\n"), true
	case "index":
		return strconv.Itoa(pt.index), true
	}
	return "", false
}

// partTitle is the title of a part; where the plan's own does not tell the parts apart, the item or the number does.
func partTitle(j planJob, pt part) string {
	base := first(j.Title, j.ID)
	title := fill(base, pt.value)
	if pt.n > 0 && title == base {
		if j.Foreach.Chunk <= 1 {
			title += ": " + budget.Preview(pt.items[0], titleChars)
		} else {
			title += fmt.Sprintf(" (%d of %d)", pt.index, pt.n)
		}
	}
	return budget.Preview(title, 2*titleChars)
}
