package patch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seeds are the shared patches with what they are for, and some of other forms.
func seeds(f *testing.F) {
	dirs, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "cases", "patches", "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, dir := range dirs {
		diff, err := os.ReadFile(filepath.Join(dir, "patch.diff"))
		if err != nil || len(diff) > 4<<10 {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(dir, "before", "*"))
		for _, name := range files {
			if text, err := os.ReadFile(name); err == nil && len(text) < 4<<10 {
				f.Add(string(diff), string(text))
			}
		}
	}
	f.Add("*** Begin Patch\n*** Update File: f\n@@ class B:\n@@ def run\n-a\n+b\n*** End of File\n*** End Patch\n", "class B:\ndef run\nx\na\n")
	f.Add("diff --git a/a b/b\nold mode 100644\nnew mode 100755\nsimilarity index 90%\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n a\r\n-b\n+c\n\\ No newline at end of file\n-- \n2.39\n", "a\r\nb\n")
	f.Add("--- \"a/\\303\\244\"\t2026-01-01 00:00:00 +0100\n+++ /dev/null\n@@ -1 +0,0 @@\n-\uFEFFx\n", "\uFEFFx")
	f.Add("--- f\n+++ f\n@@ -2,0 +3,2 @@\n+a\n+b\n@@ -1 +0,0 @@\n-x\n", "x\ny\n")
}

// FuzzPatch reads any text as a patch and applies it to any other.
func FuzzPatch(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, diff, text string) {
		p, err := Parse(diff)
		var bad *Error
		if err != nil {
			if !errors.As(err, &bad) || bad.Text == "" {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		for _, all := range []bool{true, false} {
			files, err := p.Locate(func(name string) bool { return all })
			if err != nil {
				continue
			}
			for i := range files {
				checkFile(t, &files[i], text)
			}
		}
	})
}

func checkFile(t *testing.T, f *File, text string) {
	if f.Op != Create && f.Old == "" || f.Op != Delete && f.New == "" {
		t.Fatalf("a file without a name: %+v", f)
	}
	if f.Op == Create {
		text = ""
	}
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if l == "" || !strings.Contains(" +-", l[:1]) {
				t.Fatalf("the line %q of a hunk", l)
			}
		}
	}
	r, err := f.Apply(context.Background(), text)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case (len(r.Failed) > 0 || r.Already) && r.Text != text:
		t.Fatalf("%+v and changed: %q to %q", r, text, r.Text)
	case len(r.Failed) > 0 || r.Already:
	case r.Text != byteOrderMark && len(Lines(r.Text)) != len(Lines(text))+r.Added-r.Removed:
		t.Fatalf("+%d −%d made %d of %d lines: %q of %q", r.Added, r.Removed, len(Lines(r.Text)), len(Lines(text)), r.Text, text)
	}
	for _, x := range r.Failed {
		if x.Why == "" || x.Hunk < 1 || x.Hunk > len(f.Hunks) {
			t.Fatalf("failure %+v", x)
		}
	}
	for _, n := range r.Notes {
		if n.Line < 1 || !n.Ends && !n.Blanks && n.Header == 0 {
			t.Fatalf("note %+v", n)
		}
	}
	if again, err := f.Apply(context.Background(), text); err != nil || again.Text != r.Text {
		t.Fatalf("another time: %+v, %v", again, err)
	}
}
