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

// StoreSize is how much of the store a part of the board takes.
type StoreSize struct {
	What     string `json:"what"` // log, queue, entries, artifacts, memories, questions
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Store tells the size of each part of the board that there is.
func (b *Board) Store(ctx context.Context) ([]StoreSize, error) {
	var sizes []StoreSize
	for _, part := range [][2]string{
		{"log", b.names.events}, {"queue", b.names.jobs}, {"entries", b.names.boardStream()}, {"artifacts", "OBJ_" + b.names.artifacts},
		{"memories", "KV_" + b.names.memory}, {"questions", "KV_" + b.names.approvals},
	} {
		info, err := persist(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) {
			s, err := b.js.Stream(ctx, part[1])
			if err != nil {
				return nil, err
			}
			return s.CachedInfo(), nil
		})
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("size of the %s: %w", part[0], err)
		}
		sizes = append(sizes, StoreSize{part[0], info.State.Msgs, info.State.Bytes})
	}
	return sizes, nil
}
