package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"

	"muster/budget"
)

func TestGlobFinds(t *testing.T) {
	s := newSet(t)
	for _, name := range []string{"main.go", "src/a.go", "src/deep/er/b.go", "src/c.txt", "README.md", ".hidden/h.go", "dist/built.js", "e/evil\nsecret.txt", ".git/config"} {
		put(t, s, name, "")
	}
	put(t, s, "src/.gitignore", "c.txt\n")
	for _, link := range []string{"src/up", "src/self"} {
		if err := os.Symlink("..", filepath.Join(s.cfg.Tree.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root := s.cfg.Tree.Dir
	for _, c := range []struct {
		args []any
		want string
	}{
		{[]any{"pattern", "*.go"}, "(1 total)\nmain.go"},
		{[]any{"pattern", "./*.go"}, "(1 total)\nmain.go"},
		{[]any{"pattern", root + "/src/*.go"}, "(1 total)\nsrc/a.go\n[skipped: 1 ignored by .gitignore, 2 symlinks; no_ignore searches pruned and ignored ones too]"},
		{[]any{"pattern", "src//./*.go", "no_ignore", true}, "(1 total)\nsrc/a.go\n[skipped: 2 symlinks]"},
		{[]any{"pattern", "**/*.go", "no_ignore", true}, "(4 total)\n.hidden/h.go\nmain.go\nsrc/a.go\nsrc/deep/er/b.go\n[skipped: 2 symlinks]"},
		{[]any{"pattern", "**/*.{md,txt}", "no_ignore", true}, "(3 total)\nREADME.md\n\"e/evil\\nsecret.txt\"\nsrc/c.txt\n[skipped: 2 symlinks]"},
		{[]any{"pattern", "dist/*"}, "(1 total)\ndist/built.js"},
		{[]any{"pattern", "**/*.go", "path", "src/deep"}, "(1 total)\nsrc/deep/er/b.go"},
		{[]any{"pattern", "er/?.go", "path", root + "/src/deep/"}, "(1 total)\nsrc/deep/er/b.go"},
		{[]any{"pattern", "README.md"}, "(1 total)\nREADME.md"},
		{[]any{"pattern", "src/deep/er/b.go"}, "(1 total)\nsrc/deep/er/b.go"},
		{[]any{"pattern", "*.rs"}, `no files match "*.rs" in the folder itself; **/*.rs looks in all folders below`},
		{[]any{"pattern", "nowhere/*.rs"}, `no files match "nowhere/*.rs"`},
		{[]any{"pattern", "src/deep/"}, `no files match "src/deep/"; glob finds files, not folders: end it with **`},
		{[]any{"pattern", "main.go/x"}, `no files match "main.go/x"`},
	} {
		got := found(t, s, "glob", c.args...)
		if !strings.Contains(c.want, "[skipped") {
			got, _, _ = strings.Cut(got, "\n[skipped")
		}
		if got != c.want {
			t.Errorf("%v:\n%s\nwant:\n%s", c.args, got, c.want)
		}
	}
}

func TestGlobPages(t *testing.T) {
	caps := budget.Default()
	caps.GlobFiles = 5
	s := newSet(t, func(c *Config) { c.Caps = caps })
	for i := range 5 {
		put(t, s, fmt.Sprintf("d/f%d", i), "")
	}
	if got := found(t, s, "glob", "pattern", "**"); got != "(5 total)\nd/f0\nd/f1\nd/f2\nd/f3\nd/f4" {
		t.Errorf("exactly five:\n%s", got)
	}
	put(t, s, "a", "")
	got := found(t, s, "glob", "pattern", "**")
	if !strings.HasPrefix(got, "(6 total, showing first 5)\na\nd/f0\nd/f1\nd/f2\nd/f3\n[… showing 5 of 6 files") || !strings.Contains(got, "next offset is 6") {
		t.Errorf("a sixth:\n%s", got)
	}
	if got := found(t, s, "glob", "pattern", "**", "offset", 6); got != "(6 total, showing 6 to 6)\nd/f4" {
		t.Errorf("the rest:\n%s", got)
	}
	if r := call(t, s, "glob", "pattern", "**", "offset", 7); r.OK || r.Class != Input {
		t.Errorf("past the end: %+v", r)
	}
}

func TestGlobRefuses(t *testing.T) {
	s := newSet(t)
	put(t, s, "a.txt", "")
	for _, c := range []struct {
		args  []any
		class ErrorClass
		says  string
	}{
		{[]any{"pattern", "[a"}, Input, "not valid"},
		{[]any{"pattern", "{a"}, Input, "not valid"},
		{[]any{"pattern", `a\`}, Input, "not valid"},
		{[]any{"pattern", strings.Repeat("{a,b}", 30)}, Input, "braces"},
		{[]any{"pattern", "../*"}, Input, ".."},
		{[]any{"pattern", "/etc/*"}, Permission, "outside"},
		{[]any{"pattern", "*", "path", "nowhere"}, Input, "does not exist"},
		{[]any{"pattern", "*", "path", "a.txt"}, Input, "is a file"},
		{[]any{"pattern", "*", "path", ".."}, Permission, "outside"},
	} {
		if r := call(t, s, "glob", c.args...); r.OK || r.Class != c.class || !strings.Contains(r.Text, c.says) {
			t.Errorf("%v: %+v; want class %s and %q", c.args, r, c.class, c.says)
		}
	}
}

// A walk that stops at its bound says so, also where nothing matched.
func TestSearchSaysWhereItStopped(t *testing.T) {
	caps := budget.Default()
	caps.WalkFiles = 1000
	s := newSet(t, func(c *Config) { c.Caps = caps })
	for i := range 1001 {
		put(t, s, fmt.Sprintf("d%d/f%d", i%5, i), "needle\n")
	}
	if got := found(t, s, "grep", "pattern", "needle"); !strings.HasPrefix(got, "(1000 total in 1000 files, showing first 200)") || !strings.Contains(got, "stopped early, after 1000 files") {
		t.Errorf("grep:\n%s", got)
	}
	if got := found(t, s, "glob", "pattern", "**/nothing"); !strings.Contains(got, "stopped early, after 1000 files") {
		t.Errorf("glob: %s", got)
	}
	if err := os.Remove(filepath.Join(s.cfg.Tree.Dir, "d0/f0")); err != nil {
		t.Fatal(err)
	}
	if got := found(t, s, "grep", "pattern", "needle"); strings.Contains(got, "stopped early") {
		t.Errorf("exactly as many files as allowed:\n%s", got)
	}
}

func TestPathGlobStaysWithinElements(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"src[!x]a.go", "src/a.go", false},
		{"src[^x]a.go", "src-a.go", true},
		{"[!-a]b", "-b", false},
		{"[!-a]b", "cb", true},
		{`[!\]]b`, "]b", false},
		{"src?a.go", "src/a.go", false},
		{"src*a.go", "src/a.go", false},
		{"src/**", "src", false},
		{"src/**", "src/x/y", true},
		{"**/x", "x", true},
		{"**{/a,/b}", "c/d/b", true},
		{"a/", "a", false},
		{"日本*", "日本語.txt", true},
		{"?", "é", true},
		{"[é-ü]", "ö", true},
	} {
		g, err := compilePathGlob(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.match(c.path); got != c.want {
			t.Errorf("%s on %s: %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}

// anyGlob draws patterns of doublestar.
func anyGlob() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "b", "go", "é", ".", "*", "**", "?", "/", "/", "**/", "/**", "/**/", "[ab]", "[!a]", "[^b]", "[a-c]", "{a,b}", "{a,**/b}", "{,x}", "{a,{b,é}}",
		"*.go", "**/*.go", `\*`, `\{`, "{a/b,c}", "[,]", "{[}],a}", "-"})
	return rapid.Map(rapid.SliceOfN(piece, 1, 6), func(parts []string) string { return strings.Join(parts, "") })
}

// matchesFile is what pathGlob promises, by doublestar alone: braces first; a/** is what is below a, and not a itself; nothing that ends with a slash.
// whole tells whether doublestar, given the pattern as it is, must agree.
func matchesFile(pattern, path string) (matches, whole bool) {
	patterns, _ := expandBraces(pattern)
	whole = !strings.Contains(pattern, "*{") && !strings.Contains(pattern, "[!") && !strings.Contains(pattern, "[^")
	for _, p := range patterns {
		if strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/**") {
			whole = false
		}
		if strings.HasSuffix(p, "/**") {
			p += "/*"
		}
		matches = matches || !strings.HasSuffix(p, "/") && doublestar.MatchUnvalidated(withinElement(p), path)
	}
	return matches, whole
}

// The fast ways of pathGlob answer what doublestar answers.
func TestPathGlobIsDoublestar(t *testing.T) {
	path := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "é", ".go", "a.go", "/", "/", "*", "{", "-", ",", "}"}), 1, 8), func(parts []string) string {
		return strings.Trim(strings.ReplaceAll(strings.Join(parts, ""), "//", "/"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		pattern := anyGlob().Draw(t, "pattern")
		g, err := compilePathGlob(pattern)
		if valid := doublestar.ValidatePattern(pattern); valid != (err == nil) {
			t.Fatalf("%q: valid %v, error %v", pattern, valid, err)
		}
		if err != nil {
			t.Skip("no pattern")
		}
		for _, p := range rapid.SliceOfN(path, 1, 10).Draw(t, "paths") {
			if strings.Contains(p, "//") || p == "" {
				continue
			}
			got := g.match(p)
			want, whole := matchesFile(pattern, p)
			if got != want || whole && got != doublestar.MatchUnvalidated(pattern, p) {
				t.Fatalf("%q on %q: %v, doublestar says %v", pattern, p, got, !got)
			}
			if levels := g.levels(); levels > 0 && strings.Count(p, "/") >= levels && g.match(p) {
				t.Fatalf("%q matches %q, which is deeper than %d levels", pattern, p, levels)
			}
		}
	})
}

// Glob says what matching every file of the tree says.
func TestGlobIsAPlainLoop(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		caps := budget.Default()
		caps.GlobFiles = rapid.IntRange(1, 10).Draw(rt, "rows")
		s := newSet(t, func(c *Config) { c.Caps = caps })
		files := anyTree(rt, s)
		pattern := rapid.SampledFrom([]string{"*", "**", "**/*.go", "*/d/*", "**/d/**", "**/*.{go,txt}", "a/**", "[!a]*", "**/?", "**/[[]*", `**/\{*`, "é/d/*"}).Draw(rt, "pattern")
		var want []string
		for _, path := range sortedKeys(files) {
			if matches, _ := matchesFile(pattern, path); matches {
				want = append(want, shownName(path))
			}
		}
		text := found(t, s, "glob", "pattern", pattern, "no_ignore", true)
		if len(want) == 0 {
			if !strings.HasPrefix(text, "no files match") {
				rt.Fatalf("nothing to find: %s", text)
			}
			return
		}
		lines := strings.Split(text, "\n")
		shown := want[:min(len(want), caps.GlobFiles)]
		if !strings.HasPrefix(lines[0], fmt.Sprintf("(%d total", len(want))) || !slices.Equal(lines[1:len(shown)+1], shown) || (len(lines) > len(shown)+1) != (len(shown) < len(want)) {
			rt.Fatalf("pattern %q, want %q, got\n%s", pattern, want, text)
		}
	})
}

func FuzzPathGlob(f *testing.F) {
	f.Add("**/*.{go,[}]x}", "a/b.go")
	f.Add("{a,b}{c,d}/**", "ac/x")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		g, err := compilePathGlob(pattern)
		if err != nil {
			return
		}
		if len(g.alts) > globAlternatives {
			t.Fatalf("%q stands for %d patterns", pattern, len(g.alts))
		}
		if path == "" || path[0] == '/' || strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
			return // no path of a walk
		}
		if !utf8.ValidString(pattern) || strings.ContainsRune(pattern, utf8.RuneError) {
			return // arguments are valid; doublestar finds U+FFFD in every invalid byte
		}
		if want, _ := matchesFile(pattern, path); g.match(path) != want {
			t.Errorf("%q on %q: %v, doublestar says %v", pattern, path, !want, want)
		}
	})
}
