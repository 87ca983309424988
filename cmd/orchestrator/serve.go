package main

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"muster/cmd/internal/app"
)

type serveOptions struct {
	boardOptions
	crew app.Crew
}

// serving is what serve --json prints once the board is up.
type serving struct {
	URL   string `json:"url"`
	NKey  string `json:"nkey,omitempty"` // file that workers on this machine connect with
	Data  string `json:"data,omitempty"`
	Slots int    `json:"slots"`
}

func newServe() *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "keep the board and its workers up",
		UsageText: `orchestrator serve
orchestrator serve --slots 0                       (the server only)
orchestrator serve --connect nats://host:4222      (a board on another server)`,
		Description: `Its workers start only where commands can be confined at --sandbox-min (full) or better; orchestrator doctor tells what a
machine has. Prints how workers connect, then works until SIGINT, SIGTERM or SIGHUP: the first hands back what runs and stops, the second ends at once.`,
		Flags: boardFlags(append(app.CrewFlags("required"),
			&cli.StringSliceFlag{Name: "pool", Usage: "`POOL` that its workers serve; may be repeated (default: default)"},
			app.JSONFlag())...),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			w, err := app.CrewOf(c, "required")
			if err != nil {
				return err
			}
			w.Pools = c.StringSlice("pool")
			if w.Slots == 0 {
				w.Workers, w.Slots = 1, -1 // somebody must look after what nobody holds
			}
			return runServe(c.Context, serveOptions{b, w})
		},
	}
}

func runServe(ctx context.Context, o serveOptions) error {
	if err := o.crew.Ready(os.Stderr); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return o.with(ctx, func(s *session) error {
		shift, err := o.crew.Start(ctx, s.Board, s.log, cancel)
		if err != nil {
			return err
		}
		if err := s.announce(o.crew); err != nil {
			cancel(err)
		}
		<-ctx.Done()
		if err := shift.Wait(); err != nil {
			return err
		}
		if app.Interrupted(ctx) != nil {
			return nil // a stop that was asked for is this command's normal end
		}
		return context.Cause(ctx)
	})
}

// announce says where the board is and how a worker gets to it.
func (s *session) announce(c app.Crew) error {
	v := serving{URL: s.Where, Data: s.Data, Slots: max(c.Slots, 0)}
	if s.Hold != nil {
		v.NKey = s.Hold.KeyFile
	}
	if s.out.JSON {
		return s.out.Line(v)
	}
	text := fmt.Sprintf("board on %s with %d slots here\n", v.URL, v.Slots)
	if v.NKey != "" {
		text += fmt.Sprintf("kept in %s\nmore workers on this machine: worker --connect %s --nkey %s%s\n", visible(v.Data), v.URL, quote(v.NKey), s.conn.Settings())
	} else if s.conn.Env {
		text += fmt.Sprintf("more workers: worker%s, with the same NATS_URL\n", s.conn.Settings())
	} else {
		text += fmt.Sprintf("more workers: worker --connect %s%s\n", v.URL, s.conn.Settings())
	}
	return s.out.Text(text)
}
