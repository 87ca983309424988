package workspace

import (
	"fmt"
	"os"
	"path/filepath"
)

// Cache holds snapshots and trees of this machine, in a folder of our own that any number of processes may share.
//
//	store-<format>.git   every commit that was fetched: trusted, checked when it came in
//	snapshots/           work of Snapshot, gone when it returns
//	trees/               a folder an attempt: its tree, its scratch folder, and what Changes works with
//	bases/               trees that read-only attempts share, the latest kept
//	saved/               patches of work that nobody asked for before its tree went
//	commits/             what commits under way are about to change
type Cache struct{ dir string }

// Folders of a cache.
const (
	snapshotsDir = "snapshots"
	treesDir     = "trees"
	basesDir     = "bases"
	savedDir     = "saved"
	commitsDir   = "commits"
)

// OpenCache uses dir (made 0700).
func OpenCache(dir string) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"", snapshotsDir, treesDir, basesDir, savedDir, commitsDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("open workspace cache: %w", err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open workspace cache: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace cache: %w", err)
	}
	return &Cache{dir: real}, nil
}
