package sandbox

import (
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// The names under which this program re-executes itself.
const (
	launcherName = "muster-sandbox-launcher"
	holderName   = "muster-sandbox-holder"
	initName     = "muster-sandbox-init"
	stageName    = "muster-sandbox-stage"
	anchorName   = "muster-sandbox-anchor"
	selfTestName = "muster-sandbox-selftest"
)

// selfExe is the running program, also after its file was replaced.
const selfExe = "/proc/self/exe"

// hiddenExe is the program inside a new root, where no command sees it.
const hiddenExe = "/.muster-sandbox"

// sockFD is where a helper finds the socket to whoever started it.
const sockFD = 3

// dispatched says that Main was called: without it a re-executed program would be the whole program again.
var dispatched atomic.Bool

// Main must be the first call of every main and TestMain whose program starts commands: the program re-executes itself as the
// launcher of boxes, the holder of one, the init of a command's process tree, and as the stage that becomes the command; there
// Main never returns. In the program itself it shuts its memory, environment and descriptors to other processes of the same user.
func Main() {
	dispatched.Store(true)
	if len(os.Args) == 0 {
		return
	}
	run := map[string]func() int{
		launcherName: runLauncher, holderName: runHolder, initName: runInit, stageName: runStage, anchorName: runAnchor,
		selfTestName: func() int { return runSelfTest(os.Args[1:]) },
	}[os.Args[0]]
	if run != nil {
		syscall.Exit(run()) // at once: os.Exit waits a second under the race detector
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// helperEnv keeps a short-lived Go program from readying itself for more than it does.
var helperEnv = []string{"GOMAXPROCS=2", "GOGC=off", "GOMEMLIMIT=64MiB", "GOTRACEBACK=none"}

// become is what every helper does first. Every signal is caught and dropped: what a command sends to its helpers does not end them, and
// at exec a caught signal, unlike an ignored one that the worker may have inherited, is back at its default.
func become() fdSocket {
	closeOnExec()
	signal.Notify(make(chan os.Signal, 1))
	return sockFD
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

// inherited are the streams that each helper but the first has from the one before: /dev/null.
var inherited = [3]uintptr{0, 1, 2}

// helper is how one is started: descriptor 3 is an end of a new pair. The other end is the caller's.
func helper(exe, name string, streams [3]uintptr, attr *syscall.SysProcAttr) (pid, sock int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, -1, at("make a socket pair", err)
	}
	defer unix.Close(fds[1])
	attr.Setsid = true // what is typed at the worker's terminal does not reach it
	pid, err = syscall.ForkExec(exe, []string{name}, &syscall.ProcAttr{
		Dir: "/", Env: helperEnv, Files: append(streams[:], uintptr(fds[1])), Sys: attr,
	})
	if err != nil {
		_ = unix.Close(fds[0])
		return 0, -1, err
	}
	return pid, fds[0], nil
}

// wait4 waits for one child, or for any with -1.
func wait4(pid int) (int, syscall.WaitStatus, error) {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(pid, &ws, 0, nil)
		if err != syscall.EINTR {
			return got, ws, err
		}
	}
}

// userSpace maps the worker's own uid into a user namespace, with what its first process needs there.
func userSpace(attr *syscall.SysProcAttr) {
	uid, gid := os.Geteuid(), os.Getegid()
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP,
		unix.CAP_DAC_READ_SEARCH} // for the guard: a command may shut its folders
}
