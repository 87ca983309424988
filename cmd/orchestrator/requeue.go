package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

type requeueOptions struct {
	boardOptions
	ids   []string
	force bool
}

func newRequeue() *cli.Command {
	return &cli.Command{
		Name: "requeue", Usage: "do jobs again that have ended, as new jobs", ArgsUsage: "ID…",
		UsageText: `orchestrator requeue ID
orchestrator list --state lost --json | jq -r '.[].id' | xargs orchestrator requeue`,
		Description: `A job that has ended stays as it ended. Its task, with the same files, settings and attempts, becomes a new job of the same run, which names the old
one. What came after it has failed with it: name those jobs too, and they come after the new one. All are queued or none.`,
		Flags: boardFlags(
			&cli.BoolFlag{Name: "force", Usage: "also jobs that are done"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			if c.NArg() == 0 {
				return app.Usage("requeue takes job ids")
			}
			return runRequeue(c.Context, requeueOptions{b, c.Args().Slice(), c.Bool("force")})
		},
	}
}

func runRequeue(ctx context.Context, o requeueOptions) error {
	return o.with(ctx, func(s *session) error {
		entries, err := s.Board.Again(ctx, o.force, o.ids...)
		if errors.Is(err, board.ErrNotFinished) {
			return &app.Fault{Code: app.ExitFailed, Err: err, Hint: s.command("kill", "ID") + " ends it first"}
		}
		if err != nil {
			return err
		}
		if o.json {
			return s.out.Value(rowsOf(entries))
		}
		rows := make([][]string, 0, len(entries))
		for _, e := range entries {
			rows = append(rows, []string{short(e.Again), "is now", e.ID, string(e.State), app.Field(e.Title, 60)})
		}
		return s.out.Table(nil, rows)
	})
}
