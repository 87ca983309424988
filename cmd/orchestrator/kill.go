package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
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
The id of a run kills all its jobs. Exits 1 when the end of any, or of one that held it before, is not proved.`,
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
		var ids []string // killed together: what is killed with another does not fail because of it
		for _, id := range o.ids {
			jobs, err := s.findJobs(ctx, id)
			failed = errors.Join(failed, err)
			for _, j := range jobs {
				ids = append(ids, j.ID)
			}
		}
		if len(ids) > 0 {
			ls, err := s.Board.Kill(ctx, o.reason, ids...)
			failed = errors.Join(failed, err)
			lines = append(lines, ls...)
		}
		if err := printKills(s.out, lines); err != nil {
			return err
		}
		return errors.Join(failed, unsure(lines))
	})
}

// unsure is the error of a kill that is not proved for all: now, and each time it is asked for again.
func unsure(lines []board.KillLine) error {
	open := 0
	for _, l := range lines {
		if l.Outcome == "unknown" || len(l.Unproved) > 0 {
			open++
		}
	}
	if open == 0 {
		return nil
	}
	return &app.Fault{
		Code: app.ExitFailed, Err: fmt.Errorf("it is not known whether all processes of %s have ended", english.Plural(open, "job", "")),
		Hint: "they are flagged: no worker will start or go on with them; kill again to ask once more, or look on the machines of their workers",
	}
}

// doubt is what a line tells beside its outcome.
func doubt(l board.KillLine) string {
	text := l.Detail
	if len(l.Unproved) > 0 {
		if text != "" {
			text += "; "
		}
		text += "not seen to end: earlier holders " + strings.Join(l.Unproved, ", ")
	}
	return text
}

func printKills(out app.Out, lines []board.KillLine) error {
	if out.JSON {
		return out.Value(lines)
	}
	if len(lines) == 0 {
		return nil // what went wrong is said instead
	}
	rows := make([][]string, 0, len(lines))
	for _, l := range lines {
		rows = append(rows, []string{short(l.ID), app.Field(l.Outcome, 60), strconv.Itoa(l.Ended), app.Field(l.Title, 48), app.Field(doubt(l), 200)})
	}
	return out.Table([]string{"ID", "OUTCOME", "PROCESSES ENDED", "TITLE", "DETAIL"}, rows)
}
