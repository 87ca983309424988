package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lockBeat is how often a lock that somebody holds is tried again.
const lockBeat = 20 * time.Millisecond

// lockFile opens and locks a file, shared or not. The system drops the lock with the process, however that ends, so
// a lock that can be had belongs to nobody alive. A wait of false gives ErrBusy at once where somebody holds it.
func lockFile(ctx context.Context, name string, shared, wait bool) (*os.File, error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			if sameAsNamed(f, name) {
				return f, nil
			}
			f.Close() // removed by its last holder between our open and our lock
			continue
		}
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, fmt.Errorf("lock %q: %w", name, err)
		}
		if !wait {
			return nil, ErrBusy
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockBeat):
		}
	}
}

func sameAsNamed(f *os.File, name string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(opened, named)
}

// slot is a folder that one process owns while it holds the lock beside it.
type slot struct {
	dir  string
	lock *os.File
}

// takeSlot locks the slot of that name below the cache's folder kind; ErrBusy where somebody alive has it. The folder
// may exist, left by somebody who is not alive.
func (c *Cache) takeSlot(ctx context.Context, kind, name string) (*slot, error) {
	s, err := c.trySlot(ctx, kind, name)
	if !errors.Is(err, ErrBusy) {
		return s, err
	}
	// Perhaps it is only looked at by somebody who reclaims: once that is kept out, busy is busy.
	quiet, err := lockFile(ctx, c.reclaimLock(), true, true)
	if err != nil {
		return nil, err
	}
	defer quiet.Close()
	return c.trySlot(ctx, kind, name)
}

func (c *Cache) trySlot(ctx context.Context, kind, name string) (*slot, error) {
	dir := filepath.Join(c.dir, kind, name)
	lock, err := lockFile(ctx, dir+".lock", false, false)
	if err != nil {
		return nil, err
	}
	return &slot{dir: dir, lock: lock}, nil
}

func (c *Cache) reclaimLock() string { return filepath.Join(c.dir, "reclaim.lock") }

// release removes the slot's folder, and gives the slot up.
func (s *slot) release() error {
	err := removeTree(s.dir)
	if err == nil {
		err = os.Remove(s.lock.Name())
	}
	s.lock.Close()
	return err
}

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) })

// slotName makes a folder's name of an attempt's.
func slotName(attempt string) string {
	if plainName().MatchString(attempt) && filepath.Ext(attempt) != ".lock" {
		return attempt
	}
	sum := sha256.Sum256([]byte(attempt))
	return "x-" + hex.EncodeToString(sum[:16])
}
