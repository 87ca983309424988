package sandbox

import (
	"errors"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder is the first process of a box: it makes the box around itself and hands out inits, of which it keeps a spare, since the
// start of a program is most of what a command costs.
type holder struct {
	spec  boxSpec
	body  []byte // spec, encoded
	spare int    // the worker's end of an init's socket, -1 for none
}

// runHolder is the whole life of a holder.
func runHolder() int {
	sock := become()
	h := holder{spare: -1}
	var fds []int
	var err error
	if h.body, fds, err = readFrame(sock); err != nil {
		return 1
	}
	if err = decode(h.body, &h.spec); err != nil {
		return 1
	}
	ids := -1
	if len(fds) > 0 {
		ids = fds[0]
	}
	listener, err := h.setUp(ids)
	closeAll(fds)
	if err != nil {
		_ = tell(sock, failure(err))
		return 1
	}
	chld := make(chan os.Signal, 1)
	signal.Notify(chld, syscall.SIGCHLD)
	var closing atomic.Bool
	go h.reap(chld, &closing)
	own, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		_ = tell(sock, failure(at("open a pidfd", err)))
		return 1
	}
	out := []int{own}
	if listener >= 0 {
		out = append(out, listener)
	}
	err = tell(sock, message{kind: ready}, out...)
	closeAll(out)
	for err == nil {
		if _, fds, err = readFrame(sock); err != nil {
			closeAll(fds)
			break
		}
		err = h.give(sock)
	}
	closing.Store(true)
	left, survivors := h.endAll()
	_ = tell(sock, message{kind: finished, left: left, survivors: survivors})
	return 0
}

// give hands out an init, and readies the next.
func (h *holder) give(sock fdSocket) error {
	fd, err := h.spare, error(nil)
	if h.spare = -1; fd < 0 {
		fd, err = h.newInit()
	}
	if err != nil {
		return tell(sock, failure(err))
	}
	err = tell(sock, message{kind: given}, fd)
	_ = unix.Close(fd)
	if err != nil {
		return err
	}
	if h.spare, err = h.newInit(); err != nil {
		h.spare = -1 // the next command will say why
	}
	return nil
}

func (h *holder) newInit() (int, error) {
	attr := &syscall.SysProcAttr{}
	if h.spec.layers.has(layerPID) {
		attr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	exe := selfExe
	if h.spec.layers.has(layerMount) {
		exe = hiddenExe
	}
	_, fd, err := helper(exe, initName, inherited, attr)
	if err != nil {
		return -1, at("start an init", err)
	}
	if err := sendFrame(fdSocket(fd), h.body); err != nil {
		_ = unix.Close(fd)
		return -1, at("talk to an init", err)
	}
	return fd, nil
}

// reap collects inits that have ended, and what they left where they are no first processes of a namespace.
func (h *holder) reap(chld <-chan os.Signal, closing *atomic.Bool) {
	for range chld {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, syscall.EINTR) || closing.Load() {
				break
			}
		}
	}
}

// endAll ends what the box has left. An init whose socket ends does the same with its own.
func (h *holder) endAll() (left, survivors int) {
	if h.spare >= 0 {
		_ = unix.Close(h.spare)
	}
	if !h.spec.layers.has(layerPID) {
		return sweep()
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	for {
		if _, _, err := wait4(-1); err != nil {
			return 0, 0
		}
	}
}

// setUp makes the box. listener is the proxy's, -1 for none.
func (h *holder) setUp(ids int) (listener int, err error) {
	unix.Umask(0o022) // the same modes on every machine
	l := h.spec.layers
	if !l.has(layerPID) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return -1, at("become a subreaper", err)
		}
	}
	if l&(layerPID|layerMount) != 0 {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return -1, at("make the mounts private", err)
		}
	}
	if l.has(layerMount) {
		if err := newRoot(&h.spec, ids); err != nil {
			return -1, err
		}
	} else if l.has(layerProc | layerPID) {
		if err := mountProc(); err != nil {
			return -1, err
		}
	}
	if l.has(layerIPC) {
		_ = unix.Sethostname([]byte("sandbox")) // a name is no confinement: nothing hangs on it
		h.boundMemory()
	}
	if l.has(layerNet) {
		if err := loopbackUp(); err != nil {
			return -1, at("bring up loopback", err)
		}
	}
	if h.spec.proxy && l.has(layerNet) {
		return proxyListener()
	}
	return -1, nil
}

// boundMemory bounds what System V memory the box can hold, which no process has to be seen with. Where that is not to be had, there is none.
func (h *holder) boundMemory() {
	most := h.spec.limits.MemoryBytes
	if most <= 0 {
		return
	}
	pages := strconv.FormatInt(most/int64(os.Getpagesize()), 10)
	if os.WriteFile("/proc/sys/kernel/shmall", []byte(pages), 0) != nil {
		h.spec.layers |= layerShmless
		h.body = encode(&h.spec)
	}
}

func mountProc() error {
	return at("mount /proc", unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
}

// loopbackUp sets the one interface of an own network up, in the old way that no security module minds.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// proxyPort is where a command finds its way out, on 127.0.0.1 of its own network.
const proxyPort = 3128

var proxyAddress = net.JoinHostPort("127.0.0.1", strconv.Itoa(proxyPort))

func proxyListener() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		if err = unix.Bind(fd, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}); err == nil {
			err = unix.Listen(fd, 128)
		}
		if err != nil {
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		return -1, at("listen for the proxy", err)
	}
	return fd, nil
}
