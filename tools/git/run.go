package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"muster/budget"
	"muster/tools/sandbox"
)

// wordsBytes is how much of what git says on stderr is kept: its start and its end.
const wordsBytes = 4096

// Runner starts git.
type Runner struct {
	Program string // "" for the one in PATH

	// Start is Start of a sandbox's box. Without it git runs outside of any, in a process group of its own.
	Start func(*exec.Cmd) (*sandbox.Process, error)
}

// ErrNotInstalled is wrapped where there is no git.
var ErrNotInstalled = errors.New("git is not installed")

// Error is a run of git that failed, with git's own words.
type Error struct {
	Op   string // the subcommand
	Code int    // exit code, -1 for none
	Says string // what it wrote to stderr, as it came
	Err  error
}

func (e *Error) Error() string {
	if e.Says == "" {
		return fmt.Sprintf("git %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("git %s: %s", e.Op, e.Says)
}

func (e *Error) Unwrap() error { return e.Err }

// Run runs git with a fixed list of arguments: -c options, a subcommand, and what it is given. git and what it starts end when ctx does; the error is
// then the cause. stdin must end by itself, unless it is a file. An error of stdout is returned as it is, one of git is an *Error.
func (r Runner) Run(ctx context.Context, repo Repo, stdin io.Reader, stdout io.Writer, args ...string) error {
	return r.RunWith(ctx, repo.Env(), append(Flags(), args...), repo.WorkTree, stdin, stdout)
}

// RunWith is Run with another environment and list of arguments, for work that is not on a repository.
func (r Runner) RunWith(ctx context.Context, env, args []string, dir string, stdin io.Reader, stdout io.Writer) error {
	cmd := exec.Command(r.program(), args...)
	if cmd.Err != nil {
		return fmt.Errorf("%w: %w", ErrNotInstalled, cmd.Err)
	}
	out := &sink{w: stdout}
	words := budget.NewCapture(wordsBytes, 50)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stderr = env, dir, stdin, words
	if stdout != nil {
		cmd.Stdout = out
	}
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	code, err := r.run(ctx, cmd)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case out.err != nil:
		return out.err // git then only says that nobody reads it
	case err == nil:
		return nil
	}
	said := words.Snapshot()
	return &Error{Op: subcommand(args), Code: code, Says: strings.TrimSpace(string(said.Head) + string(said.Tail)), Err: err}
}

func (r Runner) program() string {
	if r.Program == "" {
		return "git"
	}
	return r.Program
}

// subcommand is the first argument that is neither an option of git's own nor its value.
func subcommand(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}

// errStatus is the end of a git that did not start well or did not end well, in words.
type errStatus string

func (e errStatus) Error() string { return string(e) }

// run waits for cmd. The error is nil where it ended with 0; a git that never ran, or was not seen to its end, has the error of that.
func (r Runner) run(ctx context.Context, cmd *exec.Cmd) (code int, err error) {
	if r.Start == nil {
		return runBare(ctx, cmd)
	}
	p, err := r.Start(cmd)
	if err != nil {
		return -1, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
	}
	e, err := p.Wait()
	switch {
	case err != nil:
		return -1, err
	case e.Limit != "":
		return -1, errStatus("ended by the limit of " + e.Limit)
	case e.Signal != "":
		return -1, errStatus("ended by " + e.Signal)
	case e.Code != 0:
		return e.Code, errStatus(fmt.Sprintf("exit status %d", e.Code))
	}
	return 0, nil
}

// runBare runs cmd in a process group of its own, which ends with ctx.
func runBare(ctx context.Context, cmd *exec.Cmd) (code int, err error) {
	bare := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	bare.Env, bare.Dir, bare.Stdin, bare.Stdout, bare.Stderr = cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr
	if out, ok := cmd.Stdout.(*sink); ok {
		bare.Stdout = out.direct()
	}
	bare.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	bare.Cancel = func() error { return syscall.Kill(-bare.Process.Pid, syscall.SIGKILL) }
	bare.WaitDelay = 5 * time.Second
	err = bare.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), err
	}
	return -1, err
}
