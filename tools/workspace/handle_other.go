//go:build !linux

package workspace

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

func statHandle(fd int) (stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return stat{}, err
	}
	return stat{size: st.Size, regular: uint32(st.Mode)&unix.S_IFMT == unix.S_IFREG, mount: mountID{dev: uint64(st.Dev)}}, nil
}

// entries goes through the entries of one open folder after the other.
type entries struct {
	buf []byte // of use on Linux only
	fd  int
}

// listedAtOnce is how many names are taken from a folder at once.
const listedAtOnce = 1000

func (l *entries) begin(fd int) error {
	l.fd = fd
	return nil
}

// mayIgnore tells whether the folder may have an ignore file.
func (l *entries) mayIgnore() bool { return true }

// each calls do for every entry, until it says no; name is valid only until it returns.
func (l *entries) each(do func(name []byte, k kind) bool) error {
	own, err := unix.FcntlInt(uintptr(l.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(own), "folder")
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(listedAtOnce)
		for _, name := range names {
			if !do([]byte(name), kindUnknown) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
