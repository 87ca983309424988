package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// same checks that a checkout of a folder's snapshot holds what want says of the folder.
func same(t *testing.T, dir string, want map[string]string) Snapshot {
	t.Helper()
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	tree := checkout(t, c, "a", snap.Commit, bundle)
	if diff := cmp.Diff(want, listing(t, tree.Dir)); diff != "" {
		t.Errorf("checkout differs (-want +got):\n%s", diff)
	}
	return snap
}

func TestSnapshotOfCleanRepositoryIsHead(t *testing.T) {
	dir := newRepo(t)
	snap := same(t, dir, listing(t, dir))
	if head := userGit(t, dir, "rev-parse", "HEAD"); snap.Commit != head || snap.Dirty {
		t.Errorf("snapshot %+v of head %s", snap, head)
	}
}

func TestSnapshotOfEverythingThatChanged(t *testing.T) {
	dir := newRepo(t)
	put(t, filepath.Join(dir, ".gitignore"), "*.log\nbuild/\n!keep.log\n")
	put(t, filepath.Join(dir, "forced.log"), "tracked though ignored\n")
	userGit(t, dir, "add", "-f", "forced.log")
	put(t, filepath.Join(dir, "old name"), "x\n")
	userGit(t, dir, "add", "-A")
	userGit(t, dir, "commit", "-q", "-m", "second")
	userGit(t, dir, "rm", "-q", "--cached", "a.txt") // untracked from now on, but there
	userGit(t, dir, "update-index", "--assume-unchanged", "forced.log")
	put(t, filepath.Join(dir, "forced.log"), "changed behind git's back\n")
	os.Rename(filepath.Join(dir, "old name"), filepath.Join(dir, "new \"name\"\n\t\\ ü"))
	put(t, filepath.Join(dir, "-dash"), "x")
	put(t, filepath.Join(dir, "crlf.txt"), "a\r\nb\r\n")
	put(t, filepath.Join(dir, "latin1"), "caf\xe9\x00")
	put(t, filepath.Join(dir, "name\xff"), "x")
	put(t, filepath.Join(dir, "run.sh"), "#!/bin/sh\n")
	os.Chmod(filepath.Join(dir, "run.sh"), 0o755)
	link(t, "nowhere", filepath.Join(dir, "dangling"))
	link(t, "/etc/passwd", filepath.Join(dir, "outside"))
	os.RemoveAll(filepath.Join(dir, "d"))
	put(t, filepath.Join(dir, "d"), "a folder became a file")
	want := listing(t, dir)
	put(t, filepath.Join(dir, "x.log"), "ignored")
	put(t, filepath.Join(dir, "build/x"), "ignored")
	syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644)
	before := traces(t, dir)
	snap := same(t, dir, want)
	if !snap.Dirty || len(snap.Left) > 0 {
		t.Errorf("snapshot: %+v", snap)
	}
	if diff := cmp.Diff(before, traces(t, dir)); diff != "" {
		t.Errorf("the folder was changed:\n%s", diff)
	}
}

func TestSnapshotRunsNothing(t *testing.T) {
	dir := newRepo(t)
	mark := filepath.Join(t.TempDir(), "ran")
	script := "#!/bin/sh\ntouch " + mark + "\ncat\n"
	evil := filepath.Join(t.TempDir(), "evil")
	put(t, evil, script)
	os.Chmod(evil, 0o755)
	for _, h := range []string{"post-index-change", "pre-commit", "post-checkout", "reference-transaction", "fsmonitor-watchman"} {
		put(t, filepath.Join(dir, ".git/hooks", h), script)
		os.Chmod(filepath.Join(dir, ".git/hooks", h), 0o755)
	}
	for _, kv := range [][2]string{
		{"core.fsmonitor", evil}, {"filter.x.clean", evil}, {"filter.x.smudge", evil}, {"filter.x.process", evil}, {"diff.x.textconv", evil},
		{"diff.x.command", evil}, {"diff.external", evil}, {"core.pager", evil}, {"core.editor", evil}, {"gpg.program", evil}, {"core.sshCommand", evil},
	} {
		userGit(t, dir, "config", kv[0], kv[1])
	}
	userGit(t, dir, "config", "commit.gpgSign", "true")
	// A submodule with the same filters: looking into it would run them.
	sub := filepath.Join(dir, "sub")
	put(t, filepath.Join(sub, "f"), "1\n")
	userGit(t, sub, "init", "-q")
	userGit(t, sub, "add", "-A")
	userGit(t, sub, "commit", "-q", "-m", "sub")
	userGit(t, sub, "config", "filter.x.clean", evil)
	put(t, filepath.Join(sub, ".gitattributes"), "* filter=x\n")
	put(t, filepath.Join(sub, "f"), "2\n")
	os.Remove(mark)
	plain := runIn(t, dir, "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "update-index", "--add", "--cacheinfo", "160000,"+userGit(t, sub, "rev-parse", "HEAD")+",sub")
	if plain != nil {
		t.Fatal(plain)
	}
	put(t, filepath.Join(dir, ".gitattributes"), "* filter=x diff=x\n*.txt text eol=crlf ident working-tree-encoding=UTF-16\n")
	put(t, filepath.Join(dir, "a.txt"), "changed $Id$\n")
	want := listing(t, dir)
	delete(want, "sub/f")
	delete(want, "sub/.gitattributes")
	os.Remove(mark)
	before := traces(t, dir)
	snap := same(t, dir, want)
	if _, err := os.Lstat(mark); err == nil {
		t.Error("a program that the repository configures was run")
	}
	if diff := cmp.Diff(before, traces(t, dir)); diff != "" {
		t.Errorf("the folder was changed:\n%s", diff)
	}
	if !slices.Contains(snap.Left, Left{"sub", leftNested}) {
		t.Errorf("submodule is not named: %v", snap.Left)
	}
	// Would the trap have sprung?
	if err := runIn(t, dir, "git", "status"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(mark); err != nil {
		t.Error("the trap does not work")
	}
}

func TestSnapshotStates(t *testing.T) {
	t.Run("no commits", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "r")
		put(t, filepath.Join(dir, "f"), "x")
		userGit(t, dir, "init", "-q")
		if snap := same(t, dir, listing(t, dir)); !snap.Dirty {
			t.Error("not dirty")
		}
	})
	t.Run("empty folder", func(t *testing.T) {
		same(t, t.TempDir(), map[string]string{})
	})
	t.Run("plain folder", func(t *testing.T) {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "x/y"), "z")
		put(t, filepath.Join(dir, ".gitignore"), "*.o\n")
		want := listing(t, dir)
		put(t, filepath.Join(dir, "a.o"), "z")
		same(t, dir, want)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			t.Error("a repository was made in the folder")
		}
	})
	t.Run("detached and in a merge", func(t *testing.T) {
		dir := newRepo(t)
		userGit(t, dir, "checkout", "-q", "-b", "side")
		put(t, filepath.Join(dir, "a.txt"), "side\n")
		userGit(t, dir, "commit", "-qam", "side")
		userGit(t, dir, "checkout", "-q", "--detach", "main")
		put(t, filepath.Join(dir, "a.txt"), "main\n")
		userGit(t, dir, "commit", "-qam", "main")
		if err := runIn(t, dir, "git", "merge", "side"); err == nil {
			t.Fatal("no conflict")
		}
		same(t, dir, listing(t, dir))
	})
	t.Run("worktree", func(t *testing.T) {
		dir := newRepo(t)
		tree := filepath.Join(t.TempDir(), "wt")
		userGit(t, dir, "worktree", "add", "-q", tree)
		put(t, filepath.Join(tree, "new"), "x")
		before := traces(t, filepath.Join(dir, ".git"))
		if snap := same(t, tree, listing(t, tree)); !snap.Dirty {
			t.Error("not dirty")
		}
		if diff := cmp.Diff(before, traces(t, filepath.Join(dir, ".git"))); diff != "" {
			t.Errorf("the repository was changed:\n%s", diff)
		}
	})
}

func TestSnapshotOddRepositories(t *testing.T) {
	t.Run("shallow", func(t *testing.T) {
		dir := newRepo(t)
		put(t, filepath.Join(dir, "a.txt"), "2\n")
		userGit(t, dir, "commit", "-qam", "second")
		clone := filepath.Join(t.TempDir(), "c")
		userGit(t, dir, "clone", "-q", "--depth=1", "file://"+dir, clone)
		if snap := same(t, clone, listing(t, clone)); snap.Dirty {
			t.Error("dirty")
		}
	})
	t.Run("subfolder is a plain folder", func(t *testing.T) {
		dir := newRepo(t)
		same(t, filepath.Join(dir, "d"), listing(t, filepath.Join(dir, "d")))
	})
	t.Run("sha256", func(t *testing.T) {
		dir := t.TempDir()
		userGit(t, dir, "init", "-q", "--object-format=sha256")
		put(t, filepath.Join(dir, "f"), "x")
		userGit(t, dir, "add", "-A")
		userGit(t, dir, "commit", "-qm", "x")
		put(t, filepath.Join(dir, "g"), "y")
		if snap := same(t, dir, listing(t, dir)); len(snap.Commit) != 64 {
			t.Errorf("commit %q", snap.Commit)
		}
	})
	t.Run("split index", func(t *testing.T) {
		dir := newRepo(t)
		userGit(t, dir, "update-index", "--split-index")
		put(t, filepath.Join(dir, "a.txt"), "changed")
		same(t, dir, listing(t, dir))
	})
	t.Run("fileMode off", func(t *testing.T) {
		dir := newRepo(t)
		userGit(t, dir, "config", "core.fileMode", "false")
		os.Chmod(filepath.Join(dir, "a.txt"), 0o777)
		if snap, _ := bundleOf(t, openCache(t, t.TempDir()), dir); snap.Dirty {
			t.Error("a mode that means nothing counts as a change")
		}
	})
}

func TestSnapshotNestedRepositories(t *testing.T) {
	dir := newRepo(t)
	want := listing(t, dir)
	for _, n := range []string{"none yet", "some"} {
		put(t, filepath.Join(dir, n, "f"), "x")
		userGit(t, filepath.Join(dir, n), "init", "-q")
	}
	userGit(t, filepath.Join(dir, "some"), "add", "-A")
	userGit(t, filepath.Join(dir, "some"), "commit", "-qm", "x")
	snap := same(t, dir, want)
	if want := []Left{{"none yet", leftNested}, {"some", leftNested}}; !slices.Equal(snap.Left, want) {
		t.Errorf("left: %v", snap.Left)
	}
}

func TestSnapshotIgnoresWhatTheUserIgnores(t *testing.T) {
	dir := newRepo(t)
	want := listing(t, dir)
	put(t, filepath.Join(os.Getenv("HOME"), ".config/git/ignore"), "*.mine\n")
	put(t, filepath.Join(dir, ".git/info/exclude"), "*.here\n!kept.mine\n")
	for _, n := range []string{"a.mine", "a.here"} {
		put(t, filepath.Join(dir, n), "x")
	}
	put(t, filepath.Join(dir, "kept.mine"), "x")
	want["kept.mine"] = "false x"
	same(t, dir, want)
	put(t, filepath.Join(os.Getenv("HOME"), "other"), "*.there\n")
	put(t, filepath.Join(os.Getenv("HOME"), ".gitconfig"), "[core]\n\texcludesFile = ~/other\n")
	put(t, filepath.Join(dir, "a.there"), "x")
	want["a.mine"] = "false x"
	same(t, dir, want)
}

func TestSnapshotIsTheSameForTheSameFiles(t *testing.T) {
	dir := newRepo(t)
	put(t, filepath.Join(dir, "new"), "x")
	c := openCache(t, t.TempDir())
	first, _ := bundleOf(t, c, dir)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			snap, err := c.Snapshot(context.Background(), dir, io.Discard)
			if err != nil || snap.Commit != first.Commit {
				t.Errorf("%+v, %v; want %s", snap, err, first.Commit)
			}
		})
	}
	wg.Wait()
	if left, _ := os.ReadDir(filepath.Join(c.dir, snapshotsDir)); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	dir := newRepo(t)
	c := openCache(t, t.TempDir())
	bare := filepath.Join(t.TempDir(), "bare")
	userGit(t, dir, "clone", "-q", "--bare", dir, bare)
	if _, err := c.Snapshot(context.Background(), bare, io.Discard); !errors.Is(err, ErrBareRepository) {
		t.Errorf("bare repository: %v", err)
	}
	if _, err := c.Snapshot(context.Background(), filepath.Join(dir, "none"), io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	other := t.TempDir()
	userGit(t, dir, "config", "core.worktree", other)
	if _, err := c.Snapshot(context.Background(), dir, io.Discard); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("repository of another folder: %v", err)
	}
	broken := t.TempDir()
	put(t, filepath.Join(broken, ".git"), "gitdir: /nowhere\n")
	if _, err := c.Snapshot(context.Background(), broken, io.Discard); err == nil || !strings.Contains(err.Error(), "mend") {
		t.Errorf("broken repository: %v", err)
	}
	full := errors.New("no room")
	if _, err := c.Snapshot(context.Background(), other, failing{full}); !errors.Is(err, full) {
		t.Errorf("writer that fails: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := c.Snapshot(ctx, other, io.Discard); !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestSnapshotOfSomebodyElsesRepository(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := newRepo(t)
	put(t, filepath.Join(dir, "new"), "x")
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, 12345, 12345))
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, dir, listing(t, dir))
}

func TestSnapshotUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := newRepo(t)
	want := listing(t, dir)
	put(t, filepath.Join(dir, "secret"), "x")
	put(t, filepath.Join(dir, "locked/f"), "x")
	os.Chmod(filepath.Join(dir, "secret"), 0)
	os.Chmod(filepath.Join(dir, "locked"), 0)
	defer os.Chmod(filepath.Join(dir, "locked"), 0o755)
	snap := same(t, dir, want)
	slices.SortFunc(snap.Left, func(a, b Left) int { return strings.Compare(a.Path, b.Path) })
	if want := []Left{{"locked", leftUnreadable}, {"secret", leftUnreadable}}; !slices.Equal(snap.Left, want) {
		t.Errorf("left: %v", snap.Left)
	}
}

func TestSnapshotStreamsLargeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 300 MB")
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for range 300 {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	tree := checkout(t, c, "a", snap.Commit, bundle)
	if info, err := tree.Stat("large"); err != nil || info.Size() != 300<<20 {
		t.Errorf("large file: %v, %v", info, err)
	}
}
