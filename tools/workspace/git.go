package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"muster/budget"
)

// git is a repository of ours and how git is run on it: with our arguments, our environment and our configuration,
// so that nothing a user's repository, home or system configures is read, and nothing it names is started.
type git struct {
	dir        string   // GIT_DIR; "" to let git find the repository of workTree
	workTree   string   // GIT_WORK_TREE and the folder git runs in; "" for work on objects alone
	index      string   // GIT_INDEX_FILE; "" for the one in dir
	alternates []string // more object folders to read from
	date       string   // of commits that are made, so that the same files give the same commit
}

// hardening is the configuration of every run. What could start a program (hooks, fsmonitor, filters and drivers,
// which need configuration to exist) is off; what would change bytes is off; what is ours alone stays ours.
var hardening = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
	"core.autocrlf=false", "core.fileMode=true", "core.symlinks=true", "core.quotePath=false",
	"core.untrackedCache=false", "core.splitIndex=false", "core.sparseCheckout=false", "core.logAllRefUpdates=false",
	"submodule.recurse=false", "gc.auto=0", "maintenance.auto=false", "protocol.allow=never",
	"safe.directory=*", "advice.detachedHead=false", "fastimport.unpackLimit=0", "core.bigFileThreshold=32m", "pack.threads=2",
}

// rawAttributes stands in info/attributes of each of our repositories, where it wins over every .gitattributes: a
// byte in a file is a byte in the commit and back.
const rawAttributes = "* -text !eol -ident -filter -working-tree-encoding !diff\n"

func (g git) env() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_LITERAL_PATHSPECS=1", "GIT_PAGER=cat", "GIT_EDITOR=false",
	}
	if g.dir != "" {
		env = append(env, "GIT_DIR="+g.dir)
	}
	if g.dir != "" && g.workTree != "" {
		env = append(env, "GIT_WORK_TREE="+g.workTree)
	}
	if g.dir == "" {
		env = append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(g.workTree))
	}
	if g.index != "" {
		env = append(env, "GIT_INDEX_FILE="+g.index)
	}
	if g.date != "" {
		env = append(env, "GIT_AUTHOR_DATE="+g.date, "GIT_COMMITTER_DATE="+g.date)
	}
	if len(g.alternates) > 0 {
		quoted := make([]string, len(g.alternates))
		for i, a := range g.alternates {
			quoted[i] = quoteAlternate(a)
		}
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(quoted, ":"))
	}
	return env
}

// quoteAlternate writes an object folder the way git reads lists of them.
func quoteAlternate(dir string) string {
	if !strings.ContainsAny(dir, "\":#\n\\") {
		return dir
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(dir) + `"`
}

// gitError is a run of git that failed, with git's own words.
type gitError struct {
	op   string
	code int
	says string
	err  error
}

func (e *gitError) Error() string {
	if e.says == "" {
		return fmt.Sprintf("git %s: %v", e.op, e.err)
	}
	return fmt.Sprintf("git %s: %s", e.op, e.says)
}

func (e *gitError) Unwrap() error { return e.err }

// run runs git with a fixed argument list. It and what it starts end when ctx does.
func (g git) run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	var all []string
	for _, c := range hardening {
		all = append(all, "-c", c)
	}
	err := g.exec(ctx, g.env(), append(all, args...), stdin, stdout)
	var failed *gitError
	if errors.As(err, &failed) {
		for len(args) > 2 && args[0] == "-c" {
			args = args[2:]
		}
		failed.op = args[0]
	}
	return err
}

func (g git) exec(ctx context.Context, env, args []string, stdin io.Reader, stdout io.Writer) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Dir = env, stdin, stdout, g.workTree
	out := &sink{w: stdout}
	if _, file := stdout.(*os.File); stdout != nil && !file {
		cmd.Stdout = out
	}
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	words := budget.NewCapture(4096, 50)
	cmd.Stderr = words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if out.err != nil {
		return out.err // git then only says that nobody reads it
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("git is not installed, and workspaces need it: %w", err)
	}
	said := words.Snapshot()
	e := &gitError{op: args[0], code: -1, err: err, says: strings.TrimSpace(string(said.Head) + string(said.Tail))}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		e.code = exit.ExitCode()
	}
	return e
}

// sink remembers the error of a writer.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

// text runs git and returns what it prints, without the last newline.
func (g git) text(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := g.run(ctx, nil, &out, args...)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// each runs git and calls fn for each piece of its output that ends with the byte end.
func (g git) each(ctx context.Context, end byte, fn func(string) error, args ...string) error {
	return g.run(ctx, nil, &splitter{end: end, fn: fn}, args...)
}

// splitter is a writer that hands on what is written piece by piece.
type splitter struct {
	end  byte
	fn   func(string) error
	rest []byte
	err  error
}

func (s *splitter) Write(p []byte) (int, error) {
	n := len(p)
	for s.err == nil {
		i := bytes.IndexByte(p, s.end)
		if i < 0 {
			s.rest = append(s.rest, p...)
			break
		}
		s.err = s.fn(string(append(s.rest, p[:i]...)))
		s.rest, p = s.rest[:0], p[i+1:]
	}
	return n, s.err
}

// initBare makes a repository of ours in dir.
func initBare(ctx context.Context, dir, format string) error {
	g := git{}
	if err := g.run(ctx, nil, nil, "init", "-q", "--bare", "--template=", "--initial-branch=muster", "--object-format="+format, "--", dir); err != nil {
		return err
	}
	return writeRaw(dir)
}

func writeRaw(gitDir string) error {
	info := filepath.Join(gitDir, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte(rawAttributes), 0o600)
}

// formatOf tells the object format by the length of an id.
func formatOf(id string) string {
	if len(id) == 64 {
		return "sha256"
	}
	return "sha1"
}

// isID reports whether s is a whole object id, and so nothing that git could take for an option or a name.
func isID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}
