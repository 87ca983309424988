package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// userGit runs the user's git in a folder.
func userGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=@1700000000 +0000", "GIT_COMMITTER_DATE=@1700000000 +0000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// newRepo makes a repository with one commit of two files.
func newRepo(t *testing.T) string {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := filepath.Join(t.TempDir(), "repo")
	put(t, filepath.Join(dir, "a.txt"), "one\ntwo\n")
	put(t, filepath.Join(dir, "d/b.txt"), "bee\n")
	userGit(t, dir, "init", "-q", "-b", "main")
	userGit(t, dir, "add", "-A")
	userGit(t, dir, "commit", "-q", "-m", "first")
	return dir
}

func openCache(t testing.TB, dir string) *Cache {
	t.Helper()
	c, err := OpenCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bundleOf makes a snapshot and its bundle.
func bundleOf(t testing.TB, c *Cache, dir string) (Snapshot, []byte) {
	t.Helper()
	var b bytes.Buffer
	snap, err := c.Snapshot(context.Background(), dir, &b)
	if err != nil {
		t.Fatal(err)
	}
	return snap, b.Bytes()
}

func deliver(bundle []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(bundle)
		return err
	}
}

func checkout(t testing.TB, c *Cache, attempt, commit string, bundle []byte) *Tree {
	t.Helper()
	tree, err := c.Checkout(context.Background(), attempt, commit, false, deliver(bundle))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

// listing is a folder as text: each file and symlink with its executable bit and content, repositories left out.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && name != dir {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(dir, name)
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			found[rel] = "-> " + to
			return err
		case info.Mode().IsRegular():
			b, err := os.ReadFile(name)
			found[rel] = fmt.Sprintf("%v %s", info.Mode()&0o100 != 0, b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// traces is every byte and time of a folder, to show that nothing was touched.
func traces(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), info.Size())
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text += string(b)
		}
		found[name] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// runIn runs a program in a folder.
func runIn(t *testing.T, dir, name string, args ...string) error {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd.Run()
}
