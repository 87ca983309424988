package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

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

// createFlags open a file that must not exist.
const createFlags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | syscall.O_NOCTTY

// writeTemp writes a new file, whole or not at all, and has it on disk. Owner and permissions are those of like where it is not nil, else a new file's; perm
// are other permissions.
func writeTemp(dir *os.Root, name string, data []byte, like fs.FileInfo, perm *fs.FileMode) error {
	mode := fs.FileMode(0o644)
	switch {
	case like != nil:
		mode = 0o600 // until the old mode is known to fit the old owner
	case perm != nil:
		mode = perm.Perm()
	}
	f, err := dir.OpenFile(name, createFlags, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = takeMode(f, like, perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = dir.Remove(name)
	}
	return err
}

// takeMode gives a file the owner and the permissions of like, or other permissions.
func takeMode(f *os.File, like fs.FileInfo, perm *fs.FileMode) error {
	if like == nil {
		return nil
	}
	keepOwner(f, like)
	if perm == nil {
		return f.Chmod(like.Mode().Perm())
	}
	return f.Chmod(perm.Perm())
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
	temp := tempName()
	if err = writeTemp(p.root, temp, data, nil, nil); err == nil {
		if err = p.root.Rename(temp, p.rel); err != nil {
			_ = p.root.Remove(temp)
		}
	}
	if err != nil {
		return "", t.fail("spill", name, p, err)
	}
	return t.show(p), nil
}
