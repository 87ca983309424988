package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxLinks is how many symlinks one path may go through; Linux allows as many.
const maxLinks = 40

// maxPathBytes is how long a path may be; Linux takes as much. It keeps the steps of a walk down to it few.
const maxPathBytes = 4096

// area is one of the two folders a tree gives access to: its root or its scratch folder.
type area struct {
	given  string // absolute, as the caller named it
	real   string // absolute, without symlinks
	root   *os.Root
	mount  mountID
	escape error // what os.Root says of a path that leaves it; its sentinel has no exported name
}

func openArea(dir string) (*area, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, err
	}
	// The trailing dot makes a FIFO in place of the folder an error, where a plain open of it would wait for ever.
	root, err := os.OpenRoot(real + "/.")
	if err != nil {
		return nil, err
	}
	a := &area{given: given, real: real, root: root}
	_, err = root.Lstat("../x")
	a.escape = errors.Unwrap(err)
	self, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	defer self.Close()
	a.mount, err = mountOf(self)
	if err != nil {
		root.Close()
		return nil, err
	}
	return a, nil
}

// within gives the path below the area of an absolute path, or false.
func (a *area) within(abs string) (string, bool) {
	for _, base := range []string{a.given, a.real} {
		if abs == base {
			return ".", true
		}
		if rest, ok := strings.CutPrefix(abs, strings.TrimSuffix(base, "/")+"/"); ok {
			return rest, true
		}
	}
	return "", false
}

// place is a path below an area: clean, with /, "." for the area itself.
type place struct {
	*area
	rel string
}

// locate turns a caller's path into a place, by its text alone: dots are folded before any symlink is looked at, so
// that one file has one name in messages, in results and in what an agent has read.
func (t *Tree) locate(op, name string) (place, error) {
	bad := func(why string) (place, error) {
		return place{}, &PathError{Op: op, Path: name, Err: ErrBadPath, Why: why}
	}
	switch {
	case name == "":
		return bad("it is empty; the root is \".\"")
	case strings.IndexByte(name, 0) >= 0:
		return bad("it holds a NUL character")
	case !utf8.ValidString(name):
		return bad("it is invalid UTF-8")
	case len(name) > maxPathBytes:
		return bad("it is longer than 4,096 bytes")
	}
	p, ok := t.inside(name)
	if !ok {
		return place{}, &PathError{Op: op, Path: name, Err: ErrOutside, Why: "paths are relative to the root, or absolute inside it"}
	}
	return p, nil
}

// inside folds a path, relative to the root or absolute, into a place; false where it leads outside.
func (t *Tree) inside(name string) (place, bool) {
	if !path.IsAbs(name) {
		clean := path.Clean(name)
		if clean != ".." && !strings.HasPrefix(clean, "../") {
			return place{t.main, clean}, true
		}
		name = path.Join(t.main.real, name)
	}
	abs := path.Clean(name)
	for _, a := range []*area{t.scratch, t.main} {
		if a == nil {
			continue
		}
		if rel, ok := a.within(abs); ok {
			return place{a, rel}, true
		}
	}
	return place{}, false
}

// outsideLink is the error of a symlink that leads out.
func outsideLink(link, target string) error {
	return fmt.Errorf("%w: the symlink %q leads to %q", ErrOutside, link, target)
}

// resolve follows every symlink of p itself, also absolute ones that stay inside, which os.Root refuses. What it
// returns is only a name: the operation that uses it goes through os.Root again, so a swap in between escapes nothing.
// Where the path stops existing, the rest is kept as it is.
func (t *Tree) resolve(p place) (place, error) {
	r := resolver{tree: t, area: p.area, done: ".", todo: strings.Split(p.rel, "/")}
	defer func() { r.leave() }()
	for len(r.todo) > 0 {
		name := r.todo[0]
		r.todo = r.todo[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && r.done == ".":
			next, ok := t.inside(path.Join(r.real, "..", path.Join(r.todo...)))
			if !ok {
				return place{}, outsideLink(p.rel, path.Join("..", path.Join(r.todo...)))
			}
			r.restart(next)
			if r.links++; r.links > maxLinks {
				return place{}, syscall.ELOOP
			}
			continue
		case name == "..":
			r.move(path.Dir(r.done), nil)
			continue
		}
		info, err := r.look(name)
		if errors.Is(err, fs.ErrNotExist) {
			rest := path.Join(r.done, name, path.Join(r.todo...))
			if rest == ".." || strings.HasPrefix(rest, "../") {
				return place{}, outsideLink(p.rel, rest)
			}
			return place{r.area, rest}, nil
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			err = r.link(name)
		} else if err == nil {
			err = r.enter(name)
		}
		if err != nil {
			return place{}, err
		}
	}
	return place{r.area, r.done}, nil
}

// resolver is one resolve on its way. It holds the folder it is in, so that a step costs the same at any depth.
type resolver struct {
	*area
	tree  *Tree
	done  string   // without symlinks
	todo  []string // names that follow
	links int
	at    *os.Root // the folder done; nil where that is the area's root, or not open yet
}

// leave forgets the folder.
func (r *resolver) leave() {
	if r.at != nil {
		r.at.Close()
	}
	r.at = nil
}

// move goes to a folder, which at is open at if it is not nil.
func (r *resolver) move(done string, at *os.Root) {
	r.leave()
	r.done, r.at = done, at
}

func (r *resolver) restart(p place) {
	r.move(".", nil)
	r.area, r.todo = p.area, strings.Split(p.rel, "/")
}

// here is the open folder done.
func (r *resolver) here() (*os.Root, error) {
	if r.done == "." {
		return r.root, nil
	}
	if r.at == nil {
		at, err := r.root.OpenRoot(r.done + "/.")
		if err != nil {
			return nil, err
		}
		r.at = at
	}
	return r.at, nil
}

func (r *resolver) look(name string) (fs.FileInfo, error) {
	at, err := r.here()
	if err != nil {
		return nil, err
	}
	return at.Lstat(name)
}

// enter goes on from name, which is no symlink.
func (r *resolver) enter(name string) error {
	next := path.Join(r.done, name)
	if len(r.todo) == 0 {
		r.done = next // the end, of whatever kind it is
		return nil
	}
	at, err := r.here()
	if err != nil {
		return err
	}
	below, err := at.OpenRoot(name + "/.")
	if err != nil {
		return err
	}
	r.move(next, below)
	return nil
}

// link puts what the symlink name leads to before what follows.
func (r *resolver) link(name string) error {
	if r.links++; r.links > maxLinks {
		return syscall.ELOOP
	}
	at, err := r.here()
	if err != nil {
		return err
	}
	target, err := at.Readlink(name)
	if err != nil {
		return err
	}
	rest := r.todo
	if path.IsAbs(target) {
		to, ok := r.tree.inside(target)
		if !ok {
			return outsideLink(path.Join(r.done, name), target)
		}
		r.restart(to)
	} else {
		r.todo = strings.Split(target, "/")
	}
	r.todo = append(r.todo, rest...)
	return nil
}

// follow runs do on the place, and where that fails once more on the place with its symlinks resolved. Most paths
// have none, and pay nothing for those that do.
func (t *Tree) follow(p place, do func(place) error) error {
	err := do(p)
	if err == nil {
		return nil
	}
	return settle(func() error {
		to, rerr := t.resolve(p)
		if rerr != nil {
			return rerr
		}
		return do(to)
	})
}

// settle runs do again while its error may come from somebody who swaps files meanwhile: such an error is gone the
// next time, a true one stays. What only a swap gives, and stays all the same, is ErrChanged.
func settle(do func() error) error {
	var err error
	for range 16 {
		err = do()
		swapped := errors.Is(err, ErrChanged) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ELOOP) ||
			errors.Is(err, syscall.ENOTDIR)
		if !swapped {
			return err
		}
	}
	if errors.Is(err, syscall.EINVAL) { // a symlink that is none any more when it is read
		return ErrChanged
	}
	return err
}

// pin opens the folder of a place, so that later steps cannot be led elsewhere by a rename or a symlink. The trailing
// dot keeps it from waiting on a FIFO.
func (p place) pin() (*os.Root, error) {
	if p.rel == "." {
		return p.root.OpenRoot(".")
	}
	return p.root.OpenRoot(p.rel + "/.")
}

// fail makes the *PathError of an operation.
func (t *Tree) fail(op, name string, p place, err error) error {
	var pe *PathError
	if errors.As(err, &pe) {
		return err
	}
	e := &PathError{Op: op, Path: name, Err: err}
	switch {
	case errors.Is(err, ErrOutside):
		e.Why = strings.TrimPrefix(err.Error(), ErrOutside.Error()+": ")
		e.Err = ErrOutside
	case p.area != nil && p.escape != nil && errors.Is(err, p.escape):
		e.Err = ErrOutside
	case errors.Is(err, fs.ErrNotExist) && p.dangles():
		e.Why = "it is a symlink, and what it leads to does not exist"
	case errors.Is(err, fs.ErrNotExist):
		e.Near = t.near(p)
	case errors.Is(err, syscall.ENOTDIR) && op != "list":
		e.Why = "a part of the path before the last is a file"
	case errors.Is(err, syscall.ELOOP):
		e.Why = "the symlinks go in a circle"
	}
	return e
}

// dangles reports whether p is a symlink.
func (p place) dangles() bool {
	if p.area == nil {
		return false
	}
	info, err := p.root.Lstat(p.rel)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// notRegular is the error for an info that is no regular file.
func notRegular(op, name string, m fs.FileMode) error {
	return &PathError{Op: op, Path: name, Err: ErrNotRegular, Kind: kindOf(m)}
}
