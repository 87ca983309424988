package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The guard looks after what the kernel limits for one process only: the memory of a whole tree, its growth on the disk, and what the machine
// has left for others.

const (
	guardBeat = 100 * time.Millisecond
	smallTree = 64 << 20 // bytes of memory below which a tree is not to blame for a machine that runs out
)

// guard ends the command, which begun tells the start of, when it passes a limit.
func (r *reaper) guard(begun time.Time) {
	g := guard{box: &r.box}
	g.begun = begun
	g.due = time.Now().Add(time.Second)
	beat := time.NewTicker(guardBeat)
	defer beat.Stop()
	for range beat.C {
		if limit := g.passed(); limit != "" {
			r.end(limit)
			return
		}
	}
}

type guard struct {
	box *boxSpec
	diskGuard
}

// passed names the limit that is passed now.
func (g *guard) passed() string {
	tree := below(processes(), os.Getpid()) // empty where there is no /proc
	l := g.box.limits
	tasks := 0
	for _, p := range tree {
		tasks += p.threads
	}
	if l.Processes > 0 && tasks > l.Processes { // no uid 0 is bound by the kernel's own limit
		return fmt.Sprintf("processes: %d with their threads, %d allowed", tasks, l.Processes)
	}
	used := memoryOfTree(tree, false)
	if l.MemoryBytes > 0 && used > l.MemoryBytes {
		if used = memoryOfTree(tree, true); used > l.MemoryBytes {
			return fmt.Sprintf("memory: %s used, %s allowed", size(used), size(l.MemoryBytes))
		}
	}
	if free, least := memoryLeft(); free < least && (used > smallTree || tasks > 64) {
		return fmt.Sprintf("memory: the machine has %s left, and this command uses %s with %d processes", size(free), size(used), len(tree))
	}
	return g.disk(tree)
}

// memoryOfTree sums what the processes hold, in bytes: quickly, with shared pages counted for each, or exactly.
func memoryOfTree(tree []proc, exact bool) (sum int64) {
	for _, p := range tree {
		dir := "/proc/" + strconv.Itoa(p.pid)
		if exact {
			if n, ok := proportional(dir); ok {
				sum += n
				continue
			}
		}
		b, err := os.ReadFile(dir + "/statm")
		if err != nil {
			continue
		}
		if f := bytes.Fields(b); len(f) > 1 {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			sum += n * int64(os.Getpagesize())
		}
	}
	return sum
}

func proportional(dir string) (n int64, ok bool) {
	b, err := os.ReadFile(dir + "/smaps_rollup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		name, v, _ := strings.Cut(line, ":")
		if name == "Pss" || name == "SwapPss" {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			n += kb << 10
			ok = true
		}
	}
	return n, ok
}

// memoryLeft is what the machine has for new programs, and what it should keep.
func memoryLeft() (free, least int64) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 1, 0
	}
	var total int64
	for line := range strings.Lines(string(b)) {
		name, v, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
		switch name {
		case "MemTotal":
			total = kb << 10
		case "MemAvailable":
			free = kb << 10
		}
	}
	return free, min(max(total/32, 128<<20), 1<<30)
}

// limitOf names the limit of the kernel that a status tells of.
func (s *boxSpec) limitOf(ws syscall.WaitStatus, cpu time.Duration) string {
	l := s.limits
	switch {
	case ws.Signaled() && (ws.Signal() == unix.SIGXCPU || l.CPUSecs > 0 && cpu >= time.Duration(l.CPUSecs)*time.Second):
		return fmt.Sprintf("CPU time: %d s allowed", l.CPUSecs)
	case ws.Signaled() && ws.Signal() == unix.SIGXFSZ:
		if room := spareOf(s.writable); l.FileBytes <= 0 || room.bytes < l.FileBytes {
			return fmt.Sprintf("file size: what the disk has to spare; %s of it are free, and %s are kept in reserve", size(room.free), size(room.reserve))
		}
		return fmt.Sprintf("file size: %s allowed", size(l.FileBytes))
	}
	return ""
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
