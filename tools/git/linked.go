package git

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Linked is where the repository of a linked work tree is.
type Linked struct {
	Dir    string // what belongs to this work tree
	Common string // what all of its work trees share; Dir is below it
}

// pointerBytes bounds a file that names a folder.
const pointerBytes = 8 << 10

// LinkedTo finds the repository of a linked work tree whose files are at top. ok only where the repository names that very folder as one of its work
// trees: what a file in top says alone is not believed.
func LinkedTo(top string) (l Linked, ok bool) {
	top, err := filepath.EvalSymlinks(top)
	if err != nil {
		return Linked{}, false
	}
	dir, ok := Pointer(readPointer(filepath.Join(top, ".git")))
	if !ok {
		return Linked{}, false
	}
	if l.Dir, ok = realPath(top, dir); !ok || filepath.Base(filepath.Dir(l.Dir)) != "worktrees" {
		return Linked{}, false
	}
	l.Common = filepath.Dir(filepath.Dir(l.Dir))
	back, ok := realPath(l.Dir, strings.TrimSuffix(readPointer(filepath.Join(l.Dir, "gitdir")), "\n"))
	if !ok || back != filepath.Join(top, ".git") {
		return Linked{}, false
	}
	common, ok := realPath(l.Dir, strings.TrimSuffix(readPointer(filepath.Join(l.Dir, "commondir")), "\n"))
	return l, ok && common == l.Common
}

// Pointer reads the text of a .git that is a file: where the repository is, absolute or from the file's folder.
func Pointer(text string) (dir string, ok bool) {
	dir, ok = strings.CutPrefix(text, "gitdir: ")
	dir = strings.TrimRight(dir, "\r\n")
	return dir, ok && dir != ""
}

// realPath is where a path leads, which may be from the folder dir.
func realPath(dir, name string) (string, bool) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", false
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	real, err := filepath.EvalSymlinks(name)
	return real, err == nil
}

// readPointer is the text of a small regular file, "" where it is anything else.
func readPointer(name string) string {
	f, err := OpenFile(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, pointerBytes+1))
	if err != nil || len(b) > pointerBytes {
		return ""
	}
	return string(b)
}

// OpenFile opens a regular file of a repository. It follows no symlink, and never waits.
func OpenFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%q is no regular file", name)
	}
	return f, nil
}
