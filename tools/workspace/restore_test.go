package workspace

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRestore(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := newRepo(t)
	put(t, filepath.Join(dir, "crlf"), "a\r\nb\r\n")
	put(t, filepath.Join(dir, "gone"), "x\n")
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	first := checkout(t, c, "first", snap.Commit, bundle)
	put(t, filepath.Join(first.Dir, "crlf"), "a\r\nc \r\n")
	put(t, filepath.Join(first.Dir, "new/bin"), "\x00\x01\xff")
	put(t, filepath.Join(first.Dir, "run.sh"), "#!/bin/sh\n")
	link(t, "crlf", filepath.Join(first.Dir, "l"))
	if err := os.Chmod(filepath.Join(first.Dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(first.Dir, "gone")); err != nil {
		t.Fatal(err)
	}
	want, patch := changesOf(t, first)

	second := checkout(t, c, "second", snap.Commit, nil)
	if err := second.Restore(ctx, bytes.NewReader(patch)); err != nil {
		t.Fatal(err)
	}
	got, again := changesOf(t, second)
	if d := cmp.Diff(want, got); d != "" || !bytes.Equal(patch, again) {
		t.Errorf("the restored tree differs (-want +got): %s", d)
	}
	if err := second.Restore(ctx, bytes.NewReader(patch)); err == nil {
		t.Error("a patch was applied twice")
	}
	if _, twice := changesOf(t, second); !bytes.Equal(patch, twice) {
		t.Error("the refused patch left something behind")
	}
	evil := "diff --git a/../out b/../out\nnew file mode 100644\n--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n"
	if err := second.Restore(ctx, strings.NewReader(evil)); err == nil {
		t.Error("a patch reached outside the tree")
	}
	folder, err := OpenDir(t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := folder.Restore(ctx, bytes.NewReader(patch)); err == nil {
		t.Error("a patch was applied to a user's folder")
	}
}
