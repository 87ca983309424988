package workspace

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// kindOfPart orders the parts of a commit.
type kindOfPart int

const (
	kindRemove kindOfPart = iota
	kindNew
	kindSwap
	kindChmod
	kindOverwrite
)

// entry is what a journal says of a part: all that undoing it needs.
type entry struct {
	Kind    kindOfPart  `json:"kind"`
	Dir     string      `json:"dir"`            // folder, relative to the root, without symlinks
	Base    string      `json:"base"`           // name in it
	Temp    string      `json:"temp,omitempty"` // name beside it: of the new content before the part is done, of the old one afterwards
	New     sum         `json:"new"`
	Made    []string    `json:"made,omitempty"`     // folders made for it, the outermost first
	Perm    fs.FileMode `json:"perm,omitempty"`     // permissions, and
	OldPerm fs.FileMode `json:"old_perm,omitempty"` // what they were
	Kept    string      `json:"kept,omitempty"`     // of kindOverwrite: what the journal keeps the old content as
}

func (e *entry) path() string { return path.Join(e.Dir, e.Base) }

// spot is a file of a commit, in its open folder.
type spot struct {
	entry
	*area
	dir      *os.Root
	op, name string      // of the caller, for errors
	info     fs.FileInfo // of the file as it was planned
	step     int
}

func (s *spot) at() *spot { return s }

// part is a change of one file that can be undone, in this process and in a later one. Until do everything happens beside the file.
type part interface {
	at() *spot
	stage(x *commit) error // makes the new content, and keeps the old
	check() error          // ErrStale where the file is not what it must be
	do() error             // in one step where the system can; on an error the file is as it was
	undo() error           // in whatever state a part is; what somebody else made of the file meanwhile stays
}

// spot opens the folder of a place.
func (p place) spot(op, name string) (*spot, error) {
	s := &spot{area: p.area, op: op, name: name, entry: entry{Dir: path.Dir(p.rel), Base: path.Base(p.rel), Temp: tempName()}}
	return s, s.pin()
}

func tempName() string { return ".muster-" + rand.Text() + ".tmp" }

func (s *spot) pin() error {
	folder := place{s.area, s.Dir}
	dir, err := folder.pin()
	if err != nil {
		return err
	}
	if err := folder.admitFolder(dir, s.name); err != nil {
		dir.Close()
		return err
	}
	s.dir = dir
	return nil
}

// hash is that of a regular file in the folder.
func (s *spot) hash(base string) (content sum, info fs.FileInfo, err error) {
	f, err := s.dir.OpenFile(base, openFlags, 0)
	if err != nil {
		return content, nil, err
	}
	defer f.Close()
	if err := (place{s.area, s.path()}).admit(f, s.op, s.name); err != nil {
		return content, nil, err
	}
	if info, err = f.Stat(); err != nil {
		return content, nil, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return content, nil, err
	}
	h.Sum(content[:0])
	return content, info, nil
}

// holds is ErrStale where a file does not hold what was.
func (s *spot) holds(base string, was *sum) error {
	if was == nil {
		return nil
	}
	sum, _, err := s.hash(base)
	if errors.Is(err, fs.ErrNotExist) || err == nil && sum != *was {
		return s.stale()
	}
	return err
}

func (s *spot) stale() error { return &PathError{Op: s.op, Path: s.name, Err: ErrStale} }

// has reports whether there is anything of a name.
func (s *spot) has(base string) bool {
	_, err := s.dir.Lstat(base)
	return err == nil
}

// drop removes a file of ours, if it is there.
func (s *spot) drop(base string) error {
	if err := s.dir.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// take gives a file a name that must be free.
func (s *spot) take(from, to string) error {
	err := s.dir.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// Not every file system has hard links.
	if s.has(to) {
		return fs.ErrExist
	}
	return s.dir.Rename(from, to)
}

// finish removes what was kept for undoing a part.
func (s *spot) finish() error {
	if s.Temp == "" || s.dir == nil {
		return nil
	}
	return s.drop(s.Temp)
}

// removePart takes a file away.
type removePart struct {
	*spot
	was *sum
}

func (p *removePart) stage(*commit) error { return nil }
func (p *removePart) check() error        { return p.holds(p.Base, p.was) }

func (p *removePart) do() error {
	if err := p.dir.Rename(p.Base, p.Temp); err != nil {
		return err
	}
	if err := p.holds(p.Temp, p.was); err != nil {
		return errors.Join(err, p.undo())
	}
	return nil
}

func (p *removePart) undo() error {
	if !p.has(p.Temp) {
		return nil
	}
	if err := p.take(p.Temp, p.Base); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return p.drop(p.Temp)
}

// newPart makes a file.
type newPart struct {
	*spot
	data []byte
	from string      // the file itself, which gets another name; "" for none
	was  *sum        // of from
	like fs.FileInfo // whose owner and permissions it has; nil for those of a new file
	perm *fs.FileMode
}

func (p *newPart) stage(x *commit) error {
	for _, dir := range p.Made {
		if err := p.root.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := p.pin(); err != nil {
		return err
	}
	x.pinned(p.spot)
	if p.from == "" {
		return writeTemp(p.dir, p.Temp, p.data, p.like, p.perm)
	}
	if p.perm == nil {
		// The file itself, so that nothing of it is lost.
		if err := p.root.Link(p.from, path.Join(p.Dir, p.Temp)); err == nil {
			return p.regular()
		}
	}
	return p.copy()
}

// regular checks that it is no symlink that got the new name.
func (p *newPart) regular() error {
	info, err := p.dir.Lstat(p.Temp)
	if err == nil && !info.Mode().IsRegular() {
		return ErrChanged
	}
	return err
}

// copy makes the new file of the bytes of the old one.
func (p *newPart) copy() error {
	in, err := p.root.OpenFile(p.from, openFlags, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := (place{p.area, p.from}).admit(in, p.op, p.name); err != nil {
		return err
	}
	out, err := p.dir.OpenFile(p.Temp, createFlags, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = takeMode(out, p.like, p.perm)
	}
	return errors.Join(err, out.Close())
}

func (p *newPart) check() error {
	if p.has(p.Base) {
		return p.there()
	}
	return p.holds(p.Temp, p.was)
}

func (p *newPart) there() error {
	return &PathError{Op: p.op, Path: p.name, Err: fs.ErrExist, Why: "a file of that name came meanwhile"}
}

func (p *newPart) do() error {
	err := p.take(p.Temp, p.Base)
	if errors.Is(err, fs.ErrExist) {
		return p.there()
	}
	return err
}

func (p *newPart) undo() error {
	if p.dir == nil { // its folder was never made, or is gone
		return p.unmake()
	}
	file, err := p.dir.Lstat(p.Base)
	if err == nil {
		ours := false
		if temp, terr := p.dir.Lstat(p.Temp); terr == nil {
			ours = os.SameFile(file, temp)
		} else if sum, _, serr := p.hash(p.Base); serr == nil {
			ours = sum == p.New // it was renamed, where there are no hard links
		}
		if ours {
			err = p.drop(p.Base)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := p.drop(p.Temp); err != nil {
		return err
	}
	return p.unmake()
}

// unmake removes the folders that were made, as far as nothing else is in them.
func (p *newPart) unmake() error {
	for i := len(p.Made) - 1; i >= 0; i-- {
		err := p.root.Remove(p.Made[i])
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// chmodPart changes permissions.
type chmodPart struct {
	*spot
	was *sum
}

func (p *chmodPart) stage(*commit) error { return nil }
func (p *chmodPart) check() error        { return p.holds(p.Base, p.was) }
func (p *chmodPart) do() error           { return p.set(p.OldPerm, p.Perm) }

func (p *chmodPart) undo() error {
	err := p.set(p.Perm, p.OldPerm)
	if errors.Is(err, ErrStale) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// set changes the permissions of the file, by its handle, from what they must be.
func (p *chmodPart) set(from, to fs.FileMode) error {
	f, err := p.dir.OpenFile(p.Base, openFlags, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = p.dir.OpenFile(p.Base, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := (place{p.area, p.path()}).admit(f, p.op, p.name); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm() != from {
		return p.stale()
	}
	return f.Chmod(to)
}
