package workspace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// openUp gives its owner all rights on a folder that cannot be opened, without following a symlink: the folder is
// held by a descriptor that needs no rights on it.
func openUp(parent int, base string) error {
	fd, err := unix.Openat(parent, base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700)
}
