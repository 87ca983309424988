package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/budget"
	"muster/tools/patch"
	"muster/tools/workspace"
)

type patchArgs struct {
	Diff string `json:"diff" empty:"it takes a unified diff" jsonschema:"the patch"`
}

func applyPatch() Tool {
	return define("apply_patch", Write,
		"Applies a unified diff or *** Begin Patch text to files, all or none, by hunks with matching context. One replacement: edit_file.",
		runPatch)
}

// runPatch makes all new contents in memory first. Only when every hunk of every file has its place is anything written, in one commit.
func runPatch(ctx context.Context, c *Call, a patchArgs) (Output, error) {
	files, err := patchFiles(c.Tree, a.Diff)
	if err != nil {
		return Output{}, err
	}
	w := &patching{call: c, drafts: map[string]*draft{}}
	w.expect(files)
	for i := range files {
		if err := w.file(ctx, &files[i]); err != nil {
			return Output{}, err
		}
	}
	if len(w.problems) > 0 {
		return w.refusal(ctx)
	}
	steps := w.steps()
	if len(steps) > 0 {
		if err := w.stillAllowed(a); err != nil {
			return Output{}, err
		}
		if w.written, err = c.Tree.Commit(ctx, steps); err != nil {
			return Output{}, err
		}
		w.remember()
	}
	return w.report(), nil
}

// patchFiles reads a patch, and finds out what its names mean in a tree.
func patchFiles(tree *workspace.Tree, diff string) ([]patch.File, error) {
	p, err := patch.Parse(diff)
	var files []patch.File
	if err == nil {
		files, err = p.Locate(func(name string) bool {
			_, err := tree.Lstat(name)
			return err == nil
		})
	}
	var bad *patch.Error
	switch {
	case errors.As(err, &bad) && bad.Refused:
		return nil, fail(Permission, "%v", err)
	case err != nil:
		return nil, fail(Input, "the patch cannot be read: %v", err)
	}
	return files, nil
}

// patchPaths are all names that a patch is about, for rules: of a rename both. A patch that cannot be read has none.
func patchPaths(tree *workspace.Tree, diff string) []string {
	files, err := patchFiles(tree, diff)
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		for _, n := range []string{f.Old, f.New} {
			if n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// readable fails for a patch that rules cannot judge, since nobody can say which files it is about.
func readable(tree *workspace.Tree, tool string, args json.RawMessage) error {
	var a patchArgs
	if tool != "apply_patch" || json.Unmarshal(args, &a) != nil {
		return nil
	}
	_, err := patchFiles(tree, a.Diff)
	return err
}

// stillAllowed asks the rules once more whether they forbid it. What a name means depends on what exists, and that may have changed since.
func (w *patching) stillAllowed(a patchArgs) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	t, _ := w.call.set.find("apply_patch")
	_, _, err = w.call.set.approve(t, raw, granted)
	return err
}

// problem is why a patch is not applied.
type problem struct {
	err     error          // of the whole file; nil:
	name    string         // a hunk of this file fails
	text    string         // of the file
	failure *patch.Failure // how
}

// Up to how many failing hunks are shown beside the file's text; of the others only their places in the patch.
const shownFailures = 5

// refusal is the error of a patch that does not fit: everything that is wrong with it, as far as there is room.
func (w *patching) refusal(ctx context.Context) (Output, error) {
	class := Input
	for _, p := range w.problems {
		if p.err == nil {
			continue
		}
		if e := explain(p.err); class == Input || e.Class == Permission {
			class = e.Class
		}
	}
	text := "the patch does not apply; nothing was changed"
	room := w.call.Room - budget.Chars(text) - 150 // for the notice
	out := Output{}
	for i, p := range w.problems {
		row := p.row(ctx, i < shownFailures, max(room/min(len(w.problems), shownFailures), 80))
		if room -= budget.Chars(row) + 1; room < 0 {
			cut := budget.Cut{What: "the problems", Unit: "problems", Shown: int64(i), Total: int64(len(w.problems))}
			out.Facts.Cuts = []budget.Cut{cut}
			text += "\n" + cut.Notice("mend these first")
			break
		}
		text += "\n" + row
	}
	return out, fail(class, "%s", text)
}

// row tells one problem, a hunk with what it has and what the file has.
func (p problem) row(ctx context.Context, near bool, room int) string {
	if p.err != nil {
		return shorten(explain(p.err).Text, room)
	}
	f := p.failure
	header, _, _ := visible(shorten(f.Header, nearChars))
	row := fmt.Sprintf("%s hunk %d, line %d of the patch (%s): %s", p.name, f.Hunk, f.Line, header, f.Why)
	if len(f.Places) > 0 {
		row += " (" + lineNumbers(f.Places) + ")"
	}
	if !f.Missing || !near || ctx.Err() != nil {
		return shorten(row, room)
	}
	row += "\nthe hunk has:\n" + showPlaces(f.Old, []int{0}, len(f.Old), room/3)
	return shorten(row+"\n"+nearestLines(p.text, strings.Join(f.Old, "\n"), true, room-budget.Chars(row)-100), room)
}

// lineNumbers names lines, at most ten.
func lineNumbers(lines []int) string {
	const shown = 10
	var b strings.Builder
	b.WriteString("line ")
	for i, l := range lines[:min(shown, len(lines))] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, l)
	}
	if more := len(lines) - shown; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}
