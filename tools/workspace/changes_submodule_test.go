package workspace

import (
	"path/filepath"
	"testing"
)

func TestChangesInSubmodulesAreNamed(t *testing.T) {
	dir, sub := newRepo(t), newRepo(t)
	userGit(t, dir, "submodule", "--quiet", "add", sub, "sub")
	userGit(t, dir, "commit", "-qm", "with a submodule")
	c := openCache(t, t.TempDir())
	snap, bundle := bundleOf(t, c, dir)
	if snap.Dirty || len(snap.Left) != 1 || snap.Left[0] != (Left{"sub", leftNested}) {
		t.Errorf("snapshot: %+v", snap)
	}
	tree := checkout(t, c, "a", snap.Commit, bundle)
	if found, _ := changesOf(t, tree); len(found) > 0 {
		t.Errorf("changes of an untouched tree: %v", found)
	}
	put(t, filepath.Join(tree.Dir, "sub/new"), "x")
	if found, _ := changesOf(t, tree); found["sub"].Left != leftNested {
		t.Errorf("a file in a submodule's folder is lost in silence: %v", found)
	}
}
