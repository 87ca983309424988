package workspace

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

func statHandle(fd int) (stat, error) {
	var x unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_SIZE|unix.STATX_MNT_ID, &x); err != nil {
		return stat{}, err
	}
	st := stat{size: int64(x.Size), regular: x.Mode&unix.S_IFMT == unix.S_IFREG, mount: mountID{id: x.Mnt_id}}
	if x.Mask&unix.STATX_MNT_ID == 0 {
		st.mount = mountID{dev: unix.Mkdev(x.Dev_major, x.Dev_minor)}
	}
	return st, nil
}

// listEntries calls each for every entry of an open folder but . and .., until it says no; name is valid only until it returns.
func listEntries(fd int, buf []byte, each func(name []byte, k kind) bool) error {
	const nameAt = 19 // after inode and offset (8 bytes each), length (2) and type (1)
	for {
		n, err := retry(func() (int, error) { return unix.Getdents(fd, buf) })
		if err != nil || n <= 0 {
			return err
		}
		for b := buf[:n]; len(b) > nameAt; {
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size <= nameAt || size > len(b) {
				return unix.EIO
			}
			name := b[nameAt:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			k := entryKind(b[18])
			b = b[size:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			if !each(name, k) {
				return nil
			}
		}
	}
}
