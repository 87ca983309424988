package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// mountID tells one mount from another: bind mounts and the layers of an overlay share or differ in device numbers
// in ways that say nothing, so the kernel's mount id is asked for and the device is only the fallback.
type mountID struct {
	id  uint64
	dev uint64
}

func mountOf(f *os.File) (mountID, error) {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st)
	if err == nil && st.Mask&unix.STATX_MNT_ID != 0 {
		return mountID{id: st.Mnt_id}, nil
	}
	var old unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &old); err != nil {
		return mountID{}, os.NewSyscallError("fstat", err)
	}
	return mountID{dev: uint64(old.Dev)}, nil
}
