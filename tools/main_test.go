package tools

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/budget"
	"muster/tools/sandbox"
	"muster/tools/workspace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// newTree is a workspace in a new folder.
func newTree(t testing.TB) *workspace.Tree {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.OpenDir(ws, filepath.Join(dir, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tree.Close()
		// A case may lock a folder, which would keep the test's own folder from being removed.
		err := filepath.WalkDir(ws, func(p string, d os.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				return os.Chmod(p, 0o755)
			}
			return err
		})
		if err != nil {
			t.Errorf("unlock the workspace: %v", err)
		}
	})
	return tree
}

// newSet is a set in mode goal on a new folder; change may alter its configuration.
func newSet(t testing.TB, change ...func(*Config)) *Set {
	t.Helper()
	cfg := Config{Caps: budget.Default(), Mode: "goal"}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Tree == nil {
		cfg.Tree = newTree(t)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// call invokes a tool with arguments in pairs: name, value, name, value.
func call(t testing.TB, s *Set, tool string, pairs ...any) Reply {
	t.Helper()
	return s.Invoke(context.Background(), Request{ID: "1", Tool: tool, Args: obj(t, pairs...)})
}

// obj is a JSON object of pairs.
func obj(t testing.TB, pairs ...any) json.RawMessage {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		v, err := json.Marshal(pairs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, ",%q:%s", pairs[i], v)
	}
	return json.RawMessage("{" + strings.TrimPrefix(b.String(), ",") + "}")
}

// put writes a file below the workspace.
func put(t testing.TB, s *Set, name, content string) {
	t.Helper()
	p := filepath.Join(s.cfg.Tree.Dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// get reads a file below the workspace.
func get(t testing.TB, s *Set, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.cfg.Tree.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// patience is far less than what the commands of these tests would sleep, and far more than a busy machine takes.
const patience = time.Minute
