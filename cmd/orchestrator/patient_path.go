package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"muster/board/policy"
	"muster/tools/sandbox"
)

// path says which folders of PATH commands do not see, by having one look.
func (p patient) path(ctx context.Context) []finding {
	if p.hostErr != nil || p.host.Mode == policy.Off {
		return nil
	}
	var folders []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		st, err := os.Stat(dir)
		if filepath.IsAbs(dir) && err == nil && st.IsDir() && !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	hidden, err := p.hidden(ctx, folders)
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return nil // a finding of the sandbox
	case err != nil:
		return []finding{{"path", "warn", "what commands see of PATH cannot be told: " + err.Error(), ""}}
	case len(hidden) == 0:
		return []finding{{"path", "ok", "commands see every folder of PATH", ""}}
	}
	list := strings.Join(hidden, ", ")
	return []finding{{
		"path", "warn", "commands do not see " + list,
		"`sandbox: {readable: [" + list + "]}` in " + dash(p.host.File.Path) + " shows them; what their programs lie in and read must be there too",
	}}
}

// hidden lists those folders that a command cannot enter.
func (p patient) hidden(ctx context.Context, folders []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `for d; do test -x "$d" || printf '%s\0' "$d"; done`, "sh"}, folders...)...)
	cmd.Dir = "/"
	var out strings.Builder
	cmd.Stdout = &out
	proc, err := sandbox.Start(cmd, p.host.Policy())
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, proc.Kill)()
	if _, err := proc.Wait(); err != nil {
		return nil, err
	}
	hidden := strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
	return slices.DeleteFunc(hidden, func(dir string) bool { return !slices.Contains(folders, dir) }), nil
}
