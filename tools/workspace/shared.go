package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// share gives the folder in which the shared tree of a commit stands, made by whoever needs it first and removed
// after the last one, over all processes: each user holds a shared lock, and making and removing need it alone.
func (c *Cache) share(ctx context.Context, store git, commit string) (dir string, drop func() error, err error) {
	dir = filepath.Join(c.dir, basesDir, commit)
	ready := filepath.Join(dir, "ready")
	for {
		lock, err := lockFile(ctx, dir+".lock", true, true)
		if err != nil {
			return "", nil, err
		}
		if _, err := os.Stat(ready); err == nil {
			return dir, func() error { lock.Close(); return dropShared(ctx, dir) }, nil
		}
		lock.Close()
		alone, err := lockFile(ctx, dir+".lock", false, true)
		if err != nil {
			return "", nil, err
		}
		if _, err := os.Stat(ready); err != nil {
			err = removeTree(dir)
			if err == nil {
				err = lay(ctx, store, commit, dir)
			}
			if err == nil {
				err = os.WriteFile(ready, nil, 0o600)
			}
			if err != nil {
				err = errors.Join(err, (&slot{dir: dir, lock: alone}).release())
				return "", nil, fmt.Errorf("shared tree of %s: %w", commit, err)
			}
		}
		alone.Close()
	}
}

// dropShared removes a shared tree unless somebody still uses it.
func dropShared(ctx context.Context, dir string) error {
	alone, err := lockFile(context.WithoutCancel(ctx), dir+".lock", false, false)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	return (&slot{dir: dir, lock: alone}).release()
}
