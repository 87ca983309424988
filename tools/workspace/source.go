package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	run "muster/tools/git"
)

// source is what is known of a folder to make a commit of: where its repository keeps things, if it has one. All of
// it is asked of git without letting git run or write anything.
type source struct {
	dir      string // real
	gitDir   string // "" for a plain folder
	objects  string
	format   string
	head     string // commit, "" for none yet
	whole    bool   // history can be handed on: neither shallow nor partial
	fileMode bool   // the executable bit of files means something
	excludes []string
}

// inspect looks at a folder. Only a repository whose files start at this very folder counts: a subfolder of one is a
// plain folder.
func inspect(ctx context.Context, dir string) (source, error) {
	s := source{dir: dir, format: "sha1", fileMode: true}
	g := git{workTree: dir}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	if errors.Is(err, fs.ErrNotExist) {
		if looksBare(dir) {
			return s, ErrBareRepository
		}
		s.excludes = userExcludes(ctx, g, "")
		return s, nil
	}
	if err != nil {
		return s, err
	}
	top, err := g.text(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return s, fmt.Errorf("%w; mend the repository, or name a folder without one", err)
	}
	if real, err := filepath.EvalSymlinks(top); err != nil || real != dir {
		return s, fmt.Errorf("its repository says that its files are in %q; name that folder", top)
	}
	if s.gitDir, err = g.text(ctx, "rev-parse", "--absolute-git-dir"); err != nil {
		return s, err
	}
	common, err := g.text(ctx, "rev-parse", "--git-common-dir")
	if err != nil {
		return s, err
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(dir, common)
	}
	s.objects = filepath.Join(common, "objects")
	facts, err := g.text(ctx, "rev-parse", "--is-shallow-repository", "--show-object-format")
	if err != nil {
		return s, err
	}
	shallow, format, _ := strings.Cut(facts, "\n")
	s.format = format
	promised, _ := filepath.Glob(filepath.Join(globQuote(s.objects), "pack", "*.promisor"))
	s.whole = shallow == "false" && len(promised) == 0
	s.head, err = g.text(ctx, "rev-parse", "-q", "--verify", "HEAD^{commit}")
	var failed *run.Error
	if errors.As(err, &failed) && failed.Code == 1 {
		s.head, err = "", nil // no commit yet
	}
	if err != nil {
		return s, err
	}
	mode, err := g.text(ctx, "config", "--local", "--type=bool", "--default=true", "--get", "core.fileMode")
	if err == nil {
		s.fileMode = mode != "false"
	}
	s.excludes = userExcludes(ctx, g, filepath.Join(common, "info", "exclude"))
	return s, nil
}

// looksBare reports whether a folder is itself the inside of a repository.
func looksBare(dir string) bool {
	for _, n := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, n)); err != nil {
			return false
		}
	}
	return true
}

// globQuote makes filepath.Glob take a folder's name as it is.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// userExcludes lists the files, beside .gitignore, that say what the user wants ignored, weakest first: the user's
// own (core.excludesFile) and the repository's. Asking for the first is the one run that reads the user's
// configuration; it prints a value and starts nothing.
func userExcludes(ctx context.Context, g git, repository string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(g.workTree)}
	for _, k := range []string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"} {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	var out strings.Builder
	err := run.Runner{}.RunWith(ctx, env, []string{"config", "--type=path", "--get", "core.excludesFile"}, g.workTree, nil, &out)
	mine := strings.TrimSuffix(out.String(), "\n")
	if err != nil || mine == "" {
		config := os.Getenv("XDG_CONFIG_HOME")
		if config == "" {
			config = filepath.Join(os.Getenv("HOME"), ".config")
		}
		mine = filepath.Join(config, "git", "ignore")
	}
	var list []string
	for _, f := range []string{mine, repository} {
		// git would wait on a FIFO here.
		if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
			list = append(list, f)
		}
	}
	return list
}

// copyIndex starts our index as a copy of the user's: it knows which files are tracked, though ignored, and which
// have not changed since git last looked. The copy keeps its time, by which git tells a file that changed in the
// same instant.
func (s source) copyIndex(gitDir string) error {
	from := filepath.Join(s.gitDir, "index")
	if err := copyFile(from, filepath.Join(gitDir, "index")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	shared, _ := filepath.Glob(filepath.Join(globQuote(s.gitDir), "sharedindex.*"))
	for _, f := range shared {
		if err := copyFile(f, filepath.Join(gitDir, filepath.Base(f))); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a regular file with its time.
func copyFile(from, to string) error {
	in, err := os.OpenFile(from, openFlags, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &PathError{Op: "read", Path: from, Err: ErrNotRegular, Kind: kindOf(info.Mode())}
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
