package main

import (
	"context"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

type watchOptions struct {
	boardOptions
	run string
}

func newWatch() *cli.Command {
	return &cli.Command{
		Name: "watch", Usage: "show the board live",
		UsageText: `orchestrator watch
orchestrator watch --run ID
orchestrator watch --json`,
		Description: `With --run it ends when every job of the run has; else with Ctrl-C. On a terminal what agents ask a person is shown and can be answered.
--json prints the row of list for each change, an object a line.`,
		Flags: boardFlags(
			&cli.StringFlag{Name: "run", Usage: "only the jobs of the run `ID`"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			return runWatch(c.Context, watchOptions{b, c.String("run")})
		},
	}
}

func runWatch(ctx context.Context, o watchOptions) error {
	return o.with(ctx, func(s *session) error {
		run, err := s.findRun(ctx, o.run)
		if err != nil {
			return err
		}
		stop, err := s.attend(ctx)
		if err != nil {
			return err
		}
		defer stop()
		var each func(board.Entry) error
		if o.json {
			each = func(e board.Entry) error { return s.out.Line(rowOf(e)) }
		}
		v := newView(os.Stdout, o.json)
		if attended(os.Stdout, o.json) {
			a, stop := s.ask(ctx, v)
			defer stop()
			each = a.notice
		}
		err = s.follow(ctx, board.Filter{Run: run}, v, each, func(es []board.Entry) bool {
			return run != "" && !slices.ContainsFunc(es, func(e board.Entry) bool { return !e.State.Terminal() })
		})
		if err == nil && run != "" {
			return app.Ended(roots(v.sorted()))
		}
		if i := app.Interrupted(ctx); i != nil {
			return i
		}
		return err
	})
}
