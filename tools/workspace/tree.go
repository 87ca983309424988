package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Tree is the files of one attempt: a root that nothing leaves, and a scratch folder beside it. Its methods may be
// called side by side; Close comes last.
type Tree struct {
	Dir      string // absolute
	Scratch  string // absolute; outside Dir; holds the folders home and tmp, and what Spill keeps
	ReadOnly bool   // nothing may be written: the tree is shared, or a folder in place whose job only reads
	InPlace  bool   // it is a folder itself, which is the user's: what commands do to it lasts, and its repository is not theirs to change
	Objects  string // absolute; the folder from which its repository reads what it began with, outside of both; "" for none
	Saved    string // set by Close: where it kept changes that nobody had asked for, "" for none

	main    *area
	scratch *area
	cache   *Cache            // where its commits are written down; nil: nowhere
	step    func(what string) // tests end the process there
	base    *base             // what Changes compares with; nil where there is none
	release func() error

	committing sync.Mutex

	closing  sync.Once
	closeErr error
}

// OpenDir makes a Tree of a folder itself (call); Close does not remove dir; scratch is made and removed. A scratch
// folder that is there already must be empty: it is removed with everything in it.
func OpenDir(dir, scratch string) (*Tree, error) {
	main, err := openArea(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", dir, err)
	}
	t, err := newTree(main, scratch)
	if err != nil {
		main.root.Close()
		return nil, fmt.Errorf("open workspace %q: %w", dir, err)
	}
	t.InPlace = true
	return t, nil
}

// newTree makes the scratch folder and puts a tree together; it owns main when it succeeds.
func newTree(main *area, scratch string) (*Tree, error) {
	scratch, err := filepath.Abs(scratch)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(scratch), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(scratch, 0o700); err != nil {
		left, rerr := os.ReadDir(scratch)
		if !errors.Is(err, fs.ErrExist) || rerr != nil {
			return nil, err
		}
		if len(left) > 0 {
			return nil, fmt.Errorf("the scratch folder %q is not empty; name one that is new", scratch)
		}
	}
	for _, sub := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(scratch, sub), 0o700); err != nil {
			return nil, err
		}
	}
	side, err := openArea(scratch)
	if err != nil {
		return nil, err
	}
	side.giveTo(main)
	if _, in := main.within(side.real); in {
		side.root.Close()
		_ = removeTree(scratch)
		return nil, fmt.Errorf("the scratch folder %q is inside the workspace; name one outside", scratch)
	}
	return &Tree{Dir: main.given, Scratch: side.given, main: main, scratch: side}, nil
}

// giveTo gives the scratch folder to the owner of the tree, where that is another user's: a command works on both as one user. Only root may
// give anything away, and only root has commands of another user.
func (a *area) giveTo(main *area) {
	info, err := os.Stat(main.real)
	if err != nil || os.Geteuid() != 0 {
		return
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		for _, name := range []string{".", "home", "tmp"} {
			_ = a.root.Lchown(name, int(owner.Uid), int(owner.Gid))
		}
	}
}

// Close releases the tree and removes what belongs to the attempt: the scratch folder, and the files where the tree
// was made for the attempt. What cannot be removed is an error that names it. Further calls return the same.
func (t *Tree) Close() error {
	t.closing.Do(func() { t.closeErr = t.close() })
	return t.closeErr
}

func (t *Tree) close() error {
	var errs []error
	release := t.release
	if t.base != nil {
		if err := t.keepUnasked(); err != nil {
			errs = append(errs, err)
			release = t.base.keep
		}
	}
	t.main.root.Close()
	t.scratch.root.Close()
	if err := removeTree(t.scratch.real); err != nil {
		errs = append(errs, fmt.Errorf("remove scratch folder: %w", err))
	}
	if release != nil {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}
