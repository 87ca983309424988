package tools

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"muster/tools/sandbox"
)

// A program that commands cannot see does not hide one that they can.
func TestProgramsAreThoseThatCommandsSee(t *testing.T) {
	mine := t.TempDir() // no box shows it
	for _, name := range []string{"bash", "sh", "git"} {
		if err := os.WriteFile(filepath.Join(mine, name), []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", mine+":relative:/usr/bin:/bin")
	if slices.Contains(programFolders(), "relative") {
		t.Errorf("programs are looked for in %q", programFolders())
	}
	for name, policy := range map[string]sandbox.Policy{"off": {Mode: "off"}, "named": {Readable: []string{mine}}} {
		if p, ok := findProgram(policy, programFolders(), "bash"); !ok || p != filepath.Join(mine, "bash") {
			t.Errorf("%s: found %q, %v", name, p, ok)
		}
	}
	if p, ok := findProgram(sandbox.Policy{}, []string{mine}, "bash", "sh"); ok {
		t.Errorf("found %q, which no command sees", p)
	}
	for _, path := range []string{mine, mine + ":/usr/bin", ""} {
		t.Setenv("PATH", "/usr/bin:/bin")
		s := gitSet(t, "echo a > a")
		t.Setenv("PATH", path)
		s.folders = programFolders()
		wantText(t, call(t, s, "run_command", "command", "echo here"), "", "here")
		wantText(t, call(t, s, "git_status"), "", "untracked  a")
	}
}
