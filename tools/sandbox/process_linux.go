package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// space is the worker's end of a holder.
type space struct {
	layers layer
	mu     sync.Mutex // one question at a time
	conn   connSocket
	pidfd  int
}

// open makes a box on rung r; listener is where its commands find the proxy, if they may.
func (s *space) open(p Policy, r rung) (listener net.Listener, err error) {
	return s.openLayers(p, layersOf(r, p.Network))
}

func (s *space) openLayers(p Policy, l layer) (listener net.Listener, err error) {
	s.layers, s.pidfd = l, -1
	spec := newBoxSpec(p, l)
	if s.conn, err = theLauncher.holder(spec); err != nil {
		return nil, err
	}
	over := s.conn.within(handshakeBound)
	_, fds, err := expect(s.conn, ready)
	over()
	if err != nil {
		_ = s.conn.Close()
		return nil, err
	}
	s.pidfd = fds[0]
	if len(fds) > 1 {
		f := os.NewFile(uintptr(fds[1]), "proxy")
		listener, err = net.FileListener(f)
		_ = f.Close()
		if err != nil {
			s.close()
			return nil, err
		}
	}
	return listener, nil
}

// init is the worker's end of a new init.
func (s *space) init() (connSocket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.conn.within(handshakeBound)()
	defer keepAwake(s.pidfd)()
	if err := tell(s.conn, message{kind: take}); err != nil {
		return connSocket{}, fmt.Errorf("talk to the box: %w", err)
	}
	_, fds, err := expect(s.conn, given)
	if err != nil {
		return connSocket{}, fmt.Errorf("ask the box: %w", err)
	}
	return newConn(fds[0])
}

// close ends the box and whatever lives in it.
func (s *space) close() (survivors int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pidfd < 0 {
		return 0
	}
	_ = s.conn.CloseWrite()
	over := s.conn.within(sweepResort)
	stop := keepAwake(s.pidfd)
	m, _, err := expect(s.conn, finished)
	stop()
	over()
	if err != nil { // it was ended, or does not answer
		_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
	}
	if !awaitEnd(s.pidfd, giveUpBound) {
		m.survivors = max(m.survivors, 1)
	}
	_ = s.conn.Close()
	_ = unix.Close(s.pidfd)
	s.pidfd = -1
	return m.survivors
}

// awaitEnd waits for the end of a process: of the first one of a pid namespace, for the end of all.
func awaitEnd(pidfd int, bound time.Duration) bool {
	for until := time.Now().Add(bound); ; {
		left := time.Until(until)
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(left, 0).Milliseconds()))
		switch {
		case n > 0:
			return true
		case err != nil && !errors.Is(err, unix.EINTR), left <= 0:
			return false
		}
	}
}

// tree is the worker's handle on an init and all that is below it.
type tree struct {
	layers   layer
	conn     connSocket
	pidfd    int      // of the init
	session  int      // of the command; in the worker's numbers only without a pid namespace
	pipes    []uint64 // inodes of the command's pipes, to find what a killed init let go
	begun    time.Time
	killOnce sync.Once
	killed   chan struct{}
}

// start has an init of the box become the parent of the command.
func (t *tree) start(s *space, cmd *exec.Cmd, st *streams, self bool) error {
	dir, err := filepath.Abs(cmd.Dir)
	if err != nil {
		return fmt.Errorf("find the working folder: %w", err)
	}
	spec := commandSpec{dir: dir, path: cmd.Path, args: cmd.Args, env: cmd.Env, self: self}
	if len(spec.args) == 0 {
		spec.args = []string{cmd.Path}
	}
	t.layers, t.pidfd, t.killed, t.begun = s.layers, -1, make(chan struct{}), time.Now()
	t.pipes = st.inodes()
	if t.conn, err = s.init(); err != nil {
		return err
	}
	if err := t.handshake(&spec, st); err != nil {
		if t.pidfd >= 0 {
			_ = unix.PidfdSendSignal(t.pidfd, unix.SIGKILL, nil, 0)
			_ = unix.Close(t.pidfd)
		}
		_ = t.conn.Close()
		return err
	}
	return nil
}

func (t *tree) handshake(spec *commandSpec, st *streams) error {
	defer t.conn.within(handshakeBound)()
	_, fds, err := expect(t.conn, ready)
	if err != nil {
		return err
	}
	t.pidfd = fds[0]
	defer keepAwake(t.pidfd)()
	err = sendFrame(t.conn, encode(spec), int(st.stdin.Fd()), int(st.stdout.Fd()), int(st.stderr.Fd()))
	m, _, herr := expect(t.conn, started) // also after a failed write: the init may have said why it left
	switch {
	case herr != nil && err != nil:
		return fmt.Errorf("talk to its init: %w", err)
	case errors.Is(herr, io.EOF), errors.Is(herr, errEnded), errors.Is(herr, unix.ECONNRESET):
		return nil // the command may have run, and ended its init: wait tells that
	}
	t.session = m.pid
	return herr
}

// keepAwake continues a helper that its command stops, before it could say a word or after a kill, until the result is called.
func keepAwake(pidfd int) (stop func()) {
	beat := time.NewTicker(wakeBeat)
	over := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-beat.C:
				_ = unix.PidfdSendSignal(pidfd, unix.SIGCONT, nil, 0)
			case <-over:
				return
			}
		}
	})
	return func() {
		beat.Stop()
		close(over)
		ended.Wait()
	}
}

// kill ends the socket; the init does the rest.
func (t *tree) kill() {
	t.killOnce.Do(func() {
		_ = t.conn.CloseWrite()
		_ = unix.PidfdSendSignal(t.pidfd, unix.SIGCONT, nil, 0) // a command may have stopped it; wait goes on with that
		close(t.killed)
	})
}

var errHeld = errors.New("the kernel does not end a process of the command")

// wait waits for the init's last message, with escalation after a kill.
func (t *tree) wait() (Exit, error) {
	type last struct {
		message
		err error
	}
	said := make(chan last, 1)
	go func() {
		m, _, err := expect(t.conn, finished)
		said <- last{m, err}
	}()
	defer func() {
		_ = t.conn.Close()
		_ = unix.Close(t.pidfd)
	}()
	resort := sweepResort
	if t.layers.has(layerPID) {
		resort = pidnsResort
	}
	killed := t.killed
	var late <-chan time.Time
	for tries := 0; ; {
		select {
		case l := <-said:
			if l.err == nil {
				return l.exit(killOf(t.layers)), nil
			}
			return t.lost(l.err)
		case <-killed:
			killed, late = nil, time.After(resort)
			defer keepAwake(t.pidfd)()
		case <-late:
			if tries++; tries > 1 {
				e := t.lostExit()
				e.Survivors = 1
				return e, errHeld
			}
			_ = unix.PidfdSendSignal(t.pidfd, unix.SIGKILL, nil, 0)
			late = time.After(giveUpBound)
		}
	}
}

func (m message) exit(method string) Exit {
	e := exitOf(syscall.WaitStatus(m.status))
	e.Killed = m.killed && e.Signal == "SIGKILL"
	e.Left, e.Survivors, e.Limit = m.left, m.survivors, m.text
	e.Method, e.Duration = method, time.Duration(m.nanos)
	return e
}

func (t *tree) lostExit() Exit {
	return Exit{Code: -1, Signal: "SIGKILL", Killed: true, Method: killOf(t.layers), Duration: time.Since(t.begun)}
}

// lost is what can be said of a command whose init was ended itself.
func (t *tree) lost(why error) (Exit, error) {
	e := t.lostExit()
	if t.layers.has(layerPID) { // the kernel ends the namespace with it
		if !awaitEnd(t.pidfd, giveUpBound) {
			e.Survivors = 1
			return e, errHeld
		}
		select {
		case <-t.killed:
			return e, nil
		default:
			return e, fmt.Errorf("the init of the command ended early (%w); the kernel ended the rest", why)
		}
	}
	e.Left, e.Survivors = sweepLost(t.session, t.pipes)
	return e, fmt.Errorf("the init of the command ended early (%w); %d processes were found and ended, others may live on", why, e.Left)
}

// inodes of the pipes, by which processes that hold them are found.
func (s *streams) inodes() []uint64 {
	var nodes []uint64
	for _, o := range s.outs {
		fi, err := o.r.Stat()
		if err != nil {
			continue
		}
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			nodes = append(nodes, st.Ino)
		}
	}
	return nodes
}

// widen lets a pipe hold more, as far as the system allows its user.
func widen(pipe *os.File, bytes int) {
	if c, err := pipe.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, bytes) })
	}
}
