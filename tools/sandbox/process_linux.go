package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bare is the rung of policy "off".
const bare = subreaper

// selfExe is the running program, also after its file was replaced.
const selfExe = "/proc/self/exe"

// tree is the worker's handle on an init and all that is below it.
type tree struct {
	rung     rung
	init     *os.Process
	sock     *os.File
	session  int      // of the command; in the worker's numbers only without a pid namespace
	pipes    []uint64 // inodes of the command's pipes, to find what a killed init let go
	begun    time.Time
	killOnce sync.Once
	killed   chan struct{}
}

// start re-executes this program as an init and has it start the command.
func (t *tree) start(cmd *exec.Cmd, env []string, r rung, st *streams) error {
	if !dispatched.Load() {
		return errors.New("sandbox.Main was not called: it must be the first call of main, and of TestMain")
	}
	dir, err := filepath.Abs(cmd.Dir)
	if err != nil {
		return fmt.Errorf("find the working folder: %w", err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "sandbox-init")
	if err := unix.SetNonblock(fds[0], true); err != nil { // only then can a read on it have a deadline
		_ = unix.Close(fds[0])
		_ = theirs.Close()
		return fmt.Errorf("make a socket pair: %w", err)
	}
	t.sock = os.NewFile(uintptr(fds[0]), "sandbox-worker")
	t.rung, t.killed, t.begun = r, make(chan struct{}), time.Now()
	t.pipes = st.inodes()

	child := &exec.Cmd{
		Path: selfExe, Args: []string{initName}, Dir: "/", Env: initEnv,
		Stdout: st.stdout, Stderr: st.stderr, ExtraFiles: []*os.File{theirs},
		SysProcAttr: initAttr(r),
	}
	err = child.Start()
	_ = theirs.Close()
	if err != nil {
		_ = t.sock.Close()
		return fmt.Errorf("start its init (%s): %w", r, err)
	}
	t.init = child.Process
	args := cmd.Args
	if len(args) == 0 {
		args = []string{cmd.Path}
	}
	if err := t.handshake(spec{rung: r, dir: dir, path: cmd.Path, args: args, env: env}); err != nil {
		_ = t.init.Kill()
		_, _ = t.init.Wait()
		_ = t.sock.Close()
		return err
	}
	return nil
}

// initEnv keeps a short-lived Go program from readying itself for more than it does.
var initEnv = []string{"GOMAXPROCS=2", "GOGC=off", "GOMEMLIMIT=64MiB", "GOTRACEBACK=none"}

// initAttr has no terminal in any rung: what is typed at the worker's does not reach a command.
func initAttr(r rung) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if r != pidns {
		return a
	}
	a.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // to mount /proc; the init drops it before the command
	}
	return a
}

func (t *tree) handshake(s spec) error {
	if err := t.sock.SetDeadline(time.Now().Add(handshakeBound)); err != nil {
		return fmt.Errorf("talk to its init: %w", err)
	}
	defer t.keepAwake()()
	_, werr := t.sock.Write(s.encode())
	m, text, err := readMessage(t.sock) // also after a failed write: the init may have said why it left
	switch {
	case err != nil && werr != nil:
		return fmt.Errorf("talk to its init: %w", werr)
	case err != nil:
		return fmt.Errorf("talk to its init: %w", err)
	case m.kind == failed:
		return fmt.Errorf("%s: %w", text, syscall.Errno(m.errno))
	case m.kind != started:
		return fmt.Errorf("talk to its init: message %d out of order", m.kind)
	}
	t.session = int(m.pid)
	return t.sock.SetDeadline(time.Time{})
}

// keepAwake continues an init that its command stops, before it could say a word or after a kill, until the result is called.
func (t *tree) keepAwake() (stop func()) {
	beat := time.NewTicker(wakeBeat)
	over := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-beat.C:
				_ = t.init.Signal(syscall.SIGCONT)
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
		if c, err := t.sock.SyscallConn(); err == nil {
			_ = c.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
		}
		_ = t.init.Signal(syscall.SIGCONT) // a command may have stopped it; wait goes on with that
		close(t.killed)
	})
}

var errHeld = errors.New("the kernel does not end a process of the command")

// wait waits for the end of the init, with escalation after a kill, and reads its last message.
func (t *tree) wait() (Exit, error) {
	gone := make(chan *os.ProcessState, 1)
	go func() {
		ps, _ := t.init.Wait()
		gone <- ps
	}()
	defer t.sock.Close()
	resort := sweepResort
	if t.rung == pidns {
		resort = pidnsResort
	}
	killed := t.killed
	var late <-chan time.Time
	for tries := 0; ; {
		select {
		case ps := <-gone:
			return t.last(ps)
		case <-killed:
			killed, late = nil, time.After(resort)
			defer t.keepAwake()()
		case <-late:
			if tries++; tries > 1 {
				return Exit{Code: -1, Signal: "SIGKILL", Killed: true, Survivors: 1, Method: string(t.rung), Duration: time.Since(t.begun)}, errHeld
			}
			_ = t.init.Kill()
			late = time.After(giveUpBound)
		}
	}
}

// last is the exit as the init told it, or what can be said of one that was ended itself.
func (t *tree) last(ps *os.ProcessState) (Exit, error) {
	_ = t.sock.SetReadDeadline(time.Now().Add(time.Second))
	m, _, err := readMessage(t.sock)
	if err == nil && m.kind == finished {
		return m.exit(t.rung), nil
	}
	e := Exit{Code: -1, Signal: "SIGKILL", Killed: true, Method: string(t.rung), Duration: time.Since(t.begun)}
	if t.rung == pidns { // the kernel ended the namespace with it
		select {
		case <-t.killed:
			return e, nil
		default:
			return e, fmt.Errorf("the init of the command ended early (%v); the kernel ended the rest", ps)
		}
	}
	e.Left, e.Survivors = sweepLost(t.session, t.pipes)
	return e, fmt.Errorf("the init of the command ended early (%v); %d processes were found and ended, others may live on", ps, e.Left)
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
