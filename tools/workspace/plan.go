package workspace

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// plan makes the parts of a step. It changes nothing.
func (x *commit) plan(s Step) error {
	op := s.Deed.word()
	switch s.Deed {
	case Put, Chmod:
		return x.planOld(s)
	case Create:
		n, err := x.planNew(s, s.Path)
		if err == nil {
			x.add(Written{Path: n.path(), Created: true}, n)
		}
		return err
	}
	from, err := x.tree.target(op, s.Path, false)
	if err != nil {
		return err
	}
	old, err := from.spot(op, s.Path)
	if err != nil {
		return err
	}
	gone := &removePart{spot: old, was: s.Was}
	old.Kind = kindRemove
	if old.info, err = old.dir.Lstat(old.Base); err != nil {
		old.dir.Close()
		return x.tree.fail(op, s.Path, from, err)
	}
	x.pinned(old)
	switch {
	case old.info.Mode()&fs.ModeSymlink != 0:
		return &PathError{Op: op, Path: s.Path, Err: ErrNotRegular, Kind: kindSymlink}
	case !old.info.Mode().IsRegular():
		return notRegular(op, s.Path, old.info.Mode())
	case s.Deed == Remove:
		x.add(Written{Path: from.rel, Detached: linksOf(old.info) > 1}, gone)
		return nil
	}
	n, err := x.planNew(s, s.To)
	if err == nil {
		n.like, n.from = old.info, from.rel
		if s.Was != nil {
			n.New = *s.Was
		}
		x.add(Written{Path: n.path()}, gone, n)
	}
	return err
}

// planNew makes the part that gives a step's file a name that is free.
func (x *commit) planNew(s Step, name string) (*newPart, error) {
	const op = "write"
	to, err := x.tree.target(op, name, true)
	if err != nil {
		return nil, err
	}
	n := &newPart{spot: &spot{area: to.area, op: op, name: name}, data: s.Data, perm: s.Perm, was: s.Was}
	n.Kind, n.Dir, n.Base, n.Temp, n.New = kindNew, path.Dir(to.rel), path.Base(to.rel), tempName(), sha256.Sum256(s.Data)
	if s.Deed == Move && s.Was != nil {
		n.New = *s.Was
	}
	if n.Made, err = x.tree.missing(n.Dir); err != nil {
		return nil, x.tree.fail(op, name, to, err)
	}
	if s.Like != "" {
		like, err := x.tree.target(op, s.Like, true)
		if err != nil {
			return nil, err
		}
		if n.like, err = like.root.Lstat(like.rel); err != nil {
			return nil, x.tree.fail(op, s.Like, like, err)
		}
	}
	if _, err := to.root.Lstat(to.rel); err == nil {
		return nil, &PathError{Op: op, Path: name, Err: fs.ErrExist, Why: "a file of that name is there"}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, x.tree.fail(op, name, to, err)
	}
	return n, nil
}

// planOld makes the part that changes a file and keeps its name.
func (x *commit) planOld(s Step) error {
	op := s.Deed.word()
	to, err := x.tree.target(op, s.Path, true)
	if err != nil {
		return err
	}
	at, err := to.spot(op, s.Path)
	if err != nil {
		return x.tree.fail(op, s.Path, to, err)
	}
	x.pinned(at)
	old, info, err := openOld(at.dir, at.Base, s.Path)
	if err != nil {
		return x.tree.fail(op, s.Path, to, err)
	}
	if old != nil {
		defer old.Close()
	}
	at.info, at.OldPerm, at.Perm = info, info.Mode().Perm(), info.Mode().Perm()
	if s.Perm != nil {
		at.Perm = s.Perm.Perm()
	}
	w := Written{Path: to.rel}
	if s.Deed == Chmod {
		at.Kind, at.Temp = kindChmod, ""
		x.add(w, &chmodPart{spot: at, was: s.Was})
		return nil
	}
	at.Kind, at.New = kindSwap, sha256.Sum256(s.Data)
	p := &swapPart{spot: at, data: s.Data, perm: s.Perm, was: s.Was, writable: old != nil}
	links := linksOf(info)
	if w.Detached = links > 1; w.Detached && old != nil && x.tree.allLinksInside(info, links) {
		w.Detached, w.InPlace = false, true
		x.add(w, p.inPlace())
		return nil
	}
	x.add(w, p)
	return nil
}

// add appends the parts of a step, and what it does.
func (x *commit) add(w Written, parts ...part) {
	for _, p := range parts {
		p.at().step = len(x.written)
	}
	x.parts = append(x.parts, parts...)
	x.written = append(x.written, w)
}

// pinned has the folder of a spot closed in the end.
func (x *commit) pinned(s *spot) { x.folders = append(x.folders, s.dir) }

// target finds the place of a step's file: below the root, in no repository. The last part of the path is followed or not.
func (t *Tree) target(op, name string, follow bool) (place, error) {
	p, err := t.locate(op, name)
	if err != nil {
		return p, err
	}
	switch {
	case p.area == t.scratch:
		return p, &PathError{Op: op, Path: name, Err: ErrReadOnly, Why: "the scratch folder holds kept output; write below the root"}
	case p.rel == "." || strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/."):
		return p, notRegular(op, name, fs.ModeDir)
	}
	var to place
	if follow {
		to, err = t.resolve(p)
	} else if to, err = t.resolve(place{p.area, path.Dir(p.rel)}); err == nil {
		to.rel = path.Join(to.rel, path.Base(p.rel))
	}
	switch {
	case err != nil:
		return p, t.fail(op, name, p, err)
	case to.area != t.main:
		return p, &PathError{Op: op, Path: name, Err: ErrReadOnly, Why: "a symlink leads into the scratch folder"}
	case to.rel == ".":
		return p, notRegular(op, name, fs.ModeDir)
	case inRepository(to.rel):
		return p, &PathError{Op: op, Path: name, Err: ErrReadOnly, Why: "git keeps its own files there, and runs what some of them name"}
	}
	return to, nil
}

// inRepository reports whether rel is in the folder of a git repository, or is what stands for it. Some file systems fold case.
func inRepository(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// missing lists the folders on the way to dir that do not exist, the outermost first.
func (t *Tree) missing(dir string) ([]string, error) {
	var made []string
	for ; dir != "."; dir = path.Dir(dir) {
		_, err := t.main.root.Lstat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		made = append(made, dir)
	}
	slices.Reverse(made)
	return made, nil
}

// arrange orders the parts: names are freed before others are taken, and what is written in place comes last, since undoing it is the least sure.
func (x *commit) arrange() error {
	slices.SortStableFunc(x.parts, func(a, b part) int { return cmp.Compare(a.at().Kind, b.at().Kind) })
	seen := map[string]bool{}
	for _, p := range x.parts {
		s := p.at()
		if seen[s.path()] {
			return &PathError{Op: s.op, Path: s.name, Err: errors.New("two steps of one commit are about it")}
		}
		seen[s.path()] = true
	}
	return nil
}
