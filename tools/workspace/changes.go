package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Change is one changed file; -1 lines for binary.
type Change struct {
	Path           string
	Added, Removed int
	Left           string // why the file is not in the patch, "" where it is
}

// base is what the changes of a tree are told against, with a repository outside the tree to do it in.
type base struct {
	note
	cache    *Cache
	g        git
	excludes []string
	fileMode bool
	fresh    bool            // the files are of a checkout, not a user's folder
	keep     func() error    // gives a private tree up without removing it; nil where the files stay anyway
	ctx      context.Context // for what Close still has to do; it has the values of the tree's own, not its end

	mu    sync.Mutex
	taken bool // Changes has told everything at least once
}

// Changes writes what changed in a tree since its checkout as a patch to w (git's binary form, which `git apply`
// takes on the same commit), and lists the files in the order of their names: changes, new files that are not
// ignored, removals, also those that the agent committed. The tree's own repository is not asked. A tree that is
// shared, or made by OpenDir, has nothing to compare with and reports nothing.
func (t *Tree) Changes(ctx context.Context, w io.Writer) ([]Change, error) {
	if t.base == nil {
		return nil, nil
	}
	t.base.mu.Lock()
	defer t.base.mu.Unlock()
	list, err := t.base.changes(ctx, t.main, w)
	if err != nil {
		return nil, fmt.Errorf("changes of %q: %w", t.Dir, err)
	}
	t.base.taken = true
	return list, nil
}

func (b *base) changes(ctx context.Context, root *area, w io.Writer) ([]Change, error) {
	g := b.g
	g.index = filepath.Join(g.dir, "index-"+rand.Text())
	defer os.Remove(g.index)
	if err := copyFile(b.g.index, g.index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	st := staging{g: g, root: root, excludes: b.excludes, fileMode: b.fileMode}
	if b.fresh {
		st.nested = root.filled // a checkout leaves the folder of a submodule empty
	}
	left, err := st.stage(ctx)
	if err != nil {
		return nil, err
	}
	g.workTree = ""
	var list []Change
	err = g.each(ctx, 0, func(row string) error {
		fields := strings.SplitN(row, "\t", 3)
		if len(fields) != 3 {
			return fmt.Errorf("git diff-index: cannot read %q", row)
		}
		list = append(list, Change{Path: fields[2], Added: lineCount(fields[0]), Removed: lineCount(fields[1])})
		return nil
	}, diffArgs(b.ID, "--numstat", "-z")...)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		list = append(list, Change{Path: l.Path, Added: -1, Removed: -1, Left: l.Why})
	}
	return list, g.run(ctx, nil, w, diffArgs(b.ID, "--patch", "--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/")...)
}

func diffArgs(id string, how ...string) []string {
	args := append([]string{"diff-index", "--cached"}, how...)
	return append(args, "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", id, "--")
}

// lineCount reads a number of numstat; "-" is for binary.
func lineCount(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// savedPatches is how many patches of work that nobody asked for are kept; older ones go.
const savedPatches = 100

// saveBound is how long saving one may take.
const saveBound = 2 * time.Minute

// keepUnasked saves what changed in a private tree that goes without anybody having asked for its changes.
func (t *Tree) keepUnasked() error {
	b := t.base
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken || b.keep == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, saveBound)
	defer cancel()
	saved, err := b.save(ctx, t.main)
	t.Saved = saved
	if err != nil {
		return fmt.Errorf("save the work in %q, which is kept there: %w", t.Dir, err)
	}
	return nil
}

// save writes the changes into the cache's folder of saved patches, and returns the file's path, "" where nothing
// changed.
func (b *base) save(ctx context.Context, root *area) (string, error) {
	dir := filepath.Join(b.cache.dir, savedDir)
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	list, err := b.changes(ctx, root, f)
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", nil
	}
	name := filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000000000")+"-"+slotName(b.Attempt)+".patch")
	if err := os.Rename(f.Name(), name); err != nil {
		return "", err
	}
	return name, pruneSaved(dir)
}

// pruneSaved removes the oldest patches; their names begin with their times.
func pruneSaved(dir string) error {
	names, err := filepath.Glob(filepath.Join(globQuote(dir), "*.patch"))
	if err != nil {
		return err
	}
	for len(names) > savedPatches {
		if err := os.Remove(names[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		names = names[1:]
	}
	return nil
}
