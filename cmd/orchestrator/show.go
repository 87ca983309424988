package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/board/approval"
	"muster/board/policy"
	"muster/cmd/internal/app"
)

type showOptions struct {
	boardOptions
	id string
}

// shown is what show --json prints: the row of list, and the specification.
type shown struct {
	row
	Spec   board.Job           `json:"spec"`
	Facts  json.RawMessage     `json:"facts,omitempty"`     // of the result
	Asked  []approval.Approval `json:"approvals,omitempty"` // questions to people
	Always []approval.Always   `json:"always,omitempty"`    // rules that people gave the run
}

func newShow() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show one job: its state, its task and a preview of its result", ArgsUsage: "ID",
		UsageText: `orchestrator show ID
orchestrator show ID --json`,
		Description: "ID may be the whole id, or at least six characters of its start or end.",
		Flags:       boardFlags(app.JSONFlag()),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			if c.NArg() != 1 {
				return app.Usage("show takes one job id")
			}
			return runShow(c.Context, showOptions{b, c.Args().First()})
		},
	}
}

func runShow(ctx context.Context, o showOptions) error {
	return o.with(ctx, func(s *session) error {
		e, err := s.Board.Get(ctx, o.id)
		if err != nil {
			return err
		}
		spec, err := s.Board.Spec(ctx, e.ID)
		if err != nil {
			return err
		}
		spec = s.Board.Shown(spec)
		var r board.Result
		if e.State.Terminal() && e.ResultSeq > 0 {
			if r, err = s.Board.Collect(ctx, e.ID); err != nil {
				s.log.Warn().Err(err).Str("job", e.ID).Msg("read the result") // what the board says of the job is there all the same
			}
		}
		sh := shown{row: rowOf(e), Spec: spec, Facts: r.Facts}
		if sh.Asked, err = s.Board.Approvals(ctx, e.Run, e.ID); err != nil {
			return err
		}
		if sh.Always, err = s.Board.AlwaysOf(ctx, e.Run); err != nil {
			return err
		}
		if o.json {
			return s.out.Value(sh)
		}
		return s.out.Text(describe(e, spec, r, time.Now()) + decided(sh))
	})
}

// describe is a job for people; s.out sanitises it on a terminal.
func describe(e board.Entry, spec board.Job, r board.Result, now time.Time) string {
	var b strings.Builder
	line := func(name, format string, a ...any) {
		if text := fmt.Sprintf(format, a...); text != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, app.Field(text, 2_000))
		}
	}
	line("id", "%s", e.ID)
	line("run", "%s", e.Run)
	line("parent", "%s", e.Parent)
	line("again", "%s", e.Again)
	line("title", "%s", e.Title)
	line("state", "%s (epoch %d, attempt %d of %d)", e.State, e.Epoch, e.Attempt, e.MaxTries)
	line("killing", "%s", e.Killing)
	line("worker", "%s", e.Worker)
	line("sandbox", "%s", sandboxText(e, spec))
	line("queue", "%s, %s", e.Pool, e.Priority)
	line("profile", "%s", e.Profile)
	line("model", "%s", spec.Model)
	line("mode", "%s", spec.Mode)
	line("waits", "%s", e.Waits)
	line("after", "%s", strings.Join(e.After, " "))
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"created", e.Created}, {"queued", e.Queued}, {"started", e.Started}, {"claimed", e.Claimed}, {"ended", e.Ended}} {
		if !t.at.IsZero() {
			line(t.name, "%s (%s ago)", t.at.Local().Format(time.DateTime), span(now.Sub(t.at)))
		}
	}
	line("files", "%s", baseText(spec.Base))
	if u := e.Usage; u != (board.Usage{}) {
		line("usage", "%d turns, %d tool calls, %d tokens in, %d out", u.Turns, u.ToolCalls, u.InputTokens, u.OutputTokens)
	}
	for _, r := range e.Reasons {
		line("attempt", "%s", r)
	}
	if len(spec.Steps) > 0 {
		line("task", "steps: %d", len(spec.Steps))
		for _, st := range spec.Steps {
			line("", "%s %s", st.Tool, plainJSON(string(st.Args)))
		}
	} else {
		line("task", "%s", spec.Prompt)
	}
	if e.State.Terminal() {
		line("result", "%s: %s", humanize.IBytes(uint64(max(e.ResultLen, 0))), e.Preview)
		line("left out", "%s", unpatched(r))
		line("", "orchestrator collect %s", short(e.ID))
	}
	return b.String()
}

// decided is what people were asked by a job, and what they allowed its run.
func decided(s shown) string {
	var b strings.Builder
	for _, a := range s.Asked {
		said := "no answer yet"
		if !a.Open() {
			said = string(a.Verdict) + " by " + a.By + note(": ", a.Reason)
		}
		fmt.Fprintf(&b, "%-10s %d: %s: %s\n", "asked", a.N, app.Field(callText(a), 200), app.Field(said, 300))
	}
	for _, a := range s.Always {
		fmt.Fprintf(&b, "%-10s %s (by %s)\n", "always", app.Field(a.Rule, 200), app.Field(a.By, 80))
	}
	return b.String()
}

// sandboxText is how the job's commands are confined, and what it asks for.
func sandboxText(e board.Entry, spec board.Job) string {
	text := e.Sandbox
	if text == policy.Off {
		text = "OFF: its commands are not confined"
	}
	asked, err := json.Marshal(spec.Sandbox)
	if err == nil && !spec.Sandbox.IsZero() {
		text = strings.TrimPrefix(text+", asks for "+plainJSON(string(asked)), ", ")
	}
	return text
}

func baseText(b board.Base) string {
	switch {
	case b.InPlace != "":
		return b.InPlace + " in place"
	case b.Commit != "":
		return fmt.Sprintf("%s at %s", b.Origin, b.Commit[:min(12, len(b.Commit))])
	}
	return "an empty workspace"
}
