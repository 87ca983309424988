package board

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
)

// A transfer in which nothing moves for the stall time is begun anew, and the time doubled, maxStalls times: a request that was sent to
// a server that then ended is never answered. As a whole it fails when it stood still for a minute; there is no other limit.
const (
	firstStall = time.Second
	maxStalls  = 5
)

func stallTime(try int) time.Duration { return firstStall << min(try, maxStalls) }

// watched is a context that ends when alive was not called for stall.
type watched struct {
	context.Context
	stall  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
	last   atomic.Int64 // call of alive, ns
}

func watch(ctx context.Context, stall time.Duration) *watched {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watched{Context: ctx, stall: stall, cancel: cancel}
	w.last.Store(time.Now().UnixNano())
	w.timer = time.AfterFunc(stall, func() { cancel(context.DeadlineExceeded) })
	return w
}

// Deadline moves on: the client waits for each chunk until then, and looks at nothing else meanwhile.
func (w *watched) Deadline() (time.Time, bool) { return time.Unix(0, w.last.Load()).Add(w.stall), true }

func (w *watched) alive() {
	w.last.Store(time.Now().UnixNano())
	w.timer.Reset(w.stall)
}

func (w *watched) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// Put streams r into the artifact store; the same content is stored once. A reader that can seek is hashed first, not sent at all where
// its content is present, and sent again when the server changed hands meanwhile; another reader's content cannot be.
func (b *Board) Put(ctx context.Context, r io.Reader) (Artifact, error) {
	if s, ok := r.(io.ReadSeeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			a, err := hashAll(s)
			if err != nil {
				return Artifact{}, fmt.Errorf("put artifact: %w", err)
			}
			return b.uploadAgain(ctx, s, start, a)
		}
	}
	return b.upload(ctx, r, stallTime(maxStalls))
}

// uploadAgain uploads a from start, unless it is there, until it works, fails for good or ctx ends: the server may just be changing hands.
func (b *Board) uploadAgain(ctx context.Context, s io.ReadSeeker, start int64, a Artifact) (Artifact, error) {
	pause := time.NewTicker(retryPause)
	defer pause.Stop()
	for try := 0; ; try++ {
		if _, err := s.Seek(start, io.SeekStart); err != nil {
			return Artifact{}, fmt.Errorf("put artifact: %w", err)
		}
		present, err := b.present(ctx, a)
		if err == nil && !present {
			_, err = b.upload(ctx, s, stallTime(try))
		}
		if err == nil || !transient(err) || ctx.Err() != nil || b.nc.IsClosed() || try > maxStalls {
			return a, err
		}
		b.log.Debug().Err(err).Msg("upload begins anew")
		select {
		case <-ctx.Done():
			return a, err
		case <-pause.C:
		}
	}
}

func (b *Board) putBytes(ctx context.Context, data []byte) (Artifact, error) {
	return b.Put(ctx, bytes.NewReader(data))
}

// upload stores r under a name of its own and renames it to its hash. A put over an existing name would purge the chunks that
// somebody may be reading; a rename moves the name only, and of two equal uploads at once the later name wins, with the earlier chunks
// still there for who reads them.
func (b *Board) upload(ctx context.Context, r io.Reader, stall time.Duration) (Artifact, error) {
	w := watch(ctx, stall)
	defer w.end()
	ctx = w
	staging := stagingPrefix + uuid.NewString()
	sum := &hashing{r: r, h: sha256.New(), alive: w.alive}
	if _, err := b.objects.Put(ctx, jetstream.ObjectMeta{Name: staging}, sum); err != nil {
		return Artifact{}, fmt.Errorf("put artifact: %w", cmp.Or(context.Cause(ctx), err))
	}
	w.alive()
	a := sum.artifact()
	err := b.objects.UpdateMeta(ctx, staging, jetstream.ObjectMeta{Name: a.SHA256})
	if errors.Is(err, jetstream.ErrObjectAlreadyExists) {
		err = b.objects.Delete(ctx, staging)
	}
	if err != nil {
		return Artifact{}, fmt.Errorf("put artifact %s: %w", a.SHA256, cmp.Or(context.Cause(ctx), err))
	}
	return a, nil
}

func (b *Board) present(ctx context.Context, a Artifact) (bool, error) {
	pctx, cancel := context.WithTimeout(ctx, persistTime)
	defer cancel()
	_, err := persist(pctx, func(ctx context.Context) (*jetstream.ObjectInfo, error) { return b.objects.GetInfo(ctx, a.SHA256) })
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for artifact %s: %w", a.SHA256, err)
	}
	return true, nil
}

// Fetch streams an artifact to w and fails when its hash or size differs; w has then got content that must not be used. When the server
// changes hands meanwhile it reads again from the start, and w gets what it has not got yet.
func (b *Board) Fetch(ctx context.Context, a Artifact, w io.Writer) error {
	rest := &restWriter{w: w}
	for try := 0; ; try++ {
		rest.skip = rest.written
		before := rest.written
		err := b.download(ctx, a, rest, stallTime(try))
		if rest.written > before {
			try = 0
		}
		if err == nil || rest.err != nil || !transient(err) || ctx.Err() != nil || b.nc.IsClosed() || try > maxStalls {
			return err
		}
		b.log.Debug().Err(err).Msg("download begins anew")
		pause(ctx, retryPause)
	}
}

// restWriter passes on what follows the first skip bytes.
type restWriter struct {
	w             io.Writer
	skip, written int64
	err           error // of w
}

func (r *restWriter) Write(p []byte) (int, error) {
	old := int(min(r.skip, int64(len(p))))
	r.skip -= int64(old)
	if old == len(p) {
		return old, nil
	}
	n, err := r.w.Write(p[old:])
	r.written += int64(n)
	r.err = err
	return old + n, err
}

func (b *Board) download(ctx context.Context, a Artifact, w io.Writer, stall time.Duration) error {
	moving := watch(ctx, stall)
	defer moving.end()
	ctx = moving
	obj, err := b.objects.Get(ctx, a.SHA256)
	if err != nil {
		return fmt.Errorf("fetch artifact %s: %w", a.SHA256, cmp.Or(context.Cause(ctx), err))
	}
	defer obj.Close()
	sum := &hashing{r: obj, h: sha256.New(), alive: moving.alive}
	if _, err := io.Copy(w, sum); err != nil {
		return fmt.Errorf("fetch artifact %s: %w", a.SHA256, cmp.Or(context.Cause(ctx), err))
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("fetch artifact %s: %w", a.SHA256, err)
	}
	if got := sum.artifact(); got.SHA256 != a.SHA256 || a.Size != 0 && got.Size != a.Size {
		return fmt.Errorf("fetch artifact %s (%d bytes): content is %s (%d bytes)", a.SHA256, a.Size, got.SHA256, got.Size)
	}
	return nil
}

// hashing hashes and counts what is read through it.
type hashing struct {
	r io.Reader
	h hash.Hash
	n int64

	alive func() // called at each read; may be nil
}

func (h *hashing) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if n > 0 && h.alive != nil {
		h.alive()
	}
	h.h.Write(p[:n])
	h.n += int64(n)
	return n, err
}

func (h *hashing) artifact() Artifact {
	return Artifact{SHA256: hex.EncodeToString(h.h.Sum(nil)), Size: h.n}
}

func hashAll(r io.Reader) (Artifact, error) {
	h := &hashing{r: r, h: sha256.New()}
	_, err := io.Copy(io.Discard, h)
	return h.artifact(), err
}
