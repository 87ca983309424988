package tools

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/tools/rules"
)

// patchCase is a folder of the shared cases of patches.
type patchCase struct {
	dir     string
	refused bool // it must be
	may     bool // or may be
	afters  []string
}

func patchCases(t *testing.T) []patchCase {
	names, err := filepath.Glob(filepath.Join(caseFolder(t), "patches", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var list []patchCase
	for _, dir := range names {
		c := patchCase{dir: dir}
		_, err := os.Stat(filepath.Join(dir, "MUST_BE_REFUSED"))
		c.refused = err == nil
		_, err = os.Stat(filepath.Join(dir, "MAY_BE_REFUSED"))
		c.may = err == nil
		if c.afters, err = filepath.Glob(filepath.Join(dir, "after*")); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	if len(list) < 40 {
		t.Fatalf("only %d cases of patches", len(list))
	}
	return list
}

// filesOf are the files and links of a folder with what they hold.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		files[rel] = content(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func same(a, b map[string]string) bool {
	ja, _ := json.Marshal(a)
	jb, _ := json.Marshal(b)
	return string(ja) == string(jb)
}

// TestSharedPatches applies the patches of the shared folders to what stands before them.
func TestSharedPatches(t *testing.T) {
	for _, c := range patchCases(t) {
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			s := newSet(t)
			before := filesOf(t, filepath.Join(c.dir, "before"))
			for name, text := range before {
				if target, link := strings.CutPrefix(text, "link to "); link {
					if err := os.Symlink(target, filepath.Join(s.cfg.Tree.Dir, name)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				put(t, s, name, text)
			}
			diff, err := os.ReadFile(filepath.Join(c.dir, "patch.diff"))
			if err != nil {
				t.Fatal(err)
			}
			r := call(t, s, "apply_patch", "diff", string(diff))
			got := filesOf(t, s.cfg.Tree.Dir)
			right := slices.ContainsFunc(c.afters, func(dir string) bool { return same(got, filesOf(t, dir)) })
			switch {
			case r.OK && c.refused, r.OK && !right:
				t.Errorf("ok: %s\n%q", r.Text, got)
			case !r.OK && !c.refused && !c.may, !r.OK && !same(got, before):
				t.Errorf("refused: %s\n%q", r.Text, got)
			}
			if !r.OK || t.Failed() {
				return
			}
			// Once more it changes nothing, and says so; lines that repeat may leave that open.
			again := call(t, s, "apply_patch", "diff", string(diff))
			if now := filesOf(t, s.cfg.Tree.Dir); !same(now, got) || !strings.Contains(again.Text, "already") && !strings.Contains(again.Text, "does not exist") {
				t.Errorf("a second time: %s\n%q", again.Text, now)
			}
		})
	}
}

// applied is a set with files, to which a patch was applied.
func applied(t *testing.T, files map[string]string, diff string) (*Set, Reply) {
	t.Helper()
	s := newSet(t)
	for name, text := range files {
		put(t, s, name, text)
	}
	return s, call(t, s, "apply_patch", "diff", diff)
}

func TestPatchOfTheOtherForm(t *testing.T) {
	code := "class A:\n    def run(self):\n        pass\n\nclass B:\n    def run(self):\n        pass\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		diff  string
		want  map[string]string
		says  string
	}{
		{"all of it", map[string]string{"f": "1\n2\n3\n", "gone": "x\n", "from": "a\nb\n"},
			"Here:\n*** Begin Patch\n*** Add File: d/new\n+one\n+\n+three\n*** Update File: f\n@@\n 1\n-2\n+two\n*** Delete File: gone\n*** Update File: from\n*** Move to: to\n@@\n-a\n+A\n b\n*** End Patch\n",
			map[string]string{"f": "1\ntwo\n3\n", "d/new": "one\n\nthree\n", "to": "A\nb\n"}, "patched 4 files"},
		{"an anchor says which", map[string]string{"f": code}, "*** Begin Patch\n*** Update File: f\n@@ class B:\n     def run(self):\n-        pass\n+        return 1\n*** End Patch\n",
			map[string]string{"f": "class A:\n    def run(self):\n        pass\n\nclass B:\n    def run(self):\n        return 1\n"}, ""},
		{"two anchors", map[string]string{"f": code}, "*** Begin Patch\n*** Update File: f\n@@ class B:\n@@ def run(self):\n-        pass\n+        return 1\n*** End Patch\n",
			map[string]string{"f": "class A:\n    def run(self):\n        pass\n\nclass B:\n    def run(self):\n        return 1\n"}, ""},
		{"no anchor", map[string]string{"f": code}, "*** Begin Patch\n*** Update File: f\n@@\n     def run(self):\n-        pass\n+        return 1\n*** End Patch\n", nil, "at several places (line 2, 6)"},
		{"order says which", map[string]string{"f": "a\nx\nb\nx\n"}, "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n@@\n-x\n+y\n*** End Patch\n", map[string]string{"f": "a\nx\nB\ny\n"}, ""},
		{"end of the file", map[string]string{"f": "x\na\nx\n"}, "*** Begin Patch\n*** Update File: f\n@@\n-x\n+y\n*** End of File\n*** End Patch\n", map[string]string{"f": "x\na\ny\n"}, ""},
		{"added at the end", map[string]string{"f": "x\n"}, "*** Begin Patch\n*** Update File: f\n@@\n+y\n*** End of File\n*** End Patch\n", map[string]string{"f": "x\ny\n"}, ""},
		{"added anywhere", map[string]string{"f": "x\n"}, "*** Begin Patch\n*** Update File: f\n@@\n+y\n*** End Patch\n", nil, "nothing that says where"},
		{"cut", map[string]string{"f": "x\n"}, "*** Begin Patch\n*** Update File: f\n@@\n-x\n+y\n", nil, "*** End Patch is missing"},
		{"no name", map[string]string{"f": "x\n"}, "*** Begin Patch\n*** Update File: \n@@\n-x\n+y\n*** End Patch\n", nil, "names no file"},
		{"new file without plus", map[string]string{}, "*** Begin Patch\n*** Add File: f\n+x\ny\n*** End Patch\n", nil, "does not begin with +"},
		{"outside", map[string]string{}, "*** Begin Patch\n*** Add File: ../f\n+x\n*** End Patch\n", nil, "outside the workspace"},
		{"without its first line", map[string]string{"f": "x\n"}, "*** Update File: f\n@@\n-x\n+y\n*** End Patch\n", nil, "outside of *** Begin Patch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r := applied(t, c.files, c.diff)
			want := c.want
			if c.want == nil {
				want = c.files
			}
			if got := filesOf(t, s.cfg.Tree.Dir); !same(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if r.OK != (c.want != nil) || !strings.Contains(r.Text, c.says) {
				t.Errorf("ok=%v: %s", r.OK, r.Text)
			}
			if !r.OK {
				return
			}
			if again := call(t, s, "apply_patch", "diff", c.diff); !same(filesOf(t, s.cfg.Tree.Dir), want) ||
				!strings.Contains(again.Text, "already") && !strings.Contains(again.Text, "does not exist") {
				t.Errorf("a second time: ok=%v %s", again.OK, again.Text)
			}
		})
	}
}

func TestPatchModes(t *testing.T) {
	s := newSet(t)
	put(t, s, "run", "x\n")
	put(t, s, "tight", "x\n")
	mode := func(name string) fs.FileMode {
		info, err := os.Lstat(filepath.Join(s.cfg.Tree.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if err := os.Chmod(filepath.Join(s.cfg.Tree.Dir, "tight"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, s, "apply_patch", "diff", "diff --git a/run b/run\nold mode 100644\nnew mode 100755\ndiff --git a/tight b/tight\nold mode 100644\nnew mode 100755\n--- a/tight\n+++ b/tight\n"+
		"@@ -1 +1 @@\n-x\n+y\ndiff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+#!/bin/sh\ndiff --git a/run b/moved\nrename from run\nrename to moved\n")
	if !r.OK || mode("moved") != 0o755 || mode("tight") != 0o700 || mode("new") != 0o755 || get(t, s, "tight") != "y\n" {
		t.Errorf("%v %v %v: %s", mode("moved"), mode("tight"), mode("new"), r.Text)
	}
	if !strings.Contains(r.Text, "M run +0 −0, mode 644 → 755") || !strings.Contains(r.Text, "A new +1 −0, mode 755") {
		t.Error(r.Text)
	}
	if r := call(t, s, "apply_patch", "diff", "diff --git a/new b/new\nold mode 100644\nnew mode 100755\n"); !r.OK || !strings.Contains(r.Text, "already") {
		t.Errorf("the mode it has: %s", r.Text)
	}
}

// TestPatchKeepsTheFilesBytes has a patch, as a model sends it, on files of every encoding.
func TestPatchKeepsTheFilesBytes(t *testing.T) {
	for _, c := range []struct{ name, file, diff, want string }{
		{"CRLF", "a\r\nb\r\nc\r\n", " a\n-b\n+x\n+y\n c\n", "a\r\nx\r\ny\r\nc\r\n"},
		{"CRLF, no newline at the end", "a\r\nb", " a\n-b\n+x\n+y\n", "a\r\nx\r\ny"},
		{"CRLF, added at the end", "a\r\nb\r\n", " a\n b\n+c\n", "a\r\nb\r\nc\r\n"},
		{"mixed, line by line", "a\r\nb\nc\r\nd\n", "-a\n-b\n-c\n+A\n+B\n+C\n d\n", "A\r\nB\nC\r\nd\n"},
		{"LF file, CRLF patch", "a\nb\nc\n", " a\r\n-b\r\n+x\r\n+y\r\n c\r\n", "a\nx\ny\nc\n"},
		{"CRLF to LF on purpose", "a\r\nb\r\n", "-a\r\n+a\n b\r\n", "a\nb\r\n"},
		{"byte order mark", "\xEF\xBB\xBFa\nb\n", "-a\n+x\n b\n", "\xEF\xBB\xBFx\nb\n"},
		{"byte order mark, line before it", "\xEF\xBB\xBFa\nb\n", "+x\n a\n b\n", "\xEF\xBB\xBFx\na\nb\n"},
		{"byte order mark in the patch", "\xEF\xBB\xBFa\nb\n", "-\uFEFFa\n+\uFEFFx\n b\n", "\xEF\xBB\xBFx\nb\n"},
		{"byte order mark removed on purpose", "\xEF\xBB\xBFa\nb\n", "-\uFEFFa\n+a\n b\n", "a\nb\n"},
		{"UTF-16LE", string(utf16LE.encode("a\r\nb 🚀\r\nc")), " a\n-b 🚀\n+中\n c\n", string(utf16LE.encode("a\r\n中\r\nc"))},
		{"UTF-16BE, with a last newline", string(utf16BE.encode("a\nb\n")), " a\n-b\n+中\n", string(utf16BE.encode("a\n中\n"))},
		{"UTF-16 and a mark in the patch", string(utf16LE.encode("a\nb\n")), "-\uFEFFa\n+\uFEFFx\n b\n", string(utf16LE.encode("x\nb\n"))},
		{"invalid bytes elsewhere", "caf\xe9\nx\ny\n", "-x\n+z\n y\n", "caf\xe9\nz\ny\n"},
		{"no newline at the end", "a\nb", " a\n-b\n+c\n", "a\nc"},
		{"newline added at the end on purpose", "a\nb", " a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n"},
		{"newline removed at the end on purpose", "a\nb\n", " a\n-b\n+b\n\\ No newline at end of file\n", "a\nb"},
		{"lone \\r", "a\rb\nc\n", "-a\rb\n+x\n c\n", "x\nc\n"},
		{"form feed and vertical tab", "a\fb\vc\u2028d\n", "-a\fb\vc\u2028d\n+x\n", "x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r := applied(t, map[string]string{"f": c.file}, "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n"+c.diff)
			if got := get(t, s, "f"); !r.OK || got != c.want {
				t.Errorf("got %q, want %q: %s", got, c.want, r.Text)
			}
			if r.Facts.Files == nil || r.Facts.Files[0].Path != "f" {
				t.Errorf("facts %+v", r.Facts.Files)
			}
		})
	}
}

func TestPatchKeepsLinks(t *testing.T) {
	s := newSet(t)
	dir := s.cfg.Tree.Dir
	put(t, s, "d/c", "x\n")
	put(t, s, "h1", "x\n")
	for name, target := range map[string]string{"a": "b", "b": "d/c"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "h1"), filepath.Join(dir, "d/h2")); err != nil {
		t.Fatal(err)
	}
	hunk := "@@ -1 +1 @@\n-x\n+y\n"
	r := call(t, s, "apply_patch", "diff", "--- a/a\n+++ b/a\n"+hunk+"--- a/h1\n+++ b/h1\n"+hunk)
	if !r.OK || get(t, s, "d/c") != "y\n" || content(filepath.Join(dir, "a")) != "link to b" || get(t, s, "d/h2") != "y\n" {
		t.Errorf("%q %s %q: %s", get(t, s, "d/c"), content(filepath.Join(dir, "a")), get(t, s, "d/h2"), r.Text)
	}
	for _, want := range []string{"[a is a link; its target d/c was changed]", "[written in place: its other names show the change too]"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("not said: %s\n%s", want, r.Text)
		}
	}
	for _, diff := range []string{"--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n", "diff --git a/a b/z\nrename from a\nrename to z\n", "*** Begin Patch\n*** Delete File: b\n*** End Patch\n"} {
		before := filesOf(t, dir)
		if r := call(t, s, "apply_patch", "diff", diff); r.OK || r.Class != Input || !strings.Contains(r.Text, "is a symlink") || !same(before, filesOf(t, dir)) {
			t.Errorf("%q: %s", diff, r.Text)
		}
	}
	both := "--- a/h1\n+++ b/h1\n@@ -1 +1 @@\n-y\n+z\n--- a/d/h2\n+++ b/d/h2\n@@ -1 +1 @@\n-y\n+z\n"
	if r := call(t, s, "apply_patch", "diff", both); !r.OK || get(t, s, "h1") != "z\n" {
		t.Errorf("both names of a file alike: %s", r.Text)
	}
	other := "--- a/h1\n+++ b/h1\n@@ -1 +1 @@\n-z\n+1\n--- a/d/h2\n+++ b/d/h2\n@@ -1 +1 @@\n-z\n+2\n"
	if r := call(t, s, "apply_patch", "diff", other); r.OK || r.Class != Conflict || get(t, s, "h1") != "z\n" {
		t.Errorf("both names of a file, each otherwise: %s", r.Text)
	}
}

func TestPatchConflicts(t *testing.T) {
	s := newSet(t)
	put(t, s, "a", "x\n1\n")
	put(t, s, "b", "x\n")
	diff := "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n"
	call(t, s, "read_file", "path", "a")
	put(t, s, "a", "x\n2\n")
	r := call(t, s, "apply_patch", "diff", diff)
	if r.OK || r.Class != Conflict || !strings.Contains(r.Text, "a changed since you read it; read_file it again") || get(t, s, "b") != "x\n" {
		t.Errorf("a file that changed since: %s", r.Text)
	}
	put(t, s, "a", "x\n1\n")
	if r := call(t, s, "apply_patch", "diff", diff); !r.OK {
		t.Errorf("the content that was read, written anew: %s", r.Text)
	}
	// What the agent has written so it knows.
	if r := call(t, s, "write_file", "path", "a", "content", "mine\n"); !r.OK {
		t.Error(r.Text)
	}
	// A part of a file that was never read is not known.
	if r := call(t, s, "write_file", "path", "b", "content", "mine\n"); r.OK || r.Class != Conflict {
		t.Error(r.Text)
	}
	call(t, s, "apply_patch", "diff", "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+y\n")
	if r := call(t, s, "write_file", "path", "n", "content", "mine\n"); !r.OK {
		t.Errorf("a file that the patch made: %s", r.Text)
	}
}

// TestPatchShowsEveryFailingHunk has hunks of several files fail, each for another reason.
func TestPatchShowsEveryFailingHunk(t *testing.T) {
	files := map[string]string{"a.go": "func one() {\n\treturn 1\n}\n\nfunc two() {\n\treturn 2\n}\n", "b.go": "x\nx\n", "ok.go": "x\n"}
	s, r := applied(t, files, "--- a/ok.go\n+++ b/ok.go\n@@ -1 +1 @@\n-x\n+y\n"+
		"--- a/a.go\n+++ b/a.go\n@@ -1,3 +1,3 @@\n func one() {\n-    return 1\n+    return 3\n }\n@@ -5,3 +5,3 @@\n func two(a int) {\n-\treturn 2\n+\treturn 3\n }\n"+
		"--- a/b.go\n+++ b/b.go\n@@ -9 +9 @@\n-x\n+y\n--- a/c.go\n+++ b/c.go\n@@ -1 +1 @@\n-x\n+y\n")
	if r.OK || r.Class != Input || !same(filesOf(t, s.cfg.Tree.Dir), files) {
		t.Errorf("ok=%v %s", r.OK, r.Class)
	}
	for _, want := range []string{
		"nothing was changed", "a.go hunk 1, line 8 of the patch", "it differs only in white space (tabs, spaces, indentation); the file has:\n1→func one() {\n2→\treturn 1\n",
		"a.go hunk 2, line 13 of the patch", "the hunk has:\n1→func two(a int) {", "the nearest lines are:\n5→func two() {",
		"b.go hunk 1, line 20 of the patch (@@ -9 +9 @@): its old lines are at several places (line 1, 2)", `stat "c.go": does not exist`,
	} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("not said: %q\n%s", want, r.Text)
		}
	}
}

func TestPartOfAPatchIsAppliedAlready(t *testing.T) {
	one, two := "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n", "@@ -8,2 +8,2 @@\n 8\n-9\n+nine\n"
	other := "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n"
	text := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	half := strings.Replace(text, "1", "one", 1)
	s, r := applied(t, map[string]string{"f": half, "g": "x\n"}, one+two+other)
	if r.OK || !strings.Contains(r.Text, "f hunk 1") || !strings.Contains(r.Text, "it is applied already, and other hunks of this file are not; leave it out (line 1)") || get(t, s, "g") != "x\n" {
		t.Errorf("half of a file: ok=%v %s", r.OK, r.Text)
	}
	if r := call(t, s, "apply_patch", "diff", one+other); !r.OK || !strings.Contains(r.Text, "patched 1 file, +1 −1 lines\n= f is so already\nM g +1 −1") || get(t, s, "g") != "y\n" {
		t.Errorf("one of two files: ok=%v %s", r.OK, r.Text)
	}
	if r := call(t, s, "apply_patch", "diff", one+other); !r.OK || r.Text != "the patch is applied already; nothing was changed\nf\ng" || len(r.Facts.Files) > 0 {
		t.Errorf("all of it: ok=%v %s %+v", r.OK, r.Text, r.Facts.Files)
	}
}

func TestRulesJudgeEveryPathOfAPatch(t *testing.T) {
	s := newSet(t, ruled(t, rules.Lists{Deny: []string{"edit(secrets/**)", "read_file(hidden)"}, Ask: []string{"apply_patch(asked/*)"}}))
	for _, name := range []string{"secrets/key", "hidden", "asked/a", "free"} {
		put(t, s, name, "x\n")
	}
	if err := os.Symlink("secrets", filepath.Join(s.cfg.Tree.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, s.cfg.Tree.Dir)
	hunk := "@@ -1 +1 @@\n-x\n+y\n"
	free := "--- a/free\n+++ b/free\n" + hunk
	for _, c := range []struct {
		diff  string
		class ErrorClass
		says  string
	}{
		{free + "--- a/secrets/key\n+++ b/secrets/key\n" + hunk, Permission, "rule deny edit(secrets/**): secrets/key"},
		{"diff --git a/free b/secrets/new\nrename from free\nrename to secrets/new\n", Permission, "rule deny edit(secrets/**): secrets/new"},
		{"diff --git a/secrets/key b/key\nrename from secrets/key\nrename to key\n", Permission, "rule deny edit(secrets/**): secrets/key"},
		{"diff --git a/secrets/key b/key\ncopy from secrets/key\ncopy to key\n", Permission, "rule deny edit(secrets/**): secrets/key"},
		{"--- a/link/key\n+++ b/link/key\n" + hunk, Permission, "rule deny edit(secrets/**): secrets/key"},
		{"--- a/hidden\n+++ b/hidden\n" + hunk, Permission, "rule deny read_file(hidden): hidden"},
		{"*** Begin Patch\n*** Delete File: secrets/key\n*** End Patch\n", Permission, "secrets/key"},
		{"--- secrets/key\n+++ secrets/key\n" + hunk, Permission, "secrets/key"},
		{"no patch", Input, "holds no diff"},
		{free + "--- a/asked/a\n+++ b/asked/a\n" + hunk, "", "denied: apply_patch needs an approval (rule ask apply_patch(asked/*): asked/a)"},
	} {
		r := call(t, s, "apply_patch", "diff", c.diff)
		if r.OK != (c.class == "") || r.Class != c.class || !strings.Contains(r.Text, c.says) {
			t.Errorf("%q: %+v", c.diff, r)
		}
	}
	if got := filesOf(t, s.cfg.Tree.Dir); !same(got, before) {
		t.Errorf("got %q", got)
	}
	if r := call(t, s, "apply_patch", "diff", free); !r.OK {
		t.Errorf("what no rule speaks of: %s", r.Text)
	}
	allowed := newSet(t, inMode("default"), ruled(t, rules.Lists{Allow: []string{"edit(src/**)"}}))
	put(t, allowed, "src/a", "x\n")
	if r := call(t, allowed, "apply_patch", "diff", "--- a/src/a\n+++ b/src/a\n"+hunk); !r.OK || r.Facts.Denied {
		t.Errorf("what a rule allows: %+v", r)
	}
	if r := call(t, allowed, "apply_patch", "diff", "diff --git a/src/a b/a\nrename from src/a\nrename to a\n"); !r.Facts.Denied {
		t.Errorf("a name that it does not allow: %+v", r)
	}
	for _, mode := range []string{"plan", "debug"} {
		if r := call(t, newSet(t, inMode(mode)), "apply_patch", "diff", free); r.Class != Permission || !strings.Contains(r.Text, "mode "+mode) {
			t.Errorf("mode %s: %+v", mode, r)
		}
	}
}

// TestLargePatch has ten megabytes of patch for as many of files.
func TestLargePatch(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Caps.ReadAdmitBytes = 64 << 20 })
	var text, diff strings.Builder
	diff.WriteString("--- a/big\n+++ b/big\n")
	const lines, each = 200_000, 10
	for i := range lines {
		fmt.Fprintf(&text, "record %07d of the large file, value %d\n", i, i%97)
	}
	all := strings.SplitAfter(text.String(), "\n")
	changed := 0
	for i := 0; i+each <= lines; i += each {
		fmt.Fprintf(&diff, "@@ -%d,%d +%d,%d @@\n", i+1+7, each, i+1+7, each) // the numbers are off
		for j, l := range all[i : i+each] {
			if j == 4 {
				changed++
				fmt.Fprintf(&diff, "-%s+changed %s", l, l)
				continue
			}
			diff.WriteString(" " + l)
		}
	}
	put(t, s, "big", text.String())
	if r := call(t, s, "apply_patch", "diff", diff.String()); !r.OK || !strings.HasPrefix(r.Text, fmt.Sprintf("patched 1 file, +%d −%d lines", changed, changed)) {
		t.Fatalf("%d bytes: %.500s", diff.Len(), r.Text)
	}
	got := get(t, s, "big")
	if n := strings.Count(got, "changed record"); n != changed || len(got) != text.Len()+n*len("changed ") {
		t.Errorf("%d lines are changed, want %d", n, changed)
	}
}
