package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

type logsOptions struct {
	boardOptions
	id     string
	follow bool
}

func newLogs() *cli.Command {
	return &cli.Command{
		Name: "logs", Aliases: []string{"events"}, Usage: "print everything that happened to a job", ArgsUsage: "ID",
		UsageText: `orchestrator logs ID
orchestrator logs -f ID
orchestrator logs ID --json | jq .kind`,
		Description: "--json prints an event a line, whole; the text form shows the first 400 characters of each.",
		Flags: boardFlags(
			&cli.StringFlag{Name: "job", Usage: "the `ID`, if not as an argument"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the job has ended"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			id := c.String("job")
			if id == "" && c.NArg() == 1 {
				id = c.Args().First()
			} else if id == "" || c.NArg() > 0 {
				return app.Usage("logs takes one job id")
			}
			return runLogs(c.Context, logsOptions{b, id, c.Bool("follow")})
		},
	}
}

func runLogs(ctx context.Context, o logsOptions) error {
	return o.with(ctx, func(s *session) error {
		e, err := s.Board.Get(ctx, o.id)
		if err != nil {
			return err
		}
		if o.follow && !e.State.Terminal() {
			stop, err := s.attend(ctx)
			if err != nil {
				return err
			}
			defer stop()
		}
		return s.Board.Events(ctx, e.ID, o.follow, func(ev board.Event) error {
			if ev = s.Board.ShownEvent(ev); o.json {
				return s.out.Line(ev)
			}
			return s.out.Text(eventLine(ev))
		})
	})
}

// plainJSON writes <, > and & as they are, which encoders escape for the sake of web pages.
func plainJSON(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			return b.String() + s
		}
		b.WriteString(s[:i])
		s = s[i:]
		escape, n := s[:2], 2
		if len(s) >= 6 {
			switch s[:6] {
			case `\u003c`:
				escape, n = "<", 6
			case `\u003e`:
				escape, n = ">", 6
			case `\u0026`:
				escape, n = "&", 6
			}
		}
		b.WriteString(escape)
		s = s[n:]
	}
}

func eventLine(ev board.Event) string {
	var data bytes.Buffer
	if err := json.Compact(&data, ev.Data); err != nil {
		data.Reset()
		data.Write(ev.Data)
	}
	return fmt.Sprintf("%s  e%d  %-14s %s\n", ev.Time.Local().Format("15:04:05.000"), ev.Epoch, app.Field(ev.Kind, 40), app.Field(plainJSON(data.String()), 400))
}
