//go:build linux

package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// worker is a process that holds what attacks want and has commands try them: the real parent of real commands. It takes orders on
// its standard input and answers on its output.
type worker struct {
	victim
	dir string // run/: home, ws, other
	key string
}

// order is a confinement and the attacks to try in it.
type order struct {
	Confine string // "none": no sandbox at all, not even the reaping of processes; else as confined knows it
	Attacks []string
}

// answer is what came of an order.
type answer struct {
	Verdicts []finding
	Changed  []string // what is different in the home
	Err      string   // why nothing was tried

	// Of the first answer, before any order:
	Rungs, Lacking []string
}

// A key as it lies in memory, and room for an attacker to write.
const keyBytes = len(keyMark) + 16

var inMemory [2 * keyBytes]byte

// newTarget describes this process.
func newTarget(secret string) (target, error) {
	copy(inMemory[:], os.Getenv("PROVIDER_KEY"))
	t := target{PID: os.Getpid(), Addr: uint64(uintptr(unsafe.Pointer(&inMemory)))}
	f, err := os.Open(secret)
	if err != nil {
		return t, err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return t, err
	}
	t.FileFD, t.PipeFD = int(f.Fd()), pipe[0]
	kept = append(kept, f)
	return t, nil
}

// kept holds files open for as long as the process lives.
var kept []io.Closer

// playBystander is an ordinary program of the user.
func playBystander() int {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	t, err := newTarget(os.Args[2])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the worker is gone
	return 0
}

func playWorker() int {
	signal.Ignore(unix.SIGHUP) // the terminal's
	w, err := newWorker(os.Args[1], os.Args[2], os.Args[3])
	out := json.NewEncoder(os.Stdout)
	if err != nil {
		_ = out.Encode(answer{Err: err.Error()})
		return 1
	}
	defer w.leave()
	have, lacking := offered()
	hello := answer{Lacking: lacking}
	for _, r := range have {
		hello.Rungs = append(hello.Rungs, string(r))
	}
	_ = out.Encode(hello)
	orders := json.NewDecoder(os.Stdin)
	for {
		var o order
		if orders.Decode(&o) != nil {
			return 0
		}
		_ = out.Encode(w.carryOut(o))
	}
}

// newWorker makes everything that there is to steal. Of the home, what is not there yet.
func newWorker(dir, exe, tty string) (*worker, error) {
	w := &worker{dir: dir, key: os.Getenv("PROVIDER_KEY")}
	w.Exe, w.TTY = exe, tty
	w.Home, w.Workspace, w.Other.Dir = dir+"/home", dir+"/ws", dir+"/other"
	w.Sock, w.OpenSock = w.Home+"/worker.sock", dir+"/open.sock"
	tag := w.key[len(keyMark):]
	w.Abstract = "muster-attack-" + tag
	w.HostTmp, w.HostShm = "/tmp/muster-attack-"+tag, "/dev/shm/muster-attack-"+tag
	for _, step := range []func() error{w.furnish, w.listen, w.leak, w.share} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	var err error
	if w.Worker, err = newTarget(w.Home + "/secret"); err != nil {
		return nil, err
	}
	if w.Bystander, err = w.startBystander(); err != nil {
		return nil, err
	}
	if h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Home+"/secret", 0); err == nil {
		w.Handle, w.HandleType = h.Bytes(), h.Type()
	}
	w.NetNS, _ = os.Readlink("/proc/self/ns/net")
	w.PIDNS, _ = os.Readlink("/proc/self/ns/pid")
	w.Disk, w.DiskNumber = findDisk()
	if fi, err := os.Stat(filepath.Dir(exe) + "/setuid"); err == nil && fi.Mode()&fs.ModeSetuid != 0 {
		w.SetUID = filepath.Dir(exe) + "/setuid"
	}
	return w, nil
}

// furnish fills the home.
func (w *worker) furnish() error {
	for _, d := range []string{w.Home, w.Home + "/.ssh", w.Workspace, w.Other.Dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"secret": w.key, ".ssh/authorized_keys": "none\n", "disposable": "x",
	} {
		if err := os.WriteFile(filepath.Join(w.Home, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(w.Home+"/tool", []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		return err
	}
	// Some file systems (FUSE) settle the time of a write later: a time that was set stays as it is.
	then := time.Now().Add(-time.Hour)
	for _, name := range []string{"secret", "disposable", "tool"} {
		if err := os.Chtimes(filepath.Join(w.Home, name), then, then); err != nil {
			return err
		}
	}
	return nil
}

// listen opens the ports and sockets of the worker. Every greeting is answered with the key.
func (w *worker) listen() error {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.TCP = tcp.Addr().(*net.TCPAddr).Port
	listeners := []net.Listener{tcp}
	if tcp6, err := net.Listen("tcp", "[::1]:0"); err == nil {
		w.TCP6 = tcp6.Addr().(*net.TCPAddr).Port
		listeners = append(listeners, tcp6)
	}
	for _, name := range []string{w.Sock, w.OpenSock, "@" + w.Abstract} {
		l, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		listeners = append(listeners, l)
	}
	if err := os.Chmod(w.OpenSock, 0o777); err != nil {
		return err
	}
	for _, l := range listeners {
		go answerStreams(l, w.key)
	}
	for _, p := range []struct {
		address string
		port    *int
	}{{"127.0.0.1:0", &w.UDP}, {"[::1]:0", &w.UDP6}} {
		c, err := net.ListenPacket("udp", p.address)
		if err != nil {
			continue
		}
		*p.port = c.LocalAddr().(*net.UDPAddr).Port
		go answerPackets(c, w.key)
	}
	return nil
}

func answerStreams(l net.Listener, text string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				_, _ = io.WriteString(c, text)
			}
		}()
	}
}

func answerPackets(c net.PacketConn, text string) {
	b := make([]byte, 100)
	for {
		if _, from, err := c.ReadFrom(b); err == nil {
			_, _ = c.WriteTo([]byte(text), from)
		}
	}
}

// leak leaves a file and a pipe open for commands, as a careless library does.
func (w *worker) leak() error {
	fd, err := unix.Open(w.Home+"/secret", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if err := unix.Dup2(fd, leakedFD); err != nil {
		return err
	}
	if err := unix.Close(fd); err != nil {
		return err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	return unix.Dup2(pipe[0], leakedFD+1)
}

// share puts secrets where all of the machine's programs meet.
func (w *worker) share() error {
	if err := os.WriteFile(w.HostTmp, []byte(w.key), 0o600); err != nil {
		return err
	}
	if os.WriteFile(w.HostShm, []byte(w.key), 0o600) != nil {
		w.HostShm = ""
	}
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		return err
	}
	w.Shm = id
	b, err := unix.SysvShmAttach(id, 0, 0)
	if err == nil {
		copy(b, w.key)
	}
	return err
}

// leave takes back what would outlive the worker.
func (w *worker) leave() {
	_ = os.Remove(w.HostTmp)
	_ = os.Remove(w.HostShm)
	_, _ = unix.SysvShmCtl(w.Shm, unix.IPC_RMID, nil)
	removeSegments()
}

func (w *worker) startBystander() (t target, err error) {
	cmd := exec.Command(w.Exe, "bystander", w.Home+"/secret")
	cmd.Env = append(os.Environ(), role+"=bystander")
	in, err := cmd.StdinPipe()
	if err != nil {
		return t, err
	}
	kept = append(kept, in)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return t, err
	}
	if err := cmd.Start(); err != nil {
		return t, err
	}
	err = json.NewDecoder(out).Decode(&t)
	return t, err
}

// findDisk is the first block device of the machine.
func findDisk() (name string, number int) {
	b, err := os.ReadFile("/proc/partitions")
	if err != nil {
		return "", 0
	}
	for line := range strings.Lines(string(b)) {
		var major, minor uint32
		var blocks int64
		var disk string
		if n, _ := fmt.Sscanf(line, "%d %d %d %s", &major, &minor, &blocks, &disk); n == 4 {
			if _, err := os.Stat("/dev/" + disk); err == nil {
				name = "/dev/" + disk
			}
			return name, int(unix.Mkdev(major, minor))
		}
	}
	return "", 0
}

// carryOut tries the attacks of an order, in one command where they may be, and looks what became of the home.
func (w *worker) carryOut(o order) (a answer) {
	before := fingerprint(w.Home)
	var together []string
	var alone []attack
	for _, name := range o.Attacks {
		at, ok := findAttack(name)
		switch {
		case !ok:
			return answer{Err: "no attack " + name}
		case at.alone || at.script != "":
			alone = append(alone, at)
		default:
			together = append(together, name)
		}
	}
	all := make([][]finding, len(alone)+1)
	errs := make([]error, len(alone)+1)
	var running sync.WaitGroup
	few := make(chan struct{}, 3) // most of them wait to be ended
	for i, at := range alone {
		running.Go(func() {
			few <- struct{}{}
			defer func() { <-few }()
			all[i], errs[i] = w.tryAlone(o.Confine, at)
		})
	}
	running.Wait()
	if len(together) > 0 {
		all[len(alone)], errs[len(alone)] = w.try(o.Confine, together)
	}
	if err := errors.Join(errs...); err != nil {
		return answer{Err: err.Error()}
	}
	a.Verdicts = slices.Concat(all...)
	a.Changed = changes(before, fingerprint(w.Home))
	return a
}

func changes(before, after map[string]string) (list []string) {
	for name, was := range before {
		if after[name] != was {
			list = append(list, fmt.Sprintf("%s: %s before, %s after", name, was, after[name]))
		}
	}
	for name, is := range after {
		if before[name] == "" {
			list = append(list, fmt.Sprintf("%s: %s is new", name, is))
		}
	}
	return list
}

// fingerprint says of each file what it is.
func fingerprint(dir string) map[string]string {
	prints := map[string]string{}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			prints[name] = err.Error()
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		text := fmt.Sprintf("%v, %d bytes of %v", info.Mode(), info.Size(), info.ModTime())
		if info.Mode().IsRegular() {
			b, _ := os.ReadFile(name)
			text += fmt.Sprintf(": %.100q", b)
		}
		prints[name] = text
		return nil
	})
	return prints
}

// amd64 says whether programs in machine code can be tried.
const amd64 = runtime.GOARCH == "amd64"
