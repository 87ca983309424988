package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

const (
	defaultLimit = 200
	maxLimit     = 10_000
)

type listOptions struct {
	boardOptions
	filter board.Filter
	run    string // as it was given
	parent string
	sort   string
	limit  int    // 0: no limit
	before uint64 // revision of the board
}

func newList() *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list the jobs on the board",
		UsageText: `orchestrator list
orchestrator list --state running --state queued
orchestrator list --run ID --json
orchestrator list --state failed --state lost --since 24h --sort title`,
		Description: `Shows the jobs that changed last, the oldest of them first and children below their parents, and says on stderr where there are more and
how to get them. --sort looks through all of them instead. Filters add up.`,
		Flags: boardFlags(
			&cli.StringFlag{Name: "run", Usage: "only the jobs of the run `ID`"},
			&cli.StringFlag{Name: "parent", Usage: "only the children of the job `ID`"},
			&cli.StringSliceFlag{Name: "state", Usage: "only jobs in this `STATE`; may be repeated"},
			&cli.StringFlag{Name: "pool", Usage: "only jobs for the workers of this `POOL`"},
			&cli.StringFlag{Name: "profile", Usage: "only agents of this `PROFILE`"},
			&cli.StringFlag{Name: "since", Usage: "only jobs created since a `TIME`: an age such as 90m or 24h, or 2026-11-30T18:00:00Z"},
			&cli.StringFlag{Name: "until", Usage: "only jobs created before a `TIME`, in the same forms"},
			&cli.StringFlag{Name: "sort", Usage: "by `KEY`: created, changed, state, title or time (that it took)"},
			&cli.IntFlag{Name: "limit", Value: defaultLimit, Usage: "most `JOBS` to show; 0 for all"},
			&cli.Uint64Flag{Name: "before", Usage: "go on with what changed before a `REVISION`, as a shorter list says"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			o, err := listOptionsOf(c, time.Now())
			if err != nil {
				return err
			}
			return runList(c.Context, o)
		},
	}
}

func listOptionsOf(c *cli.Context, now time.Time) (o listOptions, err error) {
	if o.boardOptions, err = boardOptionsOf(c); err != nil {
		return o, err
	}
	o.run, o.parent, o.limit, o.before = c.String("run"), c.String("parent"), c.Int("limit"), c.Uint64("before")
	o.filter.Pool, o.filter.Profile = c.String("pool"), c.String("profile")
	if o.filter.States, err = statesOf(c.StringSlice("state")); err != nil {
		return o, err
	}
	for flag, at := range map[string]*time.Time{"since": &o.filter.Since, "until": &o.filter.Until} {
		if text := c.String(flag); text != "" {
			if *at, err = timeOf(text, now); err != nil {
				return o, app.Usage("--%s: %w", flag, err)
			}
		}
	}
	if o.sort = c.String("sort"); o.sort != "" && orders[o.sort] == nil {
		return o, app.Usage("--sort %q: there are created, changed, state, title and time", o.sort)
	}
	switch {
	case o.limit < 0 || o.limit > maxLimit:
		return o, app.Usage("--limit %d: from 1 to %d, or 0 for all", o.limit, maxLimit)
	case o.before > 0 && (o.sort != "" || o.limit == 0):
		return o, app.Usage("--before goes with a list that has a limit and is not sorted")
	}
	return o, nil
}

// timeOf reads a time, or an age.
func timeOf(text string, now time.Time) (time.Time, error) {
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	for _, form := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("write an age such as 90m or 24h, a day (2026-11-30) or a time (2026-11-30T18:00:00Z)")
}

// orders are the ways to sort a list.
var orders = map[string]func(a, b board.Entry) int{
	"created": func(a, b board.Entry) int { return a.Created.Compare(b.Created) },
	"changed": func(a, b board.Entry) int { return cmp.Compare(b.Revision, a.Revision) },
	"state": func(a, b board.Entry) int {
		return cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State))
	},
	"title": func(a, b board.Entry) int { return strings.Compare(a.Title, b.Title) },
	"time":  func(a, b board.Entry) int { return cmp.Compare(took(b), took(a)) },
}

// took is how long a job ran, or runs.
func took(e board.Entry) time.Duration {
	switch {
	case e.Started.IsZero():
		return 0
	case e.Ended.IsZero():
		return time.Since(e.Started)
	}
	return e.Ended.Sub(e.Started)
}

// states are all of them, in the order of a job's life.
var states = []board.State{
	board.Blocked, board.Queued, board.Running, board.Waiting, board.Done, board.Partial, board.Failed, board.Killed, board.Lost, board.Denied,
}

func statesOf(names []string) (found []board.State, err error) {
	for _, n := range names {
		if !slices.Contains(states, board.State(n)) {
			return nil, app.Usage("--state %q: there are %v", n, states)
		}
		found = append(found, board.State(n))
	}
	return found, nil
}

func runList(ctx context.Context, o listOptions) error {
	err := o.with(ctx, func(s *session) (err error) {
		if o.filter.Run, err = s.findRun(ctx, o.run); err != nil {
			return err
		}
		if o.parent != "" {
			parent, err := s.Board.Get(ctx, o.parent)
			if err != nil {
				return err
			}
			o.filter.Run, o.filter.Parent = parent.Run, parent.ID
		}
		entries, more, err := s.page(ctx, o)
		if err != nil {
			return err
		}
		if o.json {
			err = s.out.Value(rowsOf(entries))
		} else {
			rows, now := make([][]string, 0, len(entries)), time.Now()
			if o.sort == "" {
				entries = tree(entries)
			}
			for _, e := range entries {
				rows = append(rows, cells(e, now))
			}
			err = s.out.Table(tableHead(), rows)
		}
		if err == nil && more != "" {
			app.Note(os.Stderr, "%s", more)
		}
		return err
	})
	if o.conn.Data == "" && o.run == "" && o.parent == "" && errors.Is(err, app.ErrNoBoard) {
		if o.json {
			return app.Stdout(true).Value(rowsOf(nil))
		}
		return app.Stdout(false).Table(tableHead(), nil) // a project without a board yet has no jobs
	}
	return err
}

// page is what list shows. more tells what it leaves out.
func (s *session) page(ctx context.Context, o listOptions) (entries []board.Entry, more string, err error) {
	if o.sort != "" || o.limit == 0 {
		if entries, err = s.Board.List(ctx, o.filter); err != nil {
			return nil, "", err
		}
		if o.sort != "" {
			slices.SortStableFunc(entries, orders[o.sort])
		}
		if all := len(entries); o.limit > 0 && all > o.limit {
			return entries[:o.limit], humanize.Comma(int64(o.limit)) + " of " + humanize.Comma(int64(all)) + " jobs are shown; --limit 0 shows all", nil
		}
		return entries, "", nil
	}
	entries, total, next, err := s.Board.Page(ctx, o.filter, o.before, o.limit)
	if err != nil {
		return nil, "", err
	}
	if next != 0 {
		more = humanize.Comma(int64(len(entries))) + " jobs are shown, of a board of " + humanize.Comma(int64(total)) +
			"; what changed before those: the same with --before " + strconv.FormatUint(next, 10)
	}
	slices.SortFunc(entries, func(a, b board.Entry) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return entries, more, nil
}
