package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	run "muster/tools/git"
)

// emptyTree is git's name for a folder with nothing in it, which every repository knows.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Checkout gives an attempt its private tree (or, readOnly, one that is shared with others of the same commit). fetch
// is called to write the bundle when the cache lacks the commit; what it writes is checked before anything of it is
// used. Empty commit: an empty tree. The tree has a repository of its own, with the commit on a branch named muster
// and the history behind it, that an agent may do anything with: nothing else reads it.
func (c *Cache) Checkout(ctx context.Context, attempt, commit string, readOnly bool, fetch func(io.Writer) error) (*Tree, error) {
	t, err := c.checkout(ctx, attempt, commit, readOnly, fetch)
	if err != nil {
		return nil, fmt.Errorf("workspace of attempt %q: %w", attempt, err)
	}
	return t, nil
}

func (c *Cache) checkout(ctx context.Context, attempt, commit string, readOnly bool, fetch func(io.Writer) error) (*Tree, error) {
	if commit != "" && !isID(commit) {
		return nil, fmt.Errorf("%q is no commit id", commit)
	}
	s, err := c.takeAttempt(ctx, attempt)
	if err != nil {
		return nil, err
	}
	t, err := c.fill(ctx, s, attempt, commit, readOnly, fetch)
	if err != nil {
		_ = s.release() // what stays is reclaimed later
		return nil, err
	}
	return t, nil
}

// takeAttempt takes the slot of an attempt, empty.
func (c *Cache) takeAttempt(ctx context.Context, attempt string) (*slot, error) {
	s, err := c.takeSlot(ctx, treesDir, slotName(attempt))
	if err != nil {
		return nil, err
	}
	if _, err := c.salvage(ctx, s); err != nil {
		s.lock.Close()
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		_ = s.release() // what stays is reclaimed later
		return nil, err
	}
	return s, nil
}

// fill makes the tree of an attempt in its slot.
func (c *Cache) fill(ctx context.Context, s *slot, attempt, commit string, readOnly bool, fetch func(io.Writer) error) (*Tree, error) {
	store := git{}
	if commit != "" {
		var err error
		if store, err = c.have(ctx, commit, s.dir, fetch); err != nil {
			return nil, err
		}
	}
	where, drop := s.dir, func() error { return nil }
	n := note{Attempt: attempt, ID: commit}
	if commit == "" {
		n.ID = emptyTree
	}
	var err error
	switch {
	case readOnly && commit != "":
		where, drop, err = c.share(ctx, store, commit)
	case readOnly:
		err = lay(ctx, store, commit, s.dir)
	default:
		if err = lay(ctx, store, commit, s.dir); err == nil {
			err = n.write(s.dir)
		}
	}
	if err != nil {
		return nil, err
	}
	main, err := openArea(filepath.Join(where, "tree"))
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	t, err := newTree(main, filepath.Join(s.dir, "scratch"))
	if err != nil {
		main.root.Close()
		return nil, errors.Join(err, drop())
	}
	t.ReadOnly, t.cache = readOnly, c
	t.release = func() error {
		if err := drop(); err != nil {
			s.lock.Close()
			return err
		}
		return s.release()
	}
	if store.dir != "" {
		t.Objects = filepath.Join(store.dir, "objects")
	}
	if !readOnly {
		t.base = &base{note: n, cache: c, g: baseGit(store, s.dir), fileMode: true, fresh: true, keep: s.lock.Close, ctx: context.WithoutCancel(ctx)}
	}
	return t, nil
}

// baseGit is the repository, outside the tree, that Changes works with.
func baseGit(store git, dir string) git {
	g := git{dir: filepath.Join(dir, "git"), workTree: filepath.Join(dir, "tree"), index: filepath.Join(dir, "git", "index")}
	if store.dir != "" {
		g.alternates = []string{filepath.Join(store.dir, "objects")}
	}
	return g
}

// lay checks a commit out into dir/tree, by way of a repository of ours in dir/git.
func lay(ctx context.Context, store git, commit, dir string) error {
	g := baseGit(store, dir)
	if err := os.MkdirAll(g.workTree, 0o755); err != nil {
		return err
	}
	format := formatOf(commit)
	if err := initBare(ctx, g.dir, format); err != nil {
		return err
	}
	own := git{dir: filepath.Join(g.workTree, ".git")}
	err := own.initOwn(ctx, g.workTree, format)
	if err != nil || commit == "" {
		return err
	}
	if err := g.run(ctx, nil, nil, "read-tree", "--reset", "-u", "--no-recurse-submodules", commit); err != nil {
		return err
	}
	objects := run.QuoteAlternate(g.alternates[0]) + "\n"
	if err := os.MkdirAll(filepath.Join(own.dir, "objects", "info"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(own.dir, "objects", "info", "alternates"), []byte(objects), 0o644); err != nil {
		return err
	}
	if err := own.run(ctx, nil, nil, "update-ref", "refs/heads/muster", commit); err != nil {
		return err
	}
	return copyFile(g.index, filepath.Join(own.dir, "index"))
}

// initOwn makes the repository that an agent sees in its tree. It has an identity, so that a commit works.
func (g git) initOwn(ctx context.Context, tree, format string) error {
	none := git{}
	if err := none.run(ctx, nil, nil, "init", "-q", "--template=", "--initial-branch=muster", "--object-format="+format, "--", tree); err != nil {
		return err
	}
	for _, kv := range [][2]string{{"user.name", "muster"}, {"user.email", "muster@localhost"}, {"core.autocrlf", "false"}} {
		if err := g.run(ctx, nil, nil, "config", "--local", kv[0], kv[1]); err != nil {
			return err
		}
	}
	return writeRaw(g.dir)
}

// InPlace makes a Tree of a folder itself, for an attempt that works on the user's files: Close removes nothing of
// it, and Changes tells what has changed since; readOnly: nothing may be written, and there are no changes to tell.
// The folder's own repository, if it has one, is left alone.
func (c *Cache) InPlace(ctx context.Context, attempt, dir string, readOnly bool) (*Tree, error) {
	t, err := c.inPlace(ctx, attempt, dir, readOnly)
	if err != nil {
		return nil, fmt.Errorf("work in %q: %w", dir, err)
	}
	return t, nil
}

func (c *Cache) inPlace(ctx context.Context, attempt, dir string, readOnly bool) (_ *Tree, err error) {
	s, err := c.takeAttempt(ctx, attempt)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.release() // what stays is reclaimed later
		}
	}()
	main, err := openArea(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			main.root.Close()
		}
	}()
	if err := c.undoCommits(ctx, main.real); err != nil {
		return nil, err
	}
	var b *base
	if !readOnly {
		src, g, _, err := record(ctx, main, filepath.Join(s.dir, "git"))
		if err != nil {
			return nil, err
		}
		tree, err := g.writeTree(ctx)
		if err != nil {
			return nil, err
		}
		b = &base{note: note{Attempt: attempt, ID: tree}, cache: c, g: g, excludes: src.excludes, fileMode: src.fileMode, ctx: context.WithoutCancel(ctx)}
	}
	t, err := newTree(main, filepath.Join(s.dir, "scratch"))
	if err != nil {
		return nil, err
	}
	t.release, t.base, t.ReadOnly, t.InPlace, t.cache = s.release, b, readOnly, true, c
	return t, nil
}

// Folder makes a Tree of a folder itself, as OpenDir does, whose commits are whole even where the process ends in the middle of one.
func (c *Cache) Folder(ctx context.Context, dir, scratch string) (*Tree, error) {
	t, err := OpenDir(dir, scratch)
	if err != nil {
		return nil, err
	}
	t.cache = c
	if err := c.undoCommits(ctx, t.main.real); err != nil {
		return nil, errors.Join(fmt.Errorf("open workspace %q: %w", dir, err), t.Close())
	}
	return t, nil
}

// note is what is written down beside a private tree, for whoever finds it after its process is gone.
type note struct {
	Attempt string `json:"attempt"`
	ID      string `json:"base"` // commit or tree
}

const noteFile = "base.json"

func (n note) write(dir string) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, noteFile), b, 0o600)
}

func readNote(dir string) (note, error) {
	var n note
	b, err := os.ReadFile(filepath.Join(dir, noteFile))
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(b, &n); err != nil || !isID(n.ID) {
		return n, fmt.Errorf("%s is damaged", filepath.Join(dir, noteFile))
	}
	return n, nil
}
