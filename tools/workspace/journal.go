package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// journal is what a commit writes down before it changes anything: a file in the cache, locked as long as its process lives. A file that nobody locks
// is of a commit that ended in between. It is then undone, unless everything was in its place already (settledName), in which case it is finished.
//
//	commits/<key of the folder>-<random>         a journalLine a line; the last whole one counts
//	commits/<key of the folder>-<random>.done    the same, once all parts are done
//	commits/<key of the folder>-<random>.kept/   what files held that are written in place
//	commits/<key of the folder>.lock             held by the one commit that is under way
type journal struct {
	name string // absolute
	lock *os.File
	safe bool // also when the machine ends: several parts
}

const (
	doneSuffix = ".done"
	keptSuffix = ".kept"
	lockSuffix = ".lock"
)

// journalLine says what a commit is about to do.
type journalLine struct {
	Dir     string  `json:"dir"` // the folder, absolute, without symlinks
	Entries []entry `json:"entries"`
}

func folderKey(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8])
}

// turn is a commit's right to a folder.
type turn struct{ lock *os.File }

// alone waits until no other commit to a folder is under way, in any process.
func (c *Cache) alone(ctx context.Context, dir string) (turn, error) {
	lock, err := lockFile(ctx, filepath.Join(c.dir, commitsDir, folderKey(dir)+lockSuffix), false, true)
	return turn{lock}, err
}

func (t turn) give() {
	_ = os.Remove(t.lock.Name()) // whoever waits for it looks whether it still has its name
	t.lock.Close()
}

// begin opens a journal for a commit to the files of dir.
func (c *Cache) begin(ctx context.Context, dir string, safe bool) (*journal, error) {
	name := filepath.Join(c.dir, commitsDir, folderKey(dir)+"-"+rand.Text())
	lock, err := lockFile(ctx, name, false, false)
	if err != nil {
		return nil, err
	}
	return &journal{name: name, lock: lock, safe: safe}, nil
}

func (j *journal) note(dir string, entries []entry) error {
	line, err := json.Marshal(journalLine{dir, entries})
	if err != nil {
		return err
	}
	if _, err := j.lock.Write(append(line, '\n')); err != nil || !j.safe {
		return err
	}
	if err := j.lock.Sync(); err != nil {
		return err
	}
	return syncName(filepath.Dir(j.name))
}

// keep stores two contents of a file, the old one first: where there is a new one, the old one is whole.
func (j *journal) keep(name string, old, fresh []byte) error {
	dir := j.name + keptSuffix
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := j.keepAs(filepath.Join(dir, name+".old"), old); err != nil {
		return err
	}
	if err := j.keepAs(filepath.Join(dir, name+".new"), fresh); err != nil || !j.safe {
		return err
	}
	return errors.Join(syncName(dir), syncName(filepath.Dir(dir)))
}

func (j *journal) keepAs(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && j.safe {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// kept reads what keep stored; nil where it had not come so far.
func (j *journal) kept(name string) (old, fresh []byte, err error) {
	base := filepath.Join(strings.TrimSuffix(j.name, doneSuffix)+keptSuffix, name)
	if old, err = os.ReadFile(base + ".old"); err == nil {
		fresh, err = os.ReadFile(base + ".new")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	return old, fresh, err
}

// settle says that every part is done: from here on the commit is finished, not undone.
func (j *journal) settle() error {
	if err := os.Rename(j.name, j.name+doneSuffix); err != nil {
		return err
	}
	j.name += doneSuffix
	if j.safe {
		return syncName(filepath.Dir(j.name))
	}
	return nil
}

func (j *journal) remove() error {
	if err := os.RemoveAll(strings.TrimSuffix(j.name, doneSuffix) + keptSuffix); err != nil {
		return err
	}
	return os.Remove(j.name)
}

// undoCommits undoes, or finishes, the commits to the files of dir whose processes are gone; "" for those of every folder. It returns an error for those
// with which that did not succeed, and leaves them for the next time.
func (c *Cache) undoCommits(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(filepath.Join(c.dir, commitsDir))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), lockSuffix) || dir != "" && !strings.HasPrefix(e.Name(), folderKey(dir)+"-") {
			continue
		}
		name := filepath.Join(c.dir, commitsDir, e.Name())
		lock, err := lockFile(ctx, name, false, false)
		if errors.Is(err, ErrBusy) {
			continue
		}
		if err == nil {
			err = (&journal{name: name, lock: lock}).recover()
			lock.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("undo a commit that was cut off: %w", err))
		}
	}
	return errors.Join(errs...)
}

// recover undoes or finishes the commit of a journal that nobody works on.
func (j *journal) recover() error {
	text, err := os.ReadFile(j.name)
	if err != nil {
		return err
	}
	var last journalLine
	for line := range bytes.Lines(text) {
		var l journalLine
		if json.Unmarshal(line, &l) == nil {
			last = l
		}
	}
	if last.Dir == "" {
		return j.remove() // nothing had been done yet
	}
	root, err := openArea(last.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return j.remove() // the folder is gone, and the commit with it
	}
	if err != nil {
		return err
	}
	defer root.root.Close()
	if root.real != last.Dir {
		return fmt.Errorf("%q is a symlink now", last.Dir)
	}
	parts, err := j.parts(root, last.Entries)
	for _, p := range parts {
		if d := p.at().dir; d != nil {
			defer d.Close()
		}
	}
	if err != nil {
		return err
	}
	if strings.HasSuffix(j.name, doneSuffix) {
		for _, p := range parts {
			if err := p.at().finish(); err != nil {
				return err
			}
		}
	} else if err := undoParts(parts, func(string) {}); err != nil {
		return err
	}
	return j.remove()
}

// parts makes the parts of a commit again. A folder that is gone, or through which a symlink leads by now, has nothing left to undo in it.
func (j *journal) parts(root *area, entries []entry) ([]part, error) {
	t := &Tree{main: root}
	var parts []part
	for _, e := range entries {
		s := &spot{area: root, op: "undo", name: e.path(), entry: e}
		real, err := t.resolve(place{root, e.Dir})
		if err == nil && real == (place{root, e.Dir}) {
			err = s.pin()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return parts, err
		}
		if s.dir == nil && e.Kind != kindNew {
			continue
		}
		switch e.Kind {
		case kindRemove:
			parts = append(parts, &removePart{spot: s})
		case kindNew:
			parts = append(parts, &newPart{spot: s})
		case kindSwap:
			parts = append(parts, &swapPart{spot: s})
		case kindChmod:
			parts = append(parts, &chmodPart{spot: s})
		case kindOverwrite:
			parts = append(parts, &overwritePart{spot: s, from: j})
		}
	}
	return slices.Clip(parts), nil
}

// syncFolder has the names in an open folder on disk.
func syncFolder(dir *os.Root) error {
	self, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer self.Close()
	return self.Sync()
}

func syncName(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
