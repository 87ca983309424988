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

// listedAtOnce is how many names are taken from a folder at once.
const listedAtOnce = 1000

// listEntries calls each for every entry of an open folder, until it says no; name is valid only until it returns.
func listEntries(fd int, _ []byte, each func(name []byte, k kind) bool) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(own), "folder")
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(listedAtOnce)
		for _, name := range names {
			if !each([]byte(name), kindUnknown) {
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
