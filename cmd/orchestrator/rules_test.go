package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/cmd/internal/app"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestRulesGolden decides the examples of testdata/rules: each as the file expects, by the rule and the part of the call that the table beside it tells.
func TestRulesGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of rules: %v", err)
	}
	examples := 0
	for _, file := range append(files, "../../examples/rules.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		report, err := tryRules(file, data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		examples += len(report.Examples)
		for _, e := range report.Examples {
			if !e.OK {
				t.Errorf("%s:%d: %s is %s by %s, want %s", file, e.Line, e.about, e.Verdict, e.Decision, e.Expect)
			}
		}
		if !strings.HasPrefix(file, "testdata") {
			continue
		}
		got := strings.Join(app.FormatTable(nil, report.table(), 0), "\n") + "\n"
		golden := strings.TrimSuffix(file, ".yaml") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is another table (go test -run RulesGolden -update accepts it):\n%s", golden, firstDifference(got, string(want)))
		}
	}
	if examples < 200 {
		t.Errorf("%d examples were tried", examples)
	}
}

// firstDifference is the first line in which two texts differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + w[i]
		}
	}
	return "one is longer"
}
