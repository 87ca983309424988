package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

type killOptions struct {
	boardOptions
	ids    []string
	reason string
}

func newKill() *cli.Command {
	return &cli.Command{
		Name: "kill", Usage: "end jobs with all their children and processes", ArgsUsage: "ID…",
		UsageText: `orchestrator kill ID
orchestrator kill RUN --reason "wrong branch"`,
		Description: `Prints a line for each agent: killed (with proof), was already ended, or unknown when its worker does not answer.
The id of a run kills all its jobs. Exits 1 when the end of any is unknown.`,
		Flags: boardFlags(
			&cli.StringFlag{Name: "reason", Value: "killed by a person", Usage: "kept with each job"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			if c.NArg() == 0 {
				return app.Usage("kill takes job ids")
			}
			return runKill(c.Context, killOptions{b, c.Args().Slice(), c.String("reason")})
		},
	}
}

func runKill(ctx context.Context, o killOptions) error {
	return o.with(ctx, func(s *session) error {
		lines := []board.KillLine{} // never null in JSON
		var failed error
		for _, id := range o.ids {
			jobs, err := s.findJobs(ctx, id)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			for _, j := range jobs {
				ls, err := s.Board.Kill(ctx, j.ID, o.reason)
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("kill job %s: %w", j.ID, err))
				}
				lines = append(lines, ls...)
			}
		}
		if err := printKills(s.out, lines); err != nil {
			return err
		}
		for _, l := range lines {
			if l.Outcome == "unknown" && failed == nil {
				failed = &app.Fault{
					Code: app.ExitFailed, Err: errors.New("it is not known whether all have ended"),
					Hint: "they are flagged: no worker will start or go on with them; kill again to ask once more",
				}
			}
		}
		return failed
	})
}

func printKills(out app.Out, lines []board.KillLine) error {
	if out.JSON {
		return out.Value(lines)
	}
	rows := make([][]string, 0, len(lines))
	for _, l := range lines {
		rows = append(rows, []string{short(l.ID), app.Field(l.Outcome, 60), strconv.Itoa(l.Ended), app.Field(l.Title, 48), app.Field(l.Detail, 200)})
	}
	return out.Table([]string{"ID", "OUTCOME", "PROCESSES ENDED", "TITLE", "DETAIL"}, rows)
}
