package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster/budget"
	"muster/tools/egress"
	"muster/tools/sandbox"
)

type commandArgs struct {
	Command     string `json:"command" jsonschema:"for bash -c"`
	TimeoutSecs int    `json:"timeout_secs,omitempty" default:"timeout_secs" min:"1" max:"timeout_secs" jsonschema:"seconds until it is killed; none in background"`
	Workdir     string `json:"workdir,omitempty" default:"." jsonschema:"folder to start in"`
	Background  bool   `json:"background,omitempty" default:"false" jsonschema:"return a task id at once"`
}

func runCommand() Tool {
	return define("run_command", Execute,
		"Runs a shell command and returns exit code, stdout and stderr; long output loses its middle, which a named file keeps. Non-interactive: no terminal, empty stdin. "+
			"What it leaves running is ended. For servers and long work set background: task_output reads on, task_kill ends it.",
		runRun)
}

func runRun(ctx context.Context, c *Call, a commandArgs) (Output, error) {
	if a.Background {
		return startTask(c, a)
	}
	r, err := c.launch(a, c.Caps.CommandBytes, c.Caps.CommandHead)
	if err != nil {
		return Output{}, err
	}
	if !c.set.tasks.hold(r) {
		return Output{}, errClosed()
	}
	defer c.set.tasks.drop(r)
	limit := time.NewTimer(time.Duration(a.TimeoutSecs) * time.Second)
	defer limit.Stop()
	e := ending{}
	select {
	case <-r.proc.Done():
	case <-limit.C:
		r.proc.Kill()
		e.why = fmt.Sprintf("timed out after %d s", a.TimeoutSecs)
		e.timedOut = true
	case <-ctx.Done():
		r.proc.Kill()
		e.why = fmt.Sprintf("cancelled: %v", context.Cause(ctx))
	}
	e.Exit, e.err = r.proc.Wait()
	if e.Killed && e.why == "" && e.err == nil {
		e.why = "the session ended"
	}
	return c.finished(r, e), nil
}

func errClosed() error {
	return fail(Permanent, "the session is ending; no command is started any more")
}

// running is a started command, in the foreground or the background: there is one way to start either.
type running struct {
	line           string // the command
	begun          time.Time
	stdout, stderr *budget.Capture
	news           bell // rung at each write
	proc           *sandbox.Process
}

// launch starts a command with capBytes kept of each stream, head percent of them from the start.
func (c *Call) launch(a commandArgs, capBytes, head int) (*running, error) {
	dir, err := c.workdir(a.Workdir)
	if err != nil {
		return nil, err
	}
	shell, ok := findProgram(c.set.cfg.Policy, c.set.folders, shells...)
	if !ok {
		return nil, fail(Permanent, "this machine has neither bash nor sh where commands can see it; finish without running commands")
	}
	if strings.ContainsRune(a.Command, 0) {
		return nil, fail(Input, "the command has a NUL character, which no shell can be given; remove it")
	}
	r := &running{line: a.Command, begun: time.Now(), stdout: budget.NewCapture(capBytes, head), stderr: budget.NewCapture(capBytes, head)}
	cmd := exec.Command(shell, "-c", "--", a.Command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, heard{r.stdout, &r.news}, heard{r.stderr, &r.news}
	var box *sandbox.Box
	if box, err = c.set.openBox(); err == nil {
		cmd.Env = commandEnv(c.Tree.Scratch, c.set.cfg.Env)
		if address := box.ProxyAddress(); address != "" {
			cmd.Env = append(cmd.Env, egress.Env(address)...)
		}
		r.proc, err = box.Start(cmd)
	}
	if err == nil {
		return r, nil
	}
	if errors.Is(err, syscall.E2BIG) {
		err = fail(Input, "a command of %s is longer than the system takes; write it to a file and run that", plural(int64(len(a.Command)), "byte"))
	}
	return nil, notStarted(err)
}

// notStarted is why a command never ran, with the next step.
func notStarted(err error) error {
	var told *Error
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, sandbox.ErrUnavailable):
		return fail(Permission, "%v; finish without running commands", err)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fail(Transient, "%v; try again when less is running", err)
	default:
		return fail(Permanent, "%v", err)
	}
}

// workdir is the absolute path of a folder that is inside the tree.
func (c *Call) workdir(name string) (string, error) {
	info, err := c.Tree.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fail(Input, "workdir %q is a file; name a folder", shorten(name, 200))
	}
	rel, err := c.Tree.Rel(name)
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(rel) {
		return rel, nil
	}
	return filepath.Join(c.Tree.Dir, filepath.FromSlash(rel)), nil
}

// shells are what may run a command, the best first.
var shells = []string{"bash", "sh"}

// systemPath is where every system has its programs.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// programFolders is where programs are looked for: where PATH says, then where every system has them.
func programFolders() []string {
	return slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")+":"+systemPath), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// findProgram is the first of names that is a program in one of the folders which commands under p can see. What stands first in PATH may be out of
// their sight, such as a shell of the user's own.
func findProgram(p sandbox.Policy, folders []string, names ...string) (path string, ok bool) {
	for _, name := range names {
		for _, dir := range folders {
			file := filepath.Join(dir, name)
			real, err := filepath.EvalSymlinks(file)
			if err != nil || !p.Shows(real) {
				continue
			}
			if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			if p.Shows(file) {
				return file, true
			}
			return real, true
		}
	}
	return "", false
}

// commandEnv is the whole environment of a command: an allow-list from the worker's, a HOME and a TMPDIR in scratch, what
// keeps programs from asking questions, and what the job was given. Nothing else of the worker's gets in, so a cache below the
// worker's HOME (GOCACHE, npm, cargo) is used only where the job's environment names it.
func commandEnv(scratch string, job map[string]string) []string {
	env := map[string]string{
		"PATH": systemPath,
		"HOME": filepath.Join(scratch, "home"), "TMPDIR": filepath.Join(scratch, "tmp"),
		"TERM": "dumb", "NO_COLOR": "1", "CI": "1",
		"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
	}
	for _, kv := range os.Environ() {
		name, v, _ := strings.Cut(kv, "=")
		if v != "" && (slices.Contains(passedOn, name) || strings.HasPrefix(name, "LC_")) {
			env[name] = v
		}
	}
	for name, v := range job {
		env[name] = v
	}
	list := make([]string, 0, len(env))
	for name, v := range env {
		list = append(list, name+"="+v)
	}
	slices.Sort(list)
	return list
}

// passedOn is what commands get of the worker's environment, beside LC_*.
var passedOn = []string{"PATH", "LANG", "TZ", "USER", "LOGNAME"}

// bell wakes all who wait for news.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// next is closed at the next ring.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// heard is a capture whose writes ring a bell.
type heard struct {
	capture *budget.Capture
	news    *bell
}

func (h heard) Write(p []byte) (int, error) {
	n, err := h.capture.Write(p)
	h.news.ring()
	return n, err
}
