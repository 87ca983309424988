package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"muster/tools/workspace"
)

func TestResolveFollowsSymlinksInside(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "ws")
	errs := []error{os.MkdirAll(filepath.Join(root, "a", "b"), 0o755), os.WriteFile(filepath.Join(root, "a", "f"), nil, 0o644)}
	for link, target := range map[string]string{
		"to-b": "a/b", "a/up": "..", "abs": filepath.Join(root, "a"), "gone": "not/there", "out": "../else", "etc": "/etc", "round": "round", "chain": "to-b",
	} {
		errs = append(errs, os.Symlink(target, filepath.Join(root, link)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.OpenDir(root, filepath.Join(dir, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	scratch := tree.Scratch + "/tmp"
	for name, want := range map[string]string{
		".": "./", "a/f": "a/f", "a/../a/./f": "a/f", "to-b": "a/b/", "chain/new/x": "a/b/new/x", "a/up/a/up/a/f": "a/f", "abs/f": "a/f", "gone": "not/there", "gone/x": "not/there/x",
		root + "/a": "a/", "new": "new", scratch: scratch + "/",
	} {
		real, folder, err := tree.Resolve(name)
		if folder {
			real += "/"
		}
		if err != nil || real != want {
			t.Errorf("%s leads to %s, %v; want %s", name, real, err, want)
		}
	}
	for _, name := range []string{"..", "/etc", "out", "out/x", "etc/passwd", "", "a\x00b"} {
		if real, _, err := tree.Resolve(name); !errors.Is(err, workspace.ErrOutside) && !errors.Is(err, workspace.ErrBadPath) {
			t.Errorf("%q leads to %s, %v", name, real, err)
		}
	}
	if real, _, err := tree.Resolve("round/x"); err == nil {
		t.Errorf("a symlink to itself leads to %s", real)
	}
}
