package board

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"muster/board/secrets"
)

// Event is one thing that happened to a job. V is the version of its form (1).
type Event struct {
	V     int             `json:"v"`
	Seq   uint64          `json:"seq"` // of the log stream; set when read
	Run   string          `json:"run"`
	Job   string          `json:"job"`
	Kind  string          `json:"kind"`
	Epoch uint64          `json:"epoch"` // of the holder that wrote it, 0 for nobody
	Time  time.Time       `json:"time"`
	Data  json.RawMessage `json:"data,omitempty"`
	Spill Artifact        `json:"spill,omitzero"` // Data is there instead, being over the message size
}

// The kinds of event that the board itself writes. Handlers add their own through Lease.Append.
const (
	kindSpec     = "spec"        // Job; the first of every log
	kindClaimed  = "claimed"     // note: a worker took it; from here on older epochs can add nothing
	kindState    = "state"       // note: from one state to another
	kindRetry    = "retry"       // note: an attempt failed and another will follow
	kindRequeued = "requeued"    // note: its worker fell silent; queued again
	kindHanded   = "handed_back" // note: its worker stopped; queued again, no attempt spent
	kindWaits    = "waits"       // note: a worker that could not do it left it to others; the first time only
	kindKilled   = "killed"      // killProof
	kindResult   = "result"      // Result; the last
)

const eventVersion = 1

// note is the data of the small events about a job's life.
type note struct {
	Worker  string        `json:"worker,omitempty"`
	Attempt int           `json:"attempt,omitempty"`
	From    State         `json:"from,omitempty"`
	To      State         `json:"to,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Delay   time.Duration `json:"delay_ns,omitempty"`
}

// killProof is what is known about the end of a killed job's processes.
type killProof struct {
	Reason    string `json:"reason"`
	Worker    string `json:"worker,omitempty"`
	Ended     int    `json:"ended"`
	Survivors int    `json:"survivors,omitempty"`
	Unproved  string `json:"unproved,omitempty"` // why nobody can say that its processes are gone
}

// encode is JSON without the escapes that only HTML needs: prompts and results are full of < and &.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encodeEvent makes the message of an event without secrets; data over the message size goes to the artifact store first.
func (b *Board) encodeEvent(ctx context.Context, e Entry, kind string, epoch uint64, data any, r *secrets.Redactor) ([]byte, error) {
	ev := Event{V: eventVersion, Run: e.Run, Job: e.ID, Kind: kind, Epoch: epoch, Time: now()}
	if data != nil {
		raw, err := encode(data)
		if err != nil {
			return nil, fmt.Errorf("encode event %s of job %s: %w", kind, e.ID, err)
		}
		ev.Data = r.JSON(raw)
	}
	if len(ev.Data) > b.inline {
		a, err := b.putBytes(ctx, ev.Data)
		if err != nil {
			return nil, fmt.Errorf("store event %s of job %s (%d bytes): %w", kind, e.ID, len(ev.Data), err)
		}
		ev.Spill, ev.Data = a, nil
	}
	return encode(ev)
}

// decodeEvent reads a message of the log and fetches what was spilled.
func (b *Board) decodeEvent(ctx context.Context, r record) (Event, error) {
	var ev Event
	if err := json.Unmarshal(r.data, &ev); err != nil {
		return Event{}, fmt.Errorf("event %d of the log: %w", r.seq, err)
	}
	ev.Seq = r.seq
	if ev.Spill.SHA256 == "" {
		return ev, nil
	}
	var data bytes.Buffer
	data.Grow(int(ev.Spill.Size))
	if err := b.Fetch(ctx, ev.Spill, &data); err != nil {
		return Event{}, fmt.Errorf("event %d of the log: %w", r.seq, err)
	}
	ev.Data = data.Bytes()
	return ev, nil
}

// now is the time of an entry or event: UTC, and without the monotonic part, as it will be read back.
func now() time.Time { return time.Now().UTC().Round(0) }
