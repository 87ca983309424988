package sandbox

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_X86_64
	hasX32     = true
)

// nativeDenied are the calls that only this architecture has.
var nativeDenied = []uintptr{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
	unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_QUERY_MODULE,
}

// nativeModes are the older calls that give a file its mode.
var nativeModes = []modeCall{
	{call: unix.SYS_CHMOD, mode: 1}, {call: unix.SYS_OPEN, mode: 2, flags: 1}, {call: unix.SYS_CREAT, mode: 1}, {call: unix.SYS_MKNOD, mode: 1},
}
