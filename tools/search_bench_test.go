package tools

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/budget"
	"muster/tools/workspace"
)

// searchGo runs one call on the Go tree that this test was built with.
func searchGo(b *testing.B, tool string, pairs ...any) {
	root, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	tree, err := workspace.OpenDir(strings.TrimSpace(string(root)), filepath.Join(b.TempDir(), "scratch"))
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Close()
	s := newSet(b, func(c *Config) { c.Tree, c.Caps = tree, budget.Default() })
	b.ReportAllocs()
	for b.Loop() {
		if r := call(b, s, tool, pairs...); !r.OK {
			b.Fatal(r.Text)
		}
	}
}

func BenchmarkGrepRareLiteral(b *testing.B) {
	searchGo(b, "grep", "pattern", "ErrPipeListenerClosed", "no_ignore", true)
}

func BenchmarkGrepCommonLiteral(b *testing.B) {
	searchGo(b, "grep", "pattern", "return nil", "no_ignore", true)
}

func BenchmarkGrepIgnoreCase(b *testing.B) {
	searchGo(b, "grep", "pattern", "httpclient", "ignore_case", true, "no_ignore", true)
}

func BenchmarkGrepRegexWithLiteral(b *testing.B) {
	searchGo(b, "grep", "pattern", `func \(\w+ \*Transport\) \w+Conn`, "regex", true, "no_ignore", true)
}

func BenchmarkGrepRegexWithoutLiteral(b *testing.B) {
	searchGo(b, "grep", "pattern", `[A-Z][a-z]+[0-9]{4}\b`, "regex", true, "no_ignore", true)
}

func BenchmarkGlob(b *testing.B) {
	searchGo(b, "glob", "pattern", "**/*_test.go", "no_ignore", true)
}

func BenchmarkGlobAll(b *testing.B) {
	searchGo(b, "glob", "pattern", "**", "no_ignore", true)
}

func BenchmarkGlobWithIgnoreRules(b *testing.B) {
	searchGo(b, "glob", "pattern", "**/*_test.go")
}
