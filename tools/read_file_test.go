package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/budget"
)

func TestReadNotesWhatLinesDoNotShow(t *testing.T) {
	for _, c := range []struct {
		name, file string
		want, not  []string
	}{
		{"plain", "a\nb\n", []string{"lines 1–2 of 2\n1→a\n2→b"}, []string{"["}},
		{"ten lines", "1\n2\n3\n4\n5\n6\n7\n8\n9\nten", []string{" 9→9\n10→ten\n[no newline at the end of the file]"}, nil},
		{"CRLF", "a\r\nb\r\n", []string{"1→a\n2→b\n[line ends: CRLF; edit_file keeps them]"}, []string{"␍"}},
		{"mixed", "a\r\nb\n", []string{"mixed, 1 CRLF and 1 LF"}, nil},
		{"lone CR", "a\rb\n", []string{"1→a␍b", "1 control character shown"}, nil},
		{"byte order mark", "\xEF\xBB\xBFa\n", []string{"1→a", "UTF-8 with a byte order mark"}, nil},
		{"only a byte order mark", "\xEF\xBB\xBF", []string{"nothing but a byte order mark"}, []string{"empty"}},
		{"invalid", "a\xffb\xe4\xb8\n", []string{"1→a\uFFFDb\uFFFD\uFFFD", "3 invalid UTF-8 bytes shown as U+FFFD"}, nil},
		{"own U+FFFD", "a\uFFFD\n", []string{"1→a\uFFFD"}, []string{"invalid"}},
		{"escapes", "\x1b[31mred\x00\n", nil, nil},
		{"UTF-16BE", "\xfe\xff\x4e\x2d\x00\x0d\x00\x0a", []string{"1→中", "UTF-16BE", "CRLF"}, nil},
		{"empty", "", []string{"exists and is empty"}, []string{"lines"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSet(t)
			put(t, s, "f", c.file)
			r := call(t, s, "read_file", "path", "f")
			if r.OK != (c.name != "escapes") { // its NUL makes it binary
				t.Fatal(r.Text)
			}
			for _, want := range c.want {
				if !strings.Contains(r.Text, want) {
					t.Errorf("lacks %q:\n%s", want, r.Text)
				}
			}
			for _, not := range c.not {
				if strings.Contains(r.Text, not) {
					t.Errorf("holds %q:\n%s", not, r.Text)
				}
			}
		})
	}
}

func TestReadSplitsLettersNowhere(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Caps.ReadLineChars = 20000; c.Caps.OutputChars = 200000 })
	for shift := range 5 { // the letter falls on every place of the reader's buffer
		body := strings.Repeat("x", 64<<10-shift) + "🚀\r\nend"
		put(t, s, "f", strings.Repeat("中", 10)+"\n"+body)
		r := call(t, s, "read_file", "path", "f")
		want := fmt.Sprintf("… (+%d chars)", 64<<10-shift+1-20000)
		if !r.OK || strings.Contains(r.Text, "\uFFFD") || !strings.Contains(r.Text, want) {
			t.Errorf("shift %d: lacks %s: %.100s … %s", shift, want, r.Text, r.Text[max(0, len(r.Text)-200):])
		}
	}
}

func TestReadRefusals(t *testing.T) {
	s := newSet(t)
	put(t, s, "five.txt", "1\n2\n3\n4\n5\n")
	put(t, s, "d/x", "x")
	outside := filepath.Join(filepath.Dir(s.cfg.Tree.Dir), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.cfg.Tree.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pairs []any
		class ErrorClass
		want  string
	}{
		{[]any{"path", "five.txt", "offset", 6}, Input, "offset 6 is past the end: five.txt has 5 lines; give an offset of at most 5"},
		{[]any{"path", "d"}, Input, "d is a folder; list_dir"},
		{[]any{"path", "five.text"}, Input, "five.txt"},
		{[]any{"path", "../secret"}, Permission, "workspace"},
		{[]any{"path", outside}, Permission, "workspace"},
		{[]any{"path", "link"}, Permission, "workspace"},
		{[]any{"path", "a\x00b"}, Input, "NUL"},
	} {
		r := call(t, s, "read_file", c.pairs...)
		if r.OK || r.Class != c.class || !strings.Contains(r.Text, c.want) || strings.Contains(r.Text, "secret\n") {
			t.Errorf("%v: ok=%v %s", c.pairs, r.OK, r.Text)
		}
	}
	r := call(t, s, "read_file", "path", "five.txt", "offset", -3, "limit", 9e15)
	if !r.OK || !strings.Contains(r.Text, "[offset -3 is out of range; 1 was used]") || !strings.Contains(r.Text, "2000 was used]") {
		t.Errorf("clamped numbers: %s", r.Text)
	}
}

func TestOneLineLongerThanTheRoom(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Caps.ReadLineChars = 20000; c.Caps.OutputChars = 1000 })
	line := strings.Repeat("中🚀", 15000)
	put(t, s, "f", line+"\nnext\n")
	r := call(t, s, "read_file", "path", "f")
	var more int
	head, rest, _ := strings.Cut(strings.SplitN(r.Text, "→", 2)[1], "… (+")
	if _, err := fmt.Sscanf(rest, "%d chars)", &more); err != nil || budget.Chars(head)+more != 30000 || budget.Chars(r.Text) > 1000 || budget.Chars(head) < 700 {
		t.Errorf("%v: %d + %d characters in %d\n%s", err, budget.Chars(head), more, budget.Chars(r.Text), r.Text)
	}
	if last := r.Facts.Cuts[len(r.Facts.Cuts)-1]; last.Next != 2 || last.Shown != 1 || last.Total != 2 {
		t.Errorf("facts %+v", r.Facts.Cuts)
	}
}
