package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// sum is the SHA-256 of what a file holds.
type sum = [sha256.Size]byte

// Deed is what a step does to its file.
type Deed int

// The deeds.
const (
	Put    Deed = iota // a file that exists holds Data
	Create             // a file that does not exist holds Data; folders on the way to it are made
	Remove
	Move // it has the name To, which nothing had
	Chmod
)

// word is the deed in messages.
func (d Deed) word() string { return [...]string{"write", "write", "remove", "move", "chmod"}[d] }

// Step is what a commit does to one file.
type Step struct {
	Deed Deed
	Path string
	To   string       // of Move
	Data []byte       // of Put and Create
	Was  *sum         // what the file must hold; nil: whatever it holds
	Perm *fs.FileMode // its permissions afterwards, no more than 0777; nil: as they are, or a new file's
	Like string       // of Create: a file of which it takes owner and permissions
}

// Written is what a step did.
type Written struct {
	Path     string // relative; the target where the step's path was a symlink
	Created  bool
	InPlace  bool // written in place: it has other hard links, all inside the root, or its folder takes no new names
	Detached bool // other hard links, which may be outside, keep the old content
}

// Commit does all steps or none: first every new content is made beside its file, then the files are compared with what the steps expect (ErrStale),
// and then each takes its place in one step. Commits to one folder wait for each other. An error undoes what was done. So does the next commit or opening of
// the folder where the process ended in between, if the tree is of a Cache: what is under way is written down there, outside the folder.
//
// A symlink in the last place stays, and its target inside the root is written; Remove and Move take no symlink. The mode is kept (without set-id
// bits), and the owner where the system allows it. A file with other hard links is written in place where all of them are inside the root, else replaced.
// What git keeps for itself (.git) is refused: who may edit files must not gain programs that the next git command runs.
//
// What somebody else writes into a file meanwhile is not lost: before the file is replaced it is ErrStale, and what comes after stays as it is when
// a commit is undone.
func (t *Tree) Commit(ctx context.Context, steps []Step) ([]Written, error) {
	for _, s := range steps {
		if t.ReadOnly {
			return nil, &PathError{Op: s.Deed.word(), Path: s.Path, Err: ErrReadOnly, Why: "this job only reads, and its tree may be shared with others"}
		}
	}
	t.committing.Lock()
	defer t.committing.Unlock()
	if t.cache != nil {
		alone, err := t.cache.alone(ctx, t.main.real)
		if err != nil {
			return nil, fmt.Errorf("wait for other commits to %q: %w", t.Dir, err)
		}
		defer alone.give()
		if err := t.cache.undoCommits(ctx, t.main.real); err != nil {
			return nil, err
		}
	}
	var written []Written
	err := settle(func() (err error) {
		written, err = t.commitOnce(ctx, steps)
		return err
	})
	return written, err
}

// commit is one attempt to do all steps.
type commit struct {
	tree    *Tree
	parts   []part
	written []Written // a step each
	folders []*os.Root
	journal *journal // nil where the tree has no cache

	exchanged bool // parts are not those that the journal has
}

func (t *Tree) commitOnce(ctx context.Context, steps []Step) (_ []Written, err error) {
	x := &commit{tree: t}
	defer x.close()
	for _, s := range steps {
		if err := x.plan(s); err != nil {
			return nil, err
		}
	}
	if err := x.arrange(); err != nil {
		return nil, err
	}
	if t.cache != nil {
		if x.journal, err = t.cache.begin(ctx, t.main.real, len(x.parts) > 1); err != nil {
			return nil, fmt.Errorf("write down what is to be done: %w", err)
		}
		if err := x.note(); err != nil {
			return nil, x.undo(err)
		}
	}
	if err := x.stage(ctx); err != nil {
		return nil, x.undo(err)
	}
	if err := x.do(); err != nil {
		return nil, x.undo(err)
	}
	x.finish()
	return x.written, nil
}

// step is called before everything that a process that ends would leave in the middle.
func (x *commit) step(what string) {
	if x.tree.step != nil {
		x.tree.step(what)
	}
}

// note writes down what the parts are.
func (x *commit) note() error {
	if x.journal == nil {
		return nil
	}
	entries := make([]entry, len(x.parts))
	for i, p := range x.parts {
		entries[i] = p.at().entry
	}
	return x.journal.note(x.tree.main.real, entries)
}

// stage makes all that is new beside its files.
func (x *commit) stage(ctx context.Context) error {
	for i := range x.parts {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		x.step("stage " + x.parts[i].at().Base)
		if err := x.parts[i].stage(x); err != nil {
			return x.failed(x.parts[i], err)
		}
	}
	if !x.exchanged {
		return nil
	}
	if err := x.arrange(); err != nil {
		return err
	}
	return x.note()
}

// exchangePart puts another part in place of one, and has it staged.
func (x *commit) exchangePart(old, fresh part) error {
	x.parts[slices.Index(x.parts, old)] = fresh
	x.exchanged = true
	w := &x.written[fresh.at().step]
	w.InPlace, w.Detached = true, false
	return fresh.stage(x)
}

// do compares all files with what they must be, and then changes them.
func (x *commit) do() error {
	for _, p := range x.parts {
		if err := p.check(); err != nil {
			return x.failed(p, err)
		}
	}
	for _, p := range x.parts {
		x.step("do " + p.at().Base)
		if err := p.do(); err != nil {
			return x.failed(p, err)
		}
	}
	if x.journal == nil {
		return nil
	}
	x.step("settle")
	if len(x.parts) > 1 {
		for _, d := range x.folders {
			if err := syncFolder(d); err != nil {
				return err
			}
		}
	}
	return x.journal.settle()
}

// failed is the error of a part, in the caller's words.
func (x *commit) failed(p part, err error) error {
	s := p.at()
	return x.tree.fail(s.op, s.name, place{s.area, s.path()}, err)
}

// undo puts everything back after an error. What cannot be put back now is tried again by the next commit or opening of the folder.
func (x *commit) undo(cause error) error {
	if err := undoParts(x.parts, x.step); err != nil {
		return fmt.Errorf("%w; not all could be put back: %w", cause, err)
	}
	if x.journal != nil {
		if err := x.journal.remove(); err != nil {
			return fmt.Errorf("%w; and %w", cause, err)
		}
	}
	return cause
}

// undoParts undoes parts, the last first.
func undoParts(parts []part, step func(string)) error {
	var errs []error
	for _, p := range slices.Backward(parts) {
		step("undo " + p.at().Base)
		if err := p.undo(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.at().path(), err))
		}
	}
	return errors.Join(errs...)
}

// finish removes what was kept for undoing. All is done by now: what cannot be removed is left to the next commit or opening of the folder.
func (x *commit) finish() {
	x.step("finish")
	clean := true
	for _, p := range x.parts {
		if err := p.at().finish(); err != nil {
			clean = false
		}
		x.step("finished " + p.at().Base)
	}
	if x.journal != nil && clean {
		_ = x.journal.remove()
	}
}

func (x *commit) close() {
	for _, d := range x.folders {
		d.Close()
	}
	if x.journal != nil {
		x.journal.lock.Close()
	}
}
