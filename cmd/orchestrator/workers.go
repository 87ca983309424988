package main

import (
	"context"
	"fmt"
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
	return o.with(ctx, func(s *session) error {
		ws, err := s.Board.Workers(ctx)
		if err != nil {
			return err
		}
		if o.json {
			return s.out.Value(append([]board.WorkerInfo{}, ws...))
		}
		rows := make([][]string, 0, len(ws))
		for _, w := range ws {
			running := make([]string, 0, len(w.Running))
			for _, id := range w.Running {
				running = append(running, short(id))
			}
			rows = append(rows, []string{
				app.Field(w.ID, 40), app.Field(w.Host, 30), strconv.Itoa(w.PID), app.Field(w.Version, 30), app.Field(strings.Join(w.Pools, ","), 40),
				fmt.Sprintf("%d/%d", len(w.Running), w.Slots), app.Field(w.Sandbox, 20), span(time.Since(w.Started)), app.Field(strings.Join(running, " "), 120),
			})
		}
		return s.out.Table([]string{"WORKER", "HOST", "PID", "VERSION", "POOLS", "SLOTS", "SANDBOX", "UP", "RUNNING"}, rows)
	})
}
