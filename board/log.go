package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Events calls fn with each event of a job's log in order, spilled data fetched; with follow it goes on until the result or ctx ends.
// What an older holder wrote after a newer one claimed is left out.
func (b *Board) Events(ctx context.Context, id string, follow bool, fn func(Event) error) error {
	e, err := b.Get(ctx, id)
	if err != nil {
		return err
	}
	last, err := b.lastEvent(ctx, e)
	if err != nil {
		return fmt.Errorf("log of job %s: %w", e.ID, err)
	}
	var epoch uint64 // newest that claimed
	err = b.tail(ctx, b.names.logOf(e.Run, e.ID), func(r record) error {
		ev, err := b.decodeEvent(ctx, r)
		if err != nil {
			return err
		}
		if ev.Kind == kindClaimed {
			epoch = max(epoch, ev.Epoch)
		}
		if ev.Epoch == 0 || ev.Epoch >= epoch {
			if err := fn(ev); err != nil {
				return err
			}
		}
		if follow && ev.Kind == kindResult && ev.Epoch >= epoch || !follow && r.seq >= last.seq {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("log of job %s: %w", e.ID, err)
	}
	return nil
}

// lastEvent is the newest message of a job's log.
func (b *Board) lastEvent(ctx context.Context, e Entry) (record, error) {
	return b.readLeader(ctx, b.names.events, query{Last: b.names.logOf(e.Run, e.ID)})
}

// tail calls fn with each stored message of a subject, now and later, until ctx ends or fn returns an error. The server pushes, with
// flow control, so that a slow fn costs memory for some messages only.
func (b *Board) tail(ctx context.Context, subject string, fn func(record) error) error {
	js, err := b.nc.JetStream()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records := make(chan record)
	sub, err := js.Subscribe(subject, func(m *nats.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			return // a control message
		}
		r := record{seq: meta.Sequence.Stream, subject: m.Subject, data: m.Data}
		select {
		case records <- r:
		case <-ctx.Done():
		}
	}, nats.OrderedConsumer(), nats.BindStream(b.names.events))
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // of a closed connection: nothing is left to end
	for {
		select {
		case r := <-records:
			if err := fn(r); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// remark appends an event to the log of a job that nobody holds. id makes it one however often it is written.
func (b *Board) remark(ctx context.Context, e Entry, kind, id string, data any) (*jetstream.PubAck, error) {
	msg, err := b.encodeEvent(ctx, e, kind, e.Epoch, data, b.secrets)
	if err != nil {
		return nil, err
	}
	ack, err := b.publish(ctx, b.names.event(e.Run, e.ID, kind), msg, jetstream.WithMsgID(fmt.Sprintf("%s.%d.%s", e.ID, e.Epoch, id)))
	if err != nil {
		return nil, fmt.Errorf("log %s of job %s: %w", kind, e.ID, err)
	}
	return ack, nil
}

// endUnheld ends a job that no worker holds. It is flagged first, so that no claim starts it. Several may do so at once: the first result
// in the log is the one, and everybody's entry names it.
func (b *Board) endUnheld(ctx context.Context, e Entry, res Result, proof killProof) (Entry, error) {
	res = res.without(b.secrets)
	if e.Killing == "" {
		reason := b.secrets.String(cmp.Or(proof.Reason, res.Error))
		flagged, err := b.change(ctx, e.key(), func(now *Entry) error {
			if now.State.Terminal() || now.State.held() || now.Killing != "" {
				return errKeep
			}
			now.Killing = reason
			return nil
		})
		if err != nil || flagged.State.Terminal() || flagged.State.held() || res.State != Killed && flagged.Killing != reason {
			return flagged, err // a kill that was faster ends it
		}
		e = flagged
	}
	if res.State == Killed {
		if e.Worker != "" {
			proof.Worker = e.Worker
			proof.Unproved = fmt.Sprintf("worker %s was silent since %s: its processes may still run", e.Worker, e.heard().Format("15:04:05"))
		}
		if _, err := b.remark(ctx, e, kindKilled, kindKilled, proof); err != nil {
			return e, err
		}
	}
	ack, err := b.remark(ctx, e, kindResult, kindResult, res.stored())
	if err != nil {
		return e, err
	}
	if ack.Duplicate {
		if res, err = b.result(ctx, ack.Sequence); err != nil {
			return e, err
		}
	}
	ended, err := b.change(ctx, e.key(), func(now *Entry) error {
		if now.State.Terminal() || now.State.held() {
			return errKeep
		}
		now.end(res, ack.Sequence)
		return nil
	})
	if err != nil {
		return e, err
	}
	// Only the place in the queue is gained: the next claim would drop the pointer.
	if err := b.jobs.Purge(ctx, jetstream.WithPurgeSubject(b.names.pointer(e))); err != nil {
		b.log.Debug().Err(err).Str("job", e.ID).Msg("purge pointer")
	}
	return ended, nil
}
