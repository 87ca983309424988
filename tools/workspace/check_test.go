package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	run "muster/tools/git"
)

func TestCheckWantsGit(t *testing.T) {
	if err := Check(t.Context()); err != nil {
		t.Errorf("with git: %v", err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := Check(t.Context()); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("without git: %v", err)
	}
	for version, want := range map[string]string{"git version 2.11.0": "too old", "git version next": "cannot read", "": "cannot read", "git version 3.0.1": ""} {
		script := "#!/bin/sh\necho '" + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		err := Check(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", version, err, want)
		}
	}
}

func TestHostFaults(t *testing.T) {
	for err, want := range map[error]bool{
		&exec.Error{Name: "git", Err: exec.ErrNotFound}:                                                         true,
		fmt.Errorf("open cache: %w", &fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EACCES}):                true,
		&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}:                                              true,
		&run.Error{Op: "init", Says: "fatal: cannot mkdir x: No space left on device", Err: errors.New("exit")}: true,
		&run.Error{Op: "index-pack", Says: "fatal: bad object", Err: errors.New("exit")}:                        false,
		&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}:                                               false,
	} {
		if got := HostFault(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
