package sandbox

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cpuGrace is between the signal that a program may handle and the one that it may not, in CPU seconds.
const cpuGrace = 2

// bound is a limit that the kernel keeps for each process.
type bound struct {
	name     string
	resource int
	to       syscall.Rlimit
}

// bounds are those of a process that becomes the command. tasks are others of its uid, which count against its number of processes. No limit
// is raised.
func (l Limits) bounds(tasks int) ([]bound, error) {
	if l.Processes > 0 {
		l.Processes += tasks
	}
	var bounds []bound
	for _, r := range []struct {
		name       string
		resource   int
		soft, hard int64
	}{
		{"processes", unix.RLIMIT_NPROC, int64(l.Processes), int64(l.Processes)},
		{"CPU time", unix.RLIMIT_CPU, int64(l.CPUSecs), int64(l.CPUSecs) + cpuGrace},
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes, l.FileBytes},
		{"open files", unix.RLIMIT_NOFILE, int64(l.OpenFiles), int64(l.OpenFiles)},
		{"core dumps", unix.RLIMIT_CORE, 0, 0},
		{"memory", unix.RLIMIT_DATA, l.MemoryBytes, l.MemoryBytes}, // not the address space, of which some languages reserve plenty
	} {
		if r.soft < 0 || r.soft == 0 && r.resource != unix.RLIMIT_CORE {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(r.resource, &now); err != nil {
			return nil, at("read the limit of "+r.name, err)
		}
		now.Max = min(now.Max, uint64(r.hard))
		now.Cur = min(now.Max, uint64(r.soft))
		bounds = append(bounds, bound{r.name, r.resource, now})
	}
	return bounds, nil
}

// The runtime's lock for exec: while it is held no thread is being started, and none will be.
//
//go:linkname beforeExec syscall.runtime_BeforeExec
func beforeExec()

//go:linkname afterExec syscall.runtime_AfterExec
func afterExec()

// execBound is syscall.Exec under limits. They are set where the runtime can start no thread: it may at any moment, and ends the process where the
// limits do not allow it. Nothing is allocated under them either. It returns only with an error.
func execBound(bounds []bound, cmd *commandSpec) error {
	if len(bounds) == 0 {
		return syscall.Exec(cmd.path, cmd.args, cmd.env) // gives back the number of open files that the runtime has raised
	}
	path, err := syscall.BytePtrFromString(cmd.path)
	if err != nil {
		return err
	}
	args, err := syscall.SlicePtrFromStrings(cmd.args)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(cmd.env)
	if err != nil {
		return err
	}
	beforeExec()
	defer afterExec()
	for i := range bounds {
		if _, _, no := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(bounds[i].resource), uintptr(unsafe.Pointer(&bounds[i].to)), 0, 0, 0); no != 0 {
			return at("limit "+bounds[i].name, no)
		}
	}
	_, _, no := syscall.RawSyscall(unix.SYS_EXECVE,
		uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&env[0])))
	return no
}
