package agents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"muster/agents/llm"
	"muster/board"
	"muster/tools"
	"muster/tools/workspace"
)

// EventCheckpoint is the kind of the event that says what files a holder who goes on begins with; data: Checkpoint.
const EventCheckpoint = "checkpoint"

// Checkpoint is what an agent has changed in its private tree up to a turn.
type Checkpoint struct {
	Turn  int            `json:"turn"`           // the calls of this turn and those before it have left their marks
	Patch board.Artifact `json:"patch,omitzero"` // against the job's base; none where nothing is changed
}

const (
	keepTime = 30 * time.Second // for storing what a job changed, after the job itself was cancelled
	maxStat  = 100              // changed files that a result names
)

// changes stores what the job has changed as a patch. A tree that is shared has no changes.
func (a *attempt) changes(ctx context.Context) (patch board.Artifact, list []workspace.Change, err error) {
	if a.tree.ReadOnly {
		return patch, nil, nil
	}
	r, w := io.Pipe()
	told := make(chan error, 1)
	go func() {
		var err error
		list, err = a.tree.Changes(ctx, w)
		w.CloseWithError(err)
		told <- err
	}()
	ahead := bufio.NewReader(r)
	if _, err = ahead.Peek(1); err == nil {
		patch, err = a.lease.Board().Put(ctx, ahead)
	} else if errors.Is(err, io.EOF) {
		err = nil // nothing is changed
	}
	r.CloseWithError(err)
	if terr := <-told; terr != nil {
		return patch, nil, fmt.Errorf("see what the job changed: %w", terr)
	}
	if err != nil {
		return patch, nil, fmt.Errorf("store what the job changed: %w", err)
	}
	return patch, list, nil
}

// keep puts what the job changed into its result. Its facts name the files that a patch cannot hold, and how its commands were confined.
func (a *attempt) keep(ctx context.Context, res *board.Result) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	patch, list, err := a.changes(ctx)
	if err != nil {
		return err
	}
	type left struct {
		Path string `json:"path"`
		Why  string `json:"why"`
	}
	facts := struct {
		Sandbox board.Sandbox `json:"sandbox"`
		Left    []left        `json:"not_in_patch,omitempty"`
		Total   int           `json:"not_in_patch_total,omitempty"`
	}{Sandbox: a.confined()}
	for _, c := range list {
		switch {
		case c.Left == "":
			if res.Files++; res.Files <= maxStat {
				res.Stat = append(res.Stat, board.FileStat{Path: c.Path, Added: c.Added, Removed: c.Removed})
			}
		default:
			if facts.Total++; facts.Total <= maxStat {
				facts.Left = append(facts.Left, left{c.Path, c.Left})
			}
		}
	}
	res.Patch = patch
	if res.Facts, err = json.Marshal(facts); err != nil {
		return fmt.Errorf("encode facts: %w", err)
	}
	return nil
}

// checkpoint stores the files after a turn that may have changed them, where they differ from the last time.
func (a *attempt) checkpoint(ctx context.Context) error {
	if a.tree.ReadOnly || a.job.Base.InPlace != "" {
		return nil
	}
	patch, _, err := a.changes(ctx)
	if err != nil {
		return err
	}
	talk := a.loop.talk
	c := Checkpoint{Turn: talk.turns, Patch: patch}
	if talk.saved == c {
		return nil
	}
	if err := a.lease.Append(ctx, EventCheckpoint, c); err != nil {
		return err
	}
	talk.saved = c
	return nil
}

// leave makes a last checkpoint for the next holder when the worker stops.
func (a *attempt) leave(ctx context.Context, cause error) {
	if a.loop == nil || !a.loop.talk.touching || !errors.Is(cause, board.ErrStopping) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime/3)
	defer cancel()
	if err := a.checkpoint(ctx); err != nil {
		a.log.Warn().Err(err).Msg("the files could not be stored for the next worker")
	}
}

// resume makes the loop: the conversation so far comes from the log, the files from the last checkpoint. The model is told of
// the break where it could matter.
func (a *attempt) resume(ctx context.Context, model llm.Model) error {
	talk, err := rebuild(ctx, a.lease.Board(), a.job, a.known)
	if err != nil {
		return err
	}
	delegating, list := false, ""
	for _, t := range a.set.Tools() {
		delegating = delegating || t.Class == tools.Delegate
		if t.Name == "skill" {
			list = a.lease.Secrets().String(skillList(a.skills, a.caps.SkillListChars))
		}
	}
	system, err := systemPrompt(situation{
		Prompt: a.profile.Prompt, Title: a.job.Title, Child: a.job.Parent != "", ReadOnly: a.readOnly(),
		InPlace: a.job.Base.InPlace != "", Delegates: delegating, Skills: list,
	})
	if err != nil {
		return err
	}
	l := &loop{
		lease: a.lease, cause: a.cause, checkpoint: a.checkpoint, model: model, set: a.set, known: a.known,
		system: system, maxTurns: a.profile.MaxTurns, talk: talk,
		agent: llm.Agent{Job: a.job.ID, Name: a.job.Name, Title: a.job.Title, Profile: a.profile.Name, Depth: len(a.job.Path)},
	}
	a.loop = l
	if !talk.touching {
		return nil
	}
	if err := a.restore(ctx, talk.saved.Patch); err != nil {
		return err
	}
	at, turns := talk.saved.Turn, talk.turns
	if err := l.settle(ctx); err != nil || talk.answered() {
		return err
	}
	text := "You were interrupted and go on at another place. Background tasks have ended."
	switch {
	case a.job.Base.InPlace != "" || at == turns:
		text += " Your files are as they were, but read one again before you write over it."
	case at > 0:
		text += fmt.Sprintf(" Your files are as they were after your turn %d of %d: what was changed later is lost; check, and make it anew.", at, turns)
	default:
		text += " Your files are those you began with: make the changes that you still need anew."
	}
	return l.tell(ctx, "resumed", text)
}

// restore puts the files of a checkpoint into the fresh tree.
func (a *attempt) restore(ctx context.Context, patch board.Artifact) error {
	if patch.SHA256 == "" {
		return nil
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(a.lease.Board().Fetch(ctx, patch, w)) }()
	err := a.tree.Restore(ctx, r)
	r.CloseWithError(err)
	return err
}
