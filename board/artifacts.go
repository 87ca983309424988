package board

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
)

// transferTime bounds one upload or download; without a deadline the client gives up after five seconds, however large the content.
const transferTime = time.Hour

// Put streams r into the artifact store; the same content is stored once. A reader that can seek is hashed first and not sent at all
// where its content is present.
func (b *Board) Put(ctx context.Context, r io.Reader) (Artifact, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	if s, ok := r.(io.ReadSeeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			a, err := hashAll(s)
			if err != nil {
				return Artifact{}, fmt.Errorf("put artifact: %w", err)
			}
			return b.uploadAgain(ctx, s, start, a)
		}
	}
	return b.upload(ctx, r)
}

// uploadAgain uploads a from start, unless it is there, until it works, fails for good or ctx ends: the server may just be changing hands.
func (b *Board) uploadAgain(ctx context.Context, s io.ReadSeeker, start int64, a Artifact) (Artifact, error) {
	pause := time.NewTicker(retryPause)
	defer pause.Stop()
	for {
		if _, err := s.Seek(start, io.SeekStart); err != nil {
			return Artifact{}, fmt.Errorf("put artifact: %w", err)
		}
		present, err := b.present(ctx, a)
		if err == nil && !present {
			_, err = b.upload(ctx, s)
		}
		if err == nil || !transient(err) || ctx.Err() != nil || b.nc.IsClosed() {
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
func (b *Board) upload(ctx context.Context, r io.Reader) (Artifact, error) {
	staging := stagingPrefix + uuid.NewString()
	sum := &hashing{r: r, h: sha256.New()}
	if _, err := b.objects.Put(ctx, jetstream.ObjectMeta{Name: staging}, sum); err != nil {
		return Artifact{}, fmt.Errorf("put artifact: %w", err)
	}
	a := sum.artifact()
	err := b.objects.UpdateMeta(ctx, staging, jetstream.ObjectMeta{Name: a.SHA256})
	if errors.Is(err, jetstream.ErrObjectAlreadyExists) {
		err = b.objects.Delete(ctx, staging)
	}
	if err != nil {
		return Artifact{}, fmt.Errorf("put artifact %s: %w", a.SHA256, err)
	}
	return a, nil
}

func (b *Board) present(ctx context.Context, a Artifact) (bool, error) {
	_, err := b.objects.GetInfo(ctx, a.SHA256)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for artifact %s: %w", a.SHA256, err)
	}
	return true, nil
}

// Fetch streams an artifact to w and fails when its hash or size differs; w has then got content that must not be used.
func (b *Board) Fetch(ctx context.Context, a Artifact, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	obj, err := b.objects.Get(ctx, a.SHA256)
	if err != nil {
		return fmt.Errorf("fetch artifact %s: %w", a.SHA256, err)
	}
	defer obj.Close()
	sum := &hashing{r: obj, h: sha256.New()}
	if _, err := io.Copy(w, sum); err != nil {
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
}

func (h *hashing) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
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
