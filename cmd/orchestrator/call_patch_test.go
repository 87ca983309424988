package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledPatchIsUndone kills sessions in the middle of a patch for many files. The next session finds all of them as one of the two patches has
// them, and the folder without anything else.
func TestKilledPatchIsUndone(t *testing.T) {
	const files, rounds = 60, 8
	dir, home := t.TempDir(), t.TempDir()
	patch := func(from, to string) string {
		var b strings.Builder
		for i := range files {
			fmt.Fprintf(&b, "--- a/d%d/f\n+++ b/d%d/f\n@@ -1 +1 @@\n-%s\n+%s\n", i, i, from, to)
		}
		diff, err := json.Marshal(b.String())
		if err != nil {
			t.Fatal(err)
		}
		return `{"tool":"apply_patch","args":{"diff":` + string(diff) + "}}\n"
	}
	for i := range files {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint("d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("d", i), "f"), []byte("old\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	state := func() map[string]int {
		seen := map[string]int{}
		for i := range files {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("d", i), "f"))
			if err != nil {
				t.Fatal(err)
			}
			seen[strings.TrimSpace(string(text))]++
		}
		return seen
	}
	halves := 0
	session := func() *exec.Cmd {
		c := program(t, "call", "--dir", dir)
		c.Env = append(c.Env, "XDG_CACHE_HOME="+filepath.Join(home, "cache"))
		return c
	}
	for n := range rounds {
		c := session()
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		from, to := "old", "new"
		if state()["new"] > 0 {
			from, to = to, from
		}
		fmt.Fprint(in, patch(from, to))
		// It is killed once a file has changed, each time another.
		last := filepath.Join(dir, fmt.Sprint("d", n*files/rounds), "f")
		for text := []byte(from); strings.TrimSpace(string(text)) == from; {
			if text, err = os.ReadFile(last); err != nil {
				t.Fatal(err)
			}
		}
		c.Process.Kill()
		c.Wait()
		if len(state()) > 1 {
			halves++
		}
		next := session()
		next.Stdin = strings.NewReader(`{"tool":"todo_read"}` + "\n")
		if out, err := next.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if seen := state(); len(seen) != 1 {
			t.Errorf("round %d: files are %v", n, seen)
		}
		left, err := filepath.Glob(filepath.Join(dir, "d*", ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("round %d: %d files are left over, %v", n, len(left), err)
		}
	}
	t.Logf("%d of %d were killed in the middle", halves, rounds)
}
