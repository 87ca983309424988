//go:build linux

package tools

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster/budget"
)

// searches are the tools that go through a whole workspace.
func searches(t testing.TB, s *Set) []Reply {
	t.Helper()
	return []Reply{
		call(t, s, "list_dir", "path", "."), call(t, s, "grep", "pattern", "needle"), call(t, s, "grep", "pattern", "needle", "no_ignore", true),
		call(t, s, "glob", "pattern", "**"), call(t, s, "glob", "pattern", "**/x*", "no_ignore", true), call(t, s, "glob", "pattern", "*/*/*"),
	}
}

// TestFileAttackDepth: folders below folders, deeper than any path is long, are passed over, counted, and removed.
func TestFileAttackDepth(t *testing.T) {
	d := newDen(t)
	put(t, d.Set, "top.txt", "needle\n")
	at, err := unix.Open(d.ws, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range 3000 {
		if err != nil {
			t.Fatal(err)
		}
		var below int
		if err = unix.Mkdirat(at, "d", 0o755); err == nil {
			below, err = unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		}
		_ = unix.Close(at)
		at = below
	}
	if err := unix.Symlinkat(d.out+"/secret", at, "planted"); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(at)
	before := d.outside(t)
	within(t, "a search of a deep tree", func() {
		for _, r := range searches(t, d.Set) {
			d.checkInside(t, r, before)
			if !r.OK {
				t.Errorf("%s: %s", r.Tool, clip(r.Text))
			}
		}
	})
	// As deep as a path can say, and deeper.
	for _, levels := range []int{100, 2000, 2047, 2500, 100_000} {
		p := strings.Repeat("d/", levels) + "x"
		for _, tool := range pathTools() {
			if tool.name == "write_file" && levels >= 1000 {
				continue // it would make the file, in a second or two
			}
			within(t, tool.name+" of "+strconv.Itoa(levels)+" levels", func() { d.checkInside(t, tool.call(t, d.Set, p), before) })
		}
		within(t, "a pattern of many levels", func() { d.checkInside(t, call(t, d.Set, "glob", "pattern", p), before) })
	}
	within(t, "the removal of a deep tree", func() {
		r := call(t, d.Set, "run_command", "command", "rm -rf d && ls")
		d.checkInside(t, r, before)
		if !strings.Contains(r.Text, "top.txt") {
			t.Error(clip(r.Text))
		}
	})
}

// TestFileAttackCrowd: a folder with more entries than anybody wants to see is answered in bounds. There are 200,000; a million, as the case
// says, where MUSTER_TEST_MILLION is set.
func TestFileAttackCrowd(t *testing.T) {
	n := 200_000
	switch {
	case os.Getenv("MUSTER_TEST_MILLION") != "":
		n = 1_000_000
	case testing.Short():
		n = 20_000
	}
	d := newDen(t)
	dir := d.ws + "/crowd"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	begun := time.Now()
	for i := range n {
		if err := unix.Mknodat(at, "x"+strconv.Itoa(i), unix.S_IFREG|0o644, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files in %v", n, time.Since(begun))
	held := resident(t)
	for _, r := range []Reply{
		call(t, d.Set, "list_dir", "path", "crowd"), call(t, d.Set, "list_dir", "path", "crowd", "offset", n-5), call(t, d.Set, "glob", "pattern", "**/x*"),
		call(t, d.Set, "glob", "pattern", "crowd/*7"), call(t, d.Set, "grep", "pattern", "needle", "path", "crowd"),
		call(t, d.Set, "read_file", "path", "crowd/x"), // the nearest names are looked for
	} {
		checkPlain(t, r)
		if chars := budget.Chars(r.Text); chars > d.cfg.Caps.OutputChars || r.Facts.Millis > patience.Milliseconds() {
			t.Errorf("%s: %d characters in %d ms", r.Tool, chars, r.Facts.Millis)
		}
		if (r.Tool == "list_dir" || r.Tool == "grep") && !strings.Contains(r.Text, fmt.Sprint(n)) {
			t.Errorf("%s does not say how many: %s", r.Tool, clip(r.Text))
		}
		t.Logf("%s: %d ms", r.Tool, r.Facts.Millis)
	}
	if grown := resident(t) - held; grown > 1<<30 {
		t.Errorf("memory grew by %d bytes", grown)
	}
	if _, err := os.Stat(dir + "/x" + strconv.Itoa(n-1)); err != nil {
		t.Error(err)
	}
}

// TestFileAttackLocked: folders and files without rights are passed over or refused, and removed at the end.
func TestFileAttackLocked(t *testing.T) {
	d := newDen(t)
	put(t, d.Set, "open/a.txt", "needle\n")
	put(t, d.Set, "locked/b.txt", "needle\n")
	put(t, d.Set, "list/c.txt", "needle\n")
	put(t, d.Set, "enter/d.txt", "needle\n")
	put(t, d.Set, "closed.txt", "needle\n")
	for name, mode := range map[string]fs.FileMode{"locked": 0, "list": 0o444, "enter": 0o111, "closed.txt": 0} {
		if err := os.Chmod(filepath.Join(d.ws, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	before := d.outside(t)
	for _, r := range searches(t, d.Set) {
		d.checkInside(t, r, before)
		if !r.OK {
			t.Errorf("%s: %s", r.Tool, clip(r.Text))
		}
	}
	for _, p := range []string{"closed.txt", "locked/b.txt", "list/c.txt"} {
		for _, tool := range pathTools() {
			r := tool.call(t, d.Set, p)
			d.checkInside(t, r, before)
			if os.Geteuid() != 0 && r.OK && tool.name != "grep" && tool.name != "glob" {
				t.Errorf("%s of %s: %s", tool.name, p, clip(r.Text))
			}
		}
	}
}

// TestFileAttackLoops: symlinks that lead in circles end every walk and every path.
func TestFileAttackLoops(t *testing.T) {
	d := newDen(t)
	put(t, d.Set, "a/b/x.txt", "needle\n")
	d.link(t, ".", "self")
	d.link(t, "..", "a/up")
	d.link(t, "../..", "a/b/top")
	d.link(t, "pong", "ping")
	d.link(t, "ping", "pong")
	d.link(t, d.ws, "absolute")
	d.link(t, "a/b/top/a/b/top/a/b/top", "spiral")
	before := d.outside(t)
	within(t, "a walk in circles", func() {
		for _, r := range append(searches(t, d.Set), call(t, d.Set, "glob", "pattern", "**/**/**/x.txt"), call(t, d.Set, "grep", "pattern", "needle", "path", "self/self/a")) {
			d.checkInside(t, r, before)
			if !r.OK || strings.Count(r.Text, "x.txt") > 1 {
				t.Errorf("%s: %s", r.Tool, clip(r.Text))
			}
		}
		for _, tool := range pathTools() {
			for _, p := range []string{"ping", "ping/x", strings.Repeat("self/", 60) + "a", strings.Repeat("a/up/", 50) + "a"} {
				d.checkInside(t, tool.call(t, d.Set, p), before)
			}
		}
	})
}

// TestFileAttackPlanted: what a command of the job leaves in the workspace does not lead the file tools out, nor hold them.
func TestFileAttackPlanted(t *testing.T) {
	d := newDen(t)
	put(t, d.Set, "real/x.txt", "needle\n")
	before := d.outside(t)
	r := call(t, d.Set, "run_command", "command", fmt.Sprintf(`ln -s %[1]s/secret link; ln -s %[1]s folder; ln -s ../out relfolder; mkfifo pipe; ln -s pipe pipelink; ln -s /dev/zero endless
		mkdir -p sub; ln -s ../../out/.ssh sub/keys; ln -s %[1]s/new dangling; mv real kept; ln -s %[1]s real; ls`, d.out))
	if !r.OK || !strings.Contains(r.Text, "pipelink") {
		t.Fatal(r.Text)
	}
	for _, tool := range pathTools() {
		for _, p := range []string{"link", "folder", "folder/secret", "relfolder/secret", "pipe", "pipelink", "endless", "sub/keys", "sub/keys/authorized_keys", "dangling", "real/secret", "real/x.txt"} {
			within(t, tool.name+" of "+p, func() {
				r := tool.call(t, d.Set, p)
				d.checkInside(t, r, before)
				if r.OK && !(strings.HasPrefix(p, "pipe") && (tool.name == "grep" || tool.name == "glob")) {
					t.Errorf("%s of %s: %s", tool.name, p, clip(r.Text))
				}
			})
		}
	}
	within(t, "a search", func() {
		for _, r := range searches(t, d.Set) {
			d.checkInside(t, r, before)
			if !r.OK {
				t.Errorf("%s: %s", r.Tool, clip(r.Text))
			}
		}
	})
}
