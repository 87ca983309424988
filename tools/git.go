package tools

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"muster/budget"
	"muster/tools/git"
	"muster/tools/sandbox"
	"muster/tools/workspace"
)

// The git tools look at the repository of a workspace, and commit to it. Every run of git is one in the agent's box, on a view of the repository that
// leaves out all that could start a program (package git); they differ in the arguments only. What git prints is read while it comes, and no more of
// it is kept than GitBytes.
//
// What stands in a repository is other people's text. It is shown as other listings are: each line in a form of the tool's own (a row of status or
// log, a line of a diff behind its sign), nothing at the beginning of a line, and no control character. That is no fence, and for the reason that fence.go
// gives it needs none: most of it is the agent's own work, and a fence around every log would be one around nothing.

// gitState is what a set keeps of its repositories between calls.
type gitState struct {
	commits sync.Mutex // one at a time

	mu      sync.Mutex
	made    int                              // views so far
	configs map[[sha256.Size]byte]git.Config // by the text they were read from
	indexes map[string]indexCopy             // by repository
}

// configsKept bounds the configurations that are remembered; a repository has one, which seldom changes.
const configsKept = 16

// indexCopy is a copy of an index in the scratch folder, in which git may note what it finds out about unchanged files.
type indexCopy struct {
	name, path string
	of         fs.FileInfo
}

// current says that the copy is there, and of the index that info is of.
func (i indexCopy) current(t *workspace.Tree, info fs.FileInfo) bool {
	if i.of == nil || !os.SameFile(i.of, info) || i.of.Size() != info.Size() || !i.of.ModTime().Equal(info.ModTime()) {
		return false
	}
	mine, err := t.Lstat(i.path)
	return err == nil && mine.Mode().IsRegular()
}

// gitCall is a call of a git tool on its way.
type gitCall struct {
	*Call
	repository
	config git.Config
	run    git.Runner
	at     git.Repo
	temp   string // of a commit: a folder of its own
	after  string // what went wrong after a commit was made
}

// errGitSlow is the cause of the end of a git that took too long.
var errGitSlow = errors.New("git takes too long")

// withGit runs a git tool on the repository that keeps path, in the box of the agent's commands.
func (c *Call) withGit(ctx context.Context, path string, do func(context.Context, *gitCall) (Output, error)) (Output, error) {
	return c.onRepository(ctx, path, func(ctx context.Context, g *gitCall) (Output, error) {
		box, err := c.set.openBox()
		if err != nil {
			return Output{}, notStarted(err)
		}
		return g.in(ctx, box, do)
	})
}

// withCommit is withGit in a box of its own, in which the repository can be written.
func (c *Call) withCommit(ctx context.Context, path string, do func(context.Context, *gitCall) (Output, error)) (Output, error) {
	return c.onRepository(ctx, path, func(ctx context.Context, g *gitCall) (Output, error) {
		c.set.git.commits.Lock()
		defer c.set.git.commits.Unlock()
		box, temp, err := c.set.commitBox(g.repository)
		if err != nil {
			return Output{}, notStarted(err)
		}
		defer c.set.closeBox(box, temp)
		g.temp = temp
		return g.in(ctx, box, do)
	})
}

func (c *Call) onRepository(ctx context.Context, path string, do func(context.Context, *gitCall) (Output, error)) (out Output, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(c.Caps.TimeoutSecs)*time.Second, errGitSlow)
	defer cancel()
	g := &gitCall{Call: c}
	if g.run.Program, err = c.set.gitProgram(); err != nil {
		return Output{}, err
	}
	if g.repository, err = c.findRepository(cmp.Or(path, ".")); err != nil {
		return Output{}, err
	}
	out, err = do(ctx, g)
	return out, g.failed(err)
}

// in runs a tool in a box.
func (g *gitCall) in(ctx context.Context, box *sandbox.Box, do func(context.Context, *gitCall) (Output, error)) (Output, error) {
	g.run.Start = box.Start
	view, err := g.view(ctx)
	if err != nil {
		return Output{}, err
	}
	defer os.RemoveAll(view)
	g.at = git.Repo{Dir: g.dir, View: view, Objects: filepath.Join(g.common, "objects")}
	if !g.bare {
		g.at.WorkTree = g.top
	}
	return do(ctx, g)
}

// view reads of the repository what is data, and makes the view of it for this call.
func (g *gitCall) view(ctx context.Context) (string, error) {
	from := git.Source{Common: g.common}
	var text []byte
	for name, to := range map[string]*[]byte{"config": &text, "info/attributes": &from.Attributes, "info/exclude": &from.Exclude} {
		var err error
		if *to, err = g.read(filepath.Join(g.common, name)); err != nil {
			return "", err
		}
	}
	s := &g.set.git
	var err error
	if g.config, err = s.configOf(ctx, g.run, text); err != nil {
		return "", err
	}
	g.bare = g.bare || !g.linked && g.dir == g.common && g.config.True("core.bare")
	from.Config = g.config
	s.mu.Lock()
	s.made++
	dir := filepath.Join(g.set.own, fmt.Sprint("view-", s.made))
	s.mu.Unlock()
	return dir, git.NewView(dir, from)
}

// configOf reads a configuration, once for each that there is.
func (s *gitState) configOf(ctx context.Context, run git.Runner, text []byte) (git.Config, error) {
	sum := sha256.Sum256(text)
	s.mu.Lock()
	known, ok := s.configs[sum]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	config, err := git.ParseConfig(ctx, run, text)
	if err != nil {
		return git.Config{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.configs == nil || len(s.configs) >= configsKept {
		s.configs = map[[sha256.Size]byte]git.Config{}
	}
	s.configs[sum] = config
	return config, nil
}

// gitProgram is the git that commands of this agent can see.
func (s *Set) gitProgram() (string, error) {
	program, ok := findProgram(s.cfg.Policy, s.folders, "git")
	if !ok {
		return "", fail(Permanent, "this machine has no git where commands can see it; finish without it")
	}
	return program, nil
}

// git runs git on the repository.
func (g *gitCall) git(ctx context.Context, stdout io.Writer, args ...string) error {
	err := g.run.Run(ctx, g.at, nil, stdout, args...)
	var said *git.Error
	if args[0] == "diff" && errors.As(err, &said) && strings.Contains(said.Says, "--no-index") { // it found no repository, and only says how it is used
		if _, other := g.line(ctx, "rev-parse", "--git-dir"); other != nil {
			return other
		}
	}
	return err
}

// line is what a git prints that prints little, without the last newline.
func (g *gitCall) line(ctx context.Context, args ...string) (string, error) {
	var b bytes.Buffer
	err := g.git(ctx, &b, args...)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// records runs git and calls fn for each of its records, which end with NUL; of a long one, GitBytes are handed on.
func (g *gitCall) records(ctx context.Context, fn func(string), args ...string) error {
	return g.git(ctx, &git.Records{Most: g.Caps.GitBytes, Fn: func(s string) error { fn(s); return nil }}, args...)
}

// useIndexCopy has git work with a copy of the index, and note in it what it finds out: the next call need not look at unchanged files again, and the
// repository stays as it is. In a box with a user of its own nothing in the real index would fit. It does nothing where there is no index yet, or where
// git has to say what is wrong with it.
func (g *gitCall) useIndexCopy() error {
	index := filepath.Join(g.dir, "index")
	info, err := g.stat(index)
	if g.bare || g.linked || g.temp != "" || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	s := &g.set.git
	s.mu.Lock()
	defer s.mu.Unlock()
	mine, known := s.indexes[g.dir]
	if !known {
		mine.name = fmt.Sprintf("git-index-%d", len(s.indexes)+1)
	}
	if !mine.current(g.Tree, info) {
		if mine.path, mine.of, err = g.Tree.Copy(index, mine.name); err != nil {
			return fmt.Errorf("copy the index: %w", err)
		}
		if s.indexes == nil {
			s.indexes = map[string]indexCopy{}
		}
		s.indexes[g.dir] = mine
	}
	g.at.Index, g.at.Refresh = mine.path, true
	return nil
}

// gitWords bounds what is shown of git's own words.
const gitWords = 1000

// failed is the error of a git tool, with its class and the next step.
func (g *gitCall) failed(err error) error {
	var own *Error
	var said *git.Error
	var path *workspace.PathError
	switch {
	case err == nil, errors.As(err, &own), errors.As(err, &path):
		return err
	case errors.Is(err, errGitSlow):
		return fail(Transient, "git took more than %d s and was ended; ask for less at once, such as one path", g.Caps.TimeoutSecs)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &said) && strings.Contains(said.Says, ".lock': File exists"):
		return fail(Transient, "%s; try again, and if nothing else is at work there, %s", gitSays(said), g.byHand("remove that file with run_command", "name that file in your answer"))
	case errors.As(err, &said):
		return fail(Permanent, "%s; %s, or go on without", gitSays(said), g.byHand("look into it with run_command", "say so in your answer"))
	case errors.Is(err, git.ErrFormat):
		return fail(Permanent, "%v; use git in run_command", err)
	}
	return notStarted(err)
}

// byHand is what is left to do where a tool cannot: with git in a command, where commands may write to the repository, or otherwise.
func (g *gitCall) byHand(command, otherwise string) string {
	if g.linked || g.Tree.InPlace && len(g.set.keptGit()) > 0 {
		return otherwise
	}
	return command
}

// gitSays is git's own words, in a bounded text that cannot be taken for anything else.
func gitSays(e *git.Error) string {
	words := strings.TrimSpace(budget.Plain(e.Says))
	if words == "" {
		words = e.Err.Error()
	}
	return fmt.Sprintf("git %s: %s", e.Op, shorten(words, gitWords))
}
