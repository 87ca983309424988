package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// openFlags never wait (a FIFO without a writer) and never take a terminal.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// File is an open regular file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// Open opens a regular file for reading: path is relative to the root, or absolute inside the root or the scratch
// folder. What was opened is what is looked at: the kind is checked on the open file, not on the name, so a swap
// meanwhile can neither hang it nor lead it out. The size of a file says nothing about how much it is safe to read
// (it may be sparse): read with a bound.
func (t *Tree) Open(name string) (File, error) {
	p, err := t.locate("read", name)
	if err != nil {
		return nil, err
	}
	var f *os.File
	err = t.follow(p, func(p place) error {
		f, err = p.root.OpenFile(p.rel, openFlags, 0)
		if errors.Is(err, syscall.ENXIO) {
			// A socket, or a device without a driver, cannot even be opened.
			if info, serr := p.root.Lstat(p.rel); serr == nil && !info.Mode().IsRegular() {
				return notRegular("read", name, info.Mode())
			}
		}
		return err
	})
	if err != nil {
		return nil, t.fail("read", name, p, err)
	}
	if err := p.admit(f, "read", name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// admit checks an open file: regular, and on the mount of its root.
func (p place) admit(f *os.File, op, name string) error {
	info, err := f.Stat()
	if err != nil {
		return &PathError{Op: op, Path: name, Err: err}
	}
	if !info.Mode().IsRegular() {
		return notRegular(op, name, info.Mode())
	}
	mount, err := mountOf(f)
	if err != nil {
		return &PathError{Op: op, Path: name, Err: err}
	}
	if mount != p.mount {
		return &PathError{Op: op, Path: name, Err: ErrOutside, Why: "it is on another mount"}
	}
	return nil
}

// Rel returns the clean path with / relative to the root, for messages and results (a scratch path stays absolute).
// It looks at the text alone: the path need not exist.
func (t *Tree) Rel(name string) (string, error) {
	p, err := t.locate("path", name)
	if err != nil {
		return "", err
	}
	return t.show(p), nil
}

// show is how a place is named to the caller.
func (t *Tree) show(p place) string {
	if p.area == t.scratch {
		return path.Join(t.Scratch, p.rel)
	}
	return p.rel
}

// Lstat describes what stands at the path, a symlink as itself; symlinks before the last part are followed inside
// the root.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) {
	p, err := t.locate("stat", name)
	if err != nil {
		return nil, err
	}
	info, err := p.root.Lstat(p.rel)
	if err == nil || p.rel == "." {
		return info, err
	}
	parent, rerr := t.resolve(place{p.area, path.Dir(p.rel)})
	if rerr != nil {
		return nil, t.fail("stat", name, p, rerr)
	}
	info, err = parent.root.Lstat(path.Join(parent.rel, path.Base(p.rel)))
	if err != nil {
		return nil, t.fail("stat", name, p, err)
	}
	return info, nil
}

// Stat describes what the path leads to, symlinks followed inside the root.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	p, err := t.locate("stat", name)
	if err != nil {
		return nil, err
	}
	var info fs.FileInfo
	err = t.follow(p, func(p place) error {
		info, err = p.root.Stat(p.rel)
		return err
	})
	if err != nil {
		return nil, t.fail("stat", name, p, err)
	}
	return info, nil
}

// openFolder opens a folder twice: to open what is in it, and to read it. Symlinks on the way to it are followed inside.
func (t *Tree) openFolder(op, name string) (p place, dir *os.Root, self *os.File, err error) {
	if p, err = t.locate(op, name); err != nil {
		return p, nil, nil, err
	}
	err = t.follow(p, func(p place) error {
		dir, err = p.pin()
		return err
	})
	if err != nil {
		return p, nil, nil, t.fail(op, name, p, err)
	}
	if self, err = dir.Open("."); err != nil {
		_ = dir.Close()
		return p, nil, nil, t.fail(op, name, p, err)
	}
	return p, dir, self, nil
}

// ReadDir returns the entries of a folder, unsorted, with their infos (Lstat). An entry that vanishes while the
// folder is read is left out; one that may be named but not looked at (a folder without the right to enter it) comes
// with a mode of fs.ModeIrregular.
func (t *Tree) ReadDir(name string) ([]fs.FileInfo, error) { return t.ReadSome(name, -1) }

// ReadSome is ReadDir that stops after so many entries; below 0 it reads all.
func (t *Tree) ReadSome(name string, most int) ([]fs.FileInfo, error) {
	p, dir, self, err := t.openFolder("list", name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	defer self.Close()
	mount, err := mountOf(self)
	if err != nil {
		return nil, t.fail("list", name, p, err)
	}
	if mount != p.mount {
		return nil, &PathError{Op: "list", Path: name, Err: ErrOutside, Why: "it is on another mount"}
	}
	names, err := self.Readdirnames(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, t.fail("list", name, p, err)
	}
	infos := make([]fs.FileInfo, 0, len(names))
	for _, n := range names {
		info, err := dir.Lstat(n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			info = unknown(n)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// unknown is the info of an entry of which only the name is known.
type unknown string

func (u unknown) Name() string       { return string(u) }
func (u unknown) Size() int64        { return 0 }
func (u unknown) Mode() fs.FileMode  { return fs.ModeIrregular }
func (u unknown) ModTime() time.Time { return time.Time{} }
func (u unknown) IsDir() bool        { return false }
func (u unknown) Sys() any           { return nil }
