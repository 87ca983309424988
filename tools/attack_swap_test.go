//go:build linux

package tools

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSwappedFolderIsNeverLeft has each tool that takes a path work below a folder that another process swaps, all the time, with a symlink
// to a folder outside: 10,000 rounds each, 300 where every round is a process.
func TestSwappedFolderIsNeverLeft(t *testing.T) {
	for _, c := range []struct {
		tool   string
		rounds int
		args   []any
	}{
		{"read_file", 10_000, []any{"path", "d/f"}},
		{"write_file", 10_000, []any{"path", "d/made", "content", "x"}},
		{"edit_file", 10_000, []any{"path", "d/f", "old_string", outsideWord, "new_string", "edited"}},
		{"apply_patch", 10_000, []any{"diff", swapPatch, "diff", swapPatchBack}},
		{"list_dir", 10_000, []any{"path", "d"}},
		{"grep", 10_000, []any{"pattern", outsideWord, "path", "d"}},
		{"glob", 10_000, []any{"pattern", "**", "path", "d"}},
		{"run_command", 300, []any{"command", "ls; cat f; touch made", "workdir", "d"}},
	} {
		t.Run(c.tool, func(t *testing.T) {
			t.Parallel()
			swapRace(t, c.tool, c.rounds, c.args)
		})
	}
}

// swapPatch changes a file below the folder, and makes one.
const swapPatch = "--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-inside\n+edited\n--- /dev/null\n+++ b/d/made\n@@ -0,0 +1 @@\n+x\n"

// swapPatchBack does the reverse.
const swapPatchBack = "--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-edited\n+inside\n--- a/d/made\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"

// outsideWord stands outside only, in a file and in the name of one.
const outsideWord = "outsideword"

func swapRace(t *testing.T, tool string, rounds int, args []any) {
	s, out := newSet(t), t.TempDir()
	dir := s.cfg.Tree.Dir
	for name, text := range map[string]string{
		filepath.Join(dir, "d", "f"): "inside\n", filepath.Join(out, "f"): outsideWord + "\n", filepath.Join(out, outsideWord): "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	real, lure := filepath.Join(dir, "d"), filepath.Join(dir, "lure")
	if err := os.Symlink(out, lure); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swaps := 0
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, real, unix.AT_FDCWD, lure, unix.RENAME_EXCHANGE) == nil {
				swaps++
			}
		}
	})
	done := 0
	for i := range rounds {
		now := args
		if tool == "apply_patch" { // forth and back in turn
			now = args[i%2*2 : i%2*2+2]
		}
		r := call(t, s, tool, now...)
		if said := strings.ReplaceAll(r.Text, `"`+outsideWord+`"`, ""); strings.Contains(said, outsideWord) { // but for the arguments, quoted
			t.Errorf("%s went outside: %s", tool, r.Text)
			break
		}
		if r.OK {
			done++
		}
	}
	close(stop)
	swapping.Wait()
	t.Logf("%d of %d rounds worked, %d swaps", done, rounds, swaps)
	if swaps < rounds/10 {
		t.Errorf("only %d swaps", swaps)
	}
	for _, folder := range []string{real, lure} {
		if _, err := os.Readlink(folder); err != nil && tool == "apply_patch" { // the folder, by now
			_, made := os.Lstat(filepath.Join(folder, "made"))
			if edited := content(filepath.Join(folder, "f")) == "edited\n"; edited != (made == nil) {
				t.Errorf("half a patch is applied: edited %v, made %v", edited, made == nil)
			}
			if left, _ := filepath.Glob(filepath.Join(folder, ".muster-*")); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(out, "f"))
	names, rerr := os.ReadDir(out)
	if err != nil || rerr != nil || string(text) != outsideWord+"\n" || len(names) != 2 {
		t.Errorf("outside, %d files and %q: %v, %v", len(names), text, err, rerr)
	}
}
