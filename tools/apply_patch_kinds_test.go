package tools

import (
	"strings"
	"testing"
)

const nineLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

// patchKinds are patches of every kind, each with what stands before it and after it.
var patchKinds = []struct {
	name  string
	files map[string]string
	diff  string
	want  map[string]string // nil: refused, and nothing changed
	says  string
}{
	{"rename", map[string]string{"a": "x\n"}, "diff --git a/a b/d/b\nsimilarity index 100%\nrename from a\nrename to d/b\n",
		map[string]string{"d/b": "x\n"}, "patched 1 file, +0 −0 lines\nR a → d/b +0 −0"},
	{"rename with a change", map[string]string{"a": "x\ny\n"}, "diff --git a/a b/b\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n",
		map[string]string{"b": "x\nz\n"}, "R a → b +1 −1"},
	{"copy", map[string]string{"a": "x\n"}, "diff --git a/a b/b\nsimilarity index 100%\ncopy from a\ncopy to b\n", map[string]string{"a": "x\n", "b": "x\n"}, "C a → b +0 −0"},
	{"names exchanged", map[string]string{"a": "A\n", "b": "B\n"},
		"diff --git a/a b/b\nrename from a\nrename to b\ndiff --git a/b b/a\nrename from b\nrename to a\n", map[string]string{"a": "B\n", "b": "A\n"}, "patched 2 files"},
	{"names rotated", map[string]string{"a": "A\n", "b": "B\n", "c": "C\n"},
		"diff --git a/b b/c\nrename from b\nrename to c\ndiff --git a/c b/a\nrename from c\nrename to a\ndiff --git a/a b/b\nrename from a\nrename to b\n",
		map[string]string{"a": "C\n", "b": "A\n", "c": "B\n"}, "patched 3 files"},
	{"name of a removed file", map[string]string{"a": "A\n", "b": "B\n"},
		"diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-B\ndiff --git a/a b/b\nrename from a\nrename to b\n", map[string]string{"b": "A\n"}, ""},
	{"rename over a file", map[string]string{"a": "A\n", "b": "B\n"}, "diff --git a/a b/b\nrename from a\nrename to b\n", nil, "b exists"},
	{"rename out", map[string]string{"a": "A\n"}, "diff --git a/a b/x\nrename from a\nrename to ../x\n", nil, "outside the workspace"},
	{"rename into a repository", map[string]string{"a": "A\n"}, "diff --git a/a b/x\nrename from a\nrename to .git/hooks/post-checkout\n", nil, "git keeps its own files there"},
	{"change outside", map[string]string{"a": "A\n"}, "--- a/../../x\n+++ b/../../x\n@@ -1 +1 @@\n-a\n+b\n", nil, "outside the workspace"},
	{"absolute name outside", map[string]string{"a": "A\n"}, "--- /dev/null\n+++ /tmp/muster-planted\n@@ -0,0 +1 @@\n+b\n", nil, "outside the workspace"},
	{"symlink", map[string]string{"a": "A\n"}, "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n", nil, "symlink"},
	{"symlink changed", map[string]string{"a": "A\n"}, "diff --git a/l b/l\nindex 1234567..89abcde 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+/etc\n\\ No newline at end of file\n", nil, "symlink"},
	{"submodule", map[string]string{"a": "A\n"}, "diff --git a/l b/l\nnew file mode 160000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+Subproject commit 1\n", nil, "submodule"},
	{"set-user-id", map[string]string{"a": "A\n"}, "diff --git a/a b/a\nold mode 100644\nnew mode 104755\n", nil, "set-user-id"},
	{"binary", map[string]string{"a": "A\n", "b": "B\n"}, "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-B\n+C\ndiff --git a/a b/a\nindex 1..2 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n", nil, "binary"},
	{"binary, only named", map[string]string{"a": "A\n"}, "diff --git a/a b/a\nindex 1..2 100644\nBinary files a/a and b/a differ\n", nil, "binary"},
	{"no prefix", map[string]string{"d/f": "x\n"}, "--- d/f\n+++ d/f\n@@ -1 +1 @@\n-x\n+y\n", map[string]string{"d/f": "y\n"}, "M d/f"},
	{"folder that is named like a prefix", map[string]string{"b/f": "x\n"}, "--- b/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", map[string]string{"b/f": "y\n"}, "M b/f"},
	{"prefixes of diff -r", map[string]string{"f": "x\n"}, "diff -ru old/f new/f\n--- old/f\t2026-01-01 00:00:00.0 +0100\n+++ new/f\t2026-01-02 00:00:00.0 +0100\n@@ -1 +1 @@\n-x\n+y\n", map[string]string{"f": "y\n"}, ""},
	{"new file of diff -N", map[string]string{"a": "x\n"}, "--- n\t1970-01-01 01:00:00.000000000 +0100\n+++ n\t2026-01-02 00:00:00.0 +0100\n@@ -0,0 +1 @@\n+y\n", map[string]string{"a": "x\n", "n": "y\n"}, "A n"},
	{"gone file of diff -N", map[string]string{"a": "x\n", "n": "y\n"}, "--- n\t2026-01-02 00:00:00.0 +0100\n+++ n\t1970-01-01 01:00:00.000000000 +0100\n@@ -1 +0,0 @@\n-y\n", map[string]string{"a": "x\n"}, "D n"},
	{"new file without /dev/null", map[string]string{"a": "x\n"}, "--- a/n\n+++ b/n\n@@ -0,0 +1,2 @@\n+y\n+z\n", map[string]string{"a": "x\n", "n": "y\nz\n"}, "A n"},
	{"quoted name", map[string]string{"ä b\"c\n.txt": "x\n"}, "--- \"a/\\303\\244 b\\\"c\\n.txt\"\n+++ \"b/\\303\\244 b\\\"c\\n.txt\"\n@@ -1 +1 @@\n-x\n+y\n", map[string]string{"ä b\"c\n.txt": "y\n"}, ""},
	{"mail", map[string]string{"f": "x\n", "g": "x\n"}, "From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n- one\n- two\n---\n f | 2 +-\n\n" +
		"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n-- \n2.39.5\n\nFrom 2234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\n\n- three\n\n" +
		"diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n-- \n2.39.5\n\n", map[string]string{"f": "y\n", "g": "y\n"}, "patched 2 files"},
	{"Markdown", map[string]string{"f": "x\n", "g": "x\n"}, "First:\n\n```diff\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n-x\n+y\n```\n\n- then\n\n```diff\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n```\n",
		map[string]string{"f": "y\n", "g": "y\n"}, "patched 2 files"},
	{"wrong counts", map[string]string{"f": nineLines}, "--- a/f\n+++ b/f\n@@ -1,2 +1,9 @@\n 1\n-2\n+two\n 3\n@@ -7,1 +7,1 @@\n 7\n-8\n 9\n", map[string]string{"f": "1\ntwo\n3\n4\n5\n6\n7\n9\n"}, "+1 −2"},
	{"a lost first letter", map[string]string{"f": nineLines}, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n3\n", nil, "is no line of a hunk"},
	{"a lost first letter, and the rest of the hunk", map[string]string{"f": nineLines}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n3\n-4\n+four\n", nil, `"-4" stands after the end of a hunk`},
	{"context diff", map[string]string{"f": nineLines}, "*** f\n--- f\n***************\n*** 1,2 ****\n  1\n! 2\n", nil, "context diff"},
	{"merge", map[string]string{"f": nineLines}, "diff --cc f\n--- a/f\n+++ b/f\n@@@ -1,2 -1,2 +1,2 @@@\n  1\n- 2\n -2\n++two\n", nil, "combined diff"},
	{"two places", map[string]string{"f": "x\na\nx\nb\n"}, "--- a/f\n+++ b/f\n@@ -9 +9 @@\n-x\n+y\n", nil, "at several places (line 1, 3)"},
	{"two places, and the line says which", map[string]string{"f": "x\na\nx\nb\n"}, "--- a/f\n+++ b/f\n@@ -3 +3 @@\n-x\n+y\n", map[string]string{"f": "x\na\ny\nb\n"}, "patched 1 file, +1 −1 lines\nM f +1 −1"},
	{"two places, and the hunk before says which", map[string]string{"f": "new\nnew\n1\n2\nx\na\nx\nb\n"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n@@ -5 +5 @@\n-x\n+y\n",
		map[string]string{"f": "new\nnew\n1\ntwo\nx\na\ny\nb\n"}, "hunk 2: found at line 7, its header says 5"},
	{"a wrong line", map[string]string{"f": nineLines}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 7\n-8\n+eight\n", map[string]string{"f": strings.Replace(nineLines, "8", "eight", 1)}, "[f hunk 1: found at line 7, its header says 1]"},
	{"blanks at the end", map[string]string{"f": "1  \n2\n3\t\n"}, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n", map[string]string{"f": "1  \ntwo\n3\t\n"}, "blanks at the ends of lines differ"},
	{"blanks at the end, twice", map[string]string{"f": "1 \n2\n1 \n2\n"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n", nil, "match so at several places (line 1, 3)"},
	{"blanks at the start", map[string]string{"f": "\t1\n2\n"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n     1\n-2\n+two\n", nil, "it differs only in white space"},
	{"same lines twice in a patch", map[string]string{"f": nineLines}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n", nil, "changes the same lines as hunk 1"},
	{"file twice", map[string]string{"f": nineLines}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n 1\n-two\n+zwei\n 3\n", map[string]string{"f": strings.Replace(nineLines, "2", "zwei", 1)}, ""},
	{"made, then changed", map[string]string{}, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-x\n+y\n", map[string]string{"n": "y\n"}, ""},
	{"new file is there", map[string]string{"n": "other\n"}, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", nil, "n exists and holds something else"},
	{"missing file", map[string]string{"name.txt": "x\n"}, "--- a/nane.txt\n+++ b/nane.txt\n@@ -1 +1 @@\n-x\n+y\n", nil, `nearest: "name.txt"`},
	{"more than the patch removes", map[string]string{"n": "x\ny\n"}, "--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", nil, "1 more lines than the patch removes"},
	{"empty files", map[string]string{"old": ""}, "diff --git a/new b/new\nnew file mode 100644\nindex 0000000..e69de29\ndiff --git a/old b/old\ndeleted file mode 100644\nindex e69de29..0000000\n",
		map[string]string{"new": ""}, "patched 2 files"},
	{"file that is not empty", map[string]string{"old": "x\n"}, "diff --git a/old b/old\ndeleted file mode 100644\nindex e69de29..0000000\n", nil, "removes an empty file"},
	{"folder", map[string]string{"d/x": "x\n"}, "--- a/d\n+++ b/d\n@@ -1 +1 @@\n-x\n+y\n", nil, "d is a folder"},
	{"context and nothing else", map[string]string{"f": nineLines}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n 2\n", nil, "no line that is added or removed"},
}

func TestPatchesOfManyKinds(t *testing.T) {
	for _, c := range patchKinds {
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
		})
	}
}
