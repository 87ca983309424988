package workspace

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// copyBytes bounds what Copy takes: the index of a repository of five million files.
const copyBytes = 1 << 30

// Copy puts a copy of a regular file, with its time, into the scratch folder as name (a plain file name) and returns its absolute path and what
// it was copied from. An older file of that name is replaced in one step. Commands may do with the copy what they like.
func (t *Tree) Copy(from, name string) (to string, info fs.FileInfo, err error) {
	if name != path.Base(name) || name == "." || name == ".." || name == "/" {
		return "", nil, &PathError{Op: "copy", Path: name, Err: ErrBadPath, Why: "it is no plain file name"}
	}
	in, err := t.Open(from)
	if err != nil {
		return "", nil, err
	}
	defer in.Close()
	if info, err = in.Stat(); err != nil {
		return "", nil, &PathError{Op: "copy", Path: from, Err: err}
	}
	if err := t.scratch.copyIn(in, info, name); err != nil {
		return "", nil, &PathError{Op: "copy", Path: from, Err: err}
	}
	return path.Join(t.Scratch, name), info, nil
}

func (a *area) copyIn(in io.Reader, info fs.FileInfo, name string) error {
	temp := ".muster-" + rand.Text() + ".tmp"
	out, err := a.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOCTTY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, copyBytes+1))
	if err == nil && n > copyBytes {
		err = fmt.Errorf("it has more than %d bytes", copyBytes)
	}
	if own, serr := a.root.Stat("."); serr == nil {
		keepOwner(out, own)
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = a.root.Chtimes(temp, info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = a.root.Rename(temp, name)
	}
	if err != nil {
		_ = a.root.Remove(temp)
	}
	return err
}
