package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// picture is all that can be seen of a folder: kinds, permissions, contents and targets by name.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		fmt.Fprintf(&b, "%s %v", rel, info.Mode())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			fmt.Fprintf(&b, " → %s", target)
		case info.Mode().IsRegular():
			fmt.Fprintf(&b, " %d names %q", linksOf(info), get(t, p))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sumOf(text string) *sum {
	s := sha256.Sum256([]byte(text))
	return &s
}

func permOf(mode fs.FileMode) *fs.FileMode { return &mode }

// furnish makes a folder with files of every kind that furnishSteps change.
func furnish(t *testing.T, dir string) {
	put(t, filepath.Join(dir, "a"), "old a\n")
	put(t, filepath.Join(dir, "sub/b"), "old b, a longer text than the new one\n")
	put(t, filepath.Join(dir, "sub/target"), "old target\n")
	link(t, "sub/target", filepath.Join(dir, "link"))
	put(t, filepath.Join(dir, "gone"), "gone\n")
	put(t, filepath.Join(dir, "from"), "moved\n")
	put(t, filepath.Join(dir, "run"), "#!/bin/sh\n")
	put(t, filepath.Join(dir, "twin1"), "old twin, a longer text than the new one\n")
	put(t, filepath.Join(dir, "grown1"), "old\n")
	put(t, filepath.Join(dir, "still"), "still\n")
	put(t, filepath.Join(dir, "same"), "same\n")
	put(t, filepath.Join(dir, "sub/mode"), "mode\n")
	for _, twin := range []string{"twin", "grown"} {
		if err := os.Link(filepath.Join(dir, twin+"1"), filepath.Join(dir, "sub", twin+"2")); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]fs.FileMode{"a": 0o600, "from": 0o640, "sub/b": 0o755} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func furnishSteps() []Step {
	return []Step{
		{Deed: Put, Path: "a", Data: []byte("new a\n"), Was: sumOf("old a\n")},
		{Deed: Put, Path: "sub/b", Data: []byte("new b\n"), Was: sumOf("old b, a longer text than the new one\n"), Perm: permOf(0o644)},
		{Deed: Put, Path: "link", Data: []byte("new target\n"), Was: sumOf("old target\n")},
		{Deed: Remove, Path: "gone", Was: sumOf("gone\n")},
		{Deed: Move, Path: "from", To: "new/place/to", Was: sumOf("moved\n")},
		{Deed: Create, Path: "new/file", Data: []byte("created\n")},
		{Deed: Create, Path: "other/like", Data: []byte("#!/bin/sh\n"), Like: "sub/b"},
		{Deed: Chmod, Path: "run", Perm: permOf(0o755), Was: sumOf("#!/bin/sh\n")},
		{Deed: Put, Path: "twin1", Data: []byte("new twin\n"), Was: sumOf("old twin, a longer text than the new one\n")},
		{Deed: Put, Path: "sub/grown2", Data: []byte("new and longer\n"), Was: sumOf("old\n")},
		{Deed: Put, Path: "same", Data: []byte("same\n")},
		{Deed: Put, Path: "sub/mode", Data: []byte("mode\n"), Perm: permOf(0o755)},
	}
}

func openFolderTest(t *testing.T) (c *Cache, tree *Tree, dir string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := OpenCache(filepath.Join(top, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	tree, err = c.Folder(t.Context(), dir, filepath.Join(top, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return c, tree, dir
}

// journals lists what is written down of commits under way.
func journals(t *testing.T, c *Cache) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(globQuote(c.dir), commitsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestCommitDoesAll(t *testing.T) {
	c, tree, dir := openFolderTest(t)
	furnish(t, dir)
	moved, err := os.Lstat(filepath.Join(dir, "from"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := tree.Commit(t.Context(), furnishSteps())
	if err != nil {
		t.Fatal(err)
	}
	want := []Written{
		{Path: "a"}, {Path: "sub/b"}, {Path: "sub/target"}, {Path: "gone"}, {Path: "new/place/to"}, {Path: "new/file", Created: true},
		{Path: "other/like", Created: true}, {Path: "run"}, {Path: "twin1", InPlace: true}, {Path: "sub/grown2", InPlace: true},
		{Path: "same"}, {Path: "sub/mode"},
	}
	for i := range want {
		if w[i] != want[i] {
			t.Errorf("step %d: %+v, want %+v", i, w[i], want[i])
		}
	}
	if got := picture(t, dir); got != after {
		t.Errorf("after the commit:\n%s", got)
	}
	if info, err := os.Lstat(filepath.Join(dir, "new/place/to")); err != nil || !os.SameFile(info, moved) {
		t.Errorf("the moved file is another one: %v", err)
	}
	if left := journals(t, c); len(left) > 0 {
		t.Errorf("left written down: %v", left)
	}
}

// after is the folder of furnish after furnishSteps.
const after = `. drwxr-xr-x
a -rw------- 1 names "new a\n"
grown1 -rw-r--r-- 2 names "new and longer\n"
link Lrwxrwxrwx → sub/target
new drwxr-xr-x
new/file -rw-r--r-- 1 names "created\n"
new/place drwxr-xr-x
new/place/to -rw-r----- 1 names "moved\n"
other drwxr-xr-x
other/like -rwxr-xr-x 1 names "#!/bin/sh\n"
run -rwxr-xr-x 1 names "#!/bin/sh\n"
same -rw-r--r-- 1 names "same\n"
still -rw-r--r-- 1 names "still\n"
sub drwxr-xr-x
sub/b -rw-r--r-- 1 names "new b\n"
sub/grown2 -rw-r--r-- 2 names "new and longer\n"
sub/mode -rwxr-xr-x 1 names "mode\n"
sub/target -rw-r--r-- 1 names "new target\n"
sub/twin2 -rw-r--r-- 2 names "new twin\n"
twin1 -rw-r--r-- 2 names "new twin\n"
`

// TestCommitDoesNothing has one more step that fails at every place in the order, for every reason, with and without a journal.
func TestCommitDoesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		step Step
		want error
	}{
		{"changed file", Step{Deed: Put, Path: "still", Data: []byte("x"), Was: sumOf("other")}, ErrStale},
		{"changed file, removed", Step{Deed: Remove, Path: "still", Was: sumOf("other")}, ErrStale},
		{"changed file, moved", Step{Deed: Move, Path: "still", To: "x", Was: sumOf("other")}, ErrStale},
		{"changed file, chmod", Step{Deed: Chmod, Path: "still", Perm: permOf(0o755), Was: sumOf("other")}, ErrStale},
		{"missing file", Step{Deed: Put, Path: "nowhere", Was: sumOf("")}, fs.ErrNotExist},
		{"missing file, removed", Step{Deed: Remove, Path: "nowhere"}, fs.ErrNotExist},
		{"name taken", Step{Deed: Create, Path: "still"}, fs.ErrExist},
		{"name taken, move", Step{Deed: Move, Path: "still", To: "sub"}, fs.ErrExist},
		{"folder", Step{Deed: Put, Path: "sub"}, ErrNotRegular},
		{"folder, removed", Step{Deed: Remove, Path: "sub"}, ErrNotRegular},
		{"symlink, removed", Step{Deed: Remove, Path: "link"}, ErrNotRegular},
		{"symlink, moved", Step{Deed: Move, Path: "link", To: "x"}, ErrNotRegular},
		{"repository", Step{Deed: Create, Path: "sub/.git/hooks/x"}, ErrReadOnly},
		{"moved into a repository", Step{Deed: Move, Path: "still", To: ".git/config"}, ErrReadOnly},
		{"outside", Step{Deed: Create, Path: "../x"}, ErrOutside},
		{"moved outside", Step{Deed: Move, Path: "still", To: "../x"}, ErrOutside},
		{"below a file", Step{Deed: Create, Path: "still/x"}, syscall.ENOTDIR},
		{"name too long", Step{Deed: Create, Path: "sub/" + strings.Repeat("x", 300)}, syscall.ENAMETOOLONG},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, kept := range []bool{true, false} {
				cache, tree, dir := openFolderTest(t)
				if !kept {
					tree.cache = nil
				}
				furnish(t, dir)
				before := picture(t, dir)
				for at := range len(furnishSteps()) + 1 {
					steps := furnishSteps()
					steps = append(steps[:at:at], append([]Step{c.step}, steps[at:]...)...)
					if _, err := tree.Commit(t.Context(), steps); !errors.Is(err, c.want) {
						t.Fatalf("step %d: %v, want %v", at, err, c.want)
					}
					if now := picture(t, dir); now != before {
						t.Fatalf("step %d left\n%s", at, now)
					}
				}
				if left := journals(t, cache); len(left) > 0 {
					t.Errorf("left written down: %v", left)
				}
			}
		})
	}
}

// TestCommitIsUndone lets somebody come in between at every step, so that a later one fails.
func TestCommitIsUndone(t *testing.T) {
	for _, c := range []struct {
		name  string
		at    string // step before which it happens
		what  func(t *testing.T, dir string)
		tidy  func(t *testing.T, dir string)
		wants error
	}{
		{"a new file appears", "do file", func(t *testing.T, dir string) { put(t, filepath.Join(dir, "new/file"), "theirs") },
			func(t *testing.T, dir string) { os.RemoveAll(filepath.Join(dir, "new")) }, fs.ErrExist},
		{"a file is written", "do b", func(t *testing.T, dir string) { put(t, filepath.Join(dir, "sub/b"), "theirs") }, func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "sub/b"), "old b, a longer text than the new one\n")
		}, ErrStale},
		{"a file is replaced", "do target", func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "x"), "theirs")
			os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "sub/target"))
		}, func(t *testing.T, dir string) { put(t, filepath.Join(dir, "sub/target"), "old target\n") }, ErrStale},
		{"a file goes", "do target", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "sub/target")) },
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "sub/target"), "old target\n") }, ErrStale},
		{"a linked file is written", "do grown2", func(t *testing.T, dir string) { put(t, filepath.Join(dir, "grown1"), "theirs") },
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "grown1"), "old\n") }, ErrStale},
		{"permissions change", "do run", func(t *testing.T, dir string) { os.Chmod(filepath.Join(dir, "run"), 0o600) },
			func(t *testing.T, dir string) { os.Chmod(filepath.Join(dir, "run"), 0o644) }, ErrStale},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache, tree, dir := openFolderTest(t)
			furnish(t, dir)
			before := picture(t, dir)
			met := false
			tree.step = func(what string) {
				if what == c.at {
					c.what(t, dir)
					met = true
				}
			}
			if _, err := tree.Commit(t.Context(), furnishSteps()); !errors.Is(err, c.wants) || !met {
				t.Fatalf("%v, want %v; met %v", err, c.wants, met)
			}
			if strings.Contains(c.name, "written") || strings.Contains(c.name, "replaced") || strings.Contains(c.name, "appears") {
				if now := picture(t, dir); !strings.Contains(now, `"theirs"`) {
					t.Errorf("what came meanwhile is lost:\n%s", now)
				}
			}
			c.tidy(t, dir)
			if now := picture(t, dir); now != before {
				t.Errorf("left\n%s", now)
			}
			if left := journals(t, cache); len(left) > 0 {
				t.Errorf("left written down: %v", left)
			}
		})
	}
}

// TestCommitsLoseNothing has many agents count in the same files, each with what it read: no count is lost.
func TestCommitsLoseNothing(t *testing.T) {
	_, tree, dir := openFolderTest(t)
	const agents, counts = 3, 10
	for _, n := range []string{"n", "m"} {
		put(t, filepath.Join(dir, n), "0")
	}
	var all sync.WaitGroup
	for range agents {
		all.Go(func() {
			for done := 0; done < counts; {
				var steps []Step
				for _, n := range []string{"n", "m"} {
					text, err := readAll(tree, n)
					if err != nil {
						t.Error(err)
						return
					}
					var v int
					if _, err := fmt.Sscan(text, &v); err != nil {
						break // the other file is of another moment
					}
					steps = append(steps, Step{Deed: Put, Path: n, Data: fmt.Append(nil, v+1), Was: sumOf(text)})
				}
				_, err := tree.Commit(context.Background(), steps)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, ErrStale) && !errors.Is(err, ErrChanged):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, n := range []string{"n", "m"} {
		if got := get(t, filepath.Join(dir, n)); got != fmt.Sprint(agents*counts) {
			t.Errorf("%s counts %s, want %d", n, got, agents*counts)
		}
	}
}
