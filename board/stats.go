package board

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Each calls fn with each entry of a filter, in no particular order, without keeping them.
func (b *Board) Each(ctx context.Context, f Filter, fn func(Entry)) error {
	err := b.watchEntries(ctx, f.keys(), stopAtSync, func(e Entry) error {
		if f.matches(e) {
			fn(e)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	return nil
}

// Store tells how many messages and bytes each part of the board takes that there is: log, queue, entries, artifacts, memories, questions.
func (b *Board) Store(ctx context.Context) (messages, bytes map[string]uint64, err error) {
	messages, bytes = map[string]uint64{}, map[string]uint64{}
	for part, stream := range map[string]string{
		"log": b.names.events, "queue": b.names.jobs, "entries": b.names.boardStream(), "artifacts": "OBJ_" + b.names.artifacts,
		"memories": "KV_" + b.names.memory, "questions": "KV_" + b.names.approvals,
	} {
		info, err := persist(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) {
			s, err := b.js.Stream(ctx, stream)
			if err != nil {
				return nil, err
			}
			return s.CachedInfo(), nil
		})
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("size of the %s: %w", part, err)
		}
		messages[part], bytes[part] = info.State.Msgs, info.State.Bytes
	}
	return messages, bytes, nil
}
