package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"muster/agents"
	"muster/board"
	"muster/board/policy"
	"muster/cmd/internal/config"
	"muster/tools/workspace"
)

// Crew is workers in this process.
type Crew struct {
	Name    string // for people; empty: the host's
	Workers int    // 0: none
	Slots   int    // jobs that each does at once; below 0: a steward
	Pools   []string
	Cache   string // folder of snapshots and trees; empty: CacheDir
	Host    config.Host
}

// CrewFlags are the flags of every command that works itself. mode is the default of --sandbox.
func CrewFlags(mode string) []cli.Flag {
	return append(config.Flags(mode), &cli.IntFlag{Name: "slots", Value: 4, Usage: "jobs that a worker does at once"})
}

// CrewOf reads CrewFlags: one worker, or none with no slots.
func CrewOf(c *cli.Context, mode string) (Crew, error) {
	w := Crew{Workers: 1, Slots: c.Int("slots")}
	if w.Slots < 0 || w.Slots > 1_000 {
		return w, Usage("--slots %d: from 0 to 1000", w.Slots)
	}
	if w.Slots == 0 {
		w.Workers = 0
	}
	var err error
	w.Host, err = HostOf(c, mode)
	return w, err
}

// HostOf reads config.Flags and the configuration of this machine, for a command that starts what others wrote. What is a secret is hidden from here on, and
// credentials are no longer in the environment: read what a command wants of it before.
func HostOf(c *cli.Context, mode string) (config.Host, error) {
	h, err := config.HostOf(c, mode)
	if err != nil {
		return h, Usage("%w", err)
	}
	if err := hideNamed(h.File); err != nil {
		return h, Usage("%w", err)
	}
	return h, h.File.Secrets.Unset()
}

// hideNamed hides the secrets that a configuration names.
func hideNamed(f config.File) error {
	values, err := f.Secrets.Values()
	if err == nil {
		err = Hide(values)
	}
	if err != nil {
		return fmt.Errorf("%s: secrets: %w", f.Path, err)
	}
	return nil
}

// hideConfigured hides the secrets that the configuration of this machine names, also for a command that only shows. It warns where that
// fails: whoever wants to see the board or to kill a job must be able to.
func hideConfigured(c *cli.Context, w io.Writer) {
	file, err := config.ReadFile(c.String("config"))
	if err == nil {
		err = hideNamed(file)
	}
	if err != nil {
		fmt.Fprintf(w, "warning: secrets that the configuration names are not hidden here: %s\n", oneLine(err.Error()))
	}
}

// works says that the crew does jobs.
func (c Crew) works() bool { return c.Workers > 0 && c.Slots > 0 }

// Ready tells of commands that are not confined, and fails where this machine cannot confine them as the crew must. Ask before anything is
// begun.
func (c Crew) Ready(w io.Writer) error {
	if !c.works() {
		return nil
	}
	c.Host.Warn(w)
	return c.Host.Ready()
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
	runner := &agents.Runner{Policy: c.Host.Policy(), Allows: c.Host.Sandbox, Rules: c.Host.File.RuleSets(), Prune: c.Host.File.Walk.Pruned(), Skills: config.SkillFolders(), Web: c.Host.Web, Log: log}
	found := board.Sandbox{}
	if c.Slots > 0 {
		var err error
		if found, err = c.Host.Found(); err != nil {
			log.Warn().Err(err).Msg("commands are not offered to agents")
		}
		if err := workspace.Check(ctx); err != nil {
			return nil, err // no job could be done
		}
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
	for i := range c.Workers {
		w := board.Worker{
			Name: c.Name, Pools: c.Pools, Slots: c.Slots, Version: Version(), Sandbox: found, Fits: fits(found), Grace: 15 * time.Second, Drain: s.over,
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

// Takes fails for jobs that this crew cannot do: one that asks for more than the host allows is a mistake; one that asks for a better sandbox than
// the machine has would wait for ever where the crew is alone.
func (c Crew) Takes(jobs []board.Job, alone bool) error {
	if !c.works() {
		return nil
	}
	found, _ := c.Host.Found() // a machine below what the host asks for offers no commands, and does the rest
	for _, j := range jobs {
		if _, err := c.Host.Sandbox.Narrow(j.Sandbox); err != nil {
			return Usage("job %q: sandbox: %w", Field(j.Title, 60), err)
		}
		if err := fits(found)(j); err != nil && alone {
			return &Fault{Code: ExitFailed, Err: fmt.Errorf("job %q: %w", Field(j.Title, 60), err), Hint: "nothing was submitted; on a board that other workers serve (--connect) one of them could do it"}
		}
	}
	return nil
}

// fits says which jobs a worker leaves to others: those that ask for a better sandbox than its machine has.
func fits(found board.Sandbox) func(board.Job) error {
	return func(j board.Job) error {
		if policy.Reaches(found.Rung, j.Sandbox.Min) {
			return nil
		}
		return fmt.Errorf("it asks for sandbox %s, and the workers so far have %s; `orchestrator doctor` there tells what is missing", j.Sandbox.Min, found.Rung)
	}
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
