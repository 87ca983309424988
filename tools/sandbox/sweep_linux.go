package sandbox

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// proc is a row of /proc.
type proc struct {
	pid, parent, session int
	threads              int
	state                byte
	start                uint64 // since boot: with pid, names one process for ever
}

// stopRounds bounds the looks at /proc for processes born since the last look, before a kill: a storm may outrun them.
const stopRounds = 20

// sweep stops and kills every descendant of this process, again and again until it has no child left. Stopping first keeps the
// ones found from starting others while the rest is looked for.
func sweep() (left, survivors int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // before a storm, where allowed
	self := os.Getpid()
	counted := map[proc]bool{} // a parent that dies with its child may still reap it, so what is reaped is not all
	for until := time.Now().Add(sweepBound); ; {
		stopped := map[proc]bool{}
		for range stopRounds {
			fresh := 0
			for _, p := range below(processes(), self) {
				if key := p.key(); !stopped[key] {
					stopped[key] = true
					fresh++
					p.signal(unix.SIGSTOP)
				}
			}
			if fresh == 0 {
				break
			}
		}
		for p := range stopped {
			p.signal(unix.SIGKILL)
			counted[p] = true
		}
		n, more := reap()
		left += n
		if !more {
			return max(left, len(counted)), 0
		}
		if time.Now().After(until) {
			return left, len(below(processes(), self))
		}
		time.Sleep(time.Millisecond)
	}
}

// sweepLost kills what can still be found of a tree whose init was killed: members of the command's session, holders of its
// pipes, and whatever is below them. The worker itself, and its children, which are inits, are spared.
func sweepLost(session int, pipes []uint64) (ended, survivors int) {
	self := os.Getpid()
	killed := map[proc]bool{}
	for until := time.Now().Add(drainBound); ; {
		all := processes()
		var found []proc
		for _, p := range all {
			if p.pid == self || p.parent == self || p.state == 'Z' {
				continue
			}
			if session > 0 && p.session == session || p.holds(pipes) {
				found = append(append(found, p), below(all, p.pid)...)
			}
		}
		if len(found) == 0 {
			return len(killed), 0
		}
		for _, p := range found {
			p.signal(unix.SIGKILL)
			killed[p.key()] = true
		}
		if time.Now().After(until) {
			return len(killed) - len(found), len(found)
		}
		time.Sleep(time.Millisecond)
	}
}

// key is what stays the same over a process's life.
func (p proc) key() proc { return proc{pid: p.pid, start: p.start} }

// signal sends sig to the process that p describes, and to no other that has its number by now.
func (p proc) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if now, ok := readProc(p.pid); !ok || now.start != p.start {
		return
	}
	if err != nil || unix.PidfdSendSignal(fd, sig, nil, 0) != nil { // a kernel or filter without pidfds
		_ = unix.Kill(p.pid, sig)
	}
}

func (p proc) holds(pipes []uint64) bool {
	dir := "/proc/" + strconv.Itoa(p.pid) + "/fd/"
	names, err := readNames(dir)
	if err != nil {
		return false
	}
	for _, n := range names {
		var st unix.Stat_t
		if unix.Stat(dir+n, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO && slices.Contains(pipes, st.Ino) {
			return true
		}
	}
	return false
}

// processes lists all that /proc shows.
func processes() []proc {
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	all := make([]proc, 0, len(names))
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// below picks the living descendants of root.
func below(all []proc, root int) []proc {
	children := make(map[int][]proc, len(all))
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	var found []proc
	for next := children[root]; len(next) > 0; {
		p := next[0]
		next = append(next[1:], children[p.pid]...)
		if p.state != 'Z' && p.state != 'X' {
			found = append(found, p)
		}
	}
	return found
}

// readProc reads /proc/pid/stat: "pid (name, which may hold anything) state ppid pgrp session … starttime …".
func readProc(pid int) (proc, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return proc{}, false
	}
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	_ = unix.Close(fd)
	if err != nil || n <= 0 {
		return proc{}, false
	}
	_, rest, ok := cutLast(buf[:n], ')')
	fields := bytes.Fields(rest)
	const start, threads = 19, 17 // of the fields after the name
	if !ok || len(fields) <= start {
		return proc{}, false
	}
	p := proc{pid: pid, state: fields[0][0]}
	p.parent, _ = strconv.Atoi(string(fields[1]))
	p.session, _ = strconv.Atoi(string(fields[3]))
	p.threads, _ = strconv.Atoi(string(fields[threads]))
	p.start, _ = strconv.ParseUint(string(fields[start]), 10, 64)
	return p, true
}

func cutLast(b []byte, sep byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(b, sep)
	if i < 0 {
		return b, nil, false
	}
	return b[:i], b[i+1:], true
}
