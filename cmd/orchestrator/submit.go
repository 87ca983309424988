package main

import (
	"context"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
	"muster/cmd/internal/config"
)

type submitOptions struct {
	boardOptions
	submission
}

func newSubmit() *cli.Command {
	return &cli.Command{
		Name: "submit", Usage: "put a task on the board and return at once", ArgsUsage: "[PROMPT]",
		UsageText: `orchestrator submit --plan plan.yaml --connect nats://host:4222
orchestrator submit "review the error handling" --model script:turns.json --json`,
		Description: "Prints the id of each job. Workers that serve the board do them: orchestrator serve, or worker --connect.",
		Flags:       boardFlags(append(append(submissionFlags(), config.JobFlags()...), app.JSONFlag())...),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			sub, err := submissionOf(c)
			if err != nil {
				return err
			}
			if !c.IsSet("ask-for") {
				sub.job.AskFor = defaultAskFor
			}
			if sub.job.Sandbox, err = config.JobAskedBy(c); err != nil {
				return app.Usage("%w", err)
			}
			return runSubmit(c.Context, submitOptions{b, sub})
		},
	}
}

func runSubmit(ctx context.Context, o submitOptions) error {
	p, err := app.FindProject(o.dir)
	if err != nil {
		return err
	}
	jobs, err := o.jobs(ctx, p)
	if err != nil {
		return err
	}
	return o.with(ctx, func(s *session) error {
		entries, out, err := s.submit(ctx, o.submission, jobs)
		if err != nil {
			return err
		}
		if o.json {
			err = s.out.Value(report{Run: entries[0].Run, Jobs: rowsOf(entries), leftOut: out})
		} else {
			rows := make([][]string, 0, len(entries))
			for _, e := range entries {
				rows = append(rows, []string{e.ID, string(e.State), app.Field(e.Title, 80)})
			}
			err = s.out.Table(nil, rows)
		}
		if err != nil {
			return err
		}
		if ws, err := s.Board.Workers(ctx); err == nil && !slices.ContainsFunc(ws, func(w board.WorkerInfo) bool { return w.Slots > 0 }) {
			app.Note(os.Stderr, "no worker serves this board now; %s starts some", s.command("serve"))
		}
		return nil
	})
}
