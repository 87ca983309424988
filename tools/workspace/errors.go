package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Sentinels of the file operations of a Tree, matched with errors.Is; each arrives inside a *PathError and nothing
// has been read or changed. Beside them an operation returns fs.ErrNotExist (with the nearest names as Near),
// fs.ErrPermission (the system's own refusal) and whatever the system says, such as ENOSPC; after a failed Write the
// old file is intact.
var (
	// ErrOutside: the path, or a symlink on it, leads out of the root and the scratch folder, or onto another mount.
	ErrOutside = errors.New("outside the workspace")
	// ErrNotRegular: a folder, FIFO, socket or device stands where a regular file is needed; PathError.Kind says which.
	ErrNotRegular = errors.New("not a regular file")
	// ErrBadPath: the path can name nothing: it is empty, holds a NUL or is invalid UTF-8.
	ErrBadPath = errors.New("bad path")
	// ErrReadOnly: the tree is shared with others, or the path is in the scratch folder, which only Spill writes.
	ErrReadOnly = errors.New("read-only")
	// ErrChanged: the place changed under the operation again and again (somebody swaps it); try once more.
	ErrChanged = errors.New("changed during the operation")
	// ErrStale: the file does not hold what the step of a commit expects; nothing of the commit was done.
	ErrStale = errors.New("changed since it was read")
)

// Sentinels of the cache.
var (
	// ErrNoCommit: the bundle that was fetched does not hold the commit that was asked for; nothing was kept of it.
	ErrNoCommit = errors.New("commit not in the bundle")
	// ErrBusy: an attempt of that name has its tree open, here or in another process.
	ErrBusy = errors.New("attempt is open already")
	// ErrBareRepository: a snapshot was asked of a repository that has no files.
	ErrBareRepository = errors.New("a bare repository has no files; name a folder with a checkout")
)

// Kinds of things that are no regular file.
const (
	KindFolder  = "folder"
	KindFIFO    = "FIFO"
	KindSocket  = "socket"
	KindDevice  = "device"
	KindOther   = "special file"
	kindSymlink = "symlink"
)

// PathError is the error of an operation on a path of a tree.
type PathError struct {
	Op   string   // "read", "write", "list", "stat"
	Path string   // as the caller gave it
	Err  error    // a sentinel above, or the system's error
	Kind string   // with ErrNotRegular: a Kind constant
	Why  string   // more about it, "" for nothing
	Near []string // with fs.ErrNotExist: the nearest existing names, relative to the root, at most three
}

func (e *PathError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: ", e.Op, e.Path)
	switch {
	case e.Kind != "":
		fmt.Fprintf(&b, "is a %s, not a regular file", e.Kind)
	case errors.Is(e.Err, fs.ErrNotExist):
		b.WriteString("does not exist")
	default:
		b.WriteString(plainError(e.Err))
	}
	if e.Why != "" {
		b.WriteString(": " + e.Why)
	}
	if len(e.Near) > 0 {
		fmt.Fprintf(&b, "; nearest: %s", quoteAll(e.Near))
	}
	return b.String()
}

func (e *PathError) Unwrap() error { return e.Err }

// plainError strips the operation and path that os puts before a system error: they name our internals, not the
// caller's path.
func plainError(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}

// kindOf names what a mode is when it is not a regular file or a symlink.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return KindFolder
	case m&fs.ModeNamedPipe != 0:
		return KindFIFO
	case m&fs.ModeSocket != 0:
		return KindSocket
	case m&fs.ModeDevice != 0:
		return KindDevice
	}
	return KindOther
}
