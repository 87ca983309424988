//go:build !linux

package workspace

import "golang.org/x/sys/unix"

// openUp gives its owner all rights on a folder that cannot be opened, without following a symlink.
func openUp(parent int, base string) error {
	return unix.Fchmodat(parent, base, 0o700, unix.AT_SYMLINK_NOFOLLOW)
}
