package workspace

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Written is what a write did.
type Written struct {
	Path     string // relative; the target where path was a symlink
	Created  bool
	InPlace  bool // written in place: it has other hard links, all inside the root, or its folder takes no new names
	Detached bool // other hard links, which may be outside, keep the old content
}

// Write writes a file whole. Parents are made; a symlink in the last place stays and its target inside the root is
// written. The new content is on disk before it takes the name in one step, so that a reader sees the old file or the
// new one and a full disk leaves the old one; the mode is kept (without set-id bits), and the owner where the system
// allows it. A file with other hard links is written in place where all of them are inside the root, else replaced.
// What git keeps for itself (.git) is refused: who may edit files must not gain programs that the next git command runs.
func (t *Tree) Write(name string, data []byte) (Written, error) {
	p, err := t.locate("write", name)
	if err != nil {
		return Written{}, err
	}
	switch {
	case p.area == t.scratch:
		return Written{}, &PathError{Op: "write", Path: name, Err: ErrReadOnly, Why: "the scratch folder holds kept output; write below the root"}
	case t.ReadOnly:
		return Written{}, &PathError{Op: "write", Path: name, Err: ErrReadOnly, Why: "this job only reads, and its tree may be shared with others"}
	case p.rel == "." || strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/."):
		return Written{}, notRegular("write", name, fs.ModeDir)
	}
	var w Written
	err = settle(func() error {
		w, err = t.writeOnce(name, p, data)
		return err
	})
	if err != nil {
		return Written{}, t.fail("write", name, p, err)
	}
	return w, nil
}

// inRepository reports whether rel is in the folder of a git repository, or is what stands for it. Some file systems fold case.
func inRepository(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

func (t *Tree) writeOnce(name string, p place, data []byte) (Written, error) {
	to, err := t.resolve(p)
	if err != nil {
		return Written{}, err
	}
	if to.area != t.main {
		return Written{}, &PathError{Op: "write", Path: name, Err: ErrReadOnly, Why: "a symlink leads into the scratch folder"}
	}
	if to.rel == "." {
		return Written{}, notRegular("write", name, fs.ModeDir)
	}
	if inRepository(to.rel) {
		return Written{}, &PathError{Op: "write", Path: name, Err: ErrReadOnly, Why: "git keeps its own files there, and runs what some of them name"}
	}
	parent := place{to.area, path.Dir(to.rel)}
	if err := parent.root.MkdirAll(parent.rel, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return Written{}, err
	}
	dir, err := parent.pin()
	if err != nil {
		return Written{}, err
	}
	defer dir.Close()
	if err := parent.admitFolder(dir, name); err != nil {
		return Written{}, err
	}
	base := path.Base(to.rel)
	w := Written{Path: to.rel}
	old, info, err := openOld(dir, base, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.Created = true
		return w, create(dir, base, data)
	case err != nil:
		return Written{}, err
	}
	if old != nil {
		defer old.Close()
	}
	if links := linksOf(info); links > 1 {
		if old != nil && t.allLinksInside(info, links) {
			w.InPlace = true
			return w, overwrite(old, info.Size(), data)
		}
		w.Detached = true
	}
	err = replace(dir, base, data, info)
	if errors.Is(err, fs.ErrPermission) && old != nil {
		// The file may be written, its folder may not.
		w.InPlace, w.Detached = true, false
		return w, overwrite(old, info.Size(), data)
	}
	return w, err
}

// admitFolder checks that a pinned folder is on the mount of its root.
func (p place) admitFolder(dir *os.Root, name string) error {
	self, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer self.Close()
	mount, err := mountOf(self)
	if err != nil {
		return err
	}
	if mount != p.mount {
		return &PathError{Op: "write", Path: name, Err: ErrOutside, Why: "its folder is on another mount"}
	}
	return nil
}

// openOld opens the file that a write replaces, which proves that it may be written, without changing it. The file
// is nil where it is a program that runs, which can be replaced but not opened.
func openOld(dir *os.Root, base, name string) (*os.File, fs.FileInfo, error) {
	info, err := dir.Lstat(base)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil, ErrChanged
	case !info.Mode().IsRegular():
		return nil, nil, notRegular("write", name, info.Mode())
	}
	f, err := dir.OpenFile(base, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	switch {
	case errors.Is(err, syscall.ETXTBSY):
		return nil, info, nil
	case errors.Is(err, syscall.ENXIO), errors.Is(err, fs.ErrNotExist):
		return nil, nil, ErrChanged
	case err != nil:
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	if !os.SameFile(info, opened) {
		f.Close()
		return nil, nil, ErrChanged
	}
	return f, opened, nil
}

// create makes a file that does not exist yet, whole or not at all.
func create(dir *os.Root, base string, data []byte) error {
	return replace(dir, base, data, nil)
}

// replace writes a new file beside base and gives it that name. old is what is replaced, nil for nothing.
func replace(dir *os.Root, base string, data []byte, old fs.FileInfo) error {
	perm := fs.FileMode(0o644)
	if old != nil {
		perm = 0o600 // until the old mode is known to fit the old owner
	}
	temp := ".muster-" + rand.Text() + ".tmp"
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOCTTY, perm)
	if err != nil {
		return err
	}
	err = fill(f, data, old)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = dir.Rename(temp, base)
	}
	if err != nil {
		_ = dir.Remove(temp)
		if errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrExist) {
			return ErrChanged
		}
	}
	return err
}

func fill(f *os.File, data []byte, old fs.FileInfo) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if old != nil {
		keepOwner(f, old)
		if err := f.Chmod(old.Mode() & 0o777); err != nil {
			return err
		}
	}
	return f.Sync()
}

// overwrite writes data over an open file. What the file grows by is written first: where the disk is full that
// fails with the old content whole, and the rest needs no new room.
func overwrite(f *os.File, size int64, data []byte) error {
	if grow := int64(len(data)) - size; grow > 0 {
		if _, err := f.WriteAt(data[size:], size); err != nil {
			_ = f.Truncate(size)
			return err
		}
		if err := f.Sync(); err != nil {
			_ = f.Truncate(size)
			return err
		}
		if _, err := f.WriteAt(data[:size], 0); err != nil {
			return err
		}
	} else {
		if _, err := f.WriteAt(data, 0); err != nil {
			return err
		}
		if err := f.Truncate(int64(len(data))); err != nil {
			return err
		}
	}
	return f.Sync()
}

// Spill writes name (a plain file name) into the scratch folder and returns its absolute path, which Open reads. An
// older file of that name is replaced.
func (t *Tree) Spill(name string, data []byte) (string, error) {
	if name != path.Base(name) || name == "." || name == ".." || name == "/" {
		return "", &PathError{Op: "spill", Path: name, Err: ErrBadPath, Why: "it is no plain file name"}
	}
	p, err := t.locate("spill", path.Join(t.scratch.real, name))
	if err != nil {
		return "", err
	}
	if err := replace(p.root, p.rel, data, nil); err != nil {
		return "", t.fail("spill", name, p, err)
	}
	return t.show(p), nil
}
