package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

func TestEditKeepsTheFilesBytes(t *testing.T) {
	for _, c := range []struct{ name, file, old, new, want string }{
		{"LF", "one\ntwo\n", "two", "2", "one\n2\n"},
		{"CRLF, lines added", "one\r\ntwo\r\nthree\r\n", "two", "2a\n2b", "one\r\n2a\r\n2b\r\nthree\r\n"},
		{"CRLF, several lines", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"},
		{"CRLF, removed lines", "a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n"},
		{"CRLF given as such", "a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"},
		{"CRLF to LF on purpose", "a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n"},
		{"mixed, line by line", "a\r\nb\nc\r\nd\n", "a\nb\nc\n", "A\nB\nC\n", "A\r\nB\nC\r\nd\n"},
		{"mixed, end of the place", "a\r\nb\nc", "b", "x\ny", "a\r\nx\ny\nc"},
		{"CRLF, last line", "a\r\nb", "b", "x\ny", "a\r\nx\r\ny"},
		{"lone \\r", "a\rb\n", "a\rb", "c", "c\n"},
		{"no newline at the end", "a\nb", "b", "c", "a\nc"},
		{"byte order mark", "\xEF\xBB\xBFa\nb\n", "a", "x", "\xEF\xBB\xBFx\nb\n"},
		{"byte order mark in old_string", "\xEF\xBB\xBFa\nb\n", "\uFEFFa", "\uFEFFx", "\xEF\xBB\xBFx\nb\n"},
		{"invalid bytes elsewhere", "caf\xe9\nx\n", "x", "y", "caf\xe9\ny\n"},
		{"dollars", "a\n", "a", "$1 $& \\1", "$1 $& \\1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSet(t)
			put(t, s, "f.txt", c.file)
			if r := call(t, s, "edit_file", "path", "f.txt", "old_string", c.old, "new_string", c.new); !r.OK {
				t.Fatal(r.Text)
			}
			if got := get(t, s, "f.txt"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestEditOfUTF16(t *testing.T) {
	s := newSet(t)
	wide := func(text string) string { return string(utf16LE.encode(text)) }
	put(t, s, "w.txt", wide("eins\r\nzwei 🚀\r\n"))
	if r := call(t, s, "edit_file", "path", "w.txt", "old_string", "eins\nzwei", "new_string", "一\n二"); !r.OK {
		t.Fatal(r.Text)
	}
	if got, want := get(t, s, "w.txt"), wide("一\r\n二 🚀\r\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	half := append([]byte("\xff\xfe"), 0x00, 0xd8, 'a', 0)
	if !utf16.IsSurrogate(0xd800) {
		t.Fatal("0xd800 is a surrogate")
	}
	put(t, s, "half.txt", string(half))
	if r := call(t, s, "edit_file", "path", "half.txt", "old_string", "a", "new_string", "b"); r.OK || get(t, s, "half.txt") != string(half) {
		t.Errorf("an invalid file was edited: %s", r.Text)
	}
}

func TestEditSaysWhatDiffers(t *testing.T) {
	file := "package x\n\nfunc Run(a int) {\n\tfmt.Println(\"hello\")\n}\n\n// It’s “quoted”\nlast := 1\n"
	for _, c := range []struct{ old, want string }{
		{"    fmt.Println(\"hello\")", "differs only in white space"},
		{"func run(a int) {", "differs only in letter case"},
		{"// It's \"quoted\"", "differs only in quotes"},
		{"     4→\tfmt.Println(\"hello\")", "line-number prefixes"},
		{"func Run(a int) {\r\n\tfmt", "line ends"},
		{"\n\n\nfunc Run(a int) {", "newlines at its start or end"},
		{"func Run(a, b int) {", "the nearest lines are:\n3→func Run(a int) {"},
		{"zzzzqqqq", "no line of the file is like it"},
	} {
		s := newSet(t)
		put(t, s, "x.go", file)
		r := call(t, s, "edit_file", "path", "x.go", "old_string", c.old, "new_string", "new")
		if r.OK || r.Class != Input || !strings.Contains(r.Text, c.want) {
			t.Errorf("%q: ok=%v %s", c.old, r.OK, r.Text)
		}
		if got := get(t, s, "x.go"); got != file {
			t.Errorf("%q: the file changed to %q", c.old, got)
		}
	}
}

func TestEditOfSeveralPlaces(t *testing.T) {
	s := newSet(t)
	put(t, s, "f.txt", "aaa\nx\naaa\n")
	r := call(t, s, "edit_file", "path", "f.txt", "old_string", "aa", "new_string", "b")
	if r.OK || !strings.Contains(r.Text, "at 4 places (line 1, 1, 3, 3)") || !strings.Contains(r.Text, "replace_all") {
		t.Errorf("overlapping places: %s", r.Text)
	}
	r = call(t, s, "edit_file", "path", "f.txt", "old_string", "aa", "new_string", "b", "replace_all", true)
	if got := get(t, s, "f.txt"); !r.OK || got != "ba\nx\nba\n" || !strings.Contains(r.Text, "2 replacements, +2 −2 lines") {
		t.Errorf("got %q: %s", got, r.Text)
	}
	if f := r.Facts.Files; len(f) != 1 || f[0].Path != "f.txt" || f[0].Added != 2 || f[0].Removed != 2 {
		t.Errorf("facts %+v", f)
	}
}

func TestChangedSinceRead(t *testing.T) {
	s := newSet(t)
	put(t, s, "a.txt", "one\n")
	write := func() Reply { return call(t, s, "write_file", "path", "a.txt", "content", "mine\n") }
	edit := func() Reply {
		return call(t, s, "edit_file", "path", "a.txt", "old_string", "two", "new_string", "three")
	}
	if r := write(); r.Class != Conflict || !strings.Contains(r.Text, "you have not read it") {
		t.Errorf("unread: %s", r.Text)
	}
	call(t, s, "read_file", "path", "a.txt", "offset", 1, "limit", 1)
	put(t, s, "a.txt", "two\n")
	if r := write(); r.Class != Conflict || !strings.Contains(r.Text, "changed since you read it") {
		t.Errorf("write after a change: %s", r.Text)
	}
	if r := edit(); r.Class != Conflict || !strings.Contains(r.Text, "changed since you read it") {
		t.Errorf("edit after a change: %s", r.Text)
	}
	if got := get(t, s, "a.txt"); got != "two\n" {
		t.Errorf("after two conflicts the file holds %q", got)
	}
	if err := os.Symlink("a.txt", filepath.Join(s.cfg.Tree.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	call(t, s, "read_file", "path", "./link")
	if r := edit(); !r.OK {
		t.Errorf("edit after reading again through a link: %s", r.Text)
	}
	if r := write(); !r.OK || !strings.HasPrefix(r.Text, "overwrote a.txt: 1 line, 5 bytes") {
		t.Errorf("write over what this agent wrote: %s", r.Text)
	}
	if r := call(t, s, "write_file", "path", "new/b.txt", "content", "x"); !r.OK || !strings.HasPrefix(r.Text, "created new/b.txt") {
		t.Errorf("new file: %s", r.Text)
	}
}

// TestEditIsStringReplacement holds edit_file to strings.Replace on LF files, and to the same on the LF form of CRLF files.
func TestEditIsStringReplacement(t *testing.T) {
	s := newSet(t)
	piece := rapid.SampledFrom([]string{"a", "b", "\n", "ab\n", "中", " "})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 20).Draw(rt, "text"), "")
		old := strings.Join(rapid.SliceOfN(piece, 1, 3).Draw(rt, "old"), "")
		put(t, s, "f.txt", text)
		put(t, s, "crlf.txt", strings.ReplaceAll(text, "\n", "\r\n"))
		want := strings.ReplaceAll(text, old, "<\n>")
		for name, form := range map[string]string{"f.txt": want, "crlf.txt": strings.ReplaceAll(want, "\n", "\r\n")} {
			r := call(t, s, "edit_file", "path", name, "old_string", old, "new_string", "<\n>", "replace_all", true)
			if r.OK != strings.Contains(text, old) {
				rt.Errorf("%q of %q: ok=%v %s", old, text, r.OK, r.Text)
			}
			// A file without any CRLF gives no hint that its new lines should have one.
			if got := get(t, s, name); r.OK && strings.Contains(text, "\n") && got != form {
				rt.Errorf("%s: %q of %q gives %q, want %q", name, old, text, got, form)
			}
		}
	})
}
