package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// changesOf gives the patch of a tree and its files by name.
func changesOf(t testing.TB, tree *Tree) (map[string]Change, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var patch bytes.Buffer
	list, err := tree.Changes(ctx, &patch)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]Change{}
	for _, c := range list {
		found[c.Path] = c
	}
	return found, patch.Bytes()
}

// applied gives a fresh tree of the commit with the patch applied by git.
func applied(t testing.TB, c *Cache, name, commit string, patch []byte) *Tree {
	t.Helper()
	tree := checkout(t, c, name, commit, nil)
	if len(patch) == 0 {
		return tree
	}
	file := filepath.Join(t.TempDir(), "patch")
	if err := os.WriteFile(file, patch, 0o644); err != nil {
		t.Fatal(err)
	}
	userGit(t, tree.Dir, "apply", "--check", file)
	userGit(t, tree.Dir, "apply", "--whitespace=nowarn", file)
	return tree
}

func TestChanges(t *testing.T) {
	dir := newRepo(t)
	put(t, filepath.Join(dir, "crlf"), "a\r\nb\r\n")
	put(t, filepath.Join(dir, "bin"), "\x00\x01")
	put(t, filepath.Join(dir, ".gitattributes"), "crlf text\n")
	link(t, "a.txt", filepath.Join(dir, "l"))
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	tree := checkout(t, c, "a", snap.Commit, bundle)
	if found, patch := changesOf(t, tree); len(found) > 0 || len(patch) > 0 {
		t.Fatalf("changes of an untouched tree: %v\n%s", found, patch)
	}
	mustWrite(t, tree, "a.txt", "one\nTWO\nthree\n")
	userGit(t, tree.Dir, "commit", "-qam", "committed by the agent")
	mustWrite(t, tree, "crlf", "a\r\nB\r\n")
	mustWrite(t, tree, "bin", "\x00\x02")
	mustWrite(t, tree, "odd \"name\"\n\t\\ ü", "x\n")
	mustWrite(t, tree, "-n", "no newline")
	os.RemoveAll(filepath.Join(tree.Dir, "d"))
	os.Remove(filepath.Join(tree.Dir, "l"))
	link(t, "elsewhere", filepath.Join(tree.Dir, "l"))
	os.Chmod(filepath.Join(tree.Dir, ".gitattributes"), 0o755)
	mustWrite(t, tree, ".gitignore", "*.tmp\n")
	want := listing(t, tree.Dir)
	mustWrite(t, tree, "x.tmp", "ignored")
	found, patch := changesOf(t, tree)
	expect := map[string]Change{
		"a.txt": {Path: "a.txt", Added: 2, Removed: 1}, "crlf": {Path: "crlf", Added: 1, Removed: 1}, "bin": {Path: "bin", Added: -1, Removed: -1},
		"odd \"name\"\n\t\\ ü": {Path: "odd \"name\"\n\t\\ ü", Added: 1}, "-n": {Path: "-n", Added: 1}, "d/b.txt": {Path: "d/b.txt", Removed: 1},
		"l": {Path: "l", Added: 1, Removed: 1}, ".gitattributes": {Path: ".gitattributes"}, ".gitignore": {Path: ".gitignore", Added: 1},
	}
	if diff := cmp.Diff(expect, found); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, listing(t, applied(t, c, "b", snap.Commit, patch).Dir)); diff != "" {
		t.Errorf("the patch gives another tree (-want +got):\n%s", diff)
	}
	if again, second := changesOf(t, tree); !cmp.Equal(found, again) || !bytes.Equal(patch, second) {
		t.Error("asked again, it says something else")
	}
}

func TestChangesTrustNothingInTheTree(t *testing.T) {
	dir := newRepo(t)
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	tree := checkout(t, c, "a", snap.Commit, bundle)
	mark := filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	put(t, evil, "#!/bin/sh\ntouch "+mark+"\ncat\n")
	os.Chmod(evil, 0o755)
	for _, key := range []string{"core.fsmonitor", "filter.x.clean", "filter.x.process", "diff.x.textconv", "diff.x.command", "diff.external"} {
		userGit(t, tree.Dir, "config", key, evil)
	}
	mustWrite(t, tree, ".gitattributes", "* filter=x diff=x text eol=crlf ident working-tree-encoding=UTF-16\n")
	mustWrite(t, tree, "a.txt", "changed\r\n$Id$\n")
	os.Remove(mark)
	if found, _ := changesOf(t, tree); len(found) != 2 {
		t.Errorf("changes: %v", found)
	}
	userGit(t, tree.Dir, "config", "core.worktree", dir)
	os.RemoveAll(filepath.Join(tree.Dir, ".git"))
	link(t, filepath.Join(dir, ".git"), filepath.Join(tree.Dir, ".git"))
	want := listing(t, tree.Dir)
	delete(want, ".git")
	found, patch := changesOf(t, tree)
	if len(found) != 2 {
		t.Errorf("changes with another repository in the tree: %v", found)
	}
	if diff := cmp.Diff(want, listing(t, applied(t, c, "b", snap.Commit, patch).Dir)); diff != "" {
		t.Errorf("the patch gives another tree (-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(mark); err == nil {
		t.Error("a program that the tree configures was run")
	}
}

func TestChangesAmongHostileFiles(t *testing.T) {
	dir := newRepo(t)
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	tree := checkout(t, c, "a", snap.Commit, bundle)
	for _, name := range []string{".gitignore", ".gitattributes", "fifo"} {
		if err := syscall.Mkfifo(filepath.Join(tree.Dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(filepath.Join(tree.Dir, "a.txt"))
	if err := syscall.Mkfifo(filepath.Join(tree.Dir, "a.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(filepath.Join(tree.Dir, "d"))
	out := t.TempDir()
	put(t, filepath.Join(out, "b.txt"), "secret\n")
	link(t, out, filepath.Join(tree.Dir, "d"))
	sparse := filepath.Join(tree.Dir, "sparse")
	put(t, sparse, "")
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(tree.Dir, "nested/f"), "x")
	userGit(t, filepath.Join(tree.Dir, "nested"), "init", "-q")
	put(t, filepath.Join(tree.Dir, "sub/.GIT/config"), "x")
	found, patch := changesOf(t, tree)
	expect := map[string]Change{
		"a.txt": {Path: "a.txt", Added: -1, Removed: -1, Left: leftSpecial}, "d/b.txt": {Path: "d/b.txt", Removed: 1}, "d": {Path: "d", Added: 1},
		"sparse": {Path: "sparse", Added: -1, Removed: -1, Left: leftTooLarge}, "nested": {Path: "nested", Added: -1, Removed: -1, Left: leftNested},
		"sub/.GIT/config": {Path: "sub/.GIT/config", Added: -1, Removed: -1, Left: leftName},
	}
	if diff := cmp.Diff(expect, found); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if bytes.Contains(patch, []byte("secret")) {
		t.Error("the patch holds an outside file")
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
}

func TestChangesErrors(t *testing.T) {
	dir := newRepo(t)
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	tree := checkout(t, c, "a", snap.Commit, bundle)
	mustWrite(t, tree, "a.txt", strings.Repeat("line\n", 100_000))
	full := errors.New("no room")
	if _, err := tree.Changes(context.Background(), failing{full}); !errors.Is(err, full) {
		t.Errorf("writer that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tree.Changes(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if found, _ := changesOf(t, tree); len(found) != 1 {
		t.Errorf("after errors: %v", found)
	}
}

func TestInPlace(t *testing.T) {
	for _, kind := range []string{"repository", "plain folder"} {
		dir := newRepo(t)
		if kind == "plain folder" {
			os.RemoveAll(filepath.Join(dir, ".git"))
		}
		put(t, filepath.Join(dir, "untracked"), "before\n")
		before := traces(t, dir)
		c := openCache(t, t.TempDir())
		tree, err := c.InPlace(context.Background(), "a", dir, false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, traces(t, dir)); diff != "" {
			t.Errorf("%s: the folder was changed:\n%s", kind, diff)
		}
		if found, _ := changesOf(t, tree); len(found) > 0 {
			t.Errorf("%s: changes before any: %v", kind, found)
		}
		mustWrite(t, tree, "untracked", "after\n")
		mustWrite(t, tree, "new", "x\n")
		found, patch := changesOf(t, tree)
		if len(found) != 2 || !bytes.Contains(patch, []byte("-before\n+after")) {
			t.Errorf("%s: %v\n%s", kind, found, patch)
		}
		if err := tree.Close(); err != nil || tree.Saved != "" {
			t.Errorf("%s: close: %v, saved %q", kind, err, tree.Saved)
		}
		if got := get(t, filepath.Join(dir, "untracked")); got != "after\n" {
			t.Errorf("%s: file after close: %q", kind, got)
		}
		empty(t, filepath.Join(c.dir, treesDir))
	}
}

// mutate does random things to the files of a folder.
func mutate(rt *rapid.T, dir string, steps int) {
	names := rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "d/e/f", "-x", "n\nl", "ü \"q\"", "d", "s.sh"})
	content := rapid.OneOf(rapid.SampledFrom([]string{"", "x", "a\nb\nc\n", "a\r\nb\r\n", "\x00\x01", "caf\xe9\n"}), rapid.StringN(0, 40, -1))
	for range steps {
		name := filepath.Join(dir, names.Draw(rt, "name"))
		switch rapid.IntRange(0, 6).Draw(rt, "what") {
		case 0, 1, 2:
			text := content.Draw(rt, "content")
			os.MkdirAll(filepath.Dir(name), 0o755)
			if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
				break // never through a symlink
			}
			os.WriteFile(name, []byte(text), 0o644)
		case 3:
			os.RemoveAll(name)
		case 4:
			mode := rapid.SampledFrom([]os.FileMode{0o644, 0o755}).Draw(rt, "mode")
			if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() { // never through a symlink
				os.Chmod(name, mode)
			}
		case 5:
			os.RemoveAll(name)
			os.MkdirAll(filepath.Dir(name), 0o755)
			os.Symlink(rapid.SampledFrom([]string{"a", "../x", "/nonexistent/x", "d"}).Draw(rt, "target"), name)
		case 6:
			os.Rename(name, filepath.Join(dir, names.Draw(rt, "to")))
		}
	}
}

// TestRoundTrip: whatever a folder holds, its snapshot checked out is the same; whatever is done to that, the patch on
// a fresh checkout is the same again.
func TestRoundTrip(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	rapid.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp("", "muster-trip-")
		if err != nil {
			rt.Fatal(err)
		}
		defer removeTree(top)
		dir := filepath.Join(top, "dir")
		os.Mkdir(dir, 0o755)
		if rapid.Bool().Draw(rt, "repository") {
			userGit(t, dir, "init", "-q")
			mutate(rt, dir, 4)
			userGit(t, dir, "add", "-A")
			userGit(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
		}
		mutate(rt, dir, rapid.IntRange(0, 8).Draw(rt, "steps"))
		c := openCache(t, filepath.Join(top, "cache"))
		snap, bundle := bundleOf(t, c, dir)
		tree, err := c.Checkout(context.Background(), "one", snap.Commit, false, deliver(bundle))
		if err != nil {
			rt.Fatal(err)
		}
		defer tree.Close()
		if diff := cmp.Diff(listing(t, dir), listing(t, tree.Dir)); diff != "" {
			rt.Fatalf("checkout differs (-want +got):\n%s", diff)
		}
		mutate(rt, tree.Dir, rapid.IntRange(0, 8).Draw(rt, "more"))
		want := listing(t, tree.Dir)
		_, patch := changesOf(t, tree)
		fresh := applied(t, c, "two", snap.Commit, patch)
		defer fresh.Close()
		if diff := cmp.Diff(want, listing(t, fresh.Dir)); diff != "" {
			rt.Fatalf("the patch gives another tree (-want +got):\n%s\n%s", diff, patch)
		}
	})
}
