//go:build !linux

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// mountID tells one mount from another.
type mountID struct{ dev uint64 }

func mountOf(f *os.File) (mountID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return mountID{}, os.NewSyscallError("fstat", err)
	}
	return mountID{dev: uint64(st.Dev)}, nil
}
