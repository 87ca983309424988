package sandbox

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reaper is an init: the parent of a command and of every orphan below it.
type reaper struct {
	box   boxSpec
	main  int                    // the command
	pidfd int                    // of the command, -1 where the kernel has none
	asked atomic.Bool            // the worker's side of the socket has ended, or a limit was passed
	limit atomic.Pointer[string] // which
}

// runInit is the whole life of an init; the result is its exit status, which nobody needs.
func runInit() int {
	sock := become()
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	body, fds, err := readFrame(sock)
	closeAll(fds)
	r := &reaper{pidfd: -1}
	if err != nil || decode(body, &r.box) != nil {
		return 1
	}
	stage, err := r.prepare(sock, body)
	if err != nil {
		_ = tell(sock, failure(err))
		return 1
	}
	body, fds, err = readFrame(sock)
	if err != nil {
		return 0 // a spare that nobody needed
	}
	begun := time.Now()
	go r.watch(sock)
	err = sendFrame(stage, body, fds...)
	closeAll(fds) // the command alone holds its streams now
	if err == nil {
		err = verdictOf(stage)
	}
	if err != nil {
		_ = tell(sock, failure(err))
		return 1
	}
	if tell(sock, message{kind: started, pid: r.main}) != nil {
		r.end("")
	}
	if r.box.layers.has(layerLimits) {
		go r.guard(begun)
	}
	status, cpu := r.awaitCommand()
	m := message{kind: finished, status: uint32(status), nanos: int64(time.Since(begun)), killed: r.asked.Load()}
	m.left, m.survivors = r.endRest()
	if m.text = r.box.limitOf(status, cpu); r.limit.Load() != nil {
		m.text = *r.limit.Load()
	}
	_ = tell(sock, m)
	return 0
}

// verdictOf waits until the stage has become the command, or says why it did not.
func verdictOf(stage fdSocket) error {
	_, _, err := expect(stage, started) // never said: at exec the socket just ends
	if errors.Is(err, errEnded) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// prepare makes what a command needs before it is known, and starts the stage that will become it.
func (r *reaper) prepare(sock fdSocket, body []byte) (stage fdSocket, err error) {
	unix.Umask(0o022)
	l := r.box.layers
	switch {
	case !l.has(layerPID):
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return -1, at("become a subreaper", err)
		}
	case l.has(layerProc):
		if !l.has(layerMount) {
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return -1, at("make the mounts private", err)
			}
		}
		if err := mountProc(); err != nil {
			return -1, err
		}
		raisePIDs()
		if os.Geteuid() == 0 {
			if err := shieldProc(); err != nil {
				return -1, err
			}
		}
	}
	own, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return -1, at("open a pidfd", err)
	}
	defer unix.Close(own)
	exe := selfExe
	if l.has(layerMount) {
		exe = hiddenExe
	}
	pid, fd, err := helper(exe, stageName, inherited, &syscall.SysProcAttr{PidFD: &r.pidfd})
	if err != nil {
		return -1, at("start a stage", err)
	}
	r.main = pid
	if err := sendFrame(fdSocket(fd), body); err != nil {
		return -1, at("talk to a stage", err)
	}
	return fdSocket(fd), tell(sock, message{kind: ready}, own)
}

// shieldProc keeps a command of uid 0 from what the host's root may do there: without capabilities that is still its files.
func shieldProc() error {
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug", "latency_stats"} {
		name = "/proc/" + name
		err := unix.Mount(name, name, "", unix.MS_BIND, "")
		if err == nil {
			const shut = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
			err = unix.Mount("", name, "", unix.MS_REMOUNT|unix.MS_BIND|shut, "")
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return at("shut "+name, err)
		}
	}
	return nil
}

// raisePIDs has the namespace number its processes from high up, where the host has none, so that a number that a command
// writes down names nothing outside. Where it may not, the numbers are merely small.
func raisePIDs() {
	const low, high = 1_500_000, 4_000_000
	b, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return
	}
	from, to := low, min(high, limit-100_000)
	if to <= from { // an old kernel, where the host's small limit holds inside too
		from, to = limit/2, limit-limit/8
	}
	if to <= from {
		return
	}
	next := strconv.Itoa(from + rand.IntN(to-from))
	_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(next), 0)
}

// watch waits for the end of the socket and then kills the command; endRest sees to the others.
func (r *reaper) watch(sock fdSocket) {
	var b [1]byte
	for {
		if n, _, err := sock.recv(b[:], nil); err != nil || n == 0 {
			break
		}
	}
	r.end("")
}

// end kills the command, for the limit that it passed or because it was asked to.
func (r *reaper) end(limit string) {
	if limit != "" {
		r.limit.CompareAndSwap(nil, &limit)
	}
	r.asked.Store(true)
	if r.pidfd < 0 || unix.PidfdSendSignal(r.pidfd, unix.SIGKILL, nil, 0) != nil {
		_ = unix.Kill(r.main, unix.SIGKILL)
	}
}

// awaitCommand reaps orphans until the command itself ends.
// It returns the CPU time of the command too, and of what it waited for.
func (r *reaper) awaitCommand() (syscall.WaitStatus, time.Duration) {
	for {
		var ws syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &ws, 0, &used)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // no child at all: cannot happen while the command is unreaped
			return syscall.WaitStatus(unix.SIGKILL), 0
		case pid == r.main:
			return ws, time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
}

// endRest ends what the command left. Orphans fall to this process, so no child means no descendant.
func (r *reaper) endRest() (left, survivors int) {
	for until := time.Now().Add(leaveBound); ; {
		if _, more := reap(); !more {
			return 0, 0
		}
		if r.asked.Load() || time.Now().After(until) {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if !r.box.layers.has(layerPID) {
		return sweep()
	}
	// Counted before: a parent that dies with its child may still reap it.
	counted := len(below(processes(), os.Getpid()))
	// Atomic: the kernel lets nobody fork between. It spares process 1, this one.
	_ = unix.Kill(-1, unix.SIGKILL)
	for {
		if _, _, err := wait4(-1); err != nil {
			return max(left, counted), 0
		}
		left++
	}
}

// reap collects the children that have ended; more says that others live.
func reap() (n int, more bool) {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return n, false
		case pid == 0:
			return n, true
		default:
			n++
		}
	}
}
