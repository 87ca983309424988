package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzIndex gives the reader anything: it must end, and what it returns must be sorted.
func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	plant(f, dir, map[string]string{"a": "", "b/c": "", "b/cd/e": "", "é": ""})
	gitIn(f, dir, "init", "-q", ".")
	for _, version := range []string{"2", "3", "4"} {
		gitIn(f, dir, "-c", "index.version="+version, "add", "-N", "a")
		gitIn(f, dir, "-c", "index.version="+version, "add", ".")
		data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
		if err := os.Remove(filepath.Join(dir, ".git/index")); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte("DIRC\x00\x00\x00\x04\xff\xff\xff\xff"), true)
	f.Fuzz(func(t *testing.T, data []byte, sha256 bool) {
		size := 20
		if sha256 {
			size = 32
		}
		idx, err := readIndex(bytes.NewReader(data), size)
		if err != nil {
			return
		}
		names := idx.names()
		for i := range names.ends {
			if name := names.name(i); name == "" || !names.has(name) {
				t.Errorf("name %q of the index is not found in it", name)
			}
		}
	})
}

func TestTrackedNames(t *testing.T) {
	names := (&index{paths: []string{"a", "b-c", "b/c", "b/d/e", "bc"}}).names()
	for path, want := range map[string]bool{"a": true, "b": false, "b/c": true, "b/d": false, "bc": true, "z": false, "": false} {
		if got := names.has(path); got != want {
			t.Errorf("has %q: %v, want %v", path, got, want)
		}
	}
	for folder, want := range map[string]bool{"b/": true, "b/d/": true, "b/c/": false, "a/": false, "z/": false} {
		if got := names.under(folder); got != want {
			t.Errorf("under %q: %v, want %v", folder, got, want)
		}
	}
	var none *trackedNames
	if none.has("a") || none.under("a/") {
		t.Error("no index, yet something is tracked")
	}
}
