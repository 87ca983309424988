package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/budget"
	"muster/tools/git"
)

const maxProjectName = 200 // characters

// Memories names the project under which agents share memories: as it was given, else by the first commit of the repository around the folder, which is the
// same in every clone of it on any machine, else by host and folder. A fork is the same project as what it was made of, and so are all that were
// made of one template with its history: a name of their own tells them apart. So does one for a shallow clone, whose first commit is not there.
func (p Project) Memories(ctx context.Context, given string) (string, error) {
	if given != "" {
		if budget.Preview(given, maxProjectName) != given {
			return "", Usage("--project %q: use one line of at most %d characters", Field(given, 80), maxProjectName)
		}
		return given, nil
	}
	commit, err := firstCommit(ctx, p.Root)
	switch {
	case err != nil && !errors.Is(err, git.ErrNotInstalled):
		err = fmt.Errorf("find the first commit of %s: %w", Field(p.Root, 200), err)
		return "", &Fault{Code: ExitFailed, Err: err, Hint: "mend the repository, or name the project with --project NAME"}
	case commit != "":
		return "git " + commit, nil
	}
	return "folder " + hostname() + ":" + p.Root, nil
}

// firstCommit is the commit that the history of a repository began with, along the first parents from HEAD: what was merged in from elsewhere did not
// begin it. It is "" where dir is not the top of a repository, or has no commit, or the history is not whole. Nothing is fetched.
func firstCommit(ctx context.Context, dir string) (string, error) {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	ask := func(args ...string) (string, error) {
		var out strings.Builder
		err := git.Runner{}.Run(ctx, git.Repo{WorkTree: dir}, nil, &out, args...)
		return strings.TrimSuffix(out.String(), "\n"), err
	}
	shallow, err := ask("rev-parse", "--is-shallow-repository")
	if err != nil || shallow != "false" {
		return "", err
	}
	_, err = ask("rev-parse", "-q", "--verify", "HEAD^{commit}")
	var failed *git.Error
	if errors.As(err, &failed) && failed.Code == 1 {
		return "", nil // no commit yet
	} else if err != nil {
		return "", err
	}
	commit, err := ask("rev-list", "--max-parents=0", "--first-parent", "HEAD", "--")
	if err == nil && strings.Trim(commit, "0123456789abcdef") != "" {
		return "", fmt.Errorf("git rev-list says %q, which is no commit", commit)
	}
	return commit, err
}
