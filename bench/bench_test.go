package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRowsAreMeasured runs the program: rows that need no peer, on a small tree.
func TestRowsAreMeasured(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bench")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "--only", "walk", "--only", "edit", "--rounds", "1", "--files", "300", "--json")
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 {
		t.Fatalf("%d rows: %s", len(r.Rows), out)
	}
	for _, row := range r.Rows {
		if row.Rounds != 1 || row.Ratio.Median <= 0 || row.OursMemory == 0 {
			t.Errorf("%s was not measured: %+v", row.Name, row)
		}
	}
}

func TestRowsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.name] || r.sides == nil || r.against == "" {
			t.Errorf("row %q: twice, or not whole", r.name)
		}
		seen[r.name] = true
	}
}

func TestTally(t *testing.T) {
	var all tally
	for _, part := range []string{"(12 total", ")\na\n", "b\n"} {
		if _, err := all.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := lines(&all); n != 3 || err != nil {
		t.Errorf("lines: %d, %v", n, err)
	}
	if n, err := ourTotal(&all); n != 12 || err != nil {
		t.Errorf("total: %d, %v", n, err)
	}
	var cut tally
	if _, err := cut.Write(bytes.Repeat([]byte("x\n"), 500)); err != nil || len(cut.begin) != 200 {
		t.Errorf("%d bytes of the beginning are kept, %v", len(cut.begin), err)
	}
	if _, err := cut.Write([]byte("no end")); err != nil {
		t.Fatal(err)
	}
	if _, err := lines(&cut); err == nil {
		t.Error("a line without an end is counted")
	}
}
