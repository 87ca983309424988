//go:build linux

package tools

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHostilePatches has patches that reach for what is outside, for what git runs, or for what is no file.
func TestHostilePatches(t *testing.T) {
	d := newDen(t)
	put(t, d.Set, "f", "x\n")
	put(t, d.Set, ".git/config", "[core]\n")
	d.link(t, d.out, "absolute")
	d.link(t, "../out", "relative")
	d.link(t, "relative", "chained")
	d.link(t, d.out+"/secret", "file")
	d.link(t, "../out/made", "dangling")
	d.link(t, ".git/config", "innocent")
	d.link(t, "round", "round")
	for name, make := range map[string]func(string) error{
		"fifo":   func(p string) error { return syscall.Mkfifo(p, 0o644) },
		"folder": func(p string) error { return os.Mkdir(p, 0o755) },
	} {
		if err := make(filepath.Join(d.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	change := func(name string) string {
		return fmt.Sprintf("--- %s\n+++ %s\n@@ -1 +1 @@\n-%s\n+planted\n", name, name, secret)
	}
	create := func(name string) string {
		return fmt.Sprintf("--- /dev/null\n+++ %s\n@@ -0,0 +1 @@\n+planted\n", name)
	}
	remove := func(name string) string {
		return fmt.Sprintf("--- %s\n+++ /dev/null\n@@ -1 +0,0 @@\n-%s\n", name, secret)
	}
	move := func(deed, from, to string) string {
		return fmt.Sprintf("diff --git x y\nsimilarity index 100%%\n%s from %s\n%s to %s\n", deed, from, deed, to)
	}
	var patches []string
	for _, name := range []string{
		"../out/secret", d.out + "/secret", "absolute/secret", "relative/secret", "chained/secret", "file", "absolute/", "f/../../out/secret", "chained/.ssh/authorized_keys",
		"fifo", "folder", "round", ".", "..", "/", "dangling",
	} {
		patches = append(patches, change(name), remove(name), move("rename", name, "got"), move("copy", name, "got"))
	}
	for _, name := range []string{
		"../out/new", d.out + "/new", "absolute/new", "chained/new", "dangling", ".git/hooks/post-checkout", ".GIT/x", "a/.git", "a/../.git/x", "innocent", "fifo", "folder", "round", "fifo/x", "f/x", "folder/",
		strings.Repeat("x", 300), "nul\x00", strings.Repeat("d/", 2100) + "x",
	} {
		patches = append(patches, create(name), move("rename", "f", name), move("copy", "f", name))
	}
	for _, mode := range []string{"120000", "160000", "040000", "020000", "104755", "102755", "101755", "107777"} {
		patches = append(patches, "diff --git a/l b/l\nnew file mode "+mode+"\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n",
			"diff --git a/f b/f\nold mode 100644\nnew mode "+mode+"\n", "diff --git a/f b/f\ndeleted file mode "+mode+"\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n")
	}
	outside, inside := d.outside(t), forestOf(t, d.ws)
	for _, p := range patches {
		for _, more := range []string{"", create("fine")} { // what is fine is not applied either
			r := call(t, d.Set, "apply_patch", "diff", more+p)
			if r.OK || strings.Contains(r.Text, secret) && !strings.Contains(p, "-"+secret) {
				t.Errorf("%q: ok=%v %s", clip(p), r.OK, clip(r.Text))
			}
			if now := forestOf(t, d.ws); now != inside {
				t.Fatalf("%q left\n%s", clip(p), now)
			}
		}
	}
	if now := d.outside(t); now != outside {
		t.Errorf("outside is now\n%s", now)
	}
}

// forestOf describes all that is in a folder.
func forestOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", p, e.Type())
		if e.Type().IsRegular() {
			fmt.Fprintf(&b, " %q", content(p))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPatchOfAFileWithNamesOutside changes the name inside only, and leaves no set-id bit.
func TestPatchOfAFileWithNamesOutside(t *testing.T) {
	d := newDen(t)
	if err := os.Link(filepath.Join(d.out, "secret"), filepath.Join(d.ws, "hard")); err != nil {
		t.Skipf("no hard link: %v", err)
	}
	put(t, d.Set, "run", secret+"\n")
	if err := os.Chmod(filepath.Join(d.ws, "run"), 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	outside := d.outside(t)
	for name, tool := range map[string][]any{
		"hard": {"diff", "--- a/hard\n+++ b/hard\n@@ -1 +1 @@\n-" + secret + "\n+mine\n"},
		"run":  {"diff", "--- a/run\n+++ b/run\n@@ -1 +1 @@\n-" + secret + "\n+mine\n"},
	} {
		r := call(t, d.Set, "apply_patch", tool...)
		info, err := os.Stat(filepath.Join(d.ws, name))
		if err != nil || !r.OK || get(t, d.Set, name) != "mine\n" || info.Mode()&fs.ModeSetuid != 0 {
			t.Errorf("%s: %v %v %s", name, err, info.Mode(), r.Text)
		}
		if name == "hard" && !strings.Contains(r.Text, "[its other hard links keep the old content]") {
			t.Error(r.Text)
		}
	}
	if now := d.outside(t); now != outside {
		t.Errorf("outside was\n%s\nis\n%s", outside, now)
	}
}
