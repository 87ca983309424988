package tools

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// A literal is counted without an allocation for a line, a match or a file, in any case too.
func TestLiteralSearchAllocatesNothing(t *testing.T) {
	data := bytes.Repeat([]byte("a Needle in a line, and NEEDLE, needle, néedle, \u212aelvin\nnothing here\r\n"), 2000)
	for pattern, ignoreCase := range map[string]bool{"Needle": false, "needle": true, "nothing": false, "NOTHING": true, "kelvin": true, "absent": false, "ABSENT": true} {
		plan, err := compileSearch(pattern, false, ignoreCase)
		if err != nil {
			t.Fatal(err)
		}
		f := plan.finder()
		if n := testing.AllocsPerRun(10, func() { f.count(data) }); n != 0 {
			t.Errorf("%q, ignore case %v: %v allocations for %d matches", pattern, ignoreCase, n, f.count(data))
		}
	}
}

// Which folders are passed over is the configuration's to say; what is named, tracked or asked for with no_ignore is searched all the same.
func TestPrunedFoldersAreConfigured(t *testing.T) {
	for _, c := range []struct {
		prune      []string
		want, said string
	}{
		{nil, "cover/n src/n", "1 pruned vendor"},
		{[]string{}, "cover/n src/n vendor/n", ""},
		{[]string{"cover", "vendor"}, "src/n", "1 pruned cover, 1 pruned vendor"},
	} {
		s := newSet(t, func(cfg *Config) { cfg.Prune = c.prune })
		for _, dir := range []string{"src", "vendor", "cover"} {
			put(t, s, dir+"/n", "needle\n")
		}
		paths := strings.Fields(c.want)
		grep, glob := found(t, s, "grep", "pattern", "needle"), found(t, s, "glob", "pattern", "**")
		want := fmt.Sprintf("(%d total in %s)\n%s:1:needle", len(paths), plural(int64(len(paths)), "file"), strings.Join(paths, ":1:needle\n"))
		if !strings.HasPrefix(grep, want) || !strings.HasPrefix(glob, fmt.Sprintf("(%d total)\n%s", len(paths), strings.Join(paths, "\n"))) {
			t.Errorf("prune %q:\n%s\n%s", c.prune, grep, glob)
		}
		for _, text := range []string{grep, glob} {
			if strings.Contains(text, "[skipped: ") != (c.said != "") || !strings.Contains(text, c.said) {
				t.Errorf("prune %q does not say %q:\n%s", c.prune, c.said, text)
			}
		}
		if got := found(t, s, "grep", "pattern", "needle", "path", "vendor"); got != "(1 total in 1 file)\nvendor/n:1:needle" {
			t.Errorf("prune %q, a named folder: %s", c.prune, got)
		}
		if got := found(t, s, "grep", "pattern", "needle", "no_ignore", true); !strings.HasPrefix(got, "(3 total in 3 files)") || strings.Contains(got, "skipped") {
			t.Errorf("prune %q, no_ignore: %s", c.prune, got)
		}
	}
}
