package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"muster/tools/patch"
	"muster/tools/workspace"
)

// patching is a patch on its way through the files of a tree. Nothing is written before all of it fits: sections of the patch see what those before them made.
type patching struct {
	call     *Call
	drafts   map[string]*draft // by path with symlinks followed
	order    []*draft
	leaving  map[string]bool // paths that a section removes or renames
	done     []*section
	problems []problem
	written  []workspace.Written
}

// draft is a file as the patch leaves it.
type draft struct {
	path string   // symlinks followed
	disk *version // nil: there is no such file
	now  *version // nil: it is to go
	step int      // of the commit, from 1; 0 for none
}

// version is what a file holds.
type version struct {
	file  *textFile // where it comes from, on disk; nil for a new one
	path  string    // of file, symlinks followed
	text  string    // with a byte order mark, if it has been looked at as text
	plain bool      // it has been
	perm  fs.FileMode
}

// section is what the patch did to one file.
type section struct {
	letter         string // A, M, D, R, C
	from, to       string // names as the patch has them
	draft          *draft // of to; of a file that it removes, of from
	added, removed int
	mode           string // what becomes of the permissions
	already        bool
	notes          []patch.Note
	link           string // what the commit says of links
}

// byteOrderMark begins the text of a file that has one.
const byteOrderMark = "\uFEFF"

// expect lists the paths that get free, so that others may take their names.
func (w *patching) expect(files []patch.File) {
	w.leaving = map[string]bool{}
	for _, f := range files {
		if f.Op == patch.Delete || f.Op == patch.Rename {
			if real, _, err := w.call.Tree.Resolve(f.Old); err == nil {
				w.leaving[real] = true
			}
		}
	}
}

// open finds the draft of a name.
func (w *patching) open(ctx context.Context, name string) (*draft, error) {
	real, folder, err := w.call.Tree.Resolve(name)
	if err != nil {
		return nil, err
	}
	if folder {
		return nil, fail(Input, "%s is a folder; a patch is for files", shownName(shorten(relName(w.call, name), 200)))
	}
	if d := w.drafts[real]; d != nil {
		return d, nil
	}
	d := &draft{path: real}
	f, err := w.call.openKnown(ctx, name)
	switch {
	case err == nil:
		d.disk = &version{file: f, path: real, perm: f.perm}
		d.now = d.disk
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	w.drafts[real] = d
	w.order = append(w.order, d)
	return d, nil
}

// source is the version that a section begins with: what sections before it left. A copy is of the file as it was before the patch, as git has it. Where
// sections before gave the name to another file, a section that renames or removes means the one on disk; last is false then, since the name stays taken.
func (w *patching) source(ctx context.Context, f *patch.File) (d *draft, v *version, last bool, err error) {
	name := f.Old
	d, err = w.open(ctx, name)
	switch {
	case err != nil:
		return nil, nil, false, err
	case f.Op == patch.Copy && d.disk != nil, f.Op != patch.Modify && d.disk != nil && d.now != nil && d.now.path != d.path:
		return d, d.disk, false, nil
	case d.now != nil:
		return d, d.now, true, nil
	}
	// The error of the system names what is near.
	if _, err := w.call.Tree.Stat(name); err != nil {
		return d, nil, false, err
	}
	return d, nil, false, fail(Input, "%s was removed or renamed by the patch before", shownName(name))
}

// asText makes text of a version.
func (v *version) asText() (string, error) {
	if v.file == nil || v.plain {
		return v.text, nil
	}
	if err := v.file.decode(); err != nil {
		return "", err
	}
	text := v.file.text
	if v.file.enc != plainUTF8 {
		text = byteOrderMark + text
	}
	return text, nil
}

// with is the version with another text.
func (v *version) with(text string) *version {
	n := *v
	n.text, n.plain = text, true
	return &n
}

// data is the bytes of a version.
func (v *version) data() []byte {
	switch {
	case !v.plain && v.file != nil:
		return v.file.data
	case v.file != nil && v.file.enc != plainUTF8 && v.file.enc != utf8BOM:
		return v.file.enc.encode(strings.TrimPrefix(v.text, byteOrderMark)) // whose mark tells how to read it
	}
	return []byte(v.text)
}

// file takes one section of the patch. What does not fit becomes a problem; an error ends the call.
func (w *patching) file(ctx context.Context, f *patch.File) error {
	s := &section{from: f.Old, to: f.New}
	var err error
	switch f.Op {
	case patch.Create:
		err = w.create(ctx, f, s)
	case patch.Delete:
		err = w.remove(ctx, f, s)
	case patch.Modify:
		err = w.modify(ctx, f, s)
	case patch.Rename, patch.Copy:
		err = w.rename(ctx, f, s)
	}
	switch {
	case err == nil:
		w.done = append(w.done, s)
	case ctx.Err() != nil:
		return err
	case !errors.Is(err, errFits):
		w.problems = append(w.problems, problem{err: err})
	}
	return nil
}

// errFits says that hunks do not fit; the problems have them.
var errFits = errors.New("hunks do not fit")

// apply applies the hunks of a section to a text.
func (w *patching) apply(ctx context.Context, f *patch.File, s *section, name, text string) (string, error) {
	r, err := f.Apply(ctx, text)
	if err != nil {
		return "", err
	}
	for i := range r.Failed {
		w.problems = append(w.problems, problem{name: shownName(shorten(name, 200)), text: strings.TrimPrefix(text, byteOrderMark), failure: &r.Failed[i]})
	}
	if len(r.Failed) > 0 {
		return "", errFits
	}
	s.added, s.removed, s.notes, s.already = r.Added, r.Removed, r.Notes, r.Already
	return r.Text, nil
}

func (w *patching) create(ctx context.Context, f *patch.File, s *section) error {
	s.letter = "A"
	d, err := w.open(ctx, f.New)
	if err != nil {
		return err
	}
	s.draft = d
	text, err := w.apply(ctx, f, s, f.New, "")
	if err != nil {
		return err
	}
	if s.already = false; d.now != nil && !(w.leaving[d.path] && d.now == d.disk) {
		if old, err := d.now.asText(); err != nil || old != text {
			return fail(Conflict, "%s exists and holds something else than the new file of the patch; read_file it, and send a patch of it as it is", shownName(f.New))
		}
		s.already = true
		return nil
	}
	d.now = &version{text: text, plain: true}
	if f.Mode != nil && *f.Mode&0o111 != 0 {
		d.now.perm = *f.Mode
		s.mode = fmt.Sprintf(", mode %o", *f.Mode)
	}
	return nil
}

func (w *patching) remove(ctx context.Context, f *patch.File, s *section) error {
	s.letter, s.to = "D", ""
	if err := w.noLink(f.Old, "removes"); err != nil {
		return err
	}
	d, v, last, err := w.source(ctx, f)
	if err != nil {
		return err
	}
	s.draft, s.removed = d, int(countLines(v.data()))
	if !f.Whole() {
		text, err := v.asText()
		if err != nil {
			return err
		}
		if len(f.Hunks) == 0 && text != "" {
			return fail(Input, "%s has %s, and the patch removes an empty file", shownName(f.Old), plural(int64(s.removed), "line"))
		}
		if _, err := w.apply(ctx, f, s, f.Old, text); err != nil {
			return err
		}
		s.already = false
	}
	if last {
		d.now = nil
	}
	return nil
}

// noLink refuses to remove or rename a symlink: the patch means a file, and the link is none.
func (w *patching) noLink(name, verb string) error {
	if info, err := w.call.Tree.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fail(Input, "%s is a symlink, and the patch %s a file; use a command for it", shownName(name), verb)
	}
	return nil
}

func (w *patching) modify(ctx context.Context, f *patch.File, s *section) error {
	s.letter = "M"
	d, v, _, err := w.source(ctx, f)
	if err != nil {
		return err
	}
	s.draft = d
	if v, err = w.change(ctx, f, s, v); err == nil {
		d.now = v
	}
	return err
}

// change is a version with the hunks and the mode of a section.
func (w *patching) change(ctx context.Context, f *patch.File, s *section, v *version) (*version, error) {
	s.already = true
	if len(f.Hunks) > 0 {
		text, err := v.asText()
		if err != nil {
			return nil, err
		}
		now, err := w.apply(ctx, f, s, f.Old, text)
		if err != nil {
			return nil, err
		}
		if now != text {
			v = v.with(now)
		}
	}
	if f.Mode != nil {
		if perm := withMode(v.perm, *f.Mode); perm != v.perm {
			n := *v
			n.perm = perm
			s.mode, s.already = fmt.Sprintf(", mode %o → %o", v.perm, perm), false
			v = &n
		}
	}
	return v, nil
}

// withMode gives permissions the mode of a patch. Git knows two modes, which say only whether a file can be run.
func withMode(perm, mode fs.FileMode) fs.FileMode {
	switch mode {
	case 0o644:
		return perm &^ 0o111
	case 0o755:
		return perm | perm&0o444>>2
	}
	return mode
}

func (w *patching) rename(ctx context.Context, f *patch.File, s *section) error {
	if s.letter = "C"; f.Op == patch.Rename {
		s.letter = "R"
		if err := w.noLink(f.Old, "renames"); err != nil {
			return err
		}
	}
	to, err := w.open(ctx, f.New)
	if err != nil {
		return err
	}
	s.draft = to
	from, v, last, err := w.source(ctx, f)
	if err != nil && from != nil && from.disk == nil && to.disk != nil && f.Op == patch.Rename {
		return w.renamed(ctx, f, s, to, err)
	}
	if err != nil {
		return err
	}
	if to.now != nil && !(w.leaving[to.path] && to.now == to.disk) {
		return fail(Conflict, "%s exists, and %s is to get its name; remove one, or send a patch of it as it is", shownName(f.New), shownName(f.Old))
	}
	if v, err = w.change(ctx, f, s, v); err != nil {
		return err
	}
	s.already = false
	if f.Op == patch.Rename && last {
		from.now = nil
	}
	to.now = v
	return nil
}

// renamed says of a rename whose old name is gone and whose new one is there that it is done, if its hunks are.
func (w *patching) renamed(ctx context.Context, f *patch.File, s *section, to *draft, missing error) error {
	if len(f.Hunks) > 0 {
		text, err := to.now.asText()
		if err != nil {
			return missing
		}
		r, err := f.Apply(ctx, text)
		if err != nil || !r.Already {
			return missing
		}
	}
	s.already = true
	return nil
}
