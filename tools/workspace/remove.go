package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// removeDepth is how deep a removal descends with one open folder a level; what is deeper is first moved up.
const removeDepth = 64

// removeTree removes a folder with everything in it, or says what is left: folders that forbid it are opened up,
// depth costs neither descriptors nor path length, no symlink is followed and no other mount is entered. A folder
// that is not there is removed already.
func removeTree(dir string) error {
	parent, err := os.Open(filepath.Dir(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	r := remover{name: dir}
	if err := r.removeAt(int(parent.Fd()), filepath.Base(dir)); err != nil {
		return err
	}
	return nil
}

type remover struct {
	name  string
	top   int // the folder to remove, open
	dev   uint64
	moved int
	err   error // the first thing that could not be removed
}

func (r *remover) removeAt(parent int, base string) error {
	fd, err := openToEmpty(parent, base)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return wrapRemove(r.name, unix.Unlinkat(parent, base, 0))
	case err != nil:
		return wrapRemove(r.name, err)
	}
	r.top = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return wrapRemove(r.name, err)
	}
	r.dev = uint64(st.Dev)
	// Folders that were moved up stand in the top itself, so each round goes as deep again.
	for before := -1; before != r.moved && r.err == nil; {
		before = r.moved
		r.empty(fd, ".", 0)
	}
	unix.Close(fd)
	if r.err != nil {
		return r.err
	}
	return wrapRemove(r.name, unix.Unlinkat(parent, base, unix.AT_REMOVEDIR))
}

// openToEmpty opens a folder, not through a symlink, with the rights to list and empty it.
func openToEmpty(parent int, base string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, base, flags, 0)
	if errors.Is(err, unix.EACCES) {
		if cerr := openUp(parent, base); cerr != nil {
			return -1, err
		}
		fd, err = unix.Openat(parent, base, flags, 0)
	}
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Fchmod(fd, 0o700) // the listing says whether it was enough
	}
	return fd, nil
}

// empty removes what is in the folder fd; rel is its path for messages.
func (r *remover) empty(fd int, rel string, depth int) {
	names, err := listFD(fd)
	if err != nil {
		r.failed(rel, err)
		return
	}
	for _, name := range names {
		r.removeEntry(fd, name, filepath.Join(rel, name), depth)
	}
}

func (r *remover) removeEntry(fd int, name, rel string, depth int) {
	err := unix.Unlinkat(fd, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return
	}
	sub, oerr := openToEmpty(fd, name)
	if oerr != nil {
		if errors.Is(oerr, unix.ENOTDIR) || errors.Is(oerr, unix.ELOOP) {
			oerr = err
		}
		r.failed(rel, oerr)
		return
	}
	var st unix.Stat_t
	if err := unix.Fstat(sub, &st); err != nil || uint64(st.Dev) != r.dev {
		unix.Close(sub)
		r.failed(rel, errors.New("is another mount"))
		return
	}
	if depth >= removeDepth {
		unix.Close(sub)
		r.moved++
		up := ".muster-removing-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(r.moved)
		if err := unix.Renameat(fd, name, r.top, up); err != nil {
			r.failed(rel, err)
		}
		return
	}
	r.empty(sub, rel, depth+1)
	unix.Close(sub)
	if r.err != nil {
		return
	}
	if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		r.failed(rel, err)
	}
}

func (r *remover) failed(rel string, err error) {
	if r.err == nil {
		r.err = wrapRemove(filepath.Join(r.name, rel), err)
	}
}

// listFD lists the names in a folder without taking its descriptor over.
func listFD(fd int) ([]string, error) {
	own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(own), ".")
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return names, nil
}

func wrapRemove(name string, err error) error {
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("remove %q: %w; remove it by hand", name, err)
}
