package sandbox

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_AARCH64
	hasX32     = false
)

// nativeDenied are the calls that only this architecture has.
var nativeDenied = []uintptr{unix.SYS_KEXEC_FILE_LOAD}

// nativeModes is empty: there are no older calls.
var nativeModes []modeCall
