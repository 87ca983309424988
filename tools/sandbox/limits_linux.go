package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// cpuGrace is between the signal that a program may handle and the one that it may not, in CPU seconds.
const cpuGrace = 2

// set binds this process, which becomes the command, to the limits that the kernel keeps for each process. tasks are others of its
// uid, which count against its number of processes. No limit is raised.
func (l Limits) set(tasks int) error {
	if l.Processes > 0 {
		l.Processes += tasks
	}
	for _, r := range []struct {
		name       string
		resource   int
		soft, hard int64
	}{
		{"processes", unix.RLIMIT_NPROC, int64(l.Processes), int64(l.Processes)},
		{"memory", unix.RLIMIT_DATA, l.MemoryBytes, l.MemoryBytes}, // not the address space, of which some languages reserve plenty
		{"CPU time", unix.RLIMIT_CPU, int64(l.CPUSecs), int64(l.CPUSecs) + cpuGrace},
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes, l.FileBytes},
		{"open files", unix.RLIMIT_NOFILE, int64(l.OpenFiles), int64(l.OpenFiles)},
		{"core dumps", unix.RLIMIT_CORE, 0, 0},
	} {
		if r.soft < 0 || r.soft == 0 && r.resource != unix.RLIMIT_CORE {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(r.resource, &now); err != nil {
			return at("read the limit of "+r.name, err)
		}
		now.Max = min(now.Max, uint64(r.hard))
		now.Cur = min(now.Max, uint64(r.soft))
		if err := syscall.Setrlimit(r.resource, &now); err != nil {
			return at("limit "+r.name, err)
		}
	}
	return nil
}
