package board

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster/board/memory"
)

// Memories are kept in a bucket of their own, made with the first of them. A key is <hash of the project>.<id of the memory>. Who writes has seen
// everything that the project remembers: a write is refused where anything of it changed since it was read, so one sentence is one entry and
// the limits are exact, however many agents save at once.
//
// A memory has no holder, so no epoch fences it. What an agent does is in the log of its job, with its epoch, before it is done (a call that cannot be
// recorded is not made): who has lost its job begins no save, and one that was under way then saves what is true all the same.

// Remember saves a memory for all agents of a project. One that is known already only gets the tags that it lacks. What the board knows to be secret
// is taken out of it. memory.ErrFull where a limit is reached.
func (b *Board) Remember(ctx context.Context, project string, m memory.Memory, limits memory.Limits) (memory.Saved, error) {
	m = b.unsecret(m)
	m.Saved = now()
	kv, err := b.lazily(ctx, &b.memory, b.names.memory, true)
	if err != nil {
		return memory.Saved{}, fmt.Errorf("save memory: %w", err)
	}
	for {
		last, all, err := b.remembered(ctx, kv, project)
		if err != nil {
			return memory.Saved{}, fmt.Errorf("save memory: %w", err)
		}
		s, write := m.Among(all)
		if !write {
			return s, nil
		}
		if err := limits.Admit(s.Memory, all); err != nil {
			return memory.Saved{}, fmt.Errorf("save memory: %w", err)
		}
		data, err := encode(s.Memory)
		if err != nil {
			return memory.Saved{}, fmt.Errorf("save memory: %w", err)
		}
		ack, err := b.publish(ctx, b.names.remembered(project, s.ID), data, jetstream.WithExpectLastSequenceForSubject(last, b.names.remembered(project, ">")))
		if err == nil {
			s.Revision = ack.Sequence
			return s, nil
		}
		if !refused(err) {
			return memory.Saved{}, fmt.Errorf("save memory: %w", err)
		}
		pause(ctx, rand.N(saveAgain)) // of many at once each reads all, and one gets through
	}
}

// saveAgain is the longest pause of a save that another came before.
const saveAgain = 20 * time.Millisecond

// Memories lists what a project remembers, the newest first.
func (b *Board) Memories(ctx context.Context, project string) ([]memory.Memory, error) {
	kv, err := b.lazily(ctx, &b.memory, b.names.memory, false)
	if err != nil || kv == nil {
		return nil, err
	}
	_, all, err := b.remembered(ctx, kv, project)
	return all, err
}

// Forget removes a memory for good: its id may be given by its first six digits or more. It returns what was removed. memory.ErrNotFound,
// memory.ErrAmbiguous.
func (b *Board) Forget(ctx context.Context, project, id string) (memory.Memory, error) {
	kv, err := b.lazily(ctx, &b.memory, b.names.memory, false)
	if err != nil {
		return memory.Memory{}, err
	}
	var gone memory.Memory // which was asked to go, and the answer got lost or was that it had changed
	for kv != nil {
		_, all, err := b.remembered(ctx, kv, project)
		if err != nil {
			return memory.Memory{}, err
		}
		m, err := memory.Find(all, cmp.Or(gone.ID, id))
		if errors.Is(err, memory.ErrNotFound) && gone.ID != "" {
			return gone, nil
		}
		if err != nil {
			return memory.Memory{}, fmt.Errorf("memory %s: %w", id, err)
		}
		gone = m
		_, err = persist(ctx, func(ctx context.Context) (bool, error) {
			return true, kv.Delete(ctx, b.names.memoryKey(project, m.ID), jetstream.LastRevision(m.Revision))
		})
		if err == nil {
			return m, nil
		}
		if !refused(err) {
			return memory.Memory{}, fmt.Errorf("memory %s: %w", id, err)
		}
	}
	return memory.Memory{}, fmt.Errorf("memory %s: %w", id, memory.ErrNotFound)
}

// unsecret is a memory without secrets.
func (b *Board) unsecret(m memory.Memory) memory.Memory {
	tags := slices.Clone(m.Tags)
	for i, t := range tags {
		tags[i] = b.secrets.String(t)
	}
	m.By.Title = b.secrets.String(m.By.Title)
	return memory.New(b.secrets.String(m.Text), tags, m.By)
}

// remembered reads all that a project remembers, the newest first, and the sequence of its last change. The list is as new as what the leader says
// to be the last change: a replica may be behind.
func (b *Board) remembered(ctx context.Context, kv jetstream.KeyValue, project string) (last uint64, all []memory.Memory, err error) {
	for {
		newest, err := b.readLeader(ctx, "KV_"+b.names.memory, query{Last: b.names.remembered(project, ">")})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return 0, nil, fmt.Errorf("read memories: %w", err)
		}
		last, all = 0, nil
		err = b.watchWith(ctx, kv, []string{b.names.memoryKey(project, "*")}, stopAtSync, func(kv jetstream.KeyValueEntry) error {
			last = max(last, kv.Revision())
			if kv.Operation() != jetstream.KeyValuePut {
				return nil
			}
			m := memory.Memory{}
			if err := json.Unmarshal(kv.Value(), &m); err != nil {
				return fmt.Errorf("memory %s: %w", kv.Key(), err)
			}
			m.Revision = kv.Revision()
			all = append(all, m)
			return nil
		})
		if err != nil {
			return 0, nil, fmt.Errorf("read memories: %w", err)
		}
		if last >= newest.seq {
			slices.SortFunc(all, func(a, b memory.Memory) int { return cmp.Compare(b.Revision, a.Revision) })
			return last, all, nil
		}
		pause(ctx, retryPause)
		if ctx.Err() != nil {
			return 0, nil, context.Cause(ctx)
		}
	}
}
