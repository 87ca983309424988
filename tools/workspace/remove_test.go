package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestRemoveTree(t *testing.T) {
	top := t.TempDir()
	dir, out := filepath.Join(top, "tree"), filepath.Join(top, "out")
	put(t, filepath.Join(out, "keep"), "kept")
	put(t, filepath.Join(dir, "a/b/c"), "x")
	link(t, out, filepath.Join(dir, "a/link"))
	link(t, filepath.Join(out, "keep"), filepath.Join(dir, "file"))
	// Deeper than any path may be long, made one relative step at a time.
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		name := "deep-" + strconv.Itoa(i)
		if err := root.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		root.Close()
		root = next
	}
	root.Close()
	for _, locked := range []string{"a/b", "a"} {
		if err := os.Chmod(filepath.Join(dir, locked), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeTree(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after removal: %v", err)
	}
	if get(t, filepath.Join(out, "keep")) != "kept" {
		t.Error("a symlink was followed out")
	}
	if err := removeTree(dir); err != nil {
		t.Errorf("removal of what is gone: %v", err)
	}
	link(t, out, dir)
	if err := removeTree(dir); err != nil || get(t, filepath.Join(out, "keep")) != "kept" {
		t.Errorf("removal of a symlink: %v", err)
	}
}
