package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// gitIn runs git on a folder, without the configuration of whoever runs the test.
func gitIn(t interface{ Fatalf(string, ...any) }, dir string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-c", "core.excludesFile=/dev/null", "-c", "safe.directory=*"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// plant writes files below dir, folders made.
func plant(t interface{ Fatalf(string, ...any) }, dir string, files map[string]string) {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("plant: %v", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatalf("plant: %v", err)
		}
	}
}

// treeAt opens a folder as a tree for a test.
func treeAt(t interface{ Fatalf(string, ...any) }, dir string) *Tree {
	tree, err := OpenDir(dir, dir+"-scratch")
	if err != nil {
		t.Fatalf("open %s: %v", dir, err)
	}
	return tree
}

// walked returns the paths of a walk, sorted, and what it left out.
func walked(t interface{ Fatalf(string, ...any) }, tree *Tree, path string, o WalkOptions) ([]string, Skipped) {
	var mu sync.Mutex
	paths := []string{}
	skipped, err := tree.Walk(context.Background(), path, o, func(w Walked) error {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, w.Path)
		return nil
	})
	if err != nil {
		t.Fatalf("walk %s: %v", path, err)
	}
	slices.Sort(paths)
	return paths, skipped
}

var ruleNames = []string{"a", "b", "ab", "a.b", "b.txt", "c.txt", "x y", "[a]", "é", "a!b", "#h", "-", "foo.tar.gz"}

// anyRule draws lines as people write them, and lines as nobody should.
func anyRule() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom(ruleNames),
		rapid.SampledFrom([]string{"*", "**", "?", "/", "/", "**/", "/**", "*.", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[[:alpha:]]", "[[:digit:][:space:]]",
			`\`, `\*`, `\ `, `[\]]`, "[a", "[[:nope:]]", "a*", "*b", "***", "[a-]", "[!]a]", "é*"}),
	)
	odd := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(t, "pieces"), "")
	})
	common := rapid.Custom(func(t *rapid.T) string {
		shape := rapid.SampledFrom([]string{"%s", "/%s", "%s/", "/%s/", "**/%s", "%s/**", "%s/*", "*%s", "a/%s", "a/**/%s", "%s/**/b", "*/%s", "%s*"}).Draw(t, "shape")
		return fmt.Sprintf(shape, rapid.SampledFrom(ruleNames).Draw(t, "name"))
	})
	return rapid.Custom(func(t *rapid.T) string {
		rule := rapid.OneOf(odd, common).Draw(t, "rule")
		prefix := rapid.SampledFrom([]string{"", "", "", "", "!", "!", `\!`, "#", " "}).Draw(t, "prefix")
		return prefix + rule + rapid.SampledFrom([]string{"", "", "", "", " ", "\r", "  "}).Draw(t, "suffix")
	})
}

// A walk hands out exactly what git calls tracked, or untracked and not ignored.
func TestWalkIgnoresAsGit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "ignore")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer os.RemoveAll(dir)
		gitIn(t, dir, "init", "-q", ".")
		folder := rapid.SampledFrom(ruleNames)
		rules := rapid.Map(rapid.SliceOfN(anyRule(), 0, 5), func(r []string) string { return strings.Join(r, "\n") })
		files := map[string]string{}
		var all []string
		for range rapid.IntRange(1, 14).Draw(t, "files") {
			path := strings.Join(rapid.SliceOfN(folder, 0, 3).Draw(t, "folders"), "/")
			path = filepath.Join(path, "f-"+rapid.SampledFrom(ruleNames).Draw(t, "name"))
			if rapid.Bool().Draw(t, "plain") {
				path = filepath.Join(filepath.Dir(path), rapid.SampledFrom([]string{"z", "é.txt", "x.b"}).Draw(t, "file"))
			}
			files[path] = ""
			all = append(all, path)
		}
		files[".gitignore"] = rules.Draw(t, "rules")
		files[".git/info/exclude"] = rules.Draw(t, "exclude")
		for _, path := range all[:rapid.IntRange(0, len(all)).Draw(t, "nested")] {
			if dir := filepath.Dir(path); dir != "." {
				files[dir+"/.gitignore"] = rules.Draw(t, "rules below")
			}
		}
		plant(t, dir, files)
		if tracked := all[:rapid.IntRange(0, 2).Draw(t, "tracked")%(len(all)+1)]; len(tracked) > 0 {
			version := rapid.SampledFrom([]string{"2", "3", "4"}).Draw(t, "index version")
			gitIn(t, dir, append([]string{"-c", "index.version=" + version, "--literal-pathspecs", "add", "-f", "--"}, tracked...)...)
		}
		want := strings.Split(strings.TrimSuffix(gitIn(t, dir, "ls-files", "-z", "-c", "-o", "--exclude-standard"), "\x00"), "\x00")
		slices.Sort(want)
		want = slices.DeleteFunc(slices.Compact(want), func(s string) bool { return s == "" })
		tree := treeAt(t, dir)
		defer tree.Close()
		got, _ := walked(t, tree, ".", WalkOptions{Prune: []string{".git"}})
		if !slices.Equal(got, want) {
			for name, text := range files {
				if strings.HasSuffix(name, ".gitignore") || strings.HasSuffix(name, "exclude") {
					t.Logf("%s: %q", name, text)
				}
			}
			t.Fatalf("walked %q\ngit has %q", got, want)
		}
	})
}
