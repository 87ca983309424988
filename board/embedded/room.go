package embedded

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// roomNeeded is what a disk must take before a server starts on it. Recovering a store writes; one that runs out of room meanwhile
// ends the process with a panic (nats-server 2.15.2), so it is not begun.
const roomNeeded = 4 << 20

// fullError: the disk of a data folder takes no more.
type fullError struct {
	dir  string
	free uint64
	why  error
}

func (e *fullError) Error() string {
	return fmt.Sprintf("data folder %s: its disk is full (%v): %d bytes (%.1f MiB) free, %d MiB needed; make room there",
		e.dir, e.why, e.free, float64(e.free)/(1<<20), roomNeeded>>20)
}

func (e *fullError) Unwrap() error { return e.why }

// full makes a fullError of one that says so; others stay as they are.
func full(dir string, err error) error {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	why := error(unix.ENOSPC)
	if errors.Is(err, unix.EDQUOT) {
		why = unix.EDQUOT // the figure of the disk says nothing about it
	}
	return &fullError{dir: dir, free: free(dir), why: why}
}

// room writes what a server needs and takes it away again: a quota, reserved blocks and spent inodes show in no figure.
// The file has no name while it is filled, so nothing stays behind a process that is killed meanwhile, and on most file systems nothing reaches the disk.
func room(dir string) error {
	f, err := os.CreateTemp(dir, ".room-*")
	if err != nil {
		return full(dir, fmt.Errorf("write to data folder: %w", err))
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("write to data folder: %w", err)
	}
	block := make([]byte, 256<<10)
	for range roomNeeded / len(block) {
		if _, err := f.Write(block); err != nil {
			return full(dir, fmt.Errorf("write to data folder %s: %w", dir, err))
		}
	}
	return nil
}

// free is what an ordinary user may still store on the disk of a folder, 0 where that is unknown.
func free(dir string) uint64 {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0
	}
	return uint64(st.Bavail) * uint64(st.Bsize)
}
