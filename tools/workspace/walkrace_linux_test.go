package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// While a folder and a file are exchanged for links to the outside and for a FIFO, no walk hands out or reads what is outside, and none hangs.
func TestWalkWhileTheTreeIsSwapped(t *testing.T) {
	tree, dir, out := openTest(t)
	put(t, filepath.Join(out, "deep/secret"), "secret")
	put(t, filepath.Join(dir, "d/deep/name"), "inside")
	put(t, filepath.Join(dir, "f/secret"), "inside")
	link(t, out, filepath.Join(dir, "lure"))
	link(t, filepath.Join(out, "secret"), filepath.Join(dir, "lure2"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	exchange := func(a, b string) {
		unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE)
	}
	before := openHandles(t)
	var inside, refused atomic.Int64
	race(2_000, func() {
		exchange("d", "lure")
		exchange("f/secret", "lure2")
		exchange("f/secret", "pipe")
	}, func(int) {
		_, err := tree.Walk(context.Background(), ".", WalkOptions{}, func(w Walked) error {
			if strings.HasPrefix(w.Path, "d/secret") || w.Path == "d/deep/secret" {
				t.Errorf("handed out %s, which is outside", w.Path)
			}
			for _, open := range []func() (Reading, error){w.Open, func() (Reading, error) { return tree.Reopen(w.Path) }} {
				r, err := open()
				if err != nil {
					refused.Add(1)
					continue
				}
				text, err := io.ReadAll(r)
				r.Close()
				if string(text) == "secret" {
					t.Errorf("read the outside file through %s", w.Path)
				} else if err == nil && string(text) == "inside" {
					inside.Add(1)
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("walk: %v", err)
		}
	})
	if inside.Load() == 0 {
		t.Error("never read the inside file; the race does not test anything")
	}
	if after := openHandles(t); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
	t.Logf("read inside %d times, refused %d", inside.Load(), refused.Load())
}

// lockedEnv names the folder that a child of TestWalkCountsWhatIsLocked is to walk.
const lockedEnv = "WALK_LOCKED_DIR"

// Folders and files that may not be read are counted, and the others still come. Root may read all, so a child runs as somebody else.
func TestWalkCountsWhatIsLocked(t *testing.T) {
	if dir := os.Getenv(lockedEnv); dir != "" {
		checkLocked(t, dir)
		return
	}
	top, err := os.MkdirTemp("", "locked")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTree(top) })
	dir := filepath.Join(top, "ws")
	plant(t, dir, map[string]string{"open/notes": "n", "locked/x": "x", "closed": "c", "sealed/y": "y"})
	for name, mode := range map[string]os.FileMode{"locked": 0, "closed": 0, "sealed": 0o100} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() != 0 {
		checkLocked(t, dir)
		return
	}
	if err := os.Chmod(top, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestWalkCountsWhatIsLocked$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), lockedEnv+"="+dir)
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS") {
		t.Errorf("as another user: %v\n%s", err, output)
	}
}

func checkLocked(t *testing.T, dir string) {
	tree := treeAt(t, dir)
	defer tree.Close()
	var unreadable atomic.Int64
	var got [Lanes][]string
	skipped, err := tree.Walk(context.Background(), ".", WalkOptions{}, func(w Walked) error {
		got[w.Lane] = append(got[w.Lane], w.Path)
		r, err := w.Open()
		if errors.Is(err, fs.ErrPermission) {
			unreadable.Add(1)
			return nil
		}
		if err == nil {
			r.Close()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	paths := slices.Sorted(slices.Values(slices.Concat(got[:]...)))
	if !slices.Equal(paths, []string{"closed", "open/notes"}) || skipped.Unreadable != 2 || unreadable.Load() != 1 {
		t.Errorf("walked %q, %v, %d unreadable files; want 2 files, 2 unreadable folders, 1 file", paths, skipped.Reasons(), unreadable.Load())
	}
	if _, err := tree.Walk(context.Background(), "locked", WalkOptions{}, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a locked folder by name: %v, want a refusal", err)
	}
}
