package workspace

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

// maxDepth is how many folders deep a walk goes below where it starts.
const maxDepth = 64

// Walked is one regular file of a walk.
type Walked struct {
	Path string // relative to the root with /, or absolute in the scratch folder
	Lane int    // which of the walk's at most Lanes goroutines calls: what belongs to one lane needs no lock
	name string
	dir  *folder
	tree *Tree // of a file that was itself named as path; dir is nil then
}

// WalkOptions bound a walk.
type WalkOptions struct {
	NoIgnore bool          // neither Prune nor ignore files hold
	MaxFiles int           // files handed out, and as many folders and other entries; 0 is 500,000
	MaxTime  time.Duration // 0 is 20 s
	MaxDepth int           // how many levels of folders are wanted, path itself is 1; what is deeper is not counted either; 0 is all
	Prune    []string      // folder names; nil is the default list (Pruned)
}

// Skipped counts what a walk left out, by reason.
type Skipped struct {
	Files      int            // regular files that were handed out
	Pruned     map[string]int // folders on the prune list, by name
	Ignored    int            // files and folders that an ignore file names; a folder counts once
	Symlinks   int
	Special    int // FIFOs, sockets, devices
	Mounts     int // folders on another mount
	Unreadable int // folders
	TooDeep    int // folders deeper than 64
	Stopped    string
}

// Pruned is the default list of folders that a walk does not enter, unless git tracks a file in them.
func Pruned() []string {
	return []string{".git", "target", "node_modules", "__pycache__", ".venv", "venv", "dist", "build", ".idea", ".cache", ".next", "vendor",
		".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
}

// Walk calls fn for each regular file below path, from at most Lanes goroutines and in no order; path may be one file, which is handed out
// whatever the rules say, as a folder named as path is walked whatever they say of it. Nothing is followed: symlinks and special files are
// counted, and every file and folder is opened beside its parent's handle, so that no exchange of a folder for a link leads out of the tree.
//
// What cannot be read is counted and never ends the walk. A walk that reaches MaxFiles or MaxTime stops and says so in Stopped. An error of fn
// ends it and is returned, as is the cause of ctx.
func (t *Tree) Walk(ctx context.Context, path string, o WalkOptions, fn func(Walked) error) (Skipped, error) {
	shown, err := t.Rel(path)
	if err != nil {
		return Skipped{}, err
	}
	info, err := t.Stat(path)
	if err != nil {
		return Skipped{}, err
	}
	if !info.IsDir() {
		if ctx.Err() != nil {
			return Skipped{}, context.Cause(ctx)
		}
		f, err := t.Open(path)
		if err != nil {
			return Skipped{}, err
		}
		f.Close()
		return Skipped{Files: 1}, fn(Walked{Path: shown, tree: t})
	}
	start, err := t.startFolder(path, shown, !o.NoIgnore)
	if err != nil {
		return Skipped{}, err
	}
	w := newWalk(t, o, fn)
	return w.run(ctx, start)
}

// Open opens the file for reading; it is valid while fn runs, and the caller closes it. It fails where the file is gone, is not to be read, or
// is no longer a regular file of the same mount.
func (w Walked) Open() (Reading, error) {
	if w.dir == nil {
		return w.tree.Reopen(w.Path)
	}
	fd, st, err := openFile(w.dir.fd, w.name)
	if err != nil {
		return Reading{}, &fs.PathError{Op: "open", Path: w.Path, Err: err}
	}
	if !st.regular || st.mount != w.dir.mount {
		closeHandle(fd)
		return Reading{}, &fs.PathError{Op: "open", Path: w.Path, Err: errNotRegular}
	}
	return Reading{Size: st.size, fd: fd}, nil
}

func closing(c io.Closer, err error) error {
	c.Close()
	return err
}

// Reading is an open file of a walk. It costs no allocation.
type Reading struct {
	Size int64 // when it was opened
	fd   int
	file File
}

func (r Reading) Read(p []byte) (int, error) {
	if r.file != nil {
		return r.file.Read(p)
	}
	n, err := readHandle(r.fd, p)
	if n == 0 && err == nil && len(p) > 0 {
		return 0, io.EOF
	}
	return n, err
}

// Close releases the file.
func (r Reading) Close() error {
	if r.file != nil {
		return r.file.Close()
	}
	closeHandle(r.fd)
	return nil
}

// add sums the counts of lanes.
func (s *Skipped) add(o Skipped) {
	s.Files += o.Files
	s.Ignored += o.Ignored
	s.Symlinks += o.Symlinks
	s.Special += o.Special
	s.Mounts += o.Mounts
	s.Unreadable += o.Unreadable
	s.TooDeep += o.TooDeep
	for name, n := range o.Pruned {
		if s.Pruned == nil {
			s.Pruned = map[string]int{}
		}
		s.Pruned[name] += n
	}
}

// Reasons lists what was left out, a reason with its count each, in an order that does not change; empty where nothing was.
func (s Skipped) Reasons() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Pruned)) {
		out = append(out, fmt.Sprintf("%d pruned %s", s.Pruned[name], name))
	}
	for _, r := range []struct {
		n         int
		one, many string
	}{
		{s.Ignored, "ignored by .gitignore", ""}, {s.Symlinks, "symlink", "symlinks"}, {s.Special, "FIFO, socket or device", "FIFOs, sockets or devices"},
		{s.Mounts, "on another mount", ""}, {s.Unreadable, "unreadable folder", "unreadable folders"}, {s.TooDeep, "folder too deep", "folders too deep"},
	} {
		switch {
		case r.n == 1 || r.n > 1 && r.many == "":
			out = append(out, fmt.Sprintf("%d %s", r.n, r.one))
		case r.n > 1:
			out = append(out, fmt.Sprintf("%d %s", r.n, r.many))
		}
	}
	return out
}

// Reopen opens a file again by the path that a walk gave it, also where that is no valid UTF-8, which other operations refuse.
func (t *Tree) Reopen(path string) (Reading, error) {
	p, ok := t.inside(path)
	if !ok {
		return Reading{}, &PathError{Op: "read", Path: path, Err: ErrOutside}
	}
	var f *os.File
	err := t.follow(p, func(p place) (err error) {
		f, err = p.root.OpenFile(p.rel, openFlags, 0)
		return err
	})
	if err != nil {
		return Reading{}, t.fail("read", path, p, err)
	}
	err = p.admit(f, "read", path)
	if err != nil {
		return Reading{}, closing(f, err)
	}
	info, err := f.Stat()
	if err != nil {
		return Reading{}, closing(f, err)
	}
	return Reading{Size: info.Size(), file: f}, nil
}
