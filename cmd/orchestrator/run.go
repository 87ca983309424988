package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

type runOptions struct {
	boardOptions
	submission
	crew   app.Crew
	quiet  bool
	detach bool
}

// report is what run and submit print with --json.
type report struct {
	Run     string      `json:"run"`
	Jobs    []row       `json:"jobs"`
	Results []collected `json:"results,omitempty"` // of the jobs that nothing comes after
	leftOut
}

func newRun() *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "do a task: submit it, show the board live, print the result", ArgsUsage: "[PROMPT]",
		UsageText: `orchestrator run --plan examples/audit.yaml --dir .
orchestrator run "review the error handling" --model script:turns.json
orchestrator run --connect nats://host:4222 --plan plan.yaml   (workers elsewhere do it)
echo "a long prompt" | orchestrator run - --model script:turns.json`,
		Description: `The result of the jobs that nothing comes after goes to stdout, the board to stderr. Jobs work on a private copy of --dir
as it is now; what they change is kept as a patch with their result (orchestrator collect ID --patch FILE).

Commands of agents are confined, without a network unless --network or the configuration of this machine says otherwise; the
sandbox and rules of a plan narrow that further. These flags are for the workers in this process; where there are none (--connect,
--detach) --sandbox-min, --network and --allow-domain go with the jobs instead. orchestrator doctor tells what this machine has.

When its own jobs have ended it prints their result, claims no more, and finishes what it still runs for others.
On a terminal it asks you what an agent may not do unasked (--ask-for 0 denies it at once, as without a terminal).
Ctrl-C once: no new job starts, what runs is handed back to the queue, the board stays. Twice: at once.`,
		Flags: boardFlags(append(append(submissionFlags(), app.CrewFlags("auto")...),
			&cli.IntFlag{Name: "workers", DefaultText: "1, or 0 with --connect", Usage: "workers in this process"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no live board"},
			&cli.BoolFlag{Name: "detach", Usage: "submit only, and print the ids"},
			app.JSONFlag())...),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			o := runOptions{boardOptions: b, quiet: c.Bool("quiet"), detach: c.Bool("detach")}
			if o.crew, err = app.CrewOf(c, "auto"); err != nil {
				return err
			}
			switch n := c.Int("workers"); {
			case n < 0 || n > 64:
				return app.Usage("--workers %d: from 0 to 64", n)
			case c.IsSet("workers"):
				o.crew.Workers = min(n, n*o.crew.Slots)
			case o.conn.URL != "":
				o.crew.Workers = 0
			}
			if o.submission, err = submissionOf(c); err != nil {
				return err
			}
			o.submission.quiet = o.quiet
			if !c.IsSet("ask-for") && (o.detach || attended(os.Stderr, o.quiet)) {
				o.job.AskFor = defaultAskFor
			}
			if o.crew.Workers == 0 || o.detach {
				if c.IsSet("sandbox") {
					return app.Usage("--sandbox is for workers in this process, and there are none: --sandbox-min goes with the jobs to those elsewhere")
				}
				o.job.Sandbox = o.crew.Host.Job()
			}
			if o.job.Pool != "" {
				o.crew.Pools = []string{o.job.Pool}
			}
			if o.detach {
				return runSubmit(c.Context, submitOptions{o.boardOptions, o.submission})
			}
			return runRun(c.Context, o)
		},
	}
}

func runRun(ctx context.Context, o runOptions) error {
	p, err := app.FindProject(o.dir)
	if err != nil {
		return err
	}
	jobs, err := o.jobs(ctx, p)
	if err != nil {
		return err
	}
	if err := p.Direct(o.crew.Host.File); err != nil && o.inPlace {
		return app.Usage("--in-place: %w", err)
	}
	if err := o.crew.Ready(os.Stderr); err != nil {
		return err
	}
	if err := o.crew.Takes(jobs, o.conn.URL == ""); err != nil {
		return err
	}
	return o.with(ctx, func(s *session) error {
		entries, out, err := s.submit(ctx, o.submission, jobs)
		if err != nil {
			return err
		}
		r := report{Run: entries[0].Run, leftOut: out}
		begun := time.Now()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if o.crew.Workers == 0 && s.Hold != nil {
			o.crew = app.Steward()
		}
		shift, err := o.crew.Start(ctx, s.Board, s.log, cancel)
		if err != nil {
			return err
		}
		v := newView(os.Stderr, o.quiet)
		var each func(board.Entry) error
		if o.job.AskFor > 0 && attended(os.Stderr, o.quiet) {
			a, stop := s.ask(ctx, v)
			defer stop()
			each = a.notice
		}
		if err := s.await(ctx, entries, v, each); err != nil {
			cancel(nil)
			err = errors.Join(err, shift.Wait())
			s.footer(os.Stderr, r.Run, v.sorted(), begun, o.quiet)
			return err
		}
		shift.Drain()
		if err := s.deliver(ctx, o, jobs, r, v); err != nil {
			cancel(nil)
			return errors.Join(err, shift.Wait())
		}
		s.footer(os.Stderr, r.Run, v.sorted(), begun, o.quiet)
		if err := finish(shift); err != nil {
			return err
		}
		return app.Ended(roots(v.sorted()))
	})
}

// await shows the run until every submitted job has ended.
func (s *session) await(ctx context.Context, submitted []board.Entry, v *view, each func(board.Entry) error) error {
	err := s.follow(ctx, board.Filter{Run: submitted[0].Run}, v, each, func(es []board.Entry) bool {
		left := map[string]bool{}
		for _, e := range submitted {
			left[e.ID] = true
		}
		for _, e := range es {
			if e.State.Terminal() {
				delete(left, e.ID)
			}
		}
		return len(left) == 0
	})
	if err == nil {
		err = s.settle(ctx, submitted[0].Run, v)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// settleTime bounds how long a run waits for the children of what has ended: they are being killed, but a silent worker answers late.
const settleTime = 10 * time.Second

// settle waits until the descendants of a run's jobs have ended too, but for detached ones, which may go on.
func (s *session) settle(ctx context.Context, run string, v *view) error {
	bounded, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	err := s.follow(bounded, board.Filter{Run: run}, v, nil, func(es []board.Entry) bool {
		detached := map[string]bool{}
		for _, e := range es {
			detached[e.ID] = e.Detach
		}
		return !slices.ContainsFunc(es, func(e board.Entry) bool {
			free := e.Detach || slices.ContainsFunc(e.Path, func(id string) bool { return detached[id] })
			return e.Parent != "" && !free && !e.State.Terminal()
		})
	})
	if bounded.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// deliver prints the results.
func (s *session) deliver(ctx context.Context, o runOptions, jobs []board.Job, r report, v *view) error {
	last, err := s.results(ctx, jobs, v)
	if err != nil {
		return err
	}
	if o.json {
		for _, c := range last {
			c.warn()
		}
		r.Jobs, r.Results = rowsOf(v.sorted()), last
		return s.out.Value(r)
	}
	for _, c := range last {
		if c.Text != "" && !strings.HasSuffix(c.Text, "\n") {
			c.Text += "\n" // for people; collect gives it as it is
		}
		if err := s.print(c, len(last) > 1); err != nil {
			return err
		}
	}
	return nil
}

// finish lets a crew that claims no more end what it still runs for others, and says so where that is not done at once.
func finish(shift *app.Shift) error {
	done := make(chan error, 1)
	go func() { done <- shift.Wait() }()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		if n := shift.Busy(); n > 0 {
			app.Note(os.Stderr, "finishing %s of other runs; Ctrl-C hands them back", english.Plural(n, "job", ""))
			return <-done
		}
	}
}

// results collects the jobs that no other comes after.
func (s *session) results(ctx context.Context, jobs []board.Job, v *view) ([]collected, error) {
	followed := map[string]bool{}
	for _, j := range jobs {
		for _, id := range j.After {
			followed[id] = true
		}
	}
	var last []collected
	for _, e := range v.sorted() {
		submitted := slices.ContainsFunc(jobs, func(j board.Job) bool { return j.ID == e.ID })
		if !submitted || followed[e.ID] {
			continue
		}
		c, err := s.collect(ctx, e)
		if err != nil {
			return nil, err
		}
		last = append(last, c)
	}
	return last, nil
}

func roots(entries []board.Entry) []board.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e board.Entry) bool { return e.Parent != "" })
}

// footer tells a person how it went, where it is kept and what to type next.
func (s *session) footer(w io.Writer, run string, entries []board.Entry, begun time.Time, quiet bool) {
	if quiet {
		return
	}
	app.Note(w, "%s in %s; run %s", counts(entries), span(time.Since(begun)), run)
	unfinished := false
	for _, e := range entries {
		switch {
		case !e.State.Terminal():
			unfinished = true
		case e.State != board.Done:
			why := e.Preview
			if len(e.Reasons) > 0 {
				why = e.Reasons[len(e.Reasons)-1]
			}
			app.Note(w, "  %s %s %s: %s", e.State, short(e.ID), app.Field(e.Title, 60), app.Field(why, 200))
		}
	}
	last := roots(entries)
	if len(last) == 0 {
		return
	}
	if unfinished {
		app.Note(w, "what has not ended stays on the board: %s goes on, %s ends it", s.command("serve"), s.command("kill", short(run)))
		return
	}
	app.Note(w, "kept in %s; look closer: %s", s.kept(), s.command("show", short(last[len(last)-1].ID)))
}

// kept says where the board is.
func (s *session) kept() string {
	if s.Data != "" {
		return s.Data
	}
	return s.Where
}
