package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

func newWorkers() *cli.Command {
	return &cli.Command{
		Name: "workers", Usage: "list the workers that are alive",
		UsageText: `orchestrator workers
orchestrator workers --connect nats://host:4222 --json`,
		Flags: boardFlags(app.JSONFlag()),
		Action: func(c *cli.Context) error {
			o, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			return runWorkers(c.Context, o)
		},
	}
}

func runWorkers(ctx context.Context, o boardOptions) error {
	head := []string{"WORKER", "HOST", "PID", "VERSION", "POOLS", "RUNNING", "SLOTS", "WAITING", "SANDBOX", "KILL", "MEMORY", "OPEN", "UP", "JOBS"}
	err := o.with(ctx, func(s *session) error {
		ws, err := s.Board.Workers(ctx)
		if err != nil {
			return err
		}
		if o.json {
			return s.out.Value(append([]board.WorkerInfo{}, ws...))
		}
		parked, err := s.Board.List(ctx, board.Filter{States: []board.State{board.Waiting}})
		if err != nil {
			return err
		}
		rows := make([][]string, 0, len(ws))
		for _, w := range ws {
			jobs := make([]string, 0, len(w.Running))
			waiting := 0 // for children: such a job holds no slot
			for _, id := range w.Running {
				jobs = append(jobs, short(id))
				if slices.ContainsFunc(parked, func(e board.Entry) bool { return e.ID == id }) {
					waiting++
				}
			}
			rows = append(rows, []string{
				app.Field(w.ID, 40), app.Field(w.Host, 30), strconv.Itoa(w.PID), app.Field(w.Version, 30), app.Field(strings.Join(w.Pools, ","), 40),
				strconv.Itoa(len(w.Running) - waiting), strconv.Itoa(w.Slots), strconv.Itoa(waiting), dash(app.Field(w.Sandbox.Rung, 20)), dash(app.Field(w.Sandbox.Kill, 20)),
				dash(app.Field(w.Sandbox.Memory, 20)), dash(app.Field(strings.Join(w.Sandbox.Open, ","), 80)), span(time.Since(w.Started)), app.Field(strings.Join(jobs, " "), 120),
			})
		}
		return s.out.Table(head, rows)
	})
	if o.conn.Data == "" && errors.Is(err, app.ErrNoBoard) {
		if o.json {
			return app.Stdout(true).Value([]board.WorkerInfo{})
		}
		return app.Stdout(false).Table(head, nil) // a project without a board yet has none
	}
	return err
}
