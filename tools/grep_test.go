package tools

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"muster/budget"
)

// found invokes a tool that must succeed, and returns its text.
func found(t testing.TB, s *Set, tool string, pairs ...any) string {
	t.Helper()
	r := call(t, s, tool, pairs...)
	if !r.OK {
		t.Fatalf("%s %v: %s", tool, pairs, r.Text)
	}
	return r.Text
}

func TestGrepShowsMatches(t *testing.T) {
	s := newSet(t)
	put(t, s, "b.go", "package b\n\nfunc call(x int) {\n\treturn nil\n}\n")
	put(t, s, "a/c.txt", "one\r\nRETURN nil\r\nlast return nil")
	put(t, s, "a.txt", "\ufeffreturn nil first\n")
	for _, c := range []struct {
		name string
		args []any
		want string
	}{
		{"literal", []any{"pattern", "return nil"}, "(3 total in 3 files)\na.txt:1:return nil first\na/c.txt:3:last return nil\nb.go:4:\treturn nil"},
		{"no regex", []any{"pattern", "call("}, "(1 total in 1 file)\nb.go:3:func call(x int) {"},
		{"any case", []any{"pattern", "return NIL", "ignore_case", true, "path", "a"}, "(2 total in 1 file)\na/c.txt:2:RETURN nil\na/c.txt:3:last return nil"},
		{"regex", []any{"pattern", "^return.*first$|nil$", "regex", true}, "(4 total in 3 files)\na.txt:1:return nil first\na/c.txt:2:RETURN nil\na/c.txt:3:last return nil\nb.go:4:\treturn nil"},
		{"one file", []any{"pattern", "nil", "path", "./a/../b.go"}, "(1 total in 1 file)\nb.go:4:\treturn nil"},
		{"include by name", []any{"pattern", "nil", "include", "*.{go,rs}"}, "(1 total in 1 file)\nb.go:4:\treturn nil"},
		{"include by name, deep", []any{"pattern", "nil", "include", "c.*", "path", "a"}, "(2 total in 1 file)\na/c.txt:2:RETURN nil\na/c.txt:3:last return nil"},
		{"include by name, anywhere", []any{"pattern", "return nil", "include", "[ab]*.txt"}, "(1 total in 1 file)\na.txt:1:return nil first"},
		{"include from the path", []any{"pattern", "last", "include", "./c.{txt,go}", "path", "a"}, "(1 total in 1 file)\na/c.txt:3:last return nil"},
		{"include from the root", []any{"pattern", "last", "include", "a/**", "path", "a"}, "(1 total in 1 file)\na/c.txt:3:last return nil"},
		{"include with one file", []any{"pattern", "last", "include", "*.txt", "path", "a/c.txt"}, "(1 total in 1 file)\na/c.txt:3:last return nil"},
		{"include by path", []any{"pattern", "nil", "include", "a/*"}, "(2 total in 1 file)\na/c.txt:2:RETURN nil\na/c.txt:3:last return nil"},
		{"empty lines", []any{"pattern", "^$", "regex", true}, "(1 total in 1 file)\nb.go:2:"},
		{"context", []any{"pattern", "call", "context", 1}, "(1 total in 1 file)\nb.go-2-\nb.go:3:func call(x int) {\nb.go-4-\treturn nil"},
		{"from the second", []any{"pattern", "return nil", "offset", 2}, "(3 total in 3 files, showing 2 to 3)\na/c.txt:3:last return nil\nb.go:4:\treturn nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := found(t, s, "grep", c.args...); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestGrepMergesContext(t *testing.T) {
	s := newSet(t)
	put(t, s, "a", "1\n2 x\n3\n4 x\n5\n6\n7\n8 x\n9 x\n10\n")
	put(t, s, "b", "x\n")
	want := "(5 total in 2 files)\na-1-1\na:2:2 x\na-3-3\na:4:4 x\na-5-5\n--\na-7-7\na:8:8 x\na:9:9 x\na-10-10\n--\nb:1:x"
	if got := found(t, s, "grep", "pattern", "x", "context", 1); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	want = "(1 total in 1 file)\na-4-4 x\na-5-5\na:6:6\na-7-7\na-8-8 x"
	if got := found(t, s, "grep", "pattern", "6", "context", 2); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestGrepPages(t *testing.T) {
	caps := budget.Default()
	caps.GrepMatches = 3
	s := newSet(t, func(c *Config) { c.Caps = caps })
	for i := range 4 {
		put(t, s, fmt.Sprintf("f%d", i), strings.Repeat("needle\n", 2))
	}
	first := found(t, s, "grep", "pattern", "needle")
	if !strings.HasPrefix(first, "(8 total in 4 files, showing first 3)\nf0:1:needle\nf0:2:needle\nf1:1:needle\n[… showing 3 of 8 matches") || !strings.Contains(first, "offset is 4") {
		t.Errorf("first page:\n%s", first)
	}
	second := found(t, s, "grep", "pattern", "needle", "offset", 4)
	if !strings.HasPrefix(second, "(8 total in 4 files, showing 4 to 6)\nf1:2:needle\nf2:1:needle\nf2:2:needle\n") || !strings.Contains(second, "offset is 7") {
		t.Errorf("second page:\n%s", second)
	}
	if last := found(t, s, "grep", "pattern", "needle", "offset", 7); last != "(8 total in 4 files, showing 7 to 8)\nf3:1:needle\nf3:2:needle" {
		t.Errorf("last page:\n%s", last)
	}
	if r := call(t, s, "grep", "pattern", "needle", "offset", 9); r.OK || r.Class != Input || !strings.Contains(r.Text, "8") {
		t.Errorf("past the end: %+v", r)
	}
	// Exactly as many as the cap: nothing is cut, nothing is said.
	if got := found(t, s, "grep", "pattern", "needle", "path", "f0", "regex", true); strings.Contains(got, "showing") {
		t.Errorf("two of three: %s", got)
	}
	put(t, s, "f0", "needle\nneedle\nneedle\n")
	if got := found(t, s, "grep", "pattern", "needle", "path", "f0"); got != "(3 total in 1 file)\nf0:1:needle\nf0:2:needle\nf0:3:needle" {
		t.Errorf("exactly three: %s", got)
	}
}

// Page after page gives every match once, whichever of the caps ends a page.
func TestGrepPagesAddUp(t *testing.T) {
	caps := budget.Default()
	caps.OutputChars, caps.GrepMatches = 1000, 40
	s := newSet(t, func(c *Config) { c.Caps = caps })
	var want []string
	for i := range 9 {
		var text strings.Builder
		for j := range 30 {
			line := fmt.Sprintf("needle %d %s", j, strings.Repeat("é", (i*37+j*11)%300))
			text.WriteString(line + "\n")
			want = append(want, fmt.Sprintf("d/f%d:%d:needle %d", i, j+1, j))
		}
		put(t, s, fmt.Sprintf("d/f%d", i), text.String())
	}
	row := regexp.MustCompile(`(?m)^d/f\d+:\d+:needle \d+`)
	head := regexp.MustCompile(`^\(270 total in 9 files, showing (?:first (\d+)|(\d+) to (\d+))\)\n`)
	var got []string
	for page := 0; len(got) < len(want); page++ {
		r := call(t, s, "grep", "pattern", "needle", "offset", len(got)+1)
		rows := row.FindAllString(r.Text, -1)
		if !r.OK || len(rows) == 0 || budget.Chars(r.Text) > caps.OutputChars || !head.MatchString(r.Text) {
			t.Fatalf("page %d: %d characters, %d rows:\n%s", page, budget.Chars(r.Text), len(rows), r.Text)
		}
		got = append(got, rows...)
		said := head.FindStringSubmatch(r.Text)
		if last := said[1] + said[3]; last != fmt.Sprint(len(got)) {
			t.Errorf("page %d ends with match %d and says %s", page, len(got), said[0])
		}
		if cut := len(got) < len(want); cut != strings.Contains(r.Text, fmt.Sprintf("the next offset is %d", len(got)+1)) {
			t.Errorf("page %d: wrong notice:\n%s", page, r.Text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages hold %d rows, want %d in order", len(got), len(want))
	}
}

func TestGrepCutsLongLinesAroundTheMatch(t *testing.T) {
	s := newSet(t)
	put(t, s, "long", strings.Repeat("日", 5000)+"needle"+strings.Repeat("x", 5000)+"\n"+"needle"+strings.Repeat("y", 300)+"\n"+strings.Repeat("z", 234)+"needle\n"+
		strings.Repeat("w", 400)+"needle\n")
	r := call(t, s, "grep", "pattern", "needle")
	lines := strings.Split(r.Text, "\n")
	for i, line := range lines[1:5] {
		text := strings.SplitN(line, ":", 3)[2]
		if n := budget.Chars(text); n != 240 || !strings.Contains(text, "needle") {
			t.Errorf("line %d: %d characters, want 240 with the match: %s", i+1, n, line)
		}
	}
	if !strings.HasPrefix(lines[1], "long:1:…日") || !strings.HasSuffix(lines[1], "x…") || !strings.HasSuffix(lines[2], "y…") || !strings.HasPrefix(lines[4], "long:4:…w") {
		t.Errorf("wrong marks:\n%s", r.Text)
	}
	if strings.Contains(lines[3], "…") {
		t.Errorf("a line of 240 characters is cut: %s", lines[3])
	}
	if n := len(r.Facts.Cuts); n != 3 || r.Facts.Cuts[0].Total != 10_006 || r.Facts.Cuts[0].Shown != 238 {
		t.Errorf("facts %+v, want 3 lines cut, the first to 238 of 10006", r.Facts.Cuts)
	}
}

func TestGrepCountsWhatItSkips(t *testing.T) {
	caps := budget.Default()
	caps.GrepFileBytes = 64 << 10
	s := newSet(t, func(c *Config) { c.Caps = caps })
	put(t, s, "binary", "needle\x00")
	put(t, s, "late", strings.Repeat("x\n", 5000)+"needle \x00 late")
	put(t, s, "large", strings.Repeat("x", 64<<10)+"needle")
	put(t, s, "fits", strings.Repeat("x", 64<<10-6)+"needle")
	put(t, s, "node_modules/n", "needle")
	put(t, s, ".gitignore", "*.log\n")
	put(t, s, "a.log", "needle")
	if err := os.Symlink("fits", filepath.Join(s.cfg.Tree.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(s.cfg.Tree.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := found(t, s, "grep", "pattern", "needle")
	want := "[skipped: 1 too large (over 65536 bytes; read_file with offset reads them), 1 binary, 1 pruned node_modules, 1 ignored by .gitignore, 1 symlink, " +
		"1 FIFO, socket or device; no_ignore searches pruned and ignored ones too]"
	if !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "(2 total in 2 files)\nfits:1:") || !strings.Contains(got, "\nlate:5001:needle ␀ late\n") {
		t.Errorf("got:\n%s\nwant at the end:\n%s", got, want)
	}
	if got := found(t, s, "grep", "pattern", "needle", "no_ignore", true); !strings.HasPrefix(got, "(4 total in 4 files)") {
		t.Errorf("no_ignore: %s", got)
	}
	if got := found(t, s, "grep", "pattern", "x", "path", "large"); !strings.HasPrefix(got, `no matches for "x" in 0 files`+"\n[skipped: 1 too large") {
		t.Errorf("a file that was not searched: %s", got)
	}
	if got := found(t, s, "grep", "pattern", "needle", "path", "a.log"); got != "(1 total in 1 file)\na.log:1:needle" {
		t.Errorf("a named file: %s", got)
	}
	if got := found(t, s, "grep", "pattern", "absent.*", "path", "node_modules"); !strings.Contains(got, "no matches") || !strings.Contains(got, "regex: true") {
		t.Errorf("nothing found: %s", got)
	}
}

func TestGrepReadsOtherEncodings(t *testing.T) {
	s := newSet(t)
	units := utf16.Encode([]rune("erste Zeile\r\nnädel 😀\r\n"))
	raw := []byte("\xff\xfe")
	for _, u := range units {
		raw = append(raw, byte(u), byte(u>>8))
	}
	put(t, s, "utf16", string(raw))
	latin, err := base64.StdEncoding.DecodeString("Y2Fm6SBORUVETEUgbmHvdmUK")
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "latin", string(latin))
	put(t, s, "colour", "\x1b[31mneedle\x1b[0m \x07\n")
	if got := found(t, s, "grep", "pattern", "NÄDEL", "ignore_case", true); got != "(1 total in 1 file)\nutf16:2:nädel 😀" {
		t.Errorf("UTF-16: %s", got)
	}
	if got := found(t, s, "grep", "pattern", "NEEDLE"); got != "(1 total in 1 file)\nlatin:1:caf\ufffd NEEDLE na\ufffdve" {
		t.Errorf("invalid UTF-8: %s", got)
	}
	if got := found(t, s, "grep", "pattern", "needle", "path", "colour"); got != "(1 total in 1 file)\ncolour:1:␛[31mneedle␛[0m ␇" {
		t.Errorf("control characters: %s", got)
	}
}

func TestGrepOddNames(t *testing.T) {
	s := newSet(t)
	put(t, s, "d/evil\na.go:1:forged", "needle\n")
	put(t, s, "d/bad\xff", "needle\n")
	put(t, s, "-e", "needle\n")
	got := found(t, s, "grep", "pattern", "needle")
	want := "(3 total in 3 files)\n-e:1:needle\n\"d/bad\\xff\":1:needle\n\"d/evil\\na.go:1:forged\":1:needle"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestGrepRefuses(t *testing.T) {
	s := newSet(t)
	put(t, s, "a.txt", "x\n")
	for _, c := range []struct {
		args  []any
		class ErrorClass
		says  string
	}{
		{[]any{"pattern", ""}, Input, "pattern"},
		{[]any{"pattern", "a\nb"}, Input, "newline"},
		{[]any{"pattern", "ab(", "regex", true}, Input, "missing closing )"},
		{[]any{"pattern", "x[z-a]", "regex", true}, Input, "at character 3"},
		{[]any{"pattern", "a)|(b", "regex", true, "ignore_case", true}, Input, "unexpected )"},
		{[]any{"pattern", "x", "include", "[a"}, Input, "include"},
		{[]any{"pattern", "x", "include", strings.Repeat("{a,b,c,d}", 8)}, Input, "braces"},
		{[]any{"pattern", "x", "path", "no/such"}, Input, "does not exist"},
		{[]any{"pattern", "x", "path", "a.tx"}, Input, "a.txt"},
		{[]any{"pattern", "x", "path", "../x"}, Permission, "outside"},
		{[]any{"pattern", "x", "path", "/etc"}, Permission, "outside"},
	} {
		if r := call(t, s, "grep", c.args...); r.OK || r.Class != c.class || !strings.Contains(r.Text, c.says) {
			t.Errorf("%v: %+v; want class %s and %q", c.args, r, c.class, c.says)
		}
	}
}

// anyTree draws files with odd names and contents and plants them; the walk's rules are not its subject.
func anyTree(t *rapid.T, s *Set) map[string]string {
	name := rapid.SampledFrom([]string{"a", "b.go", "c.txt", "é", "x y", "ne\nw", "bad\xff", "[x]", "{a,b}", "-e", "a:1:b", ".hidden", "日本.go", "UP.GO"})
	text := rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{"needle", "Needle", "a", "b", " ", "\n", "\n", "\r\n", "é", "\xff", "\t", strings.Repeat("long ", 60)})),
		func(parts []string) string { return strings.Join(parts, "") })
	files := map[string]string{}
	for range rapid.IntRange(0, 12).Draw(t, "files") {
		path := strings.Join(rapid.SliceOfN(name, 1, 3).Draw(t, "path"), "/d/")
		files[path] = text.Draw(t, "text")
	}
	for path, text := range files {
		whole := filepath.Join(s.cfg.Tree.Dir, path)
		if err := os.MkdirAll(filepath.Dir(whole), 0o755); err != nil {
			delete(files, path) // a file is in the way
			continue
		}
		if err := os.WriteFile(whole, []byte(text), 0o644); err != nil {
			delete(files, path)
		}
	}
	return files
}

// Grep says what a plain loop over sorted files and their lines says.
func TestGrepIsAPlainLoop(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		caps := budget.Default()
		caps.GrepMatches = rapid.IntRange(1, 20).Draw(rt, "rows")
		s := newSet(t, func(c *Config) { c.Caps = caps })
		files := anyTree(rt, s)
		pattern := rapid.SampledFrom([]string{"needle", "a", "é", "b ", "e", "ee", "long", "."}).Draw(rt, "pattern")
		fold := rapid.Bool().Draw(rt, "ignore case")
		want, in := []string{}, 0
		for _, path := range sortedKeys(files) {
			before := len(want)
			lines := strings.Split(files[path], "\n")
			for i, line := range lines {
				if i < len(lines)-1 {
					line = strings.TrimSuffix(line, "\r")
				}
				at := strings.Index(line, pattern)
				if fold {
					at = strings.Index(strings.ToLower(strings.ToValidUTF8(line, "#")), pattern)
				}
				if at >= 0 {
					want = append(want, fmt.Sprintf("%s:%d:", shownName(path), i+1))
				}
			}
			if len(want) > before {
				in++
			}
		}
		offset := rapid.IntRange(1, 5).Draw(rt, "offset")
		r := call(t, s, "grep", "pattern", pattern, "ignore_case", fold, "offset", offset, "no_ignore", true)
		switch {
		case len(want) == 0:
			if !r.OK || !strings.Contains(r.Text, fmt.Sprintf("no matches for %q in %s", pattern, plural(int64(len(files)), "file"))) {
				rt.Fatalf("nothing to find: %s", r.Text)
			}
			return
		case offset > len(want):
			if r.OK || r.Class != Input {
				rt.Fatalf("offset %d of %d: %s", offset, len(want), r.Text)
			}
			return
		}
		lines := strings.Split(r.Text, "\n")
		if total := fmt.Sprintf("(%d total in %s", len(want), plural(int64(in), "file")); !strings.HasPrefix(lines[0], total) {
			rt.Fatalf("says %s, want %s", lines[0], total)
		}
		shown := want[offset-1 : min(len(want), offset-1+caps.GrepMatches)]
		for i, prefix := range shown {
			if !strings.HasPrefix(lines[i+1], prefix) {
				rt.Fatalf("row %d is %q, want %q", i, lines[i+1], prefix)
			}
		}
		if cut := offset-1+len(shown) < len(want); cut != (len(lines) > len(shown)+1) || cut != strings.Contains(r.Text, "showing "+fmt.Sprint(len(shown))+" of ") {
			rt.Fatalf("cut %v, but the text is\n%s", cut, r.Text)
		}
	})
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
