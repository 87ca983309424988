package workspace

import (
	"bytes"
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

// entries goes through the entries of one open folder after the other, in the memory of its buffer.
type entries struct {
	buf   []byte
	fd    int
	n     int  // bytes of entries in buf
	whole bool // they are all that the folder has
}

// listedMore is the room in the buffer that another look is worth. The system refuses one in which the next entry does not fit: some 280 bytes.
const listedMore = 4 << 10

// begin reads the entries of a folder, as far as they fit into the buffer.
func (l *entries) begin(fd int) error {
	l.fd, l.n, l.whole = fd, 0, false
	for len(l.buf)-l.n > listedMore {
		n, err := retry(func() (int, error) { return unix.Getdents(fd, l.buf[l.n:]) })
		if err != nil {
			return err
		}
		if n <= 0 {
			l.whole = true
			return nil
		}
		l.n += n
	}
	return nil
}

// mayIgnore tells whether the folder may have an ignore file.
func (l *entries) mayIgnore() bool {
	return !l.whole || bytes.Contains(l.buf[:l.n], []byte(ignoreName+"\x00"))
}

// each calls do for every entry but . and .., until it says no; name is valid only until it returns.
func (l *entries) each(do func(name []byte, k kind) bool) error {
	for {
		if goOn, err := eachEntry(l.buf[:l.n], do); !goOn || err != nil || l.whole {
			return err
		}
		n, err := retry(func() (int, error) { return unix.Getdents(l.fd, l.buf) })
		if err != nil {
			return err
		}
		l.n, l.whole = n, n <= 0
	}
}

// eachEntry goes through entries as the system writes them; goOn is false where do said no.
func eachEntry(b []byte, do func(name []byte, k kind) bool) (goOn bool, err error) {
	const nameAt = 19 // after inode and offset (8 bytes each), length (2) and type (1)
	for len(b) > nameAt {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size <= nameAt || size > len(b) {
			return false, unix.EIO
		}
		name := b[nameAt:size]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		k := entryKind(b[18])
		b = b[size:]
		if string(name) == "." || string(name) == ".." {
			continue
		}
		if !do(name, k) {
			return false, nil
		}
	}
	return true, nil
}
