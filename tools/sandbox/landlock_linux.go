package sandbox

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock through its three system calls: the library for it binds all threads of a process, and succeeds where nothing was enforced. Here
// one thread is bound, and what is not enforced is an error.

// The rights of a file system, by the version of the interface that brought them.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsV1 = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
	rightsV2 = rightsV1 | unix.LANDLOCK_ACCESS_FS_REFER
	rightsV3 = rightsV2 | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsV5 = rightsV3 | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	scopes = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL // version 6
)

// leastLandlock is the oldest version worth having: before it, a file could be cut to nothing.
const leastLandlock = 3

// landlockVersion is 0 where there is none.
func landlockVersion() int {
	const askVersion = 1
	v, _, no := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, askVersion)
	if no != 0 {
		return 0
	}
	return int(v)
}

// restrictFiles binds this thread, and what it becomes, to what the box allows.
func restrictFiles(box *boxSpec, cmd *commandSpec) error {
	version := landlockVersion()
	if version < leastLandlock {
		return at(fmt.Sprintf("use Landlock (version %d, at least %d)", version, leastLandlock), unix.ENOSYS)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rightsV3}
	if version >= 5 {
		attr.Handled_access_fs = rightsV5
	}
	if version >= 6 {
		attr.Scoped = scopes
	}
	fd, _, no := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if no != 0 {
		return at("make a Landlock ruleset", no)
	}
	defer unix.Close(int(fd))
	r := ruleset{int(fd), attr.Handled_access_fs}
	if err := r.fill(box, cmd); err != nil {
		return err
	}
	if _, _, no := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); no != 0 {
		return at("enforce Landlock", no)
	}
	return nil
}

type ruleset struct {
	fd      int
	handled uint64
}

func (r ruleset) fill(box *boxSpec, cmd *commandSpec) error {
	const devices = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
	if box.layers.has(layerMount) { // what is not allowed is not there
		for name, rights := range map[string]uint64{"/": readRights, "/dev": readRights | devices, "/proc": readRights | devices, "/tmp": ^uint64(0), "/dev/shm": ^uint64(0)} {
			if err := r.allow(name, rights); err != nil {
				return err
			}
		}
	} else if err := r.fillHost(box, cmd, devices); err != nil {
		return err
	}
	for _, dir := range box.writable {
		if err := r.allow(dir, ^uint64(0)); err != nil {
			return err
		}
	}
	return nil
}

// fillHost allows of the host's own root what a new root would hold.
func (r ruleset) fillHost(box *boxSpec, cmd *commandSpec, devices uint64) error {
	names := append([]string{"/proc", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/hostname"}, systemFolders...)
	for _, n := range etcNames {
		names = append(names, "/etc/"+n)
	}
	names = append(names, box.readable...)
	if cmd.self {
		names = append(names, selfExe)
	}
	for _, n := range names {
		if err := r.allow(n, readRights); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
	for _, n := range append([]string{"ptmx", "pts"}, deviceNames...) {
		if err := r.allow("/dev/"+n, devices|readRights); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EACCES) {
			return err
		}
	}
	return nil
}

// allow gives rights on what name leads to and all below it.
func (r ruleset) allow(name string, rights uint64) error {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return at("allow "+name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return at("allow "+name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	_, _, no := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if no != 0 {
		return at("allow "+name, no)
	}
	return nil
}
