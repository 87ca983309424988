package workspace

import (
	"errors"
	"fmt"
	"io/fs"
)

// kind is what a folder says of an entry.
type kind uint8

const (
	kindUnknown kind = iota
	kindFile
	kindFolder
	kindLink
	kindOther
)

// lane is one goroutine of a walk with what only it uses.
type lane struct {
	*walk
	index   int
	list    entries
	batch   []string
	below   []task
	skipped Skipped
}

func (l *lane) run() {
	defer func() { l.leave(l.skipped, recover()) }()
	for {
		t, ok := l.next()
		if !ok {
			return
		}
		l.do(t)
	}
}

func (l *lane) do(t task) {
	defer l.done()
	if t.files != nil {
		defer t.dir.release()
		l.hand(t.dir, t.files)
		return
	}
	if !l.enter(t.dir) {
		return
	}
	defer t.dir.release()
	l.listFolder(t.dir)
}

// enter opens a folder beside its parent, never through a link.
func (l *lane) enter(d *folder) bool {
	if d.parent != nil {
		fd, st, err := openFolder(d.parent.fd, d.name)
		d.parent.release()
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				l.skipped.Unreadable++
			}
			return false
		}
		if st.mount != l.mount {
			closeHandle(fd)
			l.skipped.Mounts++
			return false
		}
		d.fd, d.mount = fd, st.mount
		d.users.Store(1)
		d.rules = d.parent.rules
	}
	return true
}

const ignoreName = ".gitignore"

// listFolder obeys the ignore file of an open folder, hands out the files and pushes the folders in it.
func (l *lane) listFolder(d *folder) {
	if err := l.list.begin(d.fd); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.skipped.Unreadable++
		}
		return
	}
	if !l.o.NoIgnore && !d.kept && l.list.mayIgnore() {
		d.rules = readIgnoreAt(d.fd, len(d.prefix), d.rules)
	}
	l.batch, l.below = l.batch[:0], l.below[:0]
	err := l.list.each(func(name []byte, k kind) bool {
		if k == kindUnknown {
			k = kindAt(d.fd, string(name))
		}
		l.entry(d, name, k)
		return !l.stop.Load()
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.skipped.Unreadable++
	}
	l.push(l.below...)
	clear(l.below)
	l.hand(d, l.batch)
}

// entry decides about one entry. What is to be walked joins the batch of files or the folders below.
func (l *lane) entry(d *folder, name []byte, k kind) {
	if k != kindFile && l.others.Add(1) > int64(l.o.MaxFiles) {
		l.halt(fmt.Sprintf("after %d folders and other entries", l.o.MaxFiles), nil)
		return
	}
	if !l.o.NoIgnore && string(name) == ".git" && l.prune[".git"] {
		l.pruned(".git") // in a linked worktree it is a file
		return
	}
	switch k {
	case kindFile:
		path := d.prefix + string(name)
		if l.ignored(d, path, false) && !l.tracked().has(path) {
			l.skipped.Ignored++
			return
		}
		l.batch = append(l.batch, path)
		if len(l.batch) == batchFiles {
			d.users.Add(1)
			l.push(task{d, append([]string(nil), l.batch...)})
			l.batch = l.batch[:0]
		}
	case kindFolder:
		l.folder(d, string(name))
	case kindLink:
		l.skipped.Symlinks++
	default:
		l.skipped.Special++
	}
}

// folder decides about a folder in d.
func (l *lane) folder(d *folder, name string) {
	if l.o.MaxDepth > 0 && d.depth+1 >= l.o.MaxDepth {
		return
	}
	prefix := d.prefix + name + "/"
	kept := false
	listed := l.prune[name]
	if listed || l.ignored(d, prefix[:len(prefix)-1], true) {
		if !l.tracked().under(prefix) {
			if listed {
				l.pruned(name)
			} else {
				l.skipped.Ignored++
			}
			return
		}
		kept = true
	}
	if d.depth >= maxDepth {
		l.skipped.TooDeep++
		return
	}
	d.users.Add(1)
	l.below = append(l.below, task{dir: &folder{parent: d, name: name, prefix: prefix, depth: d.depth + 1, kept: kept}})
}

// ignored tells whether the rules, or an ignored folder around it, exclude path.
func (l *lane) ignored(d *folder, path string, isDir bool) bool {
	if l.o.NoIgnore {
		return false
	}
	return d.kept || d.rules.ignores(path, path[len(d.prefix):], isDir)
}

func (l *lane) pruned(name string) {
	if l.skipped.Pruned == nil {
		l.skipped.Pruned = map[string]int{}
	}
	l.skipped.Pruned[name]++
}

// hand calls fn for files of an open folder.
func (l *lane) hand(d *folder, files []string) {
	for _, path := range files {
		if l.stop.Load() {
			return
		}
		if l.files.Add(1) > int64(l.o.MaxFiles) {
			l.halt(fmt.Sprintf("after %d files", l.o.MaxFiles), nil)
			return
		}
		if err := l.fn(Walked{Path: path, Lane: l.index, name: path[len(d.prefix):], dir: d}); err != nil {
			l.halt("", err)
			return
		}
	}
}
