package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter of system calls, put together by hand: the libraries for it let every call of a foreign architecture pass under a list of
// what is denied, and cost more at each start than all of it here.

// deniedCalls are those that no command needs and that have been ways out. Capabilities, which most of them want, are gone already: this is
// the second lock, and the first in a user namespace of the command's own making, which unshare and clone would be.
var deniedCalls = []uintptr{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
	unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_SET_MEMPOLICY,
}

// absentCalls answer that the kernel does not have them, so that programs take the older way: the arguments of clone3 and openat2 are
// out of a filter's reach, and what a memory file holds is seen by no limit.
var absentCalls = []uintptr{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET}

// modeCall is a call that gives a file its mode.
type modeCall struct {
	call  uintptr
	mode  uint32 // the number of its argument
	flags uint32 // the number of the argument whose O_CREAT makes the mode count; 0: it counts always
}

// modeCalls are refused where they would set the set-uid or set-gid bit: what a command writes belongs to the user of the worker on the host,
// so that such a program there would give everybody the rights of that user.
var modeCalls = append([]modeCall{
	{call: unix.SYS_FCHMOD, mode: 1}, {call: unix.SYS_FCHMODAT, mode: 2}, {call: unix.SYS_FCHMODAT2, mode: 2},
	{call: unix.SYS_OPENAT, mode: 3, flags: 2}, {call: unix.SYS_MKNODAT, mode: 2},
}, nativeModes...)

const (
	newSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
		unix.CLONE_NEWNET
	tiocsti, tioclinux = 0x5412, 0x541c // typing for the one at the terminal
	protoMPTCP         = 262            // which Landlock and address filters do not see
	x32Bit             = 0x40000000     // a second table of calls on amd64
)

// filter is a program of the kernel's packet filter over struct seccomp_data.
type filter []unix.SockFilter

// Offsets in struct seccomp_data; the low halves of arguments on a little-endian machine.
const (
	offsetCall, offsetArch = 0, 4
	offsetArgs             = 16
)

const (
	allow  = unix.SECCOMP_RET_ALLOW
	kill   = unix.SECCOMP_RET_KILL_PROCESS
	eperm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

func (f *filter) load(offset uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (f *filter) loadArg(n uint32) { f.load(offsetArgs + 8*n) }

// jump goes on yes or no instructions further.
func (f *filter) jump(test uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: yes, Jf: no})
}

func (f *filter) ret(what uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what})
}

// answer returns what for a call.
func (f *filter) answer(call uintptr, what uint32) {
	f.jump(unix.BPF_JEQ, uint32(call), 0, 1)
	f.ret(what)
}

// inspect runs the checks of body on the arguments of a call; one that comes through them is allowed.
func (f *filter) inspect(call uintptr, body func(*filter)) {
	var b filter
	body(&b)
	b.ret(allow)
	f.jump(unix.BPF_JEQ, uint32(call), 0, uint8(len(b)))
	*f = append(*f, b...)
}

// when answers what if the loaded value compares with k.
func (f *filter) when(test uint16, k, what uint32) {
	f.jump(test, k, 0, 1)
	f.ret(what)
}

// callFilter is the filter for these layers.
func callFilter(l layer) filter {
	var f filter
	f.load(offsetArch)
	f.jump(unix.BPF_JEQ, nativeArch, 1, 0)
	f.ret(kill)
	f.load(offsetCall)
	if hasX32 {
		f.when(unix.BPF_JGE, x32Bit, enosys)
	}
	for _, call := range deniedCalls {
		f.answer(call, eperm)
	}
	for _, call := range nativeDenied {
		f.answer(call, eperm)
	}
	for _, call := range absentCalls {
		f.answer(call, enosys)
	}
	f.inspect(unix.SYS_CLONE, func(f *filter) {
		f.loadArg(0)
		f.when(unix.BPF_JSET, newSpaces, eperm)
	})
	f.inspect(unix.SYS_IOCTL, func(f *filter) {
		f.loadArg(1)
		f.when(unix.BPF_JEQ, tiocsti, eperm)
		f.when(unix.BPF_JEQ, tioclinux, eperm)
	})
	for _, c := range modeCalls {
		f.inspect(c.call, func(f *filter) {
			if c.flags > 0 {
				f.loadArg(c.flags)
				f.jump(unix.BPF_JSET, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 1, 0)
				f.ret(allow)
			}
			f.loadArg(c.mode)
			f.when(unix.BPF_JSET, unix.S_ISUID|unix.S_ISGID, eperm)
		})
	}
	f.inspect(unix.SYS_PRLIMIT64, ownOnly(0))
	f.inspect(unix.SYS_PERSONALITY, func(f *filter) {
		f.loadArg(0)
		for _, usual := range []uint32{0, 8, 0x20000, 0x20008, 0x40000, 0xffffffff} { // and without address randomisation, for debug builds
			f.when(unix.BPF_JEQ, usual, allow)
		}
		f.ret(eperm)
	})
	if l.has(layerShmless) {
		for _, call := range []uintptr{unix.SYS_SHMGET, unix.SYS_SHMAT} {
			f.answer(call, enosys)
		}
	}
	if !l.has(layerIPC) { // the host's
		for _, call := range []uintptr{unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN} {
			f.answer(call, enosys)
		}
	}
	if !l.has(layerPID) {
		for _, call := range []uintptr{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
			f.inspect(call, ownOnly(0))
		}
		for _, call := range []uintptr{unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET} {
			f.inspect(call, ownOnly(1))
		}
	}
	f.inspect(unix.SYS_SOCKET, socketChecks(l))
	f.ret(allow)
	return f
}

// ownOnly lets calls through whose argument n, a process, is 0: the caller itself.
func ownOnly(n uint32) func(*filter) {
	return func(f *filter) {
		f.loadArg(n)
		f.when(unix.BPF_JEQ, 0, allow)
		f.ret(eperm)
	}
}

// socketChecks lets the families of ordinary programs through.
func socketChecks(l layer) func(*filter) {
	families := []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	if l.has(layerSockets) {
		families = []uint32{unix.AF_NETLINK} // pairs of sockets are made by another call
	}
	return func(f *filter) {
		f.loadArg(2)
		f.when(unix.BPF_JEQ, protoMPTCP, unix.SECCOMP_RET_ERRNO|uint32(unix.EPROTONOSUPPORT))
		f.loadArg(0)
		for _, family := range families {
			f.when(unix.BPF_JEQ, family, allow)
		}
		f.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT))
	}
}

// restrictCalls binds this thread, and what it becomes, to the filter.
func restrictCalls(l layer) error {
	f := callFilter(l)
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	if _, _, no := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); no != 0 {
		return at("filter system calls", no)
	}
	return nil
}
