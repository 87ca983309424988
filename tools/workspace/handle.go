package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// stat is what a walk needs to know of an open file or folder.
type stat struct {
	size    int64
	regular bool
	mount   mountID
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

const handleFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY

// openFolder opens a folder by its name in an open one; a link is not followed.
func openFolder(dir int, name string) (int, stat, error) {
	return openHandle(dir, name, handleFlags|unix.O_DIRECTORY)
}

// openFile opens what is named in an open folder; the caller looks whether it is regular. A FIFO does not block it, a link is not followed.
func openFile(dir int, name string) (int, stat, error) {
	return openHandle(dir, name, handleFlags)
}

func openHandle(dir int, name string, flags int) (int, stat, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(dir, name, flags, 0) })
	if err != nil {
		return -1, stat{}, err
	}
	st, err := statHandle(fd)
	if err != nil {
		closeHandle(fd)
		return -1, stat{}, err
	}
	return fd, st, nil
}

// keepHandle gives the handle of an open folder a life of its own.
func keepHandle(f *os.File) (int, mountID, error) {
	mount, err := mountOf(f)
	if err != nil {
		return -1, mount, err
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return fd, mount, err
}

func closeHandle(fd int) { unix.Close(fd) }

func readHandle(fd int, p []byte) (int, error) {
	return retry(func() (int, error) { return unix.Read(fd, p) })
}

// kindAt asks for the kind of an entry where the folder does not say it.
func kindAt(dir int, name string) kind {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return kindOther
	}
	return entryKind(uint8(st.Mode & unix.S_IFMT >> 12))
}

// entryKind is the kind of a folder entry's type, which is the upper bits of a mode.
func entryKind(t uint8) kind {
	switch t {
	case unix.DT_REG:
		return kindFile
	case unix.DT_DIR:
		return kindFolder
	case unix.DT_LNK:
		return kindLink
	case unix.DT_UNKNOWN:
		return kindUnknown
	}
	return kindOther
}
