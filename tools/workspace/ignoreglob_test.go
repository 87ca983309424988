package workspace

import (
	"strings"
	"testing"
	"time"
)

func TestIgnoreRules(t *testing.T) {
	for _, c := range []struct {
		rules, path string
		folder      bool
		want        bool
	}{
		{"*.log", "a/b.log", false, true},
		{"*.log\n!keep.log", "keep.log", false, false},
		{"!keep.log\n*.log", "keep.log", false, true},
		{"/a", "b/a", false, false},
		{"a/b", "c/a/b", false, false},
		{"**/a/b", "a/x/a/b", false, true},
		{"foo/**", "foo", true, false},
		{"foo/**", "foo/x/y", false, true},
		{"a/**/b", "a/b", false, true},
		{"a/**/b", "a/x/y/b", false, true},
		{"a**b", "a/b", false, false},
		{"a**b", "axxb", false, true},
		{"d/", "d", false, false},
		{"d/", "d", true, true},
		{"[!a]x", "bx", false, true},
		{"[!a]x", "ax", false, false},
		{"[]-]x", "]x", false, true},
		{"[[:digit:]a]x", "7x", false, true},
		{"[[:digit:]a]x", "bx", false, false},
		{`\#x`, "#x", false, true},
		{"#x", "#x", false, false},
		{`\!x`, "!x", false, true},
		{"x  ", "x", false, true},
		{`x\ `, "x ", false, true},
		{"x\r\ny", "x", false, true},
		{"\ufeffx", "x", false, true},
		{"[a", "[a", false, false},
		{`a\`, "a", false, false},
		{"*.tar.gz", "x.tar.gz", false, true},
		{"?", "é", false, false}, // bytes, as git counts
	} {
		f := newIgnoreFile(c.rules, 0, nil)
		if got := f.ignores(c.path, c.path[strings.LastIndexByte(c.path, '/')+1:], c.folder); got != c.want {
			t.Errorf("rules %q, path %q, folder %v: ignored %v, want %v", c.rules, c.path, c.folder, got, c.want)
		}
	}
}

func TestIgnoreInnermostFileDecides(t *testing.T) {
	outer := newIgnoreFile("*.log", 0, nil)
	inner := newIgnoreFile("!keep.log\n/x", 2, outer)
	for path, want := range map[string]bool{"d/keep.log": false, "d/other.log": true, "d/x": true, "d/e/x": false} {
		if got := inner.ignores(path, path[strings.LastIndexByte(path, '/')+1:], false); got != want {
			t.Errorf("%s: ignored %v, want %v", path, got, want)
		}
	}
}

// A pattern that somebody wrote to be slow is not.
func TestIgnorePatternIsNeverSlow(t *testing.T) {
	f := newIgnoreFile(strings.Repeat("**/*a", 200)+"/"+strings.Repeat("*a", 500)+"b", 0, nil)
	path := strings.Repeat(strings.Repeat("a", 200)+"/", 20) + "c"
	start := time.Now()
	if f.ignores(path, "c", false) {
		t.Error("matched what ends otherwise")
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("one match took %v", d)
	}
}

func FuzzIgnoreFile(f *testing.F) {
	f.Add("*.a\n!b/**/c\n[[:alpha:]]x\\ ", "b/x/c.a")
	f.Fuzz(func(t *testing.T, rules, path string) {
		file := newIgnoreFile(rules, 0, nil)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if file == nil && file.ignores(path, name, false) {
			t.Errorf("no rules, yet %q is ignored", path)
		}
		file.ignores(path, name, true)
	})
}
