package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of a few pages or a few names, or skips.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestCommitOnAFullDisk has a disk with a little more room each time, in bytes and in names, until a commit fits. Before that nothing of it is done.
func TestCommitOnAFullDisk(t *testing.T) {
	for _, what := range []string{"size=%dk", "size=4m,nr_inodes=%d"} {
		byBytes := strings.HasPrefix(what, "size=%d")
		for _, sameDisk := range []bool{false, true} {
			t.Run(fmt.Sprintf("bytes=%v,journal=%v", byBytes, sameDisk), func(t *testing.T) {
				failed, late := 0, 0
				for more := 1; ; more++ {
					n := 8 + more
					if byBytes {
						n = 4 * (14 + more)
					}
					ok, at := commitOn(t, smallDisk(t, fmt.Sprintf(what, n)), sameDisk)
					if ok {
						break
					}
					if at != "" {
						failed++
					}
					if strings.HasPrefix(at, "do ") {
						late++
					}
					if more > 100 {
						t.Fatal("it never fits")
					}
				}
				t.Logf("%d commits failed, %d of them when files had changed already", failed, late)
				if failed < 3 || byBytes && late == 0 {
					t.Errorf("only %d commits failed, %d of them when files had changed already", failed, late)
				}
			})
		}
	}
}

// commitOn commits on a small disk, with the journal there or elsewhere. at is the step that failed, "" where there was no room for the files before it.
func commitOn(t *testing.T, disk string, sameDisk bool) (ok bool, at string) {
	t.Helper()
	elsewhere := t.TempDir()
	cacheDir := filepath.Join(elsewhere, "cache")
	if sameDisk {
		cacheDir = filepath.Join(disk, "cache")
	}
	dir := filepath.Join(disk, "ws")
	old := bytes.Repeat([]byte("old\n"), 1024)
	var steps []Step
	for i := range 6 {
		name := fmt.Sprint("f", i)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return false, ""
		}
		if err := os.WriteFile(filepath.Join(dir, name), old, 0o644); err != nil {
			return false, ""
		}
		steps = append(steps, Step{Deed: Put, Path: name, Data: bytes.Repeat([]byte("new content\n"), 700)})
	}
	if os.Link(filepath.Join(dir, "f5"), filepath.Join(dir, "twin")) != nil {
		return false, ""
	}
	steps = append(steps, Step{Deed: Create, Path: "deep/er/new", Data: old}, Step{Deed: Move, Path: "f4", To: "deep/f4"})
	steps[4] = Step{Deed: Create, Path: "new", Data: old}
	c, err := OpenCache(cacheDir)
	if err != nil {
		return false, ""
	}
	tree, err := c.Folder(t.Context(), dir, filepath.Join(elsewhere, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	before := picture(t, dir)
	at = "begin"
	tree.step = func(what string) {
		if !strings.HasPrefix(what, "undo ") {
			at = what
		}
	}
	_, err = tree.Commit(t.Context(), steps)
	if err == nil {
		return true, ""
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if now := picture(t, dir); now != before {
		t.Fatalf("left %s\n%s", now, err)
	}
	if left := journals(t, c); len(left) > 0 {
		t.Errorf("left written down: %v", left)
	}
	return false, at
}
