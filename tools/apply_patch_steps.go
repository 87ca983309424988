package tools

import (
	"crypto/sha256"

	"muster/tools/workspace"
)

// steps are what the commit has to do.
func (w *patching) steps() []workspace.Step {
	var steps []workspace.Step
	moved := map[string]bool{}
	for _, d := range w.order {
		var s workspace.Step
		some := true
		switch n := d.now; {
		case n == nil || n == d.disk:
			continue
		case d.disk != nil:
			s, some = d.replaced()
		case n.file != nil && !n.plain && !moved[n.path] && w.drafts[n.path].now == nil:
			moved[n.path] = true
			s = workspace.Step{Deed: workspace.Move, Path: n.path, To: d.path, Was: &n.file.sum}
			if n.perm != n.file.perm {
				s.Perm = &n.perm
			}
		default:
			s = workspace.Step{Deed: workspace.Create, Path: d.path, Data: n.data()}
			if n.file != nil {
				s.Like = n.path
			}
			if n.perm != 0 && (n.file == nil || n.perm != n.file.perm) {
				s.Perm = &n.perm
			}
		}
		if some {
			steps = append(steps, s)
			d.step = len(steps)
		}
	}
	for _, d := range w.order {
		if d.disk != nil && d.now == nil && !moved[d.path] {
			steps = append(steps, workspace.Step{Deed: workspace.Remove, Path: d.path, Was: &d.disk.file.sum})
		}
	}
	return steps
}

// replaced is the step that makes of the file on disk what it is to be; false where it is that.
func (d *draft) replaced() (workspace.Step, bool) {
	s := workspace.Step{Deed: workspace.Put, Path: d.path, Data: d.now.data(), Was: &d.disk.file.sum}
	if d.now.perm != 0 && d.now.perm != d.disk.perm {
		s.Perm = &d.now.perm
	}
	if sha256.Sum256(s.Data) != d.disk.file.sum {
		return s, true
	}
	s.Deed = workspace.Chmod
	return s, s.Perm != nil
}

// remember is what this agent knows of the files afterwards, and what the commit says of them.
func (w *patching) remember() {
	for _, d := range w.order {
		if d.step > 0 && (d.now.file == nil || d.now.file.read) {
			w.call.set.reads.remember(w.call.Tree, d.path, sha256.Sum256(d.now.data()))
		}
	}
	for _, s := range w.done {
		if s.draft != nil && s.draft.step > 0 {
			s.link = linkNotes(w.written[s.draft.step-1], shownName(shorten(relName(w.call, s.to), 200)))
		}
	}
}
