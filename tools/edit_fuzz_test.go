package tools

import (
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"

	"muster/budget"
)

// FuzzEdit holds the matching of edit_file to plain replacement, where line ends of both kinds count as the same.
func FuzzEdit(f *testing.F) {
	f.Add("one\r\ntwo\nthree", "two\nthree", "2\n3\n4")
	f.Add("a\r\nb\r\nc\r\n", "\n", "")
	f.Add("aaa\r\n", "aa", "\r\n")
	f.Add("a\rb\n\r\n", "\r", "x")
	f.Add("func Run() {\n\treturn\n}\n", "    return", "\treturn 1")
	f.Add("", "x", "y")
	f.Fuzz(func(t *testing.T, text, old, now string) {
		lf := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
		if old == "" || strings.Contains(lf(now), "\r") { // a lone \r becomes half of another line end
			return
		}
		e := edit{text: text, old: old, new: now}
		e.find()
		if len(e.found) == 0 {
			if strings.Contains(text, old) {
				t.Fatalf("%q is in %q and was not found", old, text)
			}
			for _, whole := range []bool{true, false} {
				if n := budget.Chars(nearestLines(text, old, whole, 2000)); n > 4000 {
					t.Fatalf("%d characters for a room of 2000", n)
				}
			}
			return
		}
		for _, at := range e.found {
			if got := text[at.start:at.end]; got != old && lf(got) != lf(old) {
				t.Fatalf("found %q for %q", got, old)
			}
		}
		got, err := udiff.Apply(text, e.edits())
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(text, old, now)
		if !strings.Contains(old, "\r") && strings.Contains(text, "\r\n") {
			want = strings.ReplaceAll(lf(text), old, now)
			got, want = lf(got), lf(want)
		}
		if got != want {
			t.Fatalf("%q for %q in %q gives %q, want %q", now, old, text, got, want)
		}
	})
}
