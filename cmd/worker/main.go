package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"muster/cmd/internal/app"
	"muster/tools/sandbox"
)

func main() {
	sandbox.Main()
	os.Exit(app.Run(context.Background(), newProgram(), os.Args))
}

type workerOptions struct {
	conn  app.Connection
	crew  app.Crew
	level string
}

func newProgram() *cli.App {
	return &cli.App{
		Name:  "worker",
		Usage: "do the jobs of a board on a NATS server",
		UsageText: `worker --connect nats://host:4222
worker --connect nats://host:4222 --slots 8 --pool gpu --pool default
worker --connect nats://127.0.0.1:PORT --nkey DATA/user.nk     (orchestrator serve prints this line)`,
		Description: `Starts only where commands can be confined at --sandbox-min (full) or better; orchestrator doctor tells what a machine has.
The first SIGINT, SIGTERM or SIGHUP hands back what runs and stops, within 20 s; the second ends at once.

Exit codes: 0 stopped as asked, 1 failed, 2 usage, 5 cannot connect, 129, 130 or 143 ended at once.`,
		Flags: append(append(app.ConnectFlags(30*time.Second), app.CrewFlags("required")...),
			&cli.StringSliceFlag{Name: "pool", Usage: "`POOL` whose jobs it does; may be repeated (default: default)"},
			&cli.StringFlag{Name: "name", Usage: "shown on the board (default: the host's name)"},
			&cli.StringFlag{Name: "cache", Usage: "`FOLDER` of snapshots and workspaces (default: muster in the user's cache folder)"},
			app.LogFlag("info"),
			&cli.BoolFlag{Name: "version", Usage: "print the version"},
		),
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return app.Stdout(false).Text("muster " + app.Version() + "\n")
			}
			o := workerOptions{level: c.String("log-level")}
			var err error
			if o.conn, err = app.ConnectionOf(c); err != nil {
				return err
			}
			if o.conn.URL == "" {
				return app.Usage("which server? give --connect nats://HOST or set NATS_URL")
			}
			if o.crew, err = app.CrewOf(c, "required"); err != nil {
				return err
			}
			if o.crew.Slots == 0 {
				return app.Usage("--slots 0: a worker needs at least one")
			}
			o.crew.Name, o.crew.Cache, o.crew.Pools = c.String("name"), c.String("cache"), c.StringSlice("pool")
			return runWorker(c.Context, o)
		},
	}
}

func runWorker(ctx context.Context, o workerOptions) error {
	log, _, err := app.Logger(os.Stderr, o.level)
	if err != nil {
		return err
	}
	if err := o.crew.Ready(os.Stderr); err != nil {
		return err
	}
	link, err := o.conn.Open(ctx, app.Project{}, log, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shift, err := o.crew.Start(ctx, link.Board, log, cancel)
	if err != nil {
		return errors.Join(fmt.Errorf("start worker: %w", err), link.Close())
	}
	found, _ := o.crew.Host.Found() // what is lacking was logged
	log.Info().Str("server", link.Where).Int("slots", o.crew.Slots).Strs("pools", o.crew.Pools).Str("sandbox", found.Rung).
		Str("version", app.Version()).Msg("working")
	<-ctx.Done()
	log.Info().Msg("stopping: handing back what runs")
	err = shift.Wait()
	if cerr := link.Close(); err == nil {
		err = cerr
	}
	if err == nil && app.Interrupted(ctx) == nil {
		err = context.Cause(ctx)
	}
	return err
}
