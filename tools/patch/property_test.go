package patch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"pgregory.net/rapid"
)

// apply applies a patch of one file that exists, and fails the test where it says that it cannot.
func apply(t interface {
	Helper()
	Fatalf(string, ...any)
}, diff, text string) Result {
	t.Helper()
	p, err := Parse(diff)
	if err != nil {
		t.Fatalf("%v\n%q", err, diff)
	}
	files, err := p.Locate(func(string) bool { return true })
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v\n%q", len(files), err, diff)
	}
	r, err := files[0].Apply(context.Background(), text)
	if err != nil {
		t.Fatalf("%v\n%q", err, diff)
	}
	return r
}

// drawText draws a text of few words, so that lines repeat, with ends of all kinds.
func drawText(rt *rapid.T, name string) string {
	words := rapid.SampledFrom([]string{"", "a", "b", "c", "d ", "\te", "-- x", "++ y", "\\ No newline at end of file", "@@ -1 +1 @@", "é", "\r", "f\rg"})
	ends := rapid.SampledFrom([]string{"\n", "\n", "\r\n"})
	n := rapid.IntRange(0, 30).Draw(rt, name+" lines")
	var b strings.Builder
	for range n {
		b.WriteString(words.Draw(rt, "word"))
		b.WriteString(ends.Draw(rt, "end"))
	}
	text := b.String()
	if rapid.Bool().Draw(rt, name+" unended") {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	return text
}

// drawChanged draws a text that is another with some lines changed, or a new one.
func drawChanged(rt *rapid.T, from string) string {
	if rapid.IntRange(0, 4).Draw(rt, "fresh") == 0 {
		return drawText(rt, "b")
	}
	lines := Lines(from)
	for range rapid.IntRange(1, 4).Draw(rt, "changes") {
		at := rapid.IntRange(0, len(lines)).Draw(rt, "at")
		fresh := Lines(drawText(rt, "part"))
		fresh = fresh[:min(len(fresh), 3)]
		end := min(len(lines), at+rapid.IntRange(0, 3).Draw(rt, "gone"))
		lines = append(append(append([]string{}, lines[:at]...), fresh...), lines[end:]...)
	}
	return strings.Join(lines, "")
}

func gitDiff(t interface{ Fatalf(string, ...any) }, dir, a, b string, context int) string {
	for name, text := range map[string]string{"a": a, "b": b} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatalf("%v", err)
		}
	}
	cmd := exec.Command("git", "-c", "core.safecrlf=false", "diff", "--no-index", "--no-color", "--no-ext-diff", "--text", "-U"+strconv.Itoa(context), "a", "b")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		t.Fatalf("git diff: %v", err)
	}
	// The two files have two names, where a patch has one.
	return strings.NewReplacer("diff --git a/a b/b\n", "diff --git a/f b/f\n", "--- a/a\n", "--- a/f\n", "+++ b/b\n", "+++ b/f\n").Replace(string(out))
}

// TestPatchMakesWhatItWasMadeFrom has a diff of two texts make the second of the first, byte for byte.
func TestPatchMakesWhatItWasMadeFrom(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		a := drawText(rt, "a")
		b := drawChanged(rt, a)
		if a == b {
			return
		}
		around := rapid.IntRange(0, 4).Draw(rt, "context")
		diff := gitDiff(rt, dir, a, b, around)
		check(rt, diff, a, b, around)
		if around > 0 && a != "" && b != "" {
			own, err := udiff.ToUnified("a/f", "b/f", a, udiff.Strings(a, b), around)
			if err != nil {
				rt.Fatalf("%v", err)
			}
			check(rt, own, a, b, around)
		}
	})
}

// check applies a diff of a and b to a. Without context it may be refused: what it adds may stand there, or it does not show the line ends of its file.
func check(rt *rapid.T, diff, a, b string, around int) {
	r := apply(rt, diff, a)
	if around == 0 && (len(r.Failed) > 0 || strings.Contains(a, "\r\n") && strings.ReplaceAll(r.Text, "\r\n", "\n") == strings.ReplaceAll(b, "\r\n", "\n")) {
		return
	}
	if len(r.Failed) > 0 {
		rt.Fatalf("failed: %+v\na %q\nb %q\n%s", r.Failed, a, b, diff)
	}
	if r.Text != b || r.Already {
		rt.Fatalf("already %v\ngot  %q\nwant %q\nfrom %q\n%s", r.Already, r.Text, b, a, diff)
	}
	if len(r.Notes) > 0 {
		rt.Fatalf("tolerated %+v of an exact patch", r.Notes)
	}
	if again := apply(rt, diff, b); around > 0 && again.Text != b && !gitApplies(rt, diff, b) {
		rt.Fatalf("a second time: %+v\nb %q\n%s", again, b, diff)
	}
}

// gitApplies says that git too would apply a diff: lines may repeat so that nobody can tell that it has been.
func gitApplies(rt *rapid.T, diff, text string) bool {
	dir, err := os.MkdirTemp("", "apply")
	if err != nil {
		rt.Fatalf("%v", err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644); err != nil {
		rt.Fatalf("%v", err)
	}
	cmd := exec.Command("git", "apply", "--check", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	return cmd.Run() == nil
}

var header = regexp.MustCompile(`(?m)^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@`)

// TestWrongLineNumbers has hunks whose numbers are off go where they belong, or be refused, and never elsewhere.
func TestWrongLineNumbers(t *testing.T) {
	moved := 0
	rapid.Check(t, func(rt *rapid.T) {
		a := drawText(rt, "a")
		b := drawChanged(rt, a)
		if a == b || a == "" || b == "" {
			return
		}
		diff, err := udiff.ToUnified("a/f", "b/f", a, udiff.Strings(a, b), 3)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		by := rapid.IntRange(-5, 40).Draw(rt, "by")
		diff = header.ReplaceAllStringFunc(diff, func(h string) string {
			m := header.FindStringSubmatch(h)
			off := func(s string) int { n, _ := strconv.Atoi(s); return max(n+by, 1) }
			return fmt.Sprintf("@@ -%d%s +%d%s @@", off(m[1]), m[2], off(m[3]), m[4])
		})
		r := apply(rt, diff, a)
		if len(r.Failed) > 0 || r.Already {
			if r.Text != a {
				rt.Fatalf("refused, and changed")
			}
			return
		}
		if moved++; r.Text != b && onePlace(rt, diff, a) {
			rt.Fatalf("got  %q\nwant %q\nfrom %q\n%s", r.Text, b, a, diff)
		}
	})
	if moved == 0 {
		t.Error("no patch was applied")
	}
}

// onePlace says that each hunk of a patch has one place in a text.
func onePlace(rt *rapid.T, diff, text string) bool {
	p, err := Parse(diff)
	if err != nil {
		rt.Fatalf("%v", err)
	}
	for _, h := range p.files[0].Hunks {
		g := &ground{lines: Lines(text)}
		found, err := g.find(context.Background(), newJob(&h, 1).old, anyEnd)
		if err != nil || len(found) != 1 {
			return false
		}
	}
	return true
}
