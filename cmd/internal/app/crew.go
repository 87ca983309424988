package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"muster/agents"
	"muster/board"
	"muster/tools/sandbox"
	"muster/tools/workspace"
)

// Crew is workers in this process.
type Crew struct {
	Name    string // for people; empty: the host's
	Workers int    // 0: none
	Slots   int    // jobs that each does at once; below 0: a steward
	Pools   []string
	Cache   string // folder of snapshots and trees; empty: CacheDir
	Policy  sandbox.Policy
}

// CrewFlags are the flags of every command that works itself.
func CrewFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "slots", Value: 4, Usage: "jobs that a worker does at once"},
		SandboxFlag(),
	}
}

// SandboxFlag says how commands are confined.
func SandboxFlag() cli.Flag {
	return &cli.StringFlag{Name: "sandbox", Value: "auto", Usage: "how commands are confined: auto (as well as this machine allows), required or off"}
}

// PolicyOf reads SandboxFlag.
func PolicyOf(c *cli.Context) (sandbox.Policy, error) {
	p := sandbox.Policy{Mode: c.String("sandbox")}
	if !slices.Contains([]string{"auto", "required", "off"}, p.Mode) {
		return p, Usage("--sandbox %q: there are auto, required and off", p.Mode)
	}
	return p, nil
}

// CrewOf reads CrewFlags: one worker, or none with no slots.
func CrewOf(c *cli.Context) (Crew, error) {
	w := Crew{Workers: 1, Slots: c.Int("slots")}
	if w.Slots < 0 || w.Slots > 1_000 {
		return w, Usage("--slots %d: from 0 to 1000", w.Slots)
	}
	if w.Slots == 0 {
		w.Workers = 0
	}
	var err error
	w.Policy, err = PolicyOf(c)
	return w, err
}

// Shift is a crew at work.
type Shift struct {
	ctx   context.Context // of Start
	group errgroup.Group
	once  sync.Once
	over  chan struct{} // closed: nothing is claimed any more
	busy  atomic.Int64  // jobs that run here
}

// Start lets the crew work until ctx ends. A worker that cannot work calls cancel with the reason. Wait for the Shift.
func (c Crew) Start(ctx context.Context, b *board.Board, log zerolog.Logger, cancel context.CancelCauseFunc) (*Shift, error) {
	s := &Shift{ctx: ctx, over: make(chan struct{})}
	if c.Workers == 0 {
		return s, nil
	}
	runner := &agents.Runner{Policy: c.Policy, Log: log}
	if c.Slots > 0 {
		if err := workspace.Check(ctx); err != nil {
			return nil, err // no job could be done
		}
		var err error
		if runner.Cache, err = c.cache(); err != nil {
			return nil, err
		}
	}
	if c.Name == "" {
		c.Name = hostname()
	}
	handler := func(ctx context.Context, l *board.Lease) (board.Result, error) {
		s.busy.Add(1)
		defer s.busy.Add(-1)
		return runner.Run(ctx, l)
	}
	rung := sandbox.Probe().Kill
	for i := range c.Workers {
		w := board.Worker{
			Name: c.Name, Pools: c.Pools, Slots: c.Slots, Version: Version(), Sandbox: rung, Grace: 15 * time.Second, Drain: s.over,
		}
		if c.Workers > 1 {
			w.Name = fmt.Sprintf("%s/%d", c.Name, i+1)
		}
		s.group.Go(func() error {
			err := serve(ctx, b, w, handler)
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("worker %s: %w", w.Name, err)
				cancel(err)
			}
			return err
		})
	}
	return s, nil
}

// cache opens the place for the files of jobs.
func (c Crew) cache() (*workspace.Cache, error) {
	if c.Cache != "" {
		return workspace.OpenCache(c.Cache)
	}
	dir, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return workspace.OpenCache(dir)
}

// Steward is a crew that does no jobs, but looks after those that nobody holds.
func Steward() Crew { return Crew{Workers: 1, Slots: -1} }

// Drain ends the claiming: what runs is finished, nothing new begins.
func (s *Shift) Drain() { s.once.Do(func() { close(s.over) }) }

// Busy is how many jobs run here.
func (s *Shift) Busy() int { return int(s.busy.Load()) }

// Wait waits until every worker has finished (after Drain) or handed back (after the end of ctx) what it ran.
func (s *Shift) Wait() error {
	err := s.group.Wait()
	if s.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(s.ctx))) {
		err = nil // the stop itself, or what the caller knows from the cause
	}
	return err
}

// serve is b.Serve, begun again where the server changes hands while the worker starts.
func serve(ctx context.Context, b *board.Board, w board.Worker, h board.Handler) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for range 40 {
		if err := b.Serve(ctx, w, h); err == nil || ctx.Err() != nil || !moving(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return b.Serve(ctx, w, h)
}

func hostname() string {
	h, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return h
}

// Origin names a folder of this machine for people elsewhere.
func Origin(dir string) string { return hostname() + ":" + dir }
