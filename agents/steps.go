package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"muster/board"
	"muster/budget"
	"muster/tools"
)

const (
	envBytes    = 96 << 10 // of one variable: the kernel takes 128 KiB
	allEnvBytes = 1 << 20  // of all of them: the kernel takes 2 MiB with the arguments
)

// steps runs the steps of a job without a model. Its result is the text of each under a heading.
func (a *attempt) steps(ctx context.Context) (board.Result, error) {
	var text strings.Builder
	res := board.Result{State: board.Done}
	for i, s := range a.job.Steps {
		reply := a.set.Invoke(ctx, tools.Request{ID: fmt.Sprintf("step-%d", i+1), Tool: s.Tool, Args: s.Args})
		if reply.Fault != nil {
			return board.Result{Text: text.String()}, reply.Fault
		}
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "## %s\n\n%s\n", heading(s), strings.TrimRight(reply.Text, "\n"))
		res.Text = text.String()
		if err := a.cause(ctx); err != nil {
			return res, err
		}
		if reply.Facts.Denied && !s.AllowFailure {
			res.State = board.Denied
			res.Error = fmt.Sprintf("step %d of %d (%s) was denied in mode %s; mode goal asks nobody", i+1, len(a.job.Steps), heading(s), a.mode)
			return res, nil
		}
		if reason := failure(reply); reason != "" && !s.AllowFailure {
			res.State = board.Failed
			res.Error = fmt.Sprintf("step %d of %d (%s) failed: %s", i+1, len(a.job.Steps), heading(s), reason)
			res.Retry = reply.Class == tools.Transient
			return res, nil
		}
	}
	return res, nil
}

// failure says in one line why a step failed, "" for success.
func failure(r tools.Reply) string {
	switch {
	case r.Facts.TimedOut:
		return "timed out"
	case r.Facts.Signal != "":
		return "ended by " + r.Facts.Signal
	case r.Facts.ExitCode != nil && *r.Facts.ExitCode != 0:
		return fmt.Sprintf("exit code %d", *r.Facts.ExitCode)
	case !r.OK:
		return budget.Preview(r.Text, 300)
	}
	return ""
}

// heading names a step: its title, or its tool and what it is about.
func heading(s board.Step) string {
	if s.Title != "" {
		return budget.Preview(s.Title, titleChars)
	}
	var args struct{ Command, Pattern, Path, Query string }
	_ = json.Unmarshal(s.Args, &args) // what does not fit is not shown
	return budget.Preview(strings.TrimSpace(s.Tool+" "+first(args.Command, args.Pattern, args.Path, args.Query)), titleChars)
}

// gather puts the results that the job asks for in their places: into its prompt and its steps as text, into commands as
// environment variables. It returns the environment of the job's commands.
func (a *attempt) gather(ctx context.Context) (map[string]string, error) {
	env := maps.Clone(a.job.Env)
	if env == nil {
		env = map[string]string{}
	}
	g := &gatherer{a: a, texts: map[string]string{}}
	prompt, err := g.fill(ctx, a.job.Prompt)
	if err != nil {
		return nil, err
	}
	a.job.Prompt = prompt
	left := allEnvBytes
	steps := make([]board.Step, len(a.job.Steps))
	for i, s := range a.job.Steps {
		s.Args, err = mapTexts(s.Tool, s.Args, func(p place, text string) (string, error) {
			if !p.shell() {
				return g.fill(ctx, text)
			}
			all, err := refs(text)
			if err != nil || a.job.Name == "" {
				return text, nil // no text of a plan
			}
			for _, r := range all {
				if _, ok := env[r.env()]; ok || r.kind != "results" {
					continue
				}
				v, err := g.result(ctx, r.id)
				if err != nil {
					return "", err
				}
				v = forEnv(v, min(envBytes, left))
				left -= len(v)
				env[r.env()] = v
			}
			return fill(text, func(r ref) (string, bool) { return "${" + r.env() + "}", true }), nil
		})
		if err != nil {
			return nil, err
		}
		steps[i] = s
	}
	a.job.Steps = steps
	return env, nil
}

// forEnv makes a value that an environment variable can hold.
func forEnv(v string, most int) string {
	v = strings.ReplaceAll(v, "\x00", "")
	for len(v) > most { // characters have up to four bytes
		cut, c := budget.Clip(v, max(most/4, 1), 80, "the result", "collect the job for the whole")
		if c == nil || len(cut) >= len(v) {
			return ""
		}
		v = cut
	}
	return v
}

// gatherer collects the results of the jobs that a job comes after.
type gatherer struct {
	a     *attempt
	texts map[string]string // by id in the plan, cut
	rows  []board.Entry     // of After
}

func (g *gatherer) fill(ctx context.Context, text string) (string, error) {
	all, err := refs(text)
	if err != nil || g.a.job.Name == "" {
		return text, nil // no text of a plan
	}
	for _, r := range all {
		if r.kind != "results" {
			continue
		}
		if _, err := g.result(ctx, r.id); err != nil {
			return "", err
		}
	}
	return fill(text, func(r ref) (string, bool) {
		v, ok := g.texts[r.id]
		return v, ok && r.kind == "results"
	}), nil
}

// result is the text of a job of the plan, of all its parts under headings, at most output_chars long.
func (g *gatherer) result(ctx context.Context, id string) (string, error) {
	if v, ok := g.texts[id]; ok {
		return v, nil
	}
	b := g.a.lease.Board()
	if g.rows == nil {
		for _, after := range g.a.job.After {
			e, err := b.Get(ctx, after)
			if err != nil {
				return "", fmt.Errorf("results.%s: %w", id, err)
			}
			g.rows = append(g.rows, e)
		}
	}
	var parts []string
	for _, e := range g.rows {
		name, _, several := strings.Cut(e.Name, "[")
		if name != id {
			continue
		}
		res, err := b.Collect(ctx, e.ID)
		if errors.Is(err, board.ErrNotFinished) {
			return "", fmt.Errorf("results.%s: job %s is %s", id, e.ID, e.State)
		} else if err != nil {
			return "", fmt.Errorf("results.%s: %w", id, err)
		}
		text := strings.TrimRight(res.Text, "\n")
		if several {
			text = "# " + e.Title + "\n\n" + text
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "\n\n")
	if len(parts) == 0 {
		text = "(nothing: the foreach of " + id + " had no parts)"
	}
	text, _ = budget.Clip(text, g.a.caps.OutputChars, 80, "the result of "+id, "orchestrator collect gives the whole")
	g.texts[id] = text
	return text, nil
}
