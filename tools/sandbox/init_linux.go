package sandbox

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The names under which this program re-executes itself.
const (
	initName     = "muster-sandbox-init"
	selfTestName = "muster-sandbox-selftest"
)

// sockFD is where an init finds its socket.
const sockFD = 3

// dispatched says that Main was called: without it a re-executed program would be the whole program again.
var dispatched atomic.Bool

// Main must be the first call of every main and TestMain whose program starts commands: the program re-executes itself as the
// init of a command's process tree; there Main never returns.
func Main() {
	dispatched.Store(true)
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case initName:
		syscall.Exit(runInit()) // at once: os.Exit waits a second under the race detector
	case selfTestName:
		syscall.Exit(runSelfTest(os.Args[1:]))
	}
}

// reaper is an init: the parent of a command and of every orphan below it.
type reaper struct {
	rung  rung
	main  int         // the command
	pidfd int         // of the command, -1 where the kernel has none
	asked atomic.Bool // the worker's side of the socket has ended
}

// runInit is the whole life of an init; the result is its exit status, which nobody needs.
func runInit() int {
	closeOnExec()
	sock := fdConn(sockFD)
	s, err := readSpec(sock)
	if err != nil {
		return 1
	}
	r := &reaper{rung: s.rung}
	begun := time.Now()
	at, err := r.setUp(s)
	if err == nil {
		begun = time.Now()
		at, err = r.launch(s)
	}
	if err != nil {
		var no syscall.Errno
		if !errors.As(err, &no) {
			no = syscall.EIO
		}
		_, _ = sock.Write(message{kind: failed, errno: uint32(no)}.encode(at))
		return 1
	}
	// The command alone holds its streams and its folder now.
	_ = unix.Dup3(0, 1, 0)
	_ = unix.Dup3(0, 2, 0)
	_ = unix.Chdir("/")
	if _, err := sock.Write(message{kind: started, pid: uint32(r.main)}.encode("")); err != nil {
		r.asked.Store(true)
	}
	go r.watch(sock)

	status := r.awaitCommand()
	m := message{kind: finished, status: uint32(status), nanos: uint64(time.Since(begun))}
	if r.asked.Load() {
		m.killed = 1
	}
	left, survivors := r.endRest()
	m.left, m.survivors = uint32(left), uint32(survivors)
	_, _ = sock.Write(m.encode(""))
	return 0
}

// setUp makes the rung around this process. The text says at what it failed.
func (r *reaper) setUp(s spec) (string, error) {
	unix.Umask(0o022) // the same modes on every machine
	// Every signal is caught and dropped: what the command's tree sends to its init does not end it, and at exec a caught
	// signal, unlike an ignored one that the worker may have inherited, is back at its default.
	signal.Notify(make(chan os.Signal, 1))
	if r.rung != pidns {
		return "become a subreaper", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "make the mounts private", err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return "mount /proc", err
	}
	raisePIDs()
	return "", nil
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

// launch starts the command from a thread whose mask and capabilities are as a command should find them.
func (r *reaper) launch(s spec) (string, error) {
	if err := unix.Chdir(s.dir); err != nil {
		return "enter the folder " + strconv.Quote(clipText(s.dir)), err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var none unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, nil); err != nil {
		return "clear the signal mask", err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return "drop capabilities", err
	}
	r.pidfd = -1
	pid, err := syscall.ForkExec(s.path, s.args, &syscall.ProcAttr{
		Env: s.env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &r.pidfd},
	})
	if err != nil {
		return "execute it in " + strconv.Quote(clipText(s.dir)), err
	}
	r.main = pid
	return "", nil
}

func clipText(s string) string {
	const most = 1000 // a message's text is bounded
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// watch waits for the end of the socket and then kills the command; endRest sees to the others.
func (r *reaper) watch(sock fdConn) {
	var b [1]byte
	for {
		if _, err := sock.Read(b[:]); err != nil {
			break
		}
	}
	r.asked.Store(true)
	if r.pidfd < 0 || unix.PidfdSendSignal(r.pidfd, unix.SIGKILL, nil, 0) != nil {
		_ = unix.Kill(r.main, unix.SIGKILL)
	}
}

// awaitCommand reaps orphans until the command itself ends.
func (r *reaper) awaitCommand() syscall.WaitStatus {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == nil && pid == r.main {
			return ws
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return syscall.WaitStatus(unix.SIGKILL) // no child at all: cannot happen while the command is unreaped
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
	if r.rung != pidns {
		return sweep()
	}
	// Counted before: a parent that dies with its child may still reap it.
	counted := len(below(processes(), os.Getpid()))
	// Atomic: the kernel lets nobody fork between. It spares process 1, this one.
	_ = unix.Kill(-1, unix.SIGKILL)
	for {
		_, err := syscall.Wait4(-1, nil, 0, nil)
		switch {
		case err == nil:
			left++
		case !errors.Is(err, syscall.EINTR):
			return max(left, counted), 0
		}
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

// closeOnExec keeps every descriptor from the command that some part of the worker leaked. It does not close them: the runtime
// has its own among them.
func closeOnExec() {
	if unix.CloseRange(sockFD, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	names, err := os.ReadDir("/proc/self/fd") // a kernel before 5.11
	if err != nil {
		return
	}
	for _, e := range names {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= sockFD {
			unix.CloseOnExec(fd)
		}
	}
}

// fdConn reads and writes a blocking descriptor without the runtime's poller.
type fdConn int

func (c fdConn) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(c), p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write does not raise SIGPIPE at a worker that is gone: the runtime catches it.
func (c fdConn) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Write(int(c), p[done:])
		if err != nil && !errors.Is(err, unix.EINTR) {
			return done, err
		}
		done += max(n, 0)
	}
	return done, nil
}
