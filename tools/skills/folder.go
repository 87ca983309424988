package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"muster/tools/workspace"
)

// inTree is a folder in the files that are worked on: nothing leads out of it.
type inTree struct{ t *workspace.Tree }

func (f inTree) open(name string) (fs.File, error) { return f.t.Open(name) }

func (f inTree) isFolder(name string) (bool, error) {
	_, is, err := f.t.Resolve(name)
	return is, err
}

func (f inTree) list(name string, most int) ([]fs.FileInfo, error) { return f.t.ReadSome(name, most) }

func (f inTree) real(name string) string {
	if real, _, err := f.t.Resolve(name); err == nil {
		return real
	}
	return name
}

// ofUser is a folder of the user. Links to skills are followed; a link within a skill that leads out of it is not, since skills are other people's
// work, and what they lead to may be private.
type ofUser struct{}

// openFlags never wait, as a FIFO without a writer would.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

func (ofUser) open(name string) (fs.File, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openIn(root, filepath.Base(name))
}

// openIn opens a regular file.
func openIn(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, openFlags, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is no regular file (%s)", info.Mode().Type())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (ofUser) isFolder(name string) (bool, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}

func (ofUser) list(name string, most int) ([]fs.FileInfo, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, _ := d.ReadDir(most) // what came before an error is worth looking at
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else it has just gone
			infos = append(infos, info)
		}
	}
	return infos, nil
}

func (ofUser) real(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

// reason is an error without the path that stands beside it.
func reason(err error) string {
	var own *workspace.PathError
	var pe *fs.PathError
	switch {
	case errors.As(err, &own) && own.Kind != "":
		return "it is a " + own.Kind
	case errors.As(err, &own) && own.Why != "":
		return fmt.Sprintf("%v: %s", own.Err, own.Why)
	case errors.As(err, &own):
		err = own.Err
	}
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}
