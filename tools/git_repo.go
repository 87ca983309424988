package tools

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster/tools/git"
	"muster/tools/workspace"
)

// repository is where a workspace keeps the history of its files, or of those in one of its folders.
type repository struct {
	base   string // the folder of the files, relative to the root of the workspace
	top    string // the same, absolute
	dir    string // absolute; what belongs to this work tree
	common string // absolute; what all of its work trees share
	linked bool   // a linked work tree, whose repository is outside of the workspace
	bare   bool   // it has no files
	spec   string // what was asked about, relative to base
}

// findRepository finds the repository that keeps path: the nearest folder from it upwards that has one, and none above the workspace's root. path
// need not exist any more.
func (c *Call) findRepository(name string) (repository, error) {
	rel, err := c.Tree.Rel(name)
	if err != nil {
		return repository{}, err
	}
	if filepath.IsAbs(rel) {
		return repository{}, fail(Input, "no repository keeps the scratch folder; name a path of the workspace")
	}
	rel, folder, err := c.behindLinks(rel)
	if err != nil {
		return repository{}, err
	}
	at := rel
	if !folder {
		at = path.Dir(rel)
	}
	for ; ; at = path.Dir(at) {
		r, err := c.repositoryAt(at)
		switch {
		case err == nil:
			r.spec, err = filepath.Rel(at, rel)
			return r, err
		case !errors.Is(err, fs.ErrNotExist):
			return repository{}, err
		case at == ".":
			return repository{}, c.noRepository()
		}
	}
}

// noRepository says what can be done without one.
func (c *Call) noRepository() error {
	return fail(Input, "the workspace is in no git repository (a folder above it does not count); go on without, or make one with run_command: git init")
}

// behindLinks follows the symlinks on the way to a path. One that the path ends with stays, unless it leads to a folder: git keeps a symlink as such.
func (c *Call) behindLinks(rel string) (real string, folder bool, err error) {
	if real, folder, err = c.Tree.Resolve(rel); err != nil || !folder {
		if real, _, err = c.Tree.Resolve(path.Dir(rel)); err != nil {
			return "", false, err
		}
		real, folder = path.Join(real, path.Base(rel)), false
	}
	if filepath.IsAbs(real) {
		return "", false, fail(Input, "%s leads into the scratch folder, which no repository keeps; name another path", shownName(shorten(rel, 200)))
	}
	return real, folder, nil
}

// repositoryAt is the repository whose files begin in a folder. The error is fs.ErrNotExist where there is none.
func (c *Call) repositoryAt(folder string) (repository, error) {
	r := repository{base: folder, top: filepath.Join(c.Tree.Dir, folder)}
	dot := path.Join(folder, ".git")
	info, err := c.Tree.Stat(dot)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.bareAt(r)
	case err != nil:
		return r, err
	case info.IsDir():
		r.dir, err = c.inTree(dot)
	case info.Mode().IsRegular():
		return c.pointedAt(r, dot)
	default:
		err = fail(Permanent, "%s is neither a repository nor a pointer to one; go on without git, or mend it with run_command", shownName(shorten(dot, 200)))
	}
	if err != nil {
		return r, err
	}
	return c.shared(r)
}

// inTree is the absolute path behind the symlinks of a name inside the workspace.
func (c *Call) inTree(name string) (string, error) {
	real, _, err := c.Tree.Resolve(name)
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(real) {
		return "", fail(Permission, "%s leads into the scratch folder; a repository cannot be there", shownName(shorten(name, 200)))
	}
	return filepath.Join(c.Tree.Dir, real), nil
}

// bareAt is the repository that a folder itself is the inside of.
func (c *Call) bareAt(r repository) (repository, error) {
	if slices.Contains(strings.Split(r.base, "/"), ".git") {
		return r, fs.ErrNotExist // the inside of one that has files
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if info, err := c.Tree.Stat(path.Join(r.base, name)); err != nil || info.IsDir() == (name == "HEAD") {
			return r, fs.ErrNotExist
		}
	}
	r.bare = true
	var err error
	r.dir, err = c.inTree(r.base)
	r.common = r.dir
	return r, err
}

// pointedAt is the repository that a .git that is a file names. Outside of the workspace only one is believed, see git.LinkedTo.
func (c *Call) pointedAt(r repository, dot string) (repository, error) {
	text, err := c.readSmall(dot)
	if err != nil {
		return r, err
	}
	dir, ok := git.Pointer(string(text))
	if !ok {
		return r, fail(Permanent, "%s names no repository; go on without git, or mend it with run_command", shownName(shorten(dot, 200)))
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.Tree.Dir, r.base, dir)
	}
	if _, err := c.Tree.Rel(dir); err == nil {
		if r.dir, err = c.inTree(dir); err != nil {
			return r, err
		}
		if info, err := c.Tree.Stat(r.dir); err != nil || !info.IsDir() {
			return r, fail(Permanent, "%s names %s, which is not a git repository; go on without git", shownName(shorten(dot, 200)), shownName(shorten(dir, 400)))
		}
		return c.shared(r)
	}
	if l, ok := git.LinkedTo(c.Tree.Dir); ok && r.base == "." {
		r.dir, r.common, r.linked = l.Dir, l.Common, true
		return r, nil
	}
	return r, fail(Permission, "the repository of %s is at %s, outside the workspace, and it does not name this folder as one of its work trees; go on without git",
		shownName(shorten(r.base, 200)), shownName(shorten(dir, 400)))
}

// shared finds the folder that a repository shares with other work trees; it is the repository's own but for linked ones.
func (c *Call) shared(r repository) (repository, error) {
	text, err := c.readSmall(filepath.Join(r.dir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		r.common = r.dir
		return r, nil
	} else if err != nil {
		return r, err
	}
	common := strings.TrimRight(string(text), "\r\n")
	if !filepath.IsAbs(common) {
		common = filepath.Join(r.dir, common)
	}
	if r.common, err = c.inTree(common); err != nil {
		return r, fmt.Errorf("the repository of %s shares what another holds: %w", shownName(shorten(r.base, 200)), err)
	}
	return r, nil
}

// readSmall reads a file of a repository inside the workspace.
func (c *Call) readSmall(name string) ([]byte, error) {
	f, err := c.Tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, git.FileBytes+1))
}

// open opens a regular file of the repository.
func (g *gitCall) open(name string) (workspace.File, error) {
	if g.linked {
		return git.OpenFile(name)
	}
	return g.Tree.Open(name)
}

// read is what a file of the repository holds, nothing where there is none.
func (g *gitCall) read(name string) ([]byte, error) {
	f, err := g.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, git.FileBytes+1))
	if err == nil && len(b) > git.FileBytes {
		err = fail(Permanent, "%s of the repository has more than %d bytes; go on without git", filepath.Base(name), git.FileBytes)
	}
	return b, err
}

// stat describes a file of the repository.
func (g *gitCall) stat(name string) (fs.FileInfo, error) {
	if g.linked {
		return os.Lstat(name)
	}
	return g.Tree.Stat(name)
}

// shown is a path of the repository as results name it: relative to the workspace.
func (g *gitCall) shown(name string) string { return shownName(path.Join(g.base, name)) }

// limit are the last arguments of a git that is asked about a part. Without one there are none: a log of "." leaves out commits that change nothing.
func (g *gitCall) limit() []string {
	if g.spec == "." {
		return []string{"--"}
	}
	return []string{"--", g.spec}
}
