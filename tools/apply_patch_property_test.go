package tools

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// forest is the files of a folder: contents, with "x" before those that can be run.
type forest map[string]string

func drawForest(rt *rapid.T, from forest) forest {
	names := []string{"a", "z", "d/a", "d/e/f", "a b", "ä", "-x", "tab\tname", `quo"te`, "b/c/d"}
	line := rapid.SampledFrom([]string{"one\n", "two\n", "three\r\n", "\n", "end", "-- x\n", "++ y\n", "@@ -1 +1 @@\n", "diff --git a/x b/x\n", "é\n"})
	f := forest{}
	for name, text := range from {
		f[name] = text
	}
	for range rapid.IntRange(1, 6).Draw(rt, "files") {
		name := rapid.SampledFrom(names).Draw(rt, "name")
		switch rapid.IntRange(0, 5).Draw(rt, "deed") {
		case 0:
			delete(f, name)
		case 1:
			to := rapid.SampledFrom(names).Draw(rt, "to")
			if text, ok := f[name]; ok && f[to] == "" {
				delete(f, name)
				f[to] = text
			}
		case 2:
			if text, ok := f[name]; ok {
				f[name] = map[byte]string{'x': "-", '-': "x"}[text[0]] + text[1:]
			}
		default:
			lines := strings.SplitAfter(strings.TrimPrefix(f[name], "-"), "\n")
			at := rapid.IntRange(0, len(lines)).Draw(rt, "at")
			more := rapid.SliceOfN(line, 0, 12).Draw(rt, "lines")
			all := strings.Join(lines[:at], "") + strings.Join(more, "") + strings.Join(lines[at:], "")
			f[name] = "-" + strings.TrimPrefix(all, "x")
		}
	}
	return f
}

// plant makes a folder hold a forest and nothing else, but for its repository.
func (f forest) plant(t *rapid.T, dir string) {
	old, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range old {
		if e.Name() != ".git" {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	for name, text := range f {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := map[byte]fs.FileMode{'x': 0o755, '-': 0o644}[text[0]]
		if err := os.WriteFile(p, []byte(text[1:]), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// harvest is what a folder holds.
func harvest(t *rapid.T, dir string) forest {
	f := forest{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f[rel] = map[bool]string{true: "x", false: "-"}[info.Mode()&0o111 != 0] + content(p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func gitIn(t *rapid.T, dir string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.safecrlf=false", "-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v %s", args, err, errs.String())
	}
	return string(out)
}

// TestPatchMakesOneTreeOfAnother has git's diff of two trees, with any of its flags, make the second of the first, byte for byte: names, modes and
// contents. A patch of which one line is broken is refused and changes nothing.
func TestPatchMakesOneTreeOfAnother(t *testing.T) {
	dir := t.TempDir()
	broken, whole := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		repo, err := os.MkdirTemp(dir, "repo")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(repo)
		a := drawForest(rt, forest{})
		b := drawForest(rt, a)
		gitIn(rt, repo, "init", "-q")
		a.plant(rt, repo)
		gitIn(rt, repo, "add", "-A")
		gitIn(rt, repo, "commit", "-q", "--allow-empty", "-m", "a")
		b.plant(rt, repo)
		gitIn(rt, repo, "add", "-A")
		flags := []string{"diff", "--cached", "--no-ext-diff", "--no-color", "--text"}
		for _, f := range []string{"-M", "-C", "--full-index", "--find-copies-harder", "-U1", "--patience", "--no-renames"} {
			if rapid.Bool().Draw(rt, f) {
				flags = append(flags, f)
			}
		}
		flags = append(flags, rapid.SampledFrom([][]string{nil, {"--no-prefix"}, {"--src-prefix=i/", "--dst-prefix=w/"}}).Draw(rt, "prefix")...)
		diff := gitIn(rt, repo, flags...)
		if diff == "" {
			return
		}
		s := newSet(t)
		a.plant(rt, s.cfg.Tree.Dir)
		before := harvest(rt, s.cfg.Tree.Dir)
		wrong := misquoted(diff)
		if rapid.IntRange(0, 2).Draw(rt, "broken") == 0 && wrong != diff {
			r := call(t, s, "apply_patch", "diff", wrong)
			if broken++; r.OK || fmt.Sprint(harvest(rt, s.cfg.Tree.Dir)) != fmt.Sprint(before) {
				rt.Fatalf("ok=%v %s", r.OK, r.Text)
			}
			return
		}
		r := call(t, s, "apply_patch", "diff", diff)
		if whole++; !r.OK || fmt.Sprint(harvest(rt, s.cfg.Tree.Dir)) != fmt.Sprint(b) {
			rt.Fatalf("ok=%v %s\ngot  %q\nwant %q\nfrom %q\n%s", r.OK, r.Text, harvest(rt, s.cfg.Tree.Dir), b, a, diff)
		}
	})
	if broken == 0 || whole == 0 {
		t.Errorf("%d patches were whole, %d broken", whole, broken)
	}
}

// misquoted is a diff whose last line to remove is one that no file has; the diff itself where it removes nothing.
func misquoted(diff string) string {
	lines, last, inHunk := strings.SplitAfter(diff, "\n"), -1, false
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			inHunk = false
		case strings.HasPrefix(line, "@@"):
			inHunk = true
		case inHunk && strings.HasPrefix(line, "-"):
			last = i
		}
	}
	if last >= 0 {
		lines[last] = "-a line of no file\n"
	}
	return strings.Join(lines, "")
}
