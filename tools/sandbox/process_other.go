//go:build unix && !linux

package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const killBare = "pgroup"

// proxyAddress is never used: without an own network there is no way in which to stand.
const proxyAddress = ""

// Main does nothing here: without Linux there is no init, so the program is never re-executed.
func Main() {}

// Probe says what there is: no self-test can better a process group.
func Probe() Report {
	r := Report{
		Rung: string(bare), Kill: killBare, Memory: "none", Network: "open",
		Open: []string{"read", "write", "chmod", "stat", "signal", "processes", "connect"},
	}
	for _, l := range ladder[:len(ladder)-1] {
		r.Lacking = append(r.Lacking, Lack{Rung: string(l), Why: "this system is not Linux", Get: "run workers on Linux, in a virtual machine or a container"})
	}
	return r
}

// Shows says whether commands under p see a file, given by its absolute path without symlinks. Here they see everything.
func (p Policy) Shows(string) bool { return true }

func networkAt(rung, string) string { return "open" }

// space is nothing that had to be opened.
type space struct{}

func (space) open(p Policy, r rung) (net.Listener, error) {
	if r != bare {
		return nil, fmt.Errorf("rung %s: %w on this system", r, ErrUnavailable)
	}
	return nil, nil
}

func (space) close() (survivors int) { return 0 }

// tree is a command that leads a session and a process group of its own.
type tree struct {
	cmd    *exec.Cmd
	killed atomic.Bool
	begun  time.Time
}

func (t *tree) start(_ *space, cmd *exec.Cmd, st *streams, _ bool) error {
	t.begun = time.Now()
	t.cmd = &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: append([]string{}, cmd.Env...),
		Stdin: st.stdin, Stdout: st.stdout, Stderr: st.stderr, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := t.cmd.Start(); err != nil {
		if fi, serr := os.Stat(cmd.Dir); cmd.Dir != "" && (serr != nil || !fi.IsDir()) {
			return fmt.Errorf("enter the folder %s: %w", strconv.Quote(cmd.Dir), err)
		}
		return err
	}
	return nil
}

func (t *tree) kill() {
	t.killed.Store(true)
	_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL)
}

// wait waits for the command and then kills what is left of its group. A group of which nothing is left does not answer.
func (t *tree) wait() (Exit, error) {
	_ = t.cmd.Wait()
	e := Exit{Code: -1}
	if ws, ok := t.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		e = exitOf(ws)
	}
	e.Killed = t.killed.Load() && e.Signal == "SIGKILL"
	e.Method, e.Duration = killBare, time.Since(t.begun)
	if syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL) == nil {
		e.Left = 1 // at least
	}
	return e, nil
}

// widen does nothing: pipes grow by themselves.
func widen(*os.File, int) {}
