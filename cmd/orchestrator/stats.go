package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

// stats is what stats --json prints. Times are in nanoseconds.
type stats struct {
	Jobs    int                 `json:"jobs"`
	Runs    int                 `json:"runs"`
	States  map[board.State]int `json:"states"`
	Pools   map[string]*lane    `json:"pools"`
	Workers int                 `json:"workers"`
	Usage   board.Usage         `json:"usage"`
	Waited  spread              `json:"waited_ns"` // from created to first claimed, of those that were
	Took    spread              `json:"took_ns"`   // from first claimed to ended, of those that have
	Tries   int                 `json:"failed_attempts"`
	Store   map[string]size     `json:"store"` // by part: log, queue, entries, artifacts, …
}

// size is what a part of the board takes in the store.
type size struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// lane is a pool.
type lane struct {
	Queued  int           `json:"queued"`
	Oldest  time.Duration `json:"oldest_queued_ns"`
	Running int           `json:"running"`
	Slots   int           `json:"slots"` // of live workers that serve it
}

// spread is of many durations.
type spread struct {
	Count  int           `json:"count"`
	Median time.Duration `json:"median"`
	P90    time.Duration `json:"p90"`
	Max    time.Duration `json:"max"`
}

type statsOptions struct {
	boardOptions
	run string
}

func newStats() *cli.Command {
	return &cli.Command{
		Name: "stats", Usage: "sum up the board: jobs by state, queues, times, use and size",
		UsageText: `orchestrator stats
orchestrator stats --run ID --json`,
		Flags: boardFlags(&cli.StringFlag{Name: "run", Usage: "only the jobs of the run `ID`"}, app.JSONFlag()),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			if c.NArg() > 0 {
				return app.Usage("stats takes no arguments")
			}
			return runStats(c.Context, statsOptions{b, c.String("run")})
		},
	}
}

func runStats(ctx context.Context, o statsOptions) error {
	return o.with(ctx, func(s *session) error {
		run, err := s.findRun(ctx, o.run)
		if err != nil {
			return err
		}
		st, err := s.sum(ctx, run)
		if err != nil {
			return err
		}
		if o.json {
			return s.out.Value(st)
		}
		return s.out.Table(nil, st.rows())
	})
}

// sum goes once through all jobs of a run, or of the board.
func (s *session) sum(ctx context.Context, run string) (*stats, error) {
	st := &stats{States: map[board.State]int{}, Pools: map[string]*lane{}}
	now, runs := time.Now(), map[string]bool{}
	var waited, took []time.Duration
	err := s.Board.Each(ctx, board.Filter{Run: run}, func(e board.Entry) {
		st.Jobs++
		runs[e.Run] = true
		st.States[e.State]++
		st.Tries += len(e.Reasons)
		st.Usage.InputTokens += e.Usage.InputTokens
		st.Usage.OutputTokens += e.Usage.OutputTokens
		st.Usage.MicroDollars += e.Usage.MicroDollars
		st.Usage.Turns += e.Usage.Turns
		st.Usage.ToolCalls += e.Usage.ToolCalls
		if !e.Started.IsZero() {
			waited = append(waited, e.Started.Sub(e.Created))
		}
		if !e.Ended.IsZero() && !e.Started.IsZero() {
			took = append(took, e.Ended.Sub(e.Started))
		}
		switch e.State {
		case board.Queued:
			l := st.pool(e.Pool)
			l.Queued++
			l.Oldest = max(l.Oldest, now.Sub(e.Queued))
		case board.Running:
			st.pool(e.Pool).Running++
		}
	})
	if err != nil {
		return nil, err
	}
	ws, err := s.Board.Workers(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range ws {
		if w.Slots <= 0 {
			continue // it looks after the board only
		}
		st.Workers++
		for _, p := range w.Pools {
			st.pool(p).Slots += w.Slots
		}
	}
	st.Runs, st.Waited, st.Took = len(runs), spreadOf(waited), spreadOf(took)
	messages, bytes, err := s.Board.Store(ctx)
	st.Store = map[string]size{}
	for part, n := range messages {
		st.Store[part] = size{n, bytes[part]}
	}
	return st, err
}

func (st *stats) pool(name string) *lane {
	if st.Pools[name] == nil {
		st.Pools[name] = &lane{}
	}
	return st.Pools[name]
}

func spreadOf(all []time.Duration) spread {
	if len(all) == 0 {
		return spread{}
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[(len(all)-1)*percent/100] }
	return spread{Count: len(all), Median: at(50), P90: at(90), Max: all[len(all)-1]}
}

func (st *stats) rows() [][]string {
	byState := ""
	for _, s := range states {
		if n := st.States[s]; n > 0 {
			if byState != "" {
				byState += ", "
			}
			byState += humanize.Comma(int64(n)) + " " + string(s)
		}
	}
	rows := [][]string{
		{"jobs", humanize.Comma(int64(st.Jobs)) + " of " + humanize.Comma(int64(st.Runs)) + " runs"},
		{"states", dash(byState)},
		{"attempts", strconv.Itoa(st.Tries) + " failed (of each job the last five are known)"},
		{"waited", st.Waited.text()},
		{"took", st.Took.text()},
		{"use", humanize.Comma(st.Usage.Turns) + " turns, " + humanize.Comma(st.Usage.ToolCalls) + " tool calls, " + humanize.Comma(st.Usage.InputTokens) + " tokens in, " + humanize.Comma(st.Usage.OutputTokens) + " out"},
		{"workers", strconv.Itoa(st.Workers)},
	}
	for _, name := range slices.Sorted(maps.Keys(st.Pools)) {
		l := st.Pools[name]
		text := strconv.Itoa(l.Running) + " running on " + strconv.Itoa(l.Slots) + " slots, " + humanize.Comma(int64(l.Queued)) + " queued"
		if l.Queued > 0 {
			text += ", the oldest for " + span(l.Oldest)
		}
		rows = append(rows, []string{"pool " + app.Field(name, 40), text})
	}
	for _, part := range slices.Sorted(maps.Keys(st.Store)) {
		size := st.Store[part]
		rows = append(rows, []string{part, humanize.Comma(int64(size.Messages)) + " messages, " + humanize.IBytes(size.Bytes)})
	}
	return rows
}

func (s spread) text() string {
	if s.Count == 0 {
		return "-"
	}
	return "median " + span(s.Median) + ", 90 % under " + span(s.P90) + ", at most " + span(s.Max)
}
