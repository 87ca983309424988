package board

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	minKillWait = 4 * time.Second
	maxKillWait = 15 * time.Second // for the proof of a holder
)

// KillLine is the answer of a kill for one agent of the tree.
type KillLine struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Outcome string `json:"outcome"` // "killed", "was already <state>", "unknown"
	Ended   int    `json:"ended"`   // processes ended
	Detail  string `json:"detail,omitempty"`

	// Unproved names earlier holders that fell silent and whose processes nobody has seen end; Outcome is about the last holder.
	Unproved []string `json:"unproved,omitempty"`
}

// Kill kills jobs and all their descendants, detached ones too, and answers with what is proved, ancestors first. All are flagged before
// any is ended, so that of jobs that are killed together none runs or fails because of another. Killing twice is harmless. It waits for
// the holders' proof twice the lease, 4 s at least and 15 s at most, for all together; who did not answer by then is "unknown", and dies
// when its worker sees the board again. So is at once whose worker has no heartbeat.
func (b *Board) Kill(ctx context.Context, reason string, ids ...string) ([]KillLine, error) {
	var roots []Entry
	for _, id := range ids {
		e, err := b.Get(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("kill: %w", err)
		}
		roots = append(roots, e)
	}
	return b.killTrees(ctx, roots, cmp.Or(reason, "by request"))
}

const (
	killWidth = 32          // jobs that are dealt with side by side
	killLook  = time.Second // between two looks at the heartbeats
)

// killing is one call of killTrees.
type killing struct {
	b      *Board
	reason string
	roots  map[string]bool
	tree   map[string]Entry // as last seen
	lines  map[string]KillLine
	struck map[string]bool // was alive when this call came to it
}

// killTrees kills jobs and their descendants. It watches their runs meanwhile, so that a child that is born in the race is seen too; one
// that is born later dies at its claim.
func (b *Board) killTrees(ctx context.Context, roots []Entry, reason string) ([]KillLine, error) {
	k := &killing{
		b: b, reason: reason, roots: map[string]bool{}, tree: map[string]Entry{}, lines: map[string]KillLine{}, struck: map[string]bool{},
	}
	runs := map[string]bool{}
	for _, r := range roots {
		k.roots[r.ID], runs[Filter{Run: r.Run}.keys()[0]] = true, true
	}
	if len(roots) == 0 {
		return nil, nil
	}
	wctx, cancel := context.WithCancel(ctx)
	changes, synced, done := make(chan Entry), make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		done <- b.watchEntries(wctx, slices.Collect(maps.Keys(runs)), func() error { close(synced); return nil }, func(e Entry) error {
			select {
			case changes <- e:
				return nil
			case <-wctx.Done():
				return context.Cause(wctx)
			}
		})
	}()
	err := k.run(ctx, changes, synced, done)
	cancel()
	for range done { // until the watch has ended
	}
	if err != nil {
		return nil, fmt.Errorf("kill: %w", err)
	}
	lines := make([]KillLine, 0, len(k.tree))
	for _, e := range k.sorted() {
		line, ok := k.lines[e.ID]
		if !ok {
			line = unknown(e, fmt.Sprintf("worker %s has not confirmed that it ended, silent about it since %s", e.Worker, e.heard().Format(time.RFC3339)))
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// run deals with what the watch brings until every agent has its line or the time is over.
func (k *killing) run(ctx context.Context, changes <-chan Entry, synced <-chan struct{}, done <-chan error) error {
	look := time.NewTicker(killLook)
	defer look.Stop()
	var over <-chan time.Time
	for over == nil || len(k.lines) < len(k.tree) {
		select {
		case err := <-done:
			return errors.Join(errors.New("watch ended"), err)
		case <-synced:
			if err := k.strikeAll(ctx); err != nil {
				return err
			}
			k.silent(ctx)
			synced, over = nil, time.After(min(maxKillWait, max(minKillWait, 2*k.b.ackWait)))
		case e := <-changes:
			if !k.belongs(e) || e.Revision < k.tree[e.ID].Revision {
				continue
			}
			k.tree[e.ID] = e
			if over == nil {
				continue
			}
			if err := k.strike(ctx, e); err != nil {
				return err
			}
		case <-look.C:
			if over != nil {
				k.silent(ctx)
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func unknown(e Entry, why string) KillLine {
	return KillLine{ID: e.ID, Title: e.Title, Outcome: "unknown", Detail: why}
}

// strikeAll flags the trees, ancestors first, and then deals with all agents side by side.
func (k *killing) strikeAll(ctx context.Context) error {
	all := k.sorted()
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(e Entry) bool { return len(e.Path) > len(all[0].Path) })
		if n < 0 {
			n = len(all)
		}
		err := k.each(all[:n], func(e Entry) (Entry, error) { return k.b.flag(ctx, e, k.reason) })
		if err != nil {
			return err
		}
		all = all[n:]
	}
	if err := k.each(k.sorted(), func(e Entry) (Entry, error) { return k.b.enact(ctx, e) }); err != nil {
		return err
	}
	for _, e := range k.sorted() {
		if e.State.Terminal() {
			if err := k.note(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// each takes a step for every agent that lives, some of them at once.
func (k *killing) each(agents []Entry, step func(Entry) (Entry, error)) error {
	stored := make([]Entry, len(agents))
	var g errgroup.Group
	g.SetLimit(killWidth)
	for i, e := range agents {
		if e.State.Terminal() {
			continue
		}
		k.struck[e.ID] = true
		g.Go(func() (err error) {
			stored[i], err = step(e)
			return err
		})
	}
	err := g.Wait()
	for _, e := range stored {
		if e.ID != "" {
			k.tree[e.ID] = e
		}
	}
	return err
}

// silent writes the lines of those whose workers have no heartbeat: no answer will come.
func (k *killing) silent(ctx context.Context) {
	lctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	workers, err := k.b.Workers(lctx)
	if err != nil {
		k.b.log.Debug().Err(err).Msg("look for workers") // the time alone decides then
		return
	}
	live := map[string]bool{}
	for _, w := range workers {
		live[w.ID] = true
	}
	for _, e := range k.tree {
		if _, known := k.lines[e.ID]; !known && e.State.held() && !live[e.Worker] {
			k.lines[e.ID] = unknown(e, fmt.Sprintf("worker %s silent since %s", e.Worker, e.heard().Format(time.RFC3339)))
		}
	}
}

// doom kills one job without waiting for proof: flagged, ended where nobody holds it, its holder told. Its descendants die by doomed.
func (b *Board) doom(ctx context.Context, e Entry, reason string) (Entry, error) {
	flagged, err := b.flag(ctx, e, reason)
	if err != nil {
		return flagged, err
	}
	return b.enact(ctx, flagged)
}

// flag sets the kill flag of a job that lives.
func (b *Board) flag(ctx context.Context, e Entry, reason string) (Entry, error) {
	return b.change(ctx, e.key(), func(now *Entry) error {
		if now.State.Terminal() || now.Killing != "" {
			return errKeep
		}
		now.Killing = reason
		return nil
	})
}

// enact does what follows from the flag.
func (b *Board) enact(ctx context.Context, e Entry) (Entry, error) {
	switch {
	case e.State.Terminal():
		return e, nil
	case e.State.held():
		return e, b.nc.Publish(b.names.ctl(e.ID), nil)
	default:
		return b.endUnheld(ctx, e, killedResult(e.Killing), killProof{Reason: e.Killing})
	}
}

func (k *killing) belongs(e Entry) bool {
	return k.roots[e.ID] || slices.ContainsFunc(e.Path, func(id string) bool { return k.roots[id] })
}

// sorted lists the trees top-down.
func (k *killing) sorted() []Entry {
	all := make([]Entry, 0, len(k.tree))
	for _, e := range k.tree {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(len(a.Path)-len(b.Path), byAge(a, b)) })
	return all
}

// strike does the next step for one agent: flag it, end it where nobody holds it, tell its holder, or note how it ended.
func (k *killing) strike(ctx context.Context, e Entry) error {
	if line, known := k.lines[e.ID]; known && (line.Outcome != "unknown" || !e.State.Terminal()) {
		return nil
	}
	if !e.State.Terminal() {
		if k.struck[e.ID] && e.State.held() {
			return nil // told; the next change says more
		}
		stored, err := k.b.doom(ctx, e, k.reason)
		if err != nil {
			return err
		}
		k.tree[e.ID], k.struck[e.ID] = stored, true
		if e = stored; !e.State.Terminal() {
			return nil
		}
	}
	return k.note(ctx, e)
}

// note writes the line of an agent that has ended.
func (k *killing) note(ctx context.Context, e Entry) error {
	line := KillLine{ID: e.ID, Title: e.Title, Outcome: "was already " + string(e.State)}
	if e.State == Killed {
		proof, err := k.b.proof(ctx, e)
		if err != nil {
			return err
		}
		if k.struck[e.ID] {
			line.Outcome, line.Ended = "killed", proof.Ended
		}
		switch {
		case proof.Unproved != "":
			line.Outcome, line.Detail = "unknown", proof.Unproved
		case proof.Survivors > 0:
			line.Outcome, line.Detail = "unknown", fmt.Sprintf("%d processes survived on worker %s", proof.Survivors, proof.Worker)
		default:
			for _, r := range e.Reasons {
				if strings.Contains(r, fellSilent) {
					line.Unproved = append(line.Unproved, r)
				}
			}
			if len(line.Unproved) > 0 {
				line.Detail = "not proved of earlier holders: " + strings.Join(line.Unproved, "; ")
			}
		}
	}
	k.lines[e.ID] = line
	return nil
}

func (b *Board) proof(ctx context.Context, e Entry) (killProof, error) {
	r, err := b.read(ctx, b.names.events, query{Last: b.names.event(e.Run, e.ID, kindKilled)})
	if err != nil {
		return killProof{}, fmt.Errorf("proof of the end of job %s: %w", e.ID, err)
	}
	ev, err := b.decodeEvent(ctx, r)
	if err != nil {
		return killProof{}, err
	}
	var p killProof
	err = json.Unmarshal(ev.Data, &p)
	return p, err
}
