package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var probe = sync.OnceValue(runProbe)

// Probe runs the self-test once a process and remembers its answer.
func Probe() Report { return probe() }

// runProbe tries each rung for real, the best first.
func runProbe() Report {
	var why []string
	for _, r := range []rung{pidns, subreaper} {
		open, err := selfTest(r)
		if err == nil {
			return Report{Kill: string(r), Open: open, Why: strings.Join(why, "; ")}
		}
		why = append(why, fmt.Sprintf("%s: %v", r, err))
	}
	return Report{Kill: string(bare), Why: strings.Join(why, "; ")}
}

// selfTest starts this program as a command on rung r, which starts a daemon, tries what it can reach of a worker and of the files
// around it, and is killed.
func selfTest(r rung) (open []string, err error) {
	dir, err := os.MkdirTemp("", "muster-selftest-")
	if err != nil {
		return nil, fmt.Errorf("make a canary: %w", err)
	}
	defer os.RemoveAll(dir)
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, []byte("canary"), 0o600); err != nil {
		return nil, fmt.Errorf("make a canary: %w", err)
	}
	address := ""
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		defer l.Close()
		address = l.Addr().String()
	}
	out := &verdict{said: make(chan struct{})}
	cmd := &exec.Cmd{
		Path: selfExe, Dir: "/", Stdout: out,
		Args: []string{selfTestName, string(r), canary, strconv.Itoa(os.Getpid()), address},
	}
	p, err := start(cmd, nil, r)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(handshakeBound)
	defer late.Stop()
	select {
	case <-out.said:
	case <-p.Done():
	case <-late.C:
	}
	p.Kill()
	e, err := p.Wait()
	text := strings.TrimSpace(out.text.String())
	words, ok := strings.CutSuffix(text, lastWord)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("self-test ended with %d %s: %s", e.Code, e.Signal, text)
	case !e.Killed || e.Left != 1 || e.Survivors != 0:
		return nil, fmt.Errorf("self-test and its daemon: killed %v, %d others ended, %d survived", e.Killed, e.Left, e.Survivors)
	}
	return strings.Fields(words), nil
}

// lastWord is said by a self-test that got to its end and waits to be killed.
const lastWord = "end"

// verdict is what a self-test says.
type verdict struct {
	text strings.Builder
	said chan struct{} // closed after lastWord
}

func (v *verdict) Write(p []byte) (int, error) {
	before := strings.HasSuffix(v.text.String(), lastWord+"\n")
	v.text.Write(p)
	if !before && strings.HasSuffix(v.text.String(), lastWord+"\n") {
		close(v.said)
	}
	return len(p), nil
}

// runSelfTest is the command of a self-test: args are the rung, a canary file, the worker's process number and an address it listens on.
// A single argument is the daemon that it starts. Both stay until they are killed.
func runSelfTest(args []string) int {
	if len(args) != 4 {
		return stay()
	}
	r, canary, worker, address := rung(args[0]), args[1], args[2], args[3]
	if r == pidns {
		self, err := os.Readlink("/proc/self")
		if err != nil || self != strconv.Itoa(os.Getpid()) || os.Getpid() == 1 || os.Getppid() != 1 {
			fmt.Printf("process %d of parent %d is %q in /proc", os.Getpid(), os.Getppid(), self)
			return 1
		}
	}
	_, err := os.StartProcess(selfExe, []string{selfTestName, "stay"}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fmt.Printf("start a daemon: %v", err)
		return 1
	}
	for _, try := range []struct {
		word string
		do   func() error
	}{
		{"read", func() error { _, err := os.ReadFile(canary); return err }},
		{"write", func() error { return os.WriteFile(canary+".new", nil, 0o600) }},
		{"signal", func() error { return signalOf(worker) }},
		{"environ", func() error { _, err := os.ReadFile("/proc/" + worker + "/environ"); return err }},
		{"connect", func() error { return dial(address) }},
	} {
		if try.do() == nil {
			fmt.Println(try.word)
		}
	}
	fmt.Println(lastWord)
	return stay()
}

func stay() int {
	for {
		_ = unix.Pause()
	}
}

func signalOf(worker string) error {
	pid, err := strconv.Atoi(worker)
	if err != nil {
		return err
	}
	return unix.Kill(pid, 0)
}

func dial(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}
