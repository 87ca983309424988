//go:build !linux

package workspace

import (
	"os"
	"syscall"
)

// exchange is not to be had here in one step.
func exchange(*os.Root, string, string) error { return syscall.ENOTSUP }
