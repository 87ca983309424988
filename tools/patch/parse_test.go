package patch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		diff   string
		exists string // names, each followed by a comma
		want   string // old, new
	}{
		{"--- a/f\n+++ b/f\n", "f,", "f f"},
		{"--- f\n+++ f\n", "f,", "f f"},
		{"--- a/f\n+++ b/f\n", "a/f,", ""},
		{"--- a/f\n+++ b/f\n", "a/f,b/f,", ""},
		{"--- a/f\n+++ b/f\n", "a/f,f,", "f f"},
		{"--- a/f\n+++ a/f\n", "a/f,", "a/f a/f"},
		{"--- a/f\n+++ a/f\n", "f,", "f f"}, // a model that writes a/ twice
		{"--- i/f\n+++ w/f\n", "f,", "f f"},
		{"--- orig/d/f\n+++ new/d/f\n", "d/f,", "d/f d/f"},
		{"--- f.orig\n+++ f\n", "f,", "f f"},
		{"--- f\n+++ f.new\n", "f,", "f f"},
		{"--- f\n+++ g\n", "f,", ""},
		{"--- f\n+++ g\n", "f,g,", ""},
		{"--- /w/f\n+++ /w/f\n", "/w/f,", "/w/f /w/f"},
		{"--- ./f\n+++ ./f\n", "./f,", "./f ./f"},
		{"--- a/f g\t2026-01-01 00:00:00 +0100\n+++ b/f g\t2026-01-02 00:00:00 +0100\n", "f g,", "f g f g"},
		{"--- a/f 2026-01-01 00:00:00 +0100\n+++ b/f 2026-01-02 00:00:00 +0100\n", "f,", "f f"},
		{"--- \"a/\\344\\270\\255 \\t\\\\\"\n+++ \"b/\\344\\270\\255 \\t\\\\\"\n", "中 \t\\,", "中 \t\\ 中 \t\\"},
		{"--- a/f\r\n+++ b/f\r\n", "f,", "f f"},
	} {
		p, err := Parse(c.diff + "@@ -1 +1 @@\n-x\n+y\n")
		if err != nil {
			t.Errorf("%q: %v", c.diff, err)
			continue
		}
		files, err := p.Locate(func(name string) bool { return strings.Contains(","+c.exists, ","+name+",") })
		got := ""
		if err == nil {
			got = files[0].Old + " " + files[0].New
		}
		if got != c.want {
			t.Errorf("%q of %q: %q, want %q (%v)", c.diff, c.exists, got, c.want, err)
		}
	}
}

func TestWhatIsNoPatch(t *testing.T) {
	hunk := "@@ -1 +1 @@\n-x\n+y\n"
	for _, c := range []struct{ text, says string }{
		{"", "it holds no diff"},
		{"please change x to y\n", "it holds no diff"},
		{"3c3\n< x\n---\n> y\n", "it holds no diff"},
		{"@@ -1 +1 @@\n-x\n+y\n", "line 1 of the patch: a hunk comes before the name of its file"},
		{"--- a/f\n+++ b/f\n", "has no hunk for it"},
		{"diff --git a/f b/f\nindex 1..2 100644\n", "says nothing to be done"},
		{"diff --git a/f b/f\nrename from f\n", "needs both names"},
		{"diff --git a/f g b/h i\nold mode 100644\nnew mode 100755\n", "names cannot be told apart"},
		{"--- /dev/null\n+++ /dev/null\n" + hunk, "both sides are /dev/null"},
		{"--- /dev/null\n+++ b/f\n" + hunk, "makes a new file and has lines that are not added"},
		{"--- a/f\n+++ /dev/null\n" + hunk, "removes a file and has lines that are not removed"},
		{"--- a/f\n+++ b/f\n@@ -1 +1 @@\n", "no line that is added or removed"},
		{"--- a/f\n+++ b/f\n@@ -1 +1 @@\n\\ No newline at end of file\n-x\n+y\n", "has no line before it"},
		{"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+\n\\ No newline at end of file\n", "nothing without its newline"},
		{"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-x\n+y\nlost\n", `"lost" is no line of a hunk`},
		{"--- a/f\n+++ b/f\n" + hunk + "lost\n+more\n", `"+more" stands after the end of a hunk`},
		{"--- \"a/f\n+++ \"b/f\n" + hunk, "cannot be read"},
		{"--- a/f\n+++ \n" + hunk, "names no file"},
		{"--- a/f\n+++ \"\"\n" + hunk, "cannot be read"},
		{"diff --git a/f b/f\nnew file mode 1x\n", "no octal number"},
		{"diff --cc f\nindex 1,2..3\n", "combined diff"},
		{"*** f\n--- g\n***************\n", "context diff"},
		{"*** Begin Patch\n*** End Patch\n", "names no file"},
		{"*** Begin Patch\n*** Update File: f\n*** End Patch\n", "has no hunk for it"},
		{"*** Begin Patch\n*** Update File: f\n*** Move to: \n@@\n-x\n+y\n*** End Patch\n", "names no file"},
		{"*** Begin Patch\n*** Change File: f\n*** End Patch\n", "is none of"},
		{"*** Begin Patch\n*** Update File: f\n@@\n-x\n+y\nlost\n*** End Patch\n", `"lost" is no line of a hunk`},
		{"*** Begin Patch\n*** Update File: f\n@@ x\n*** End Patch\n", "no line that is added"},
	} {
		_, err := Parse(c.text)
		var bad *Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		}
	}
}

func TestHunksOfOneFile(t *testing.T) {
	for _, c := range []struct{ text, hunks, want string }{
		// Without context, numbers decide.
		{"1\n2\n3\n", "@@ -1,0 +2 @@\n+x\n", "1\nx\n2\n3\n"},
		{"1\n2\n3\n", "@@ -0,0 +1 @@\n+x\n", "x\n1\n2\n3\n"},
		{"1\n2\n3\n", "@@ -3,0 +4 @@\n+x\n", "1\n2\n3\nx\n"},
		{"1\n2\n3\n", "@@ -4,0 +5 @@\n+x\n", "adds lines after line 4, and the file has 3"},
		{"1\nx\n2\n", "@@ -1,0 +2 @@\n+x\n", "stand there already"},
		{"0\n1\n2\n3\n", "@@ -1 +1 @@\n-1\n+one\n@@ -2,0 +3 @@\n+x\n", "lines around it have moved"},
		{"1\r\n2\r\n", "@@ -1,0 +2 @@\n+x\n", "1\r\nx\r\n2\r\n"},
		{"1\n2", "@@ -2,0 +3 @@\n+x\n", "1\n2\nx\n"},
		{"", "@@ -0,0 +1 @@\n+x\n", "x\n"},
		// What was applied once.
		{"1\n2\nx\n", "@@ -1,2 +1,3 @@\n 1\n 2\n+x\n", "already"},
		{"x\n1\n2\n", "@@ -1,2 +1,3 @@\n+x\n 1\n 2\n", "already"},
		{"1\nx\n2\n3\n", "@@ -1 +1,2 @@\n 1\n+x\n", "already"},
		{"1\n3\n", "@@ -1,3 +1,2 @@\n 1\n-2\n 3\n", "already"},
		{"0\n0\none\n3\n", "@@ -1 +1 @@\n-1\n+one\n@@ -2,2 +2 @@\n-2\n 3\n", "already"},
		{"1\nnew\n2\n1\nold\n2\n", "@@ -1,3 +1,3 @@\n 1\n-old\n+new\n 2\n", "applied already at line 1, and its old lines stand elsewhere too"},
		{"new\n", "@@ -5 +5 @@\n-old\n+new\n", "already"},
		{"1 \nnew\n2\t\n", "@@ -1,3 +1,3 @@\n 1\n-old\n+new\n 2\n", "already"},
		// Several places.
		{"a\nb\na\n", "@@ @@\n-a\n+x\n@@ @@\n-b\n+y\n", "x\ny\na\n"},
		{"a\nb\na\n", "@@ @@\n-a\n+x\n", "at several places"},
		{"a\nb\na\n", "@@ @@\n-b\n+y\n@@ @@\n-a\n+x\n", "a\ny\nx\n"},
		{"a\nb\na\n", "@@ -1 +1 @@\n-a\n+x\n@@ -3 +3 @@\n-a\n+y\n", "x\nb\ny\n"},
		{"-\n-\na\nb\na\nc\n", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n@@ -3 +3 @@\n-a\n+y\n", "-\n-\nx\nb\ny\nc\n"},
		{"a\r\nb\na\nc\n", "@@ -1 +1 @@\n-a\n+x\n", "with other line ends, and elsewhere with these"},
		{"b\nb\nb\na\n", "@@ -1 +1,2 @@\n+x\n b\n@@ -2 +3 @@\n-a\n+y\n", "x\nb\nb\nb\ny\n"},
		{"a\nb\na\n", "@@ -1 +1,2 @@\n a\n+x\n", "as at the end of the file"},
		{"c\nA\nA\nA\nA\n", "@@ -1,3 +1,4 @@\n c\n+A\n A\n A\n", "c\nA\nA\nA\nA\nA\n"},
		{"z\nc\nA\nA\nA\nA\n", "@@ -1,3 +1,4 @@\n c\n+A\n A\n A\n", "matches the file as it was before the hunk and as it is after it"},
		// Ends.
		{"a\nb\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+x\n", "not in the file"},
		{"a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc\n"},
		{"a\r\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\r\nb\r\nc\r\n"},
		{"a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+\n", "a\n\n"},
		{"a\nb\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "a\nc\n"},
	} {
		r := apply(t, "--- a/f\n+++ b/f\n"+c.hunks, c.text)
		got := r.Text
		var why []string
		for _, f := range r.Failed {
			why = append(why, f.Why)
		}
		switch {
		case len(r.Failed) > 0 && r.Text != c.text:
			t.Errorf("%q on %q: failed, and made %q", c.hunks, c.text, r.Text)
		case len(r.Failed) > 0:
			got = strings.Join(why, "; ")
		case r.Already:
			got = "already"
		}
		if got != c.want && (len(why) == 0 || !strings.Contains(got, c.want)) {
			t.Errorf("%q on %q: %q, want %q", c.hunks, c.text, got, c.want)
		}
	}
}

func TestNotesSayWhatWasTolerated(t *testing.T) {
	for _, c := range []struct{ text, hunks, want string }{
		{"1\n2\n3\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "[]"},
		{"0\n1\n2\n3\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "[{1 2 1 false false}]"},
		{"1\r\n2\n3\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "[{1 1 0 true false}]"},
		{"1 \n2\n3\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "[{1 1 0 false true}]"},
		{"0\n1 \r\n2\r\n3\r\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "[{1 2 1 true true}]"},
		{"1\n2\n3\n", "@@ ... @@\n 1\n-2\n+x\n 3\n", "[]"},
	} {
		r := apply(t, "--- a/f\n+++ b/f\n"+c.hunks, c.text)
		if got := fmt.Sprint(r.Notes); got != c.want || len(r.Failed) > 0 {
			t.Errorf("%q on %q: %s, want %s; %+v", c.hunks, c.text, got, c.want, r.Failed)
		}
	}
}

func TestApplyEndsWithItsContext(t *testing.T) {
	p, err := Parse("--- a/f\n+++ b/f\n@@ -9,3 +9,3 @@\n a\n-b\n+c\n a\n")
	if err != nil {
		t.Fatal(err)
	}
	files, err := p.Locate(func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := files[0].Apply(ctx, strings.Repeat("a\n", 5000)); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "a": {"a"}, "a\n": {"a\n"}, "\n\r\n\r": {"\n", "\r\n", "\r"}, "a\r\nb": {"a\r\n", "b"},
	} {
		if got := Lines(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	got := WithEnds([]string{"1\n", "2\r\n", "3"}, []string{"a\r\n", "b\n"}, "x")
	if want := []string{"1\r\n", "2\n", "3\n"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
