package tools

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/tools/sandbox"
	"muster/tools/workspace"
)

// Where commands are not confined at all, git runs nothing that the repository names either: that does not hang on the sandbox.
func TestGitWithoutASandbox(t *testing.T) {
	s := gitSet(t, "echo a > a; git add a; echo b > b", func(c *Config) { c.Policy = sandbox.Policy{Mode: "off"} })
	wantText(t, call(t, s, "git_status"), "", "staged (new)  a", "untracked  b")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"b"}), "", "b  +1 −0")
	wantText(t, call(t, s, "git_commit", "message", "m"), "", "a  +1 −0")
	wantText(t, call(t, s, "git_log"), "", "the log: 2 commits")
	for _, v := range gitVectors {
		if v.name == "fsmonitor" || v.name == "filter clean" || v.name == "textconv" || v.name == "hook post-commit" || v.name == "signing" || v.name == "missing object" {
			s := plantVector(t, v)
			s.cfg.Policy = sandbox.Policy{Mode: "off"}
			everyGitTool(t, s)
		}
	}
}

// Where commands are not confined as they must be, there are no git tools.
func TestGitIsNotOfferedWhereNothingConfinesIt(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Policy = sandbox.Policy{Network: "proxy"} }) // what no machine has where nobody serves it
	for _, tool := range s.Tools() {
		if strings.HasPrefix(tool.Name, "git_") {
			t.Errorf("%s is offered", tool.Name)
		}
	}
	wantText(t, call(t, s, "git_status"), Permission, "git_status is not offered, since commands cannot be confined here: ")
}

// A git that hangs is ended with its time, and leaves nothing behind.
func TestGitThatHangsIsEnded(t *testing.T) {
	s := gitSet(t, "echo a > a; git add a; git commit -qm one; echo b > a; mkfifo .gitattributes", func(c *Config) { c.Caps.TimeoutSecs = 1 })
	begun := time.Now()
	wantText(t, call(t, s, "git_diff"), Transient, "git took more than 1 s and was ended")
	if took := time.Since(begun); took > patience {
		t.Errorf("it took %v", took)
	}
	wantText(t, call(t, s, "run_command", "command", "rm .gitattributes"), "")
	wantText(t, call(t, s, "git_diff"), "", "-a\n+b")
}

// As root, the files of another user stay that user's, whatever git writes.
func TestGitInAnotherUsersFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const user = 4711
	own := func(dir string) {
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(name, user, user)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s := gitSet(t, "echo a > a; git add a; git commit -qm one; echo b > a; chmod -R go-rwx .")
	dir := s.cfg.Tree.Dir
	if err := s.cfg.Tree.Close(); err != nil {
		t.Fatal(err)
	}
	own(dir)
	tree, err := workspace.OpenDir(dir, filepath.Join(t.TempDir(), "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	s = newSet(t, func(c *Config) { c.Tree = tree })
	wantText(t, call(t, s, "git_diff"), "", "-a\n+b")
	wantText(t, call(t, s, "git_commit", "message", "two", "paths", []string{"a"}), "", "a  +1 −1")
	wantText(t, call(t, s, "git_status"), "", "nothing changed")
	wantText(t, call(t, s, "run_command", "command", "touch $HOME/x $TMPDIR/x && mktemp"), "", "exit: 0", tree.Scratch)
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != user {
			t.Errorf("%s belongs to %d", name, st.Uid)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What a set makes for git goes with it.
func TestGitLeavesNoViews(t *testing.T) {
	s := gitSet(t, "echo a > a")
	call(t, s, "git_status")
	call(t, s, "git_commit", "message", "m", "paths", []string{"a"})
	if left, err := os.ReadDir(s.own); err != nil || len(left) != 0 || len(s.boxes) != 1 {
		t.Errorf("after calls: %v, %v, %d boxes", left, err, len(s.boxes))
	}
	s.Close()
	if _, err := os.Stat(s.own); !os.IsNotExist(err) {
		t.Errorf("after the end: %v", err)
	}
	wantText(t, call(t, s, "git_status"), Permanent, "the session is ending")
}

// In place, the repository is the user's: what commands put into it, the user's next git would run. They can look at it, and git_commit can commit.
func TestCommandsCannotChangeTheUsersRepository(t *testing.T) {
	skipBelow(t, "full-no-proc")
	for name, script := range map[string]string{
		"folder": "git init -q sub/nested; echo a > a; git add a; git commit -qm one; echo b > a",
		"file":   "echo a > a; git add a; git commit -qm one; echo b > a; mv .git real; echo 'gitdir: real' > .git; mkdir real/worktrees",
	} {
		t.Run(name, func(t *testing.T) {
			s := gitSet(t, script)
			look := func() string {
				return bash(t, s, "cat .git real/config 2>/dev/null || true; D=$(git rev-parse --git-dir); find $D -printf '%p %s %m\\n' | sort; find $D -type f | sort | xargs sha256sum")
			}
			before := look()
			for _, command := range []string{
				"echo '[core] fsmonitor=touch x' >> .git/config", "git config core.fsmonitor x", "echo x > .git/hooks/pre-commit", "ln -s /bin/true .git/hooks/x", "echo .. > .git/commondir",
				"mv .git x", "rm -rf .git", "rm .git; echo 'gitdir: elsewhere' > .git", "echo 'gitdir: elsewhere' > .git", "ln -sfn elsewhere .git", "mkdir y; mv y .git", "mount --bind y .git",
				"chmod -R 777 .git", "touch .git/x .git", "git commit -qam x", "git add a", "git stash", "git branch x", "git update-ref refs/heads/x HEAD", "git gc", "cp -r .git z; mv -T z .git",
				"echo x >> real/config", "mv real x", "rm -rf real; cp -r /etc real", "cd .. && mv ws ws2", "mv $PWD ../other", "ln .git/config linked && echo x >> linked",
			} {
				call(t, s, "run_command", "command", command)
				if now := look(); now != before {
					t.Fatalf("%s changed it:\n%s\n%s", command, before, now)
				}
			}
			for _, command := range []string{"git status --porcelain", "git log --format=%s", "git diff", "git show HEAD:a"} {
				if r := call(t, s, "run_command", "command", command); !r.OK {
					t.Errorf("%s does not work: %s", command, r.Text)
				}
			}
			wantText(t, call(t, s, "run_command", "command", "echo c > a && mkdir n && echo n > n/n"), "")
			wantText(t, call(t, s, "git_commit", "message", "two", "paths", []string{"a", "n"}), "", "a  +1 −1", "n/n  +1 −0")
			wantText(t, call(t, s, "run_command", "command", "git log --format=%s; git status --porcelain"), "", "two\none", "!n/n")
		})
	}
}

// The box of a commit writes nothing but the repository.
func TestCommitsWriteOnlyTheRepository(t *testing.T) {
	skipBelow(t, "full-no-proc")
	s := gitSet(t, "echo a > a; git add a")
	r, err := (&Call{Tree: s.cfg.Tree, Caps: s.cfg.Caps, set: s}).findRepository(".")
	if err != nil {
		t.Fatal(err)
	}
	box, temp, err := s.commitBox(r)
	if err != nil {
		t.Fatal(err)
	}
	defer s.closeBox(box, temp)
	for command, want := range map[string]int{
		"touch .git/x": 0, "touch " + temp + "/x": 0, "touch x": 1, "touch " + s.cfg.Tree.Scratch + "/x": 1, "touch " + s.own + "/x": 1, "cat a": 0,
	} {
		p, err := box.Start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", command}, Dir: s.cfg.Tree.Dir, Env: []string{"PATH=/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(); err != nil || (e.Code != 0) != (want != 0) {
			t.Errorf("%s: %+v, %v", command, e, err)
		}
	}
}

// skipBelow skips where commands are confined worse than a rung.
func skipBelow(t *testing.T, rung string) {
	if have := sandbox.Probe().Rung; slices.Index(sandbox.Rungs(), have) > slices.Index(sandbox.Rungs(), rung) {
		t.Skipf("rung %s; needs %s", have, rung)
	}
}
