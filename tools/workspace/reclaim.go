package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Reclaimed is a tree whose process is gone, and what became of it.
type Reclaimed struct {
	Attempt string
	Saved   string // the patch with the changes that were in it, "" for none
	Err     error  // why it could not be removed, and is still there
}

// Reclaim removes what processes that are gone have left in the cache, as far as it can tell now: what a living one
// holds a lock on is not touched. Changes in a private tree are saved as a patch first; where that fails, the tree
// stays. Whoever opens a Cache to work in it calls this first, and reports what it says.
func (c *Cache) Reclaim(ctx context.Context) ([]Reclaimed, error) {
	alone, err := lockFile(ctx, c.reclaimLock(), false, true)
	if err != nil {
		return nil, err
	}
	defer alone.Close()
	c.dropCutImports()
	cutOff := c.undoCommits(ctx, "")
	var list []Reclaimed
	for _, kind := range []string{snapshotsDir, basesDir, treesDir} {
		names, err := slotNames(filepath.Join(c.dir, kind))
		if err != nil {
			return list, err
		}
		for _, name := range names {
			s, err := c.trySlot(ctx, kind, name)
			if errors.Is(err, ErrBusy) {
				continue
			}
			if err != nil {
				return list, err
			}
			r, err := c.salvage(ctx, s)
			if err != nil {
				r.Err = err
				s.lock.Close()
			} else {
				r.Err = s.release()
			}
			if kind == treesDir {
				if r.Attempt == "" {
					r.Attempt = name
				}
				list = append(list, r)
			}
		}
	}
	return list, errors.Join(cutOff, ctx.Err())
}

// slotNames lists the slots of a folder, of which either the folder or the lock may be missing.
func slotNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var names []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".lock")
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// salvage empties a slot that is held and was left by somebody else, saving what changed in a private tree.
func (c *Cache) salvage(ctx context.Context, s *slot) (Reclaimed, error) {
	if err := c.undoCommits(ctx, filepath.Join(s.dir, "tree")); err != nil {
		return Reclaimed{}, err
	}
	n, err := readNote(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Reclaimed{}, removeTree(s.dir) // no tree, or one that nobody has worked in yet
	}
	if err != nil {
		return Reclaimed{}, err
	}
	r := Reclaimed{Attempt: n.Attempt}
	root, err := openArea(filepath.Join(s.dir, "tree"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, removeTree(s.dir)
	}
	if err != nil {
		return r, err
	}
	defer root.root.Close()
	store := git{dir: filepath.Join(c.dir, "store-"+formatOf(n.ID)+".git")}
	b := base{note: n, cache: c, g: baseGit(store, s.dir), fileMode: true, fresh: true}
	if r.Saved, err = b.save(ctx, root); err != nil {
		return r, err
	}
	return r, removeTree(s.dir)
}

// importBound is far longer than git takes to bring a pack in; what is unfinished and older was cut off.
const importBound = 24 * time.Hour

// dropCutImports removes the unfinished packs that imports leave in a store, and the unfinished patches, when their process is killed. What cannot
// be removed costs room and nothing else.
func (c *Cache) dropCutImports() {
	names, _ := filepath.Glob(filepath.Join(globQuote(c.dir), "store-*.git", "objects", "pack", "tmp_*"))
	patches, _ := filepath.Glob(filepath.Join(globQuote(c.dir), savedDir, ".new-*"))
	names = append(names, patches...)
	for _, n := range names {
		if info, err := os.Lstat(n); err == nil && time.Since(info.ModTime()) > importBound {
			os.Remove(n)
		}
	}
}
