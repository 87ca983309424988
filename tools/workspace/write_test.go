package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// write writes a file whole, whether it exists or not.
func write(tree *Tree, name string, data []byte) (Written, error) {
	for {
		deed := Put
		if _, err := tree.Stat(name); errors.Is(err, fs.ErrNotExist) {
			deed = Create
		}
		w, err := tree.Commit(context.Background(), []Step{{Deed: deed, Path: name, Data: data}})
		switch {
		case err == nil:
			return w[0], nil
		case deed == Create && !errors.Is(err, fs.ErrExist), deed == Put && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrStale):
			return Written{}, err
		}
	}
}

func mustWrite(t *testing.T, tree *Tree, name, text string) Written {
	t.Helper()
	w, err := write(tree, name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// leftovers lists the temporary files in a folder and below.
func leftovers(t *testing.T, dir string) (names []string) {
	t.Helper()
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(p), ".muster-") {
			names = append(names, p)
		}
		return nil
	})
	return names
}

func TestWriteNewAndOld(t *testing.T) {
	tree, dir, _ := openTest(t)
	if w := mustWrite(t, tree, "-d ir/a\nb 🚀.txt", "1"); !w.Created || w.Path != "-d ir/a\nb 🚀.txt" {
		t.Errorf("new file: %+v", w)
	}
	if w := mustWrite(t, tree, "-d ir/a\nb 🚀.txt", "22"); w.Created || w.InPlace || w.Detached {
		t.Errorf("old file: %+v", w)
	}
	if got := get(t, filepath.Join(dir, "-d ir/a\nb 🚀.txt")); got != "22" {
		t.Errorf("content %q", got)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestWriteKeepsMode(t *testing.T) {
	tree, dir, _ := openTest(t)
	for _, mode := range []fs.FileMode{0o755, 0o600, 0o664, 0o755 | fs.ModeSetuid} {
		name := fmt.Sprintf("f%o", mode)
		put(t, filepath.Join(dir, name), "x")
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, tree, name, "y")
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != mode&0o777 {
			t.Errorf("mode %v became %v", mode, info.Mode())
		}
	}
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	mustWrite(t, tree, "new", "")
	if info, _ := os.Lstat(filepath.Join(dir, "new")); info.Mode() != 0o600 {
		t.Errorf("new file under umask 077: %v", info.Mode())
	}
}

func TestWriteThroughSymlinks(t *testing.T) {
	tree, dir, _ := openTest(t)
	put(t, filepath.Join(dir, "c"), "old")
	link(t, "c", filepath.Join(dir, "b"))
	link(t, filepath.Join(dir, "b"), filepath.Join(dir, "a"))
	if w := mustWrite(t, tree, "a", "new"); w.Path != "c" {
		t.Errorf("written: %+v", w)
	}
	for name, target := range map[string]string{"a": filepath.Join(dir, "b"), "b": "c"} {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != target {
			t.Errorf("link %s: %q, %v", name, got, err)
		}
	}
	if got := get(t, filepath.Join(dir, "c")); got != "new" {
		t.Errorf("target: %q", got)
	}
	link(t, "deep/er/x", filepath.Join(dir, "dangling"))
	if w := mustWrite(t, tree, "dangling", "n"); w.Path != "deep/er/x" || !w.Created {
		t.Errorf("dangling link: %+v", w)
	}
}

func TestWriteHardLinks(t *testing.T) {
	tree, dir, out := openTest(t)
	put(t, filepath.Join(dir, "a"), "old content")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "sub/b")); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"short", "a much longer content than before"} {
		if w := mustWrite(t, tree, "a", text); !w.InPlace || w.Detached {
			t.Errorf("links inside: %+v", w)
		}
		if got := get(t, filepath.Join(dir, "sub/b")); got != text {
			t.Errorf("other name: %q", got)
		}
	}
	if err := os.Link(filepath.Join(out, "secret"), filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	if w := mustWrite(t, tree, "s", "x"); w.InPlace || !w.Detached {
		t.Errorf("link outside: %+v", w)
	}
	if got := get(t, filepath.Join(out, "secret")); got != "secret" {
		t.Errorf("outside file: %q", got)
	}
}

func TestWriteNoRoom(t *testing.T) {
	// In a process of its own, since the limit is the whole process's.
	if os.Getenv("MUSTER_TEST_NO_ROOM") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriteNoRoom$")
		cmd.Env = append(os.Environ(), "MUSTER_TEST_NO_ROOM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	tree, dir, _ := openTest(t)
	put(t, filepath.Join(dir, "a"), "old")
	put(t, filepath.Join(dir, "linked"), "old")
	if err := os.Link(filepath.Join(dir, "linked"), filepath.Join(dir, "twin")); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	// A limit on the size of files is a disk that fills up in the middle of a write.
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was)
	for _, name := range []string{"a", "linked", "new"} {
		if _, err := write(tree, name, bytes.Repeat([]byte("x"), 1<<20)); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("write %s: %v, want EFBIG", name, err)
		}
	}
	for _, name := range []string{"a", "linked"} {
		if got := get(t, filepath.Join(dir, name)); got != "old" {
			t.Errorf("%s is now %d bytes", name, len(got))
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("new file after a failed write: %v", err)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestWriteRefusals(t *testing.T) {
	tree, dir, _ := openTest(t)
	put(t, filepath.Join(dir, "file"), "x")
	if _, err := write(tree, "file/below", nil); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	if os.Geteuid() == 0 {
		return
	}
	if err := os.Chmod(filepath.Join(dir, "file"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := write(tree, "file", nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read-only file: %v", err)
	}
	put(t, filepath.Join(dir, "d/f"), "x")
	if err := os.Chmod(filepath.Join(dir, "d"), 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "d"), 0o755)
	if w := mustWrite(t, tree, "d/f", "y"); !w.InPlace {
		t.Errorf("file in a folder that takes no new names: %+v", w)
	}
}

func TestWriteLeavesRepositoriesAlone(t *testing.T) {
	tree, dir, _ := openTest(t)
	put(t, filepath.Join(dir, ".git/config"), "[core]\n")
	link(t, ".git/config", filepath.Join(dir, "innocent"))
	link(t, ".git", filepath.Join(dir, "folder"))
	for _, name := range []string{".git/config", ".git/hooks/post-checkout", "innocent", "folder/config", "sub/.git", "sub/.GIT/config", "a/../.git/x"} {
		if _, err := write(tree, name, []byte("[core]\n\tfsmonitor = touch pwned\n")); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := get(t, filepath.Join(dir, ".git/config")); got != "[core]\n" {
		t.Errorf("the configuration is %q", got)
	}
	for _, name := range []string{".gitignore", ".github/x.yml", "x.git/y"} {
		if _, err := write(tree, name, []byte("x")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
