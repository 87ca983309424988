//go:build unix

package sandbox

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitOf reads a status as wait(2) gives it.
func exitOf(ws syscall.WaitStatus) Exit {
	if !ws.Signaled() {
		return Exit{Code: ws.ExitStatus()}
	}
	name := unix.SignalName(ws.Signal())
	if name == "" { // real-time signals have no names
		name = fmt.Sprintf("signal %d", int(ws.Signal()))
	}
	return Exit{Code: -1, Signal: name}
}
