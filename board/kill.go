package board

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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
}

// Kill kills a job and all its descendants, detached ones too, and answers with what is proved, ancestors first. Killing twice is
// harmless. It waits for the holders' proof twice the lease, 4 s at least and 15 s at most; who did not answer by then is "unknown", and
// dies when its worker sees the board again.
func (b *Board) Kill(ctx context.Context, id, reason string) ([]KillLine, error) {
	e, err := b.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("kill: %w", err)
	}
	return b.killTrees(ctx, []Entry{e}, cmp.Or(reason, "by request"))
}

// killing is one call of killTrees.
type killing struct {
	b      *Board
	reason string
	roots  map[string]bool
	tree   map[string]Entry // as last seen
	lines  map[string]KillLine
	struck map[string]bool // flagged by this call
	synced bool
}

// killTrees kills the jobs of one run and their descendants. It watches the run meanwhile, so that a child that is born in the race is
// seen too; one that is born later dies at its claim.
func (b *Board) killTrees(ctx context.Context, roots []Entry, reason string) ([]KillLine, error) {
	k := &killing{
		b: b, reason: reason, roots: map[string]bool{}, tree: map[string]Entry{}, lines: map[string]KillLine{}, struck: map[string]bool{},
	}
	for _, r := range roots {
		k.roots[r.ID] = true
	}
	wctx, cancel := context.WithTimeout(ctx, min(maxKillWait, max(minKillWait, 2*b.ackWait)))
	defer cancel()
	err := b.watchEntries(wctx, Filter{Run: roots[0].Run}.keys(), func() error {
		k.synced = true
		for _, e := range k.sorted() {
			if err := k.strike(ctx, e); err != nil {
				return err
			}
		}
		return k.enough()
	}, func(e Entry) error {
		if !k.belongs(e) {
			return nil
		}
		k.tree[e.ID] = e
		if !k.synced {
			return nil
		}
		if err := k.strike(ctx, e); err != nil {
			return err
		}
		return k.enough()
	})
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return nil, fmt.Errorf("kill: %w", err)
	}
	var lines []KillLine
	for _, e := range k.sorted() {
		line, ok := k.lines[e.ID]
		if !ok {
			line = KillLine{ID: e.ID, Title: e.Title, Outcome: "unknown", Detail: b.silence(ctx, e)}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// doom kills one job without waiting for proof: flagged, ended where nobody holds it, its holder told. Its descendants die by doomed.
func (b *Board) doom(ctx context.Context, e Entry, reason string) (Entry, error) {
	stored, err := b.change(ctx, e.key(), func(now *Entry) error {
		if now.State.Terminal() || now.Killing != "" {
			return errKeep
		}
		now.Killing = reason
		return nil
	})
	switch {
	case err != nil, stored.State.Terminal():
		return stored, err
	case stored.State.held():
		return stored, b.nc.Publish(b.names.ctl(e.ID), nil)
	default:
		return b.endUnheld(ctx, stored, killedResult(stored.Killing), killProof{Reason: stored.Killing})
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

// enough ends the watch when every agent has its line.
func (k *killing) enough() error {
	if len(k.lines) == len(k.tree) {
		return errEnough
	}
	return nil
}

// strike does the next step for one agent: flag it, end it where nobody holds it, tell its holder, or note how it ended.
func (k *killing) strike(ctx context.Context, e Entry) error {
	if _, known := k.lines[e.ID]; known {
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
	if e.State == Killed && k.struck[e.ID] {
		proof, err := k.b.proof(ctx, e)
		if err != nil {
			return err
		}
		line.Outcome, line.Ended = "killed", proof.Ended
		switch {
		case proof.Unproved != "":
			line.Outcome, line.Detail = "unknown", proof.Unproved
		case proof.Survivors > 0:
			line.Outcome, line.Detail = "unknown", fmt.Sprintf("%d processes survived on worker %s", proof.Survivors, proof.Worker)
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

// silence says why nobody knows whether e is gone.
func (b *Board) silence(ctx context.Context, e Entry) string {
	_, err := b.workers.Get(ctx, workerKeys+e.Worker)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Sprintf("worker %s silent since %s", e.Worker, e.Updated.Format(time.RFC3339))
	}
	return fmt.Sprintf("worker %s has not confirmed that it ended, silent about it since %s", e.Worker, e.Updated.Format(time.RFC3339))
}
