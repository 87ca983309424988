//go:build linux

package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setIDAttacks leave a set-uid program in the workspace, where it belongs to the user of the worker: whoever of the host runs it is that user.
func setIDAttacks() []attack {
	here := ^uintptr(99) // AT_FDCWD
	const mode = unix.S_IFREG | unix.S_ISUID | 0o755
	list := []attack{
		made("fchmodat", onFile(func(f string) error { return call(unix.SYS_FCHMODAT, here, cstring(f), mode&0o7777) })),
		made("fchmodat2", onFile(func(f string) error { return call(unix.SYS_FCHMODAT2, here, cstring(f), mode&0o7777, 0) })),
		made("setgid", onFile(func(f string) error { return call(unix.SYS_FCHMODAT, here, cstring(f), unix.S_ISGID|0o755) })),
		made("fchmod", onFile(func(name string) error {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			return call(unix.SYS_FCHMOD, f.Fd(), mode&0o7777)
		})),
		born("openat", func(f string) error {
			return call(unix.SYS_OPENAT, here, cstring(f), unix.O_CREAT|unix.O_WRONLY, mode&0o7777)
		}),
		born("openat2", func(f string) error {
			how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: mode & 0o7777}
			return call(unix.SYS_OPENAT2, here, cstring(f), uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow)
		}),
		born("tmpfile", func(name string) error {
			fd, err := unix.Open(filepath.Dir(name), unix.O_TMPFILE|unix.O_WRONLY, mode&0o7777)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+itoa(fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
		}),
		born("mknodat", func(f string) error { return call(unix.SYS_MKNODAT, here, cstring(f), mode, 0) }),
	}
	if runtime.GOARCH == "amd64" { // the numbers of the calls that others do not have
		list = append(list,
			made("chmod", onFile(func(f string) error { return call(90, cstring(f), mode&0o7777) })),
			born("open", func(f string) error { return call(2, cstring(f), unix.O_CREAT|unix.O_WRONLY, mode&0o7777) }),
			born("creat", func(f string) error { return call(85, cstring(f), mode&0o7777) }),
			born("mknod", func(f string) error { return call(133, cstring(f), mode, 0) }),
		)
	}
	return list
}

// born is made, of a file that has the mode from its beginning.
func born(name string, do func(file string) error) attack {
	a := made(name, do)
	a.maybe = onFUSE()
	return a
}

// made is the attack that makes the file.
func made(name string, do func(file string) error) attack {
	return attack{name: "suid_" + name, do: func(v victim) finding {
		file := v.Workspace + "/lent-" + name
		defer os.Remove(file)
		if err := do(file); err != nil {
			return stopped("%v", err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(file, &st); err != nil {
			return lacking("%v", err)
		}
		if st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0 {
			return stopped("the file has mode %o", st.Mode)
		}
		return works("a file of mode %o", st.Mode)
	}}
}

// call makes a system call by its number; a descriptor that it gives is closed.
func call(no uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	fd, _, errno := unix.Syscall6(no, a[0], a[1], a[2], a[3], a[4], a[5])
	switch {
	case errno != 0:
		return errno
	case fd > 2:
		return unix.Close(int(fd))
	}
	return nil
}

// cstring is a string for a system call.
func cstring(s string) uintptr {
	b, err := unix.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	pinned = append(pinned, b)
	return uintptr(unsafe.Pointer(b))
}

// onFile makes the file first.
func onFile(do func(file string) error) func(string) error {
	return func(file string) error {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return err
		}
		return do(file)
	}
}

// pinned holds what only a number points to.
var pinned []*byte
