package tools

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muster/tools/workspace"
)

func TestEditKeepsEncodings(t *testing.T) {
	for _, enc := range []encoding{plainUTF8, utf8BOM, utf16LE, utf16BE} {
		for _, c := range []struct{ text, old, now, want string }{
			{"a\nb 🚀\nc\n", "b 🚀", "中", "a\n中\nc\n"},
			{"a\nb", "b", "x\ny", "a\nx\ny"},
			{"a\r\nb", "b", "x\ny", "a\r\nx\r\ny"},
			{"a\r\nb\nc\r\n", "a\nb\nc", "1\n2\n3\n4", "1\r\n2\n3\n4\r\n"},
			{"a\nb\nc", "b\nc", "", "a\n"},
			{"a\r\n\r\nb\r\n", "a\n\nb", "a\nb", "a\r\nb\r\n"},
			{"ab", "a", "\n", "\nb"},
		} {
			s := newSet(t)
			put(t, s, "f", string(enc.encode(c.text)))
			r := call(t, s, "edit_file", "path", "f", "old_string", c.old, "new_string", c.now)
			if got, want := get(t, s, "f"), string(enc.encode(c.want)); !r.OK || got != want {
				t.Errorf("%v, %q for %q in %q: got %q, want %q: %s", enc, c.now, c.old, c.text, got, want, r.Text)
			}
		}
	}
}

func TestEditKeepsModeAndLinks(t *testing.T) {
	for _, tool := range []string{"edit_file", "write_file"} {
		s := newSet(t)
		dir := s.cfg.Tree.Dir
		put(t, s, "d/target", "one\n")
		put(t, s, "hard", "one\n")
		for name, target := range map[string]string{"first": "second", "second": filepath.Join(dir, "d/target")} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(filepath.Join(dir, "hard"), filepath.Join(dir, "d/twin")); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]fs.FileMode{"d/target": 0o750, "hard": 0o604} {
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		for name, says := range map[string]string{"first": "[first is a link; its target d/target was changed]", "hard": "[written in place: its other names show the change too]"} {
			call(t, s, "read_file", "path", name)
			args := []any{"path", name, "old_string", "one", "new_string", "two"}
			if tool == "write_file" {
				args = []any{"path", name, "content", "two\n"}
			}
			if r := call(t, s, tool, args...); !r.OK || !strings.Contains(r.Text, says) {
				t.Errorf("%s %s: %s", tool, name, r.Text)
			}
		}
		for name, want := range map[string]string{"d/target": "two\n", "hard": "two\n", "d/twin": "two\n", "first": "link to second"} {
			if got := content(filepath.Join(dir, name)); got != want {
				t.Errorf("%s: %s holds %q, want %q", tool, name, got, want)
			}
		}
		for name, mode := range map[string]fs.FileMode{"d/target": 0o750, "hard": 0o604} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
				t.Errorf("%s: %s has mode %v, %v", tool, name, info.Mode(), err)
			}
		}
	}
}

// TestEditsOfSeveralAgentsLoseNothing has agents count in one file, each with the tools of its own: what another wrote since is a conflict, and no count is
// lost.
func TestEditsOfSeveralAgentsLoseNothing(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "n"), []byte("count 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cache, err := workspace.OpenCache(filepath.Join(top, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	const agents, counts = 3, 8
	var all sync.WaitGroup
	conflicts := make([]int, agents)
	for a := range agents {
		tree, err := cache.Folder(t.Context(), dir, filepath.Join(top, fmt.Sprint("scratch", a)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tree.Close() })
		s := newSet(t, func(c *Config) { c.Tree = tree })
		all.Go(func() {
			for done := 0; done < counts; {
				var n int
				if _, err := fmt.Sscanf(call(t, s, "read_file", "path", "n").Text, "lines 1–1 of 1\n1→count %d", &n); err != nil {
					t.Error(err)
					return
				}
				old, now := fmt.Sprint("count ", n), fmt.Sprint("count ", n+1)
				var r Reply
				switch done % 3 {
				case 0:
					r = call(t, s, "edit_file", "path", "n", "old_string", old, "new_string", now)
				case 1:
					r = call(t, s, "write_file", "path", "n", "content", now+"\n")
				case 2:
					r = call(t, s, "apply_patch", "diff", "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-"+old+"\n+"+now+"\n")
				}
				switch {
				case r.OK && !strings.Contains(r.Text, "already"):
					done++
				case r.Class == Conflict || r.OK:
					conflicts[a]++
				default:
					t.Errorf("%s: %s", r.Tool, r.Text)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("conflicts: %v", conflicts)
	got, err := os.ReadFile(filepath.Join(dir, "n"))
	if err != nil || string(got) != fmt.Sprintf("count %d\n", agents*counts) {
		t.Errorf("the file holds %q, %v", got, err)
	}
}
