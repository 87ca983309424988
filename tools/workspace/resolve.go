package workspace

import (
	"io/fs"
)

// Resolve says where a path leads, for who decides about it before it is used: its name with every symlink on the way followed inside the root, as Rel
// names it, and whether a folder stands there. The rest of a path that does not exist yet is kept. It opens nothing, and what it says may be
// otherwise a moment later: an operation that uses the path is held to the root by itself.
func (t *Tree) Resolve(name string) (real string, folder bool, err error) {
	p, err := t.locate("path", name)
	if err != nil {
		return "", false, err
	}
	err = settle(func() error {
		to, err := t.resolve(p)
		if err != nil {
			return err
		}
		info, err := to.root.Lstat(to.rel)
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			return ErrChanged
		case err == nil:
			folder = info.IsDir()
		}
		real = t.show(to)
		return nil
	})
	if err != nil {
		return "", false, t.fail("path", name, p, err)
	}
	return real, folder, nil
}
