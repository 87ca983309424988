//go:build unix && !linux

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// bare is the rung of policy "off".
const bare = pgroup

// Main does nothing here: without Linux there is no init, so the program is never re-executed.
func Main() {}

// Probe says what there is: no self-test can better a process group.
func Probe() Report {
	return Report{Kill: string(pgroup), Open: []string{"read", "write", "signal", "connect"}, Why: "best effort: only Linux has an init that finds daemons"}
}

// tree is a command that leads a session and a process group of its own.
type tree struct {
	cmd    *exec.Cmd
	killed atomic.Bool
	begun  time.Time
}

func (t *tree) start(cmd *exec.Cmd, env []string, r rung, st *streams) error {
	if r != pgroup {
		return fmt.Errorf("rung %s: %w on this system", r, ErrUnavailable)
	}
	t.begun = time.Now()
	t.cmd = &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: append([]string{}, env...),
		Stdout: st.stdout, Stderr: st.stderr, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
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
	e.Method, e.Duration = string(pgroup), time.Since(t.begun)
	if syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL) == nil {
		e.Left = 1 // at least
	}
	return e, nil
}
