package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// swapPart gives a file new content: a new file takes its place, and the old one its name beside it until the commit is finished.
type swapPart struct {
	*spot
	data     []byte
	perm     *fs.FileMode
	was      *sum
	writable bool // the file itself can be opened for writing
}

// inPlace is the part that does the same by writing into the file.
func (p *swapPart) inPlace() *overwritePart {
	p.Kind, p.Temp, p.Kept = kindOverwrite, "", tempName()
	return &overwritePart{spot: p.spot, data: p.data, was: p.was}
}

func (p *swapPart) stage(x *commit) error {
	err := writeTemp(p.dir, p.fresh(), p.data, p.info, p.perm)
	if err == nil {
		x.step("write " + p.Base)
		return p.dir.Rename(p.fresh(), p.Temp)
	}
	if errors.Is(err, fs.ErrPermission) && p.writable {
		return x.exchangePart(p, p.inPlace()) // the file may be written, its folder may not
	}
	return err
}

func (p *swapPart) check() error { return p.holds(p.Base, p.was) }

// fresh is the name of the new content until it is whole. So what has the name Temp is the whole new content or the old one, never a part.
func (p *swapPart) fresh() string { return p.Temp + ".new" }

// aside is a third name, for systems that cannot exchange two.
func (p *swapPart) aside() string { return p.Temp + ".old" }

func (p *swapPart) do() error {
	info, err := p.dir.Lstat(p.Base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.stale()
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return ErrChanged
	}
	if err := exchange(p.dir, p.Temp, p.Base); err != nil {
		if err := p.replace(); err != nil {
			return err
		}
	}
	// What was exchanged is looked at, not what stood there before: nothing gets lost in between.
	info, err = p.dir.Lstat(p.Temp)
	if err == nil && !info.Mode().IsRegular() {
		err = ErrChanged
	}
	if err == nil {
		err = p.holds(p.Temp, p.was)
	}
	if err != nil {
		return errors.Join(err, p.back())
	}
	return nil
}

// replace does what exchange does in three steps, of which one shows.
func (p *swapPart) replace() error {
	if err := p.dir.Link(p.Base, p.aside()); err != nil {
		if err := p.dir.Rename(p.Base, p.aside()); err != nil { // no hard links: for a moment there is no file
			return err
		}
	}
	if err := p.dir.Rename(p.Temp, p.Base); err != nil {
		return err
	}
	return p.dir.Rename(p.aside(), p.Temp)
}

// back puts what was exchanged where it came from, unless somebody has put something else there.
func (p *swapPart) back() error {
	if sum, _, err := p.hash(p.Base); err != nil || sum != p.New {
		return p.drop(p.Temp)
	}
	if exchange(p.dir, p.Temp, p.Base) == nil {
		return p.drop(p.Temp)
	}
	return p.dir.Rename(p.Temp, p.Base)
}

func (p *swapPart) undo() error {
	if err := p.drop(p.fresh()); err != nil {
		return err
	}
	if p.has(p.aside()) { // in the middle of replace
		var err error
		switch {
		case !p.has(p.Temp):
			err = p.dir.Rename(p.aside(), p.Temp)
		case p.has(p.Base):
			err = p.drop(p.aside())
		default:
			err = p.dir.Rename(p.aside(), p.Base)
		}
		if err != nil {
			return err
		}
	}
	temp, info, err := p.hash(p.Temp)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && temp == p.New && (p.Perm == p.OldPerm || info.Mode().Perm() == p.Perm): // not exchanged, or nothing differs
		return p.drop(p.Temp)
	}
	return p.back()
}

// overwritePart writes into a file that keeps its other names.
type overwritePart struct {
	*spot
	data []byte
	was  *sum
	old  []byte   // what it held
	from *journal // that keeps both, in a later process
}

func (p *overwritePart) stage(x *commit) (err error) {
	if p.old, err = p.read(); err != nil || x.journal == nil {
		return err
	}
	return x.journal.keep(p.Kept, p.old, p.data)
}

// read is the content of the file; a file that is edited fits in memory.
func (p *overwritePart) read() ([]byte, error) {
	f, err := p.dir.OpenFile(p.Base, openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := (place{p.area, p.path()}).admit(f, p.op, p.name); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(f, maxFileBytes))
	if err == nil && n == maxFileBytes {
		err = syscall.EFBIG
	}
	return b.Bytes(), err
}

func (p *overwritePart) check() error { return p.holds(p.Base, p.was) }

func (p *overwritePart) do() error {
	// Another name of the same file may have got the same content already.
	if sum, _, err := p.hash(p.Base); err == nil && sum == p.New {
		return nil
	}
	if err := p.check(); err != nil {
		return err
	}
	return p.write(p.data, p.Perm)
}

// write fills the file, and gives it permissions where the part changes them.
func (p *overwritePart) write(data []byte, perm fs.FileMode) error {
	f, err := p.dir.OpenFile(p.Base, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
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
	if err := overwrite(f, info.Size(), data); err != nil || p.Perm == p.OldPerm {
		return err
	}
	return f.Chmod(perm)
}

func (p *overwritePart) undo() (err error) {
	if p.from != nil {
		if p.old, p.data, err = p.from.kept(p.Kept); err != nil {
			return err
		}
	}
	if p.old == nil {
		return nil // nothing was written yet
	}
	now, err := p.read()
	if errors.Is(err, fs.ErrNotExist) || err == nil && (bytes.Equal(now, p.old) || !p.torn(now)) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.write(p.old, p.OldPerm)
}

// torn says that a content is the old one, the new one, or between the two.
func (p *overwritePart) torn(now []byte) bool {
	if len(now) > max(len(p.old), len(p.data)) || len(now) < min(len(p.old), len(p.data)) {
		return false
	}
	for i, b := range now {
		if !(i < len(p.old) && p.old[i] == b || i < len(p.data) && p.data[i] == b) {
			return false
		}
	}
	return true
}
