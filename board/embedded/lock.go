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
	l.sign()
	return l, nil
}

// sign writes who holds the lock into it, for the message of one who waits. On a full disk that one reads "another process".
func (l *lock) sign() {
	if l.f.Truncate(0) == nil {
		_, _ = l.f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}

// at says whether l is still the lock of the folder: its file can be removed, or the folder replaced.
func (l *lock) at(dir string) bool {
	mine, err := l.f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(filepath.Join(dir, lockFile))
	return err == nil && os.SameFile(mine, there)
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
