package sandbox

import "runtime"

// DefaultLimits are what a zero in Limits means: enough for the builds and tests of large projects, and little enough that a machine
// survives a command that wants everything.
func DefaultLimits() Limits {
	return Limits{
		Processes:   1024 + 64*runtime.NumCPU(), // a build has some threads for each processor
		MemoryBytes: 4 << 30,
		CPUSecs:     4 * 3600,
		FileBytes:   8 << 30,
		OpenFiles:   4096,
		TmpBytes:    1 << 30,
		DiskBytes:   20 << 30,
		DiskFiles:   2_000_000,
	}
}

func (l Limits) orDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Processes: orDefault(l.Processes, d.Processes), MemoryBytes: orDefault(l.MemoryBytes, d.MemoryBytes), CPUSecs: orDefault(l.CPUSecs, d.CPUSecs),
		FileBytes: orDefault(l.FileBytes, d.FileBytes), OpenFiles: orDefault(l.OpenFiles, d.OpenFiles), TmpBytes: orDefault(l.TmpBytes, d.TmpBytes),
		DiskBytes: orDefault(l.DiskBytes, d.DiskBytes), DiskFiles: orDefault(l.DiskFiles, d.DiskFiles),
	}
}

func orDefault[N int | int64](n, d N) N {
	if n == 0 {
		return d
	}
	return n
}

// reserveOf is how many bytes a command must leave free on a disk of a size, whatever its limits are, since the worker needs it to go on. One
// that begins with less may run on as long as it writes little.
func reserveOf(disk int64) int64 { return min(disk/10, 512<<20) }
