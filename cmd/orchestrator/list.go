package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

type listOptions struct {
	boardOptions
	run    string
	states []board.State
}

func newList() *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list the jobs on the board",
		UsageText: `orchestrator list
orchestrator list --state running --state queued
orchestrator list --run ID --json`,
		Flags: boardFlags(
			&cli.StringFlag{Name: "run", Usage: "only the jobs of the run `ID`"},
			&cli.StringSliceFlag{Name: "state", Usage: "only jobs in this `STATE`; may be repeated"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			o := listOptions{boardOptions: b, run: c.String("run")}
			if o.states, err = statesOf(c.StringSlice("state")); err != nil {
				return err
			}
			return runList(c.Context, o)
		},
	}
}

func statesOf(names []string) ([]board.State, error) {
	all := []board.State{
		board.Blocked, board.Queued, board.Running, board.Waiting, board.Done, board.Partial, board.Failed, board.Killed, board.Lost, board.Denied,
	}
	var states []board.State
	for _, n := range names {
		if !slices.Contains(all, board.State(n)) {
			return nil, app.Usage("--state %q: there are %v", n, all)
		}
		states = append(states, board.State(n))
	}
	return states, nil
}

func runList(ctx context.Context, o listOptions) error {
	err := o.with(ctx, func(s *session) error {
		run, err := s.findRun(ctx, o.run)
		if err != nil {
			return err
		}
		entries, err := s.Board.List(ctx, board.Filter{Run: run, States: o.states})
		if err != nil {
			return err
		}
		if o.json {
			return s.out.Value(rowsOf(entries))
		}
		rows := make([][]string, 0, len(entries))
		now := time.Now()
		for _, e := range tree(entries) {
			rows = append(rows, cells(e, now))
		}
		return s.out.Table(tableHead(), rows)
	})
	if o.conn.Data == "" && o.run == "" && errors.Is(err, app.ErrNoBoard) {
		if o.json {
			return app.Stdout(true).Value(rowsOf(nil))
		}
		return app.Stdout(false).Table(tableHead(), nil) // a project without a board yet has no jobs
	}
	return err
}
