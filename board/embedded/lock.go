package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lock is the right to run a server on a store. The kernel frees it with the process, however that ends.
type lock struct{ f *os.File }

// tryLock takes the lock of a folder; nil without an error when another holds it.
func tryLock(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, f.Close()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w (the data folder must be on a local file system)", f.Name(), err)
	}
	l := &lock{f}
	if err := l.sign(); err != nil {
		_ = l.release()
		return nil, err
	}
	return l, nil
}

// sign writes who holds the lock into it, for the message of one who waits.
func (l *lock) sign() error {
	if err := l.f.Truncate(0); err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	if _, err := l.f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	return nil
}

func (l *lock) release() error { return l.f.Close() }

// holder says who signed the lock of a folder last.
func holder(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, lockFile))
	pid := strings.TrimSpace(string(b))
	if err != nil || pid == "" {
		return "another process"
	}
	return "process " + pid
}
