package workspace

import (
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// Bounds of the search for the other names of a hard-linked file. Past them the file counts as linked from outside,
// which is the safe side: it is replaced, and said.
const (
	linkSearchEntries = 500_000
	linkSearchTime    = 5 * time.Second
	linkSearchDepth   = 64
)

// linksOf is how many names a file has.
func linksOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// keepOwner gives f the owner of old. It is a courtesy: only root may give files away, and anybody else who may
// replace a file of another owner is then told so by its listing.
func keepOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err != nil {
		return
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok && (is.Uid != was.Uid || is.Gid != was.Gid) {
		_ = f.Chown(int(was.Uid), int(was.Gid))
	}
}

// allLinksInside reports whether every name of a file is inside the root: it counts them. Nothing else can tell, for
// a private tree as little as for a user's folder, since a command may have made a link to a file outside.
func (t *Tree) allLinksInside(file fs.FileInfo, links uint64) bool {
	var found uint64
	entries := 0
	end := time.Now().Add(linkSearchTime)
	type folder struct {
		rel   string
		depth int
	}
	for todo := []folder{{".", 0}}; len(todo) > 0; {
		f := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		dir, err := place{t.main, f.rel}.pin()
		if err != nil {
			continue
		}
		names, subs := t.scanLinks(dir, file)
		dir.Close()
		found += names
		if found >= links {
			return true
		}
		if entries += len(subs) + 1; entries > linkSearchEntries || time.Now().After(end) {
			return false
		}
		if f.depth == linkSearchDepth {
			continue
		}
		for _, s := range subs {
			todo = append(todo, folder{path.Join(f.rel, s), f.depth + 1})
		}
	}
	return false
}

// scanLinks counts the names of file in one folder, and lists its folders.
func (t *Tree) scanLinks(dir *os.Root, file fs.FileInfo) (found uint64, subs []string) {
	self, err := dir.Open(".")
	if err != nil {
		return 0, nil
	}
	defer self.Close()
	if mount, err := mountOf(self); err != nil || mount != t.main.mount {
		return 0, nil
	}
	entries, err := self.ReadDir(-1)
	if err != nil {
		return 0, nil
	}
	for _, e := range entries {
		if e.IsDir() {
			subs = append(subs, e.Name())
			continue
		}
		if !e.Type().IsRegular() {
			continue
		}
		if info, err := dir.Lstat(e.Name()); err == nil && os.SameFile(info, file) {
			found++
		}
	}
	return found, subs
}
