package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
	Slots   int    // jobs that each does at once
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

// Start lets the crew work until ctx ends. The function it returns waits until every worker has handed back what it ran, and cleans up.
// A worker that cannot work calls cancel with the reason.
func (c Crew) Start(ctx context.Context, b *board.Board, log zerolog.Logger, cancel context.CancelCauseFunc) (wait func() error, err error) {
	if c.Workers == 0 {
		return func() error { return nil }, nil
	}
	if c.Cache == "" {
		c.Cache = CacheDir()
	}
	cache, err := workspace.OpenCache(c.Cache)
	if err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = hostname()
	}
	runner := &agents.Runner{Cache: cache, Policy: c.Policy, Log: log}
	rung := sandbox.Probe().Kill
	var g errgroup.Group
	for i := range c.Workers {
		w := board.Worker{Name: c.Name, Pools: c.Pools, Slots: c.Slots, Version: Version(), Sandbox: rung, Grace: 15 * time.Second}
		if c.Workers > 1 {
			w.Name = fmt.Sprintf("%s/%d", c.Name, i+1)
		}
		g.Go(func() error {
			err := serve(ctx, b, w, runner.Run)
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("worker %s: %w", w.Name, err)
				cancel(err)
			}
			return err
		})
	}
	return func() error {
		err := g.Wait()
		if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
			err = nil // the stop itself, or what the caller knows from the cause
		}
		return err
	}, nil
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
