package board

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster/budget"
)

// This file is the one place of compare-and-set: what is read, how it is written back, and what a refusal means.

const (
	entryBytes   = 4 << 10         // an entry is smaller than this
	requestTime  = 5 * time.Second // one request to the server, at most
	firstTry     = time.Second     // the first try of one that is repeated: what was sent to a server that then ended is never answered
	persistTime  = 30 * time.Second
	codeNoStream = 10059
	// codes of "wrong last sequence": of a stream, of a replicated one.
	codeWrongSeq, codeWrongSeqReplicated = 10071, 10164
)

// refused reports whether a write was refused since the expected sequence is not the last: the one classifier for it.
func refused(err error) bool {
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists) {
		return true
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeWrongSeq || api.ErrorCode == codeWrongSeqReplicated)
}

// transient reports whether the same request may succeed later: the server is away, or moves.
func transient(err error) bool {
	for _, t := range []error{
		nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, context.DeadlineExceeded, os.ErrDeadlineExceeded,
		nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == http.StatusServiceUnavailable
}

// persist runs op until it works, fails for good, or ctx ends; without a deadline of ctx, until persistTime is over. The first tries are
// short, later ones leave a slow server more time.
func persist[T any](ctx context.Context, op func(context.Context) (T, error)) (T, error) {
	limit, patience := persistTime, firstTry
	if d, ok := ctx.Deadline(); ok {
		limit = max(limit, time.Until(d))
	}
	tries := 0
	try := func() (T, error) {
		tctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if tries++; tries >= 3 {
			patience = min(2*patience, requestTime)
		}
		v, err := op(tctx)
		if err != nil && !transient(err) {
			return v, backoff.Permanent(err)
		}
		return v, err
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, time.Second
	return backoff.Retry(ctx, try, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(limit))
}

// publish stores one message. Repeating it is safe: everything that is published carries a message id or an expected sequence.
func (b *Board) publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return persist(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
		return b.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}, opts...)
	})
}

// record is one stored message.
type record struct {
	seq     uint64
	subject string
	msgID   string
	data    []byte
}

// query asks for one stored message: by sequence, or the last of a subject, which may have wildcards.
type query struct {
	Seq  uint64 `json:"seq,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
}

// read gets a message from any replica, and from the leader when that one has not got it yet. ErrNotFound.
func (b *Board) read(ctx context.Context, stream string, q query) (record, error) {
	r, err := b.ask(ctx, "$JS.API.DIRECT.GET."+stream, q, decodeDirect)
	if errors.Is(err, ErrNotFound) {
		return b.readLeader(ctx, stream, q)
	}
	return r, err
}

// readLeader gets a message from the leader, which has seen every write that was acknowledged: what fencing is decided by.
func (b *Board) readLeader(ctx context.Context, stream string, q query) (record, error) {
	return b.ask(ctx, "$JS.API.STREAM.MSG.GET."+stream, q, decodeLeader)
}

func (b *Board) ask(ctx context.Context, subject string, q query, decode func(*nats.Msg) (record, error)) (record, error) {
	req, err := json.Marshal(q)
	if err != nil {
		return record{}, fmt.Errorf("encode query: %w", err)
	}
	return persist(ctx, func(ctx context.Context) (record, error) {
		m, err := b.nc.RequestWithContext(ctx, subject, req)
		if err != nil {
			return record{}, err
		}
		return decode(m)
	})
}

func decodeDirect(m *nats.Msg) (record, error) {
	switch status := m.Header.Get("Status"); status {
	case "":
	case "404":
		return record{}, ErrNotFound
	default:
		return record{}, fmt.Errorf("read from the store: %s %s", status, m.Header.Get("Description"))
	}
	seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return record{}, fmt.Errorf("read from the store: sequence: %w", err)
	}
	return record{seq: seq, subject: m.Header.Get("Nats-Subject"), msgID: m.Header.Get(nats.MsgIdHdr), data: m.Data}, nil
}

func decodeLeader(m *nats.Msg) (record, error) {
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Data    []byte `json:"data"`
			Header  string `json:"hdrs"`
		} `json:"message"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return record{}, fmt.Errorf("read from the store: %w", err)
	}
	if answer.Error != nil {
		if answer.Error.Code == http.StatusNotFound && answer.Error.ErrorCode != codeNoStream {
			return record{}, ErrNotFound
		}
		return record{}, answer.Error
	}
	r := record{seq: answer.Message.Seq, subject: answer.Message.Subject, data: answer.Message.Data}
	if raw, err := base64.StdEncoding.DecodeString(answer.Message.Header); err == nil && len(raw) > 0 {
		if h, err := nats.DecodeHeadersMsg(raw); err == nil {
			r.msgID = h.Get(nats.MsgIdHdr)
		}
	}
	return r, nil
}

// entry reads an entry by its key; the last two tokens alone find it too ("*.*.<job>").
func (b *Board) entry(ctx context.Context, key string) (Entry, error) {
	return decodeEntry(b.read(ctx, b.names.boardStream(), query{Last: b.names.entrySubject(key)}))
}

func (b *Board) entryLeader(ctx context.Context, key string) (Entry, error) {
	return decodeEntry(b.readLeader(ctx, b.names.boardStream(), query{Last: b.names.entrySubject(key)}))
}

func decodeEntry(r record, err error) (Entry, error) {
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := json.Unmarshal(r.data, &e); err != nil {
		return Entry{}, fmt.Errorf("entry %s: %w", r.subject, err)
	}
	e.Revision = r.seq
	return e, nil
}

// swap writes next over old, which must be what is stored and may become next by the table. errConflict when it is not stored any more.
// A refusal of a write that did arrive, and only its acknowledgement did not, is none.
func (b *Board) swap(ctx context.Context, old, next Entry) (Entry, error) {
	if !old.State.may(next.State) {
		return Entry{}, fmt.Errorf("job %s: no way from %s to %s", old.ID, old.State, next.State)
	}
	next = next.without(b.secrets)
	next.Updated = now()
	data, err := next.encode()
	if err != nil {
		return Entry{}, err
	}
	ack, err := b.publish(ctx, b.names.entrySubject(old.key()), data, jetstream.WithExpectLastSequencePerSubject(old.Revision))
	if refused(err) {
		cur, err := b.entryLeader(ctx, old.key())
		if err == nil && cur.Updated.Equal(next.Updated) && cur.Worker == next.Worker && cur.State == next.State {
			return cur, nil
		}
		return Entry{}, errConflict
	}
	if err != nil {
		return Entry{}, fmt.Errorf("write entry of job %s: %w", old.ID, err)
	}
	next.Revision = ack.Sequence
	return next, nil
}

// change applies fn to the stored entry until the write is not disturbed by another. fn may be called again with a newer entry; its
// error ends the change, errKeep without one. The entry that is stored at the end is returned.
func (b *Board) change(ctx context.Context, key string, fn func(*Entry) error) (Entry, error) {
	for {
		old, err := b.entryLeader(ctx, key)
		if err != nil {
			return Entry{}, err
		}
		next := old
		if err := fn(&next); errors.Is(err, errKeep) {
			return old, nil
		} else if err != nil {
			return old, err
		}
		stored, err := b.swap(ctx, old, next)
		if !errors.Is(err, errConflict) {
			return stored, err
		}
	}
}

// encode is the stored form of an entry, smaller than entryBytes: what is only for people gives way, the oldest reason first.
func (e Entry) encode() ([]byte, error) {
	for {
		data, err := encode(e)
		if err != nil {
			return nil, fmt.Errorf("encode entry of job %s: %w", e.ID, err)
		}
		switch {
		case len(data) < entryBytes:
			return data, nil
		case len(e.Reasons) > 1:
			e.Reasons = e.Reasons[1:]
		case budget.Chars(e.Preview) > 100:
			e.Preview = budget.Preview(e.Preview, budget.Chars(e.Preview)*3/4)
		case budget.Chars(e.Waits) > 60:
			e.Waits = budget.Preview(e.Waits, 60)
		case budget.Chars(e.Title) > 50:
			e.Title = budget.Preview(e.Title, 50)
		default:
			return nil, fmt.Errorf("entry of job %s has %d bytes, over %d", e.ID, len(data), entryBytes)
		}
	}
}
