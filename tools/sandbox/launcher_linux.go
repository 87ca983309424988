package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// launcherHandle is the worker's end of its launcher, which is started with the first box. A worker with a large heap, or one that is shut to
// other processes, cannot make user namespaces itself: the first is slow, the second must not write their maps.
type launcherHandle struct {
	mu   sync.Mutex
	pid  int
	conn connSocket
}

var theLauncher launcherHandle

// holder starts the holder of a box and returns the worker's end of its socket.
func (h *launcherHandle) holder(spec boxSpec) (connSocket, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fresh := h.pid == 0
	fd, err := h.ask(spec)
	var step stepError
	if err != nil && !fresh && !errors.As(err, &step) { // it was ended: by whom is not ours to know
		h.drop()
		fd, err = h.ask(spec)
	}
	if err != nil {
		if !errors.As(err, &step) {
			h.drop()
		}
		return connSocket{}, err
	}
	return newConn(fd)
}

func (h *launcherHandle) drop() {
	if h.pid == 0 {
		return
	}
	_ = h.conn.Close()
	_ = syscall.Kill(h.pid, syscall.SIGKILL) // our child, not yet waited for: the number is its own
	_, _, _ = wait4(h.pid)
	h.pid = 0
}

func (h *launcherHandle) ask(spec boxSpec) (int, error) {
	if !dispatched.Load() {
		return -1, errors.New("sandbox.Main was not called: it must be the first call of main, and of TestMain")
	}
	if h.pid == 0 {
		if err := h.begin(); err != nil {
			return -1, fmt.Errorf("start the launcher: %w", err)
		}
	}
	defer h.conn.within(handshakeBound)()
	if err := sendFrame(h.conn, encode(&spec)); err != nil {
		return -1, fmt.Errorf("talk to the launcher: %w", err)
	}
	_, fds, err := expect(h.conn, given)
	if err != nil {
		return -1, err
	}
	if len(fds) != 1 {
		closeAll(fds)
		return -1, errFrame
	}
	return fds[0], nil
}

func (h *launcherHandle) begin() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	n := null.Fd()
	pid, sock, err := helper(selfExe, launcherName, [3]uintptr{n, n, n}, &syscall.SysProcAttr{})
	if err != nil {
		return err
	}
	if h.conn, err = newConn(sock); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _, _ = wait4(pid)
		return err
	}
	h.pid = pid
	return nil
}

// runLauncher starts a holder for each specification that comes, until the worker ends.
func runLauncher() int {
	sock := become()
	for {
		body, fds, err := readFrame(sock)
		closeAll(fds)
		var spec boxSpec
		if err == nil {
			err = decode(body, &spec)
		}
		if err != nil {
			return 0
		}
		child, err := startHolder(spec, body)
		if err != nil {
			err = tell(sock, failure(err))
		} else {
			err = tell(sock, message{kind: given}, child)
			_ = unix.Close(child)
		}
		if err != nil {
			return 1
		}
	}
}

// startHolder returns the worker's end of the holder's socket, with the specification on its way.
func startHolder(spec boxSpec, body []byte) (sock int, err error) {
	attr := &syscall.SysProcAttr{}
	if spec.layers.has(layerUser) {
		userSpace(attr)
	}
	for l, flags := range map[layer]uintptr{
		layerPID: unix.CLONE_NEWPID, layerMount: unix.CLONE_NEWNS, layerNet: unix.CLONE_NEWNET, layerIPC: unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	} {
		if spec.layers.has(l) {
			attr.Cloneflags |= flags
		}
	}
	if attr.Cloneflags&unix.CLONE_NEWPID != 0 {
		attr.Cloneflags |= unix.CLONE_NEWNS // for /proc
	}
	ids := -1
	if spec.layers.has(layerUID | layerMount) {
		if ids, err = idMap(spec); err != nil {
			return -1, err
		}
		defer unix.Close(ids)
	}
	pid, sock, err := helper(selfExe, holderName, inherited, attr)
	if err != nil {
		return -1, at("make its namespaces", err)
	}
	go func() { _, _, _ = wait4(pid) }()
	if ids >= 0 {
		err = sendFrame(fdSocket(sock), body, ids)
	} else {
		err = sendFrame(fdSocket(sock), body)
	}
	if err != nil {
		_ = unix.Close(sock)
		return -1, at("talk to the holder", err)
	}
	return sock, nil
}

// idMap makes a user namespace that shows what its owner has on disk as the box's uid, and the other way round: a mount with it
// lets a command with a uid of its own work on the worker's files, and nothing of it has to be given away.
func idMap(spec boxSpec) (fd int, err error) {
	attr := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: spec.owner, HostID: spec.uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: spec.group, HostID: spec.gid, Size: 1}},
	}
	pid, sock, err := helper(selfExe, anchorName, inherited, attr)
	if err != nil {
		return -1, at("map the uid of the box", err)
	}
	fd, err = unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	_ = unix.Close(sock)
	_ = unix.Kill(pid, unix.SIGKILL)
	_, _, _ = wait4(pid)
	return fd, at("map the uid of the box", err)
}

// runAnchor keeps a user namespace until it is named by a descriptor.
func runAnchor() int {
	var b [1]byte
	_, _, _ = become().recv(b[:], nil)
	return 0
}
