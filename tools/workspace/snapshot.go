package workspace

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Snapshot is a folder's files as a commit.
type Snapshot struct {
	Commit string
	Dirty  bool   // differs from HEAD; true where there is no HEAD
	Left   []Left // what the commit does not hold; ignored files and empty folders are not listed
}

// Snapshot makes a commit of dir as it is (commits, changes, untracked but not ignored files), changing nothing in it,
// and writes it as a git bundle to w. The commit is HEAD itself where nothing differs, else a child of it; it is the
// same each time for the same files and HEAD. History comes along unless the repository is shallow or partial: the
// commit has no parent then. A subfolder of a repository is taken as a plain folder.
func (c *Cache) Snapshot(ctx context.Context, dir string, w io.Writer) (Snapshot, error) {
	snap, err := c.snapshot(ctx, dir, w)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %q: %w", dir, err)
	}
	return snap, nil
}

func (c *Cache) snapshot(ctx context.Context, dir string, w io.Writer) (Snapshot, error) {
	s, err := c.takeSlot(ctx, snapshotsDir, rand.Text())
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { _ = s.release() }() // what stays is reclaimed later
	root, err := openArea(dir)
	if err != nil {
		return Snapshot{}, err
	}
	defer root.root.Close()
	src, g, left, err := record(ctx, root, filepath.Join(s.dir, "git"))
	if err != nil {
		return Snapshot{}, err
	}
	g.workTree = ""
	snap, err := src.commit(ctx, g)
	if err != nil {
		return Snapshot{}, err
	}
	snap.Left = left
	ref := "refs/muster/" + snap.Commit
	if err := g.run(ctx, nil, nil, "update-ref", ref, snap.Commit); err != nil {
		return Snapshot{}, err
	}
	window := "pack.window=10"
	if src.head == "" || !src.whole {
		window = "pack.window=0" // one version of each file: looking for similar ones costs much and finds little
	}
	return snap, g.run(ctx, nil, w, "-c", window, "bundle", "create", "--quiet", "-", ref)
}

// record makes a repository in gitDir whose index is what the folder holds.
func record(ctx context.Context, root *area, gitDir string) (source, git, []Left, error) {
	src, err := inspect(ctx, root.real)
	if err != nil {
		return source{}, git{}, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(gitDir), 0o700); err != nil {
		return source{}, git{}, nil, err
	}
	if err := initBare(ctx, gitDir, src.format); err != nil {
		return source{}, git{}, nil, err
	}
	g := git{dir: gitDir, workTree: root.real, index: filepath.Join(gitDir, "index")}
	if src.gitDir != "" {
		g.alternates = []string{src.objects}
		if err := src.copyIndex(gitDir); err != nil {
			return source{}, git{}, nil, err
		}
	}
	st := staging{g: g, root: root, excludes: src.excludes, fileMode: src.fileMode, nested: func(string) bool { return true }}
	left, err := st.stage(ctx)
	return src, g, left, err
}

// commit makes the commit of what is in the index.
func (s source) commit(ctx context.Context, g git) (Snapshot, error) {
	tree, err := g.writeTree(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	snap := Snapshot{Dirty: true}
	args := []string{"-c", "user.name=muster", "-c", "user.email=muster@localhost", "commit-tree", "-m", "Files as they were"}
	date := "0" // as good as any other that stays the same
	if s.head != "" {
		headTree, err := g.text(ctx, "rev-parse", "--verify", s.head+"^{tree}")
		if err != nil {
			return Snapshot{}, err
		}
		snap.Dirty = tree != headTree
		if s.whole {
			if !snap.Dirty {
				snap.Commit = s.head
				return snap, nil
			}
			args = append(args, "-p", s.head)
			if date, err = g.text(ctx, "log", "-1", "--format=%ct", s.head); err != nil {
				return Snapshot{}, err
			}
		}
	}
	g.date = "@" + date + " +0000"
	snap.Commit, err = g.text(ctx, append(args, tree)...)
	return snap, err
}

// writeTree makes the tree of what is in the index. It does so without the user's objects in sight: git sets the time
// of an object that it would have written, and theirs are not to be touched. Only an index that leaves folders out
// (sparse) needs them.
func (g git) writeTree(ctx context.Context) (string, error) {
	alone := g
	alone.workTree, alone.alternates = "", nil
	tree, err := alone.text(ctx, "write-tree", "--missing-ok")
	if err == nil || ctx.Err() != nil {
		return tree, err
	}
	alone.alternates = g.alternates
	return alone.text(ctx, "write-tree", "--missing-ok")
}
