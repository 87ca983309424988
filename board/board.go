package board

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"muster/board/secrets"
)

const (
	defaultPrefix  = "muster"
	defaultAckWait = 30 * time.Second
	minAckWait     = time.Second
	defaultTTL     = 10 * time.Second // of a worker's heartbeat key
	defaultRetry   = time.Second
	minTTL         = 2 * time.Second // under it a busy machine looks dead
)

// Config says which board to speak to. Zero values: default prefix, 30 s lease, nothing logged.
type Config struct {
	Prefix string // of every stream, bucket and subject; default "muster"

	// AckWait is the lease: a holder silent for so long loses its job; at least 1 s. The first that is set, or served with, is the
	// deployment's and stands with the queue: zero takes that one, or 30 s, and another is refused.
	AckWait time.Duration
	Retry   time.Duration // delay after a job's first failed attempt, four times as much after each further one; default 1 s
	Beat    time.Duration // worker heartbeat; default 3 s, never over a third of its key's life: AckWait, 2 s at least and 10 s at most
	Log     zerolog.Logger

	// Secrets is taken out of everything that is written to the board but specifications and files, see doc.go; nil: nothing is.
	Secrets *secrets.Redactor
}

// Board is the shared board of one deployment. Safe for use by many goroutines.
type Board struct {
	nc      *nats.Conn
	js      jetstream.JetStream // its async publishing is bounded
	names   names
	log     zerolog.Logger
	ackWait time.Duration
	beat    time.Duration
	retry   time.Duration
	ttl     time.Duration // life of a worker's heartbeat key
	inline  int           // bytes of an event's data over which it is spilled
	secrets *secrets.Redactor

	events, jobs   jetstream.Stream
	board, workers jetstream.KeyValue
	objects        jetstream.ObjectStore

	memory, questions lazyBucket

	views views
}

// Connect uses nc (which the caller closes), and makes or checks the streams and buckets. Several processes may do it at once, also
// while the server changes hands: each request is repeated until ctx ends (without a deadline of ctx, for half a minute).
func Connect(ctx context.Context, nc *nats.Conn, cfg Config) (*Board, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = defaultPrefix
	}
	if cfg.AckWait != 0 && cfg.AckWait < minAckWait {
		return nil, fmt.Errorf("connect to the board: lease of %s is under %s", cfg.AckWait, minAckWait)
	}
	n, err := newNames(cfg.Prefix)
	if err != nil {
		return nil, fmt.Errorf("connect to the board: %w", err)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(bulkPending), jetstream.WithPublishAsyncTimeout(requestTime))
	if err != nil {
		return nil, fmt.Errorf("connect to the board: %w", err)
	}
	b := &Board{
		nc: nc, js: js, names: n, log: cfg.Log, ackWait: cfg.AckWait, retry: cmp.Or(cfg.Retry, defaultRetry),
		inline: int(nc.MaxPayload() / 2), secrets: cfg.Secrets,
	}
	if err := b.make(ctx); err != nil {
		return nil, fmt.Errorf("connect to the board: %w", err)
	}
	b.beat = b.ttl * 3 / 10
	if cfg.Beat > 0 {
		b.beat = min(cfg.Beat, b.ttl/3)
	}
	return b, nil
}

// make opens every stream and bucket, or makes it.
func (b *Board) make(ctx context.Context) (err error) {
	b.events, err = b.stream(ctx, jetstream.StreamConfig{
		Name: b.names.events, Subjects: []string{b.names.allEvents()}, Retention: jetstream.LimitsPolicy,
		Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, AllowDirect: true,
	})
	if err != nil {
		return err
	}
	if b.jobs, err = b.stream(ctx, jetstream.StreamConfig{
		Name: b.names.jobs, Subjects: []string{b.names.allPointers()}, Retention: jetstream.WorkQueuePolicy,
		Storage: jetstream.FileStorage, AllowDirect: true, AllowMsgSchedules: true,
	}); err != nil {
		return err
	}
	if err := b.agreeOnLease(ctx); err != nil {
		return err
	}
	b.ttl = min(defaultTTL, max(minTTL, b.ackWait))
	if b.board, err = b.bucket(ctx, jetstream.KeyValueConfig{Bucket: b.names.board, History: 1, Storage: jetstream.FileStorage}); err != nil {
		return err
	}
	b.workers, err = b.bucket(ctx, jetstream.KeyValueConfig{Bucket: b.names.workers, History: 1, TTL: b.ttl, Storage: jetstream.FileStorage})
	if err != nil {
		return err
	}
	status, err := persist(ctx, b.workers.Status)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", b.names.workers, err)
	}
	b.ttl = status.TTL()
	b.objects, err = persist(ctx, func(ctx context.Context) (jetstream.ObjectStore, error) {
		store, err := b.js.ObjectStore(ctx, b.names.artifacts)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			store, err = b.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: b.names.artifacts, Storage: jetstream.FileStorage})
		}
		return store, err
	})
	if err != nil {
		return fmt.Errorf("object store %s: %w", b.names.artifacts, err)
	}
	return nil
}

const leaseKey = "muster-lease" // in the queue's metadata

// agreeOnLease takes the lease that the deployment has, or gives it this one where one was set, or is served with.
func (b *Board) agreeOnLease(ctx context.Context) error {
	info, err := persist(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) { return b.jobs.Info(ctx) })
	if err != nil {
		return fmt.Errorf("stream %s: %w", b.names.jobs, err)
	}
	cfg := info.Config
	have, err := time.ParseDuration(cfg.Metadata[leaseKey])
	switch {
	case err == nil && b.ackWait != 0 && b.ackWait != have:
		return fmt.Errorf("lease of %s: this board's is %s: leave it out, or use that", b.ackWait, have)
	case err == nil:
		b.ackWait = have
		return nil
	case b.ackWait == 0:
		b.ackWait = defaultAckWait
		return nil
	}
	if cfg.Metadata == nil {
		cfg.Metadata = map[string]string{}
	}
	cfg.Metadata[leaseKey] = b.ackWait.String()
	_, err = persist(ctx, func(ctx context.Context) (jetstream.Stream, error) { return b.js.UpdateStream(ctx, cfg) })
	if err != nil {
		return fmt.Errorf("store the lease with stream %s: %w", cfg.Name, err)
	}
	return nil
}

func (b *Board) stream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := persist(ctx, func(ctx context.Context) (jetstream.Stream, error) {
		s, err := b.js.Stream(ctx, cfg.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = b.js.CreateStream(ctx, cfg)
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				s, err = b.js.Stream(ctx, cfg.Name)
			}
		}
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", cfg.Name, err)
	}
	have := s.CachedInfo().Config
	if have.Retention != cfg.Retention || !slices.Equal(have.Subjects, cfg.Subjects) {
		return nil, fmt.Errorf("stream %s exists and is not ours (%s of %s): choose another prefix", cfg.Name, have.Retention, strings.Join(have.Subjects, " "))
	}
	return s, nil
}

func (b *Board) bucket(ctx context.Context, cfg jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := persist(ctx, func(ctx context.Context) (jetstream.KeyValue, error) {
		kv, err := b.js.KeyValue(ctx, cfg.Bucket)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			kv, err = b.js.CreateKeyValue(ctx, cfg)
			if errors.Is(err, jetstream.ErrBucketExists) {
				kv, err = b.js.KeyValue(ctx, cfg.Bucket)
			}
		}
		return kv, err
	})
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", cfg.Bucket, err)
	}
	return kv, nil
}

// lazyBucket is one that is opened when it is first needed.
type lazyBucket struct {
	sync.Mutex
	kv jetstream.KeyValue
}

// lazily opens a bucket; nil where there is none and it is not to be made.
func (b *Board) lazily(ctx context.Context, l *lazyBucket, name string, create bool) (jetstream.KeyValue, error) {
	l.Lock()
	defer l.Unlock()
	if l.kv != nil {
		return l.kv, nil
	}
	var kv jetstream.KeyValue
	var err error
	if create {
		kv, err = b.bucket(ctx, jetstream.KeyValueConfig{Bucket: name, History: 1, Storage: jetstream.FileStorage})
	} else {
		kv, err = persist(ctx, func(ctx context.Context) (jetstream.KeyValue, error) { return b.js.KeyValue(ctx, name) })
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, nil
		}
	}
	if err == nil {
		l.kv = kv
	}
	return kv, err
}

// Get returns the entry of a job. ErrNotFound. An id may be given as a unique prefix of at least 6 characters, or the last 6 or more.
func (b *Board) Get(ctx context.Context, id string) (Entry, error) {
	if !isID(id) {
		full, err := b.complete(ctx, id)
		if err != nil {
			return Entry{}, err
		}
		id = full
	}
	e, err := b.entry(ctx, "*.*."+id)
	if err != nil {
		return Entry{}, fmt.Errorf("job %s: %w", id, err)
	}
	return e, nil
}

const shortID = 6 // characters that an abbreviated id has at least

// complete finds the one id that begins or ends with part.
func (b *Board) complete(ctx context.Context, part string) (string, error) {
	if len(part) < shortID {
		return "", fmt.Errorf("job %q: %w: give at least %d characters of its id", part, ErrNotFound, shortID)
	}
	part = strings.ToLower(part)
	info, err := persist(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		all, err := b.js.Stream(ctx, b.names.boardStream())
		if err != nil {
			return nil, err
		}
		return all.Info(ctx, jetstream.WithSubjectFilter(b.names.entrySubject(">")))
	})
	if err != nil {
		return "", fmt.Errorf("job %s: %w", part, err)
	}
	var found []string
	for subject := range info.State.Subjects {
		if id := lastToken(subject); strings.HasPrefix(id, part) || strings.HasSuffix(id, part) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("job %s: %w", part, ErrNotFound)
	case 1:
		return found[0], nil
	}
	slices.Sort(found)
	return "", fmt.Errorf("job %s: %w: %d of them, such as %s and %s; give more of it", part, ErrAmbiguous, len(found), found[0], found[1])
}

// isID reports whether s is a whole job id.
func isID(s string) bool {
	u, err := uuid.Parse(s)
	return err == nil && u.String() == s
}

// Spec returns the specification of a job from its log.
func (b *Board) Spec(ctx context.Context, id string) (Job, error) {
	e, err := b.Get(ctx, id)
	if err != nil {
		return Job{}, err
	}
	j, _, err := b.spec(ctx, e)
	return j, err
}

// spec also returns the sequence of the event.
func (b *Board) spec(ctx context.Context, e Entry) (Job, uint64, error) {
	r, err := b.read(ctx, b.names.events, query{Last: b.names.event(e.Run, e.ID, kindSpec)})
	if err != nil {
		return Job{}, 0, fmt.Errorf("specification of job %s: %w", e.ID, err)
	}
	ev, err := b.decodeEvent(ctx, r)
	if err != nil {
		return Job{}, 0, fmt.Errorf("specification of job %s: %w", e.ID, err)
	}
	var j Job
	if err := json.Unmarshal(ev.Data, &j); err != nil {
		return Job{}, 0, fmt.Errorf("specification of job %s: %w", e.ID, err)
	}
	return j, r.seq, nil
}

// Collect returns the result of a terminal job; ErrNotFinished otherwise.
func (b *Board) Collect(ctx context.Context, id string) (Result, error) {
	e, err := b.Get(ctx, id)
	if err != nil {
		return Result{}, err
	}
	if !e.State.Terminal() {
		return Result{}, fmt.Errorf("job %s is %s: %w", e.ID, e.State, ErrNotFinished)
	}
	res, err := b.result(ctx, e.ResultSeq)
	if err != nil {
		return Result{}, fmt.Errorf("result of job %s: %w", e.ID, err)
	}
	return res, nil
}

func (b *Board) result(ctx context.Context, seq uint64) (Result, error) {
	r, err := b.read(ctx, b.names.events, query{Seq: seq})
	if err != nil {
		return Result{}, err
	}
	ev, err := b.decodeEvent(ctx, r)
	if err != nil {
		return Result{}, err
	}
	return decodeResult(ev.Data)
}

// Workers lists the live workers, sorted by id.
func (b *Board) Workers(ctx context.Context) ([]WorkerInfo, error) {
	var all []WorkerInfo
	err := b.watch(ctx, b.workers, []string{workerKeys + "*"}, stopAtSync, func(kv jetstream.KeyValueEntry) error {
		var w WorkerInfo
		if err := json.Unmarshal(kv.Value(), &w); err != nil {
			return fmt.Errorf("worker %s: %w", kv.Key(), err)
		}
		all = append(all, w)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	slices.SortFunc(all, func(a, b WorkerInfo) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// WorkerInfo is what a worker says of itself, each Beat.
type WorkerInfo struct {
	ID      string    `json:"id"` // unique a process
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Pools   []string  `json:"pools"`
	Slots   int       `json:"slots"`
	Running []string  `json:"running"`
	Sandbox Sandbox   `json:"sandbox"`
	Started time.Time `json:"started"`
}
