package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"muster/board"
	"muster/budget"
	"muster/tools/patch"
)

// diffContext is how many unchanged lines stand around a change in the diff of an edit.
const diffContext = 2

type editArgs struct {
	Path string `json:"path" jsonschema:"file, workspace-relative or absolute"`
	Old  string `json:"old_string" empty:"to create or replace a whole file use write_file" jsonschema:"text now, without line numbers"`
	New  string `json:"new_string" empty:"ok" jsonschema:"text in its place"`
	All  bool   `json:"replace_all,omitempty" default:"false" jsonschema:"all occurrences"`
}

func editFile() Tool {
	return define("edit_file", Write,
		"Replaces old_string in a file and returns a small diff. old_string must match exactly, indentation included, at one place (or set replace_all). "+
			"Line ends and encoding stay. Whole file: write_file.",
		runEdit)
}

func runEdit(ctx context.Context, c *Call, a editArgs) (Output, error) {
	if a.Old == a.New {
		return Output{}, fail(Input, "old_string and new_string are equal; nothing would change")
	}
	f, err := c.openKnown(ctx, a.Path)
	if err == nil {
		err = f.decode()
	}
	if err != nil {
		return Output{}, err
	}
	name := f.name
	e := edit{text: f.text, old: a.Old, new: a.New}
	if f.enc != plainUTF8 { // a byte order mark belongs to the encoding, not to the text
		e.old, e.new = strings.TrimPrefix(a.Old, "\uFEFF"), strings.TrimPrefix(a.New, "\uFEFF")
		if e.old == "" {
			return Output{}, fail(Input, "old_string is only a byte order mark, which edit_file always keeps")
		}
	}
	e.find()
	switch {
	case len(e.found) == 0:
		return Output{}, fail(Input, "old_string is not in %s\n%s", name, nearestLines(f.text, e.old, false, c.Room/2))
	case len(e.found) > 1 && !a.All:
		return Output{}, fail(Input, "old_string is in %s at %d places (%s); nothing was changed: include more lines around the one you mean, or set replace_all",
			name, len(e.found), e.lineList())
	}
	edits := e.edits()
	changed, err := udiff.Apply(f.text, edits)
	if err != nil {
		return Output{}, fmt.Errorf("edit %s: %w", name, err)
	}
	if changed == f.text {
		return Output{}, fail(Input, "the edit would change nothing in %s: old_string and new_string differ only in line ends, which the file keeps", name)
	}
	w, err := f.put(ctx, c, changed)
	if err != nil {
		return Output{}, err
	}
	return e.report(c, a.Path, name, len(edits), edits, linkNotes(w, name))
}

// edit is a replacement in a text. An old string without \r matches LF and CRLF alike, and what replaces it takes the ends it finds there, line by line;
// one with \r is taken byte for byte.
type edit struct {
	text, old, new string
	found          []span // every occurrence, overlapping ones too
}

type span struct{ start, end int }

func (e *edit) find() {
	if strings.Contains(e.old, "\r") || !strings.Contains(e.text, "\r\n") {
		for at := 0; ; {
			i := strings.Index(e.text[at:], e.old)
			if i < 0 {
				return
			}
			e.found = append(e.found, span{at + i, at + i + len(e.old)})
			at += i + 1
		}
	}
	plain := strings.ReplaceAll(e.text, "\r\n", "\n")
	m := newlineMap{text: e.text}
	for at := 0; ; {
		i := strings.Index(plain[at:], e.old)
		if i < 0 {
			return
		}
		at += i
		e.found = append(e.found, span{m.original(at, false), m.original(at+len(e.old), true)})
		at++
	}
}

// newlineMap finds places of the text without \r in the text with it. Starts ask in rising order, and so do ends.
type newlineMap struct {
	text       string
	start, end cursor
}

// cursor is a place in both texts.
type cursor struct{ plain, original int }

func (m *newlineMap) original(plain int, end bool) int {
	c := &m.start
	if end {
		c = &m.end
	}
	for c.plain < plain {
		rest := m.text[c.original:]
		i := strings.Index(rest, "\r\n")
		if i < 0 || c.plain+i >= plain {
			c.original += plain - c.plain
			c.plain = plain
			break
		}
		c.plain += i + 1 // the newline itself
		c.original += i + 2
	}
	return c.original
}

// edits are the replacements that do not overlap, from the left.
func (e *edit) edits() []udiff.Edit {
	var out []udiff.Edit
	end := 0
	for _, f := range e.found {
		if f.start < end {
			continue
		}
		end = f.end
		out = append(out, udiff.Edit{Start: f.start, End: f.end, New: e.withEnds(f)})
	}
	return out
}

// withEnds is the new string with the line ends of the place it goes to.
func (e *edit) withEnds(f span) string {
	if strings.Contains(e.old, "\r") || !strings.Contains(e.new, "\n") || !strings.Contains(e.text, "\r\n") {
		return e.new
	}
	whole := strings.LastIndexByte(e.new, '\n') + 1 // what comes after is part of a line that has its end
	old := e.text[f.start:f.end]
	ended := patch.Lines(old[:strings.LastIndexByte(old, '\n')+1])
	return strings.Join(patch.WithEnds(patch.Lines(e.new[:whole]), ended, e.endNear(f)), "") + e.new[whole:]
}

// endNear is the line end after the place, else before it.
func (e *edit) endNear(f span) string {
	if i := strings.IndexByte(e.text[f.end:], '\n'); i >= 0 {
		return patch.End(e.text[f.start : f.end+i+1])
	}
	return patch.End(e.text[:strings.LastIndexByte(e.text[:f.start], '\n')+1])
}

// lineList names the lines of the occurrences.
func (e *edit) lineList() string {
	var lines []int
	line, at := 1, 0
	for _, f := range e.found {
		line += strings.Count(e.text[at:f.start], "\n")
		at = f.start
		lines = append(lines, line)
	}
	return lineNumbers(lines)
}

// report is the text of a done edit: what was replaced, and the diff as far as it fits.
func (e *edit) report(c *Call, path, name string, places int, edits []udiff.Edit, notes string) (Output, error) {
	diff, err := udiff.ToUnified("a/"+name, "b/"+name, e.text, edits, diffContext)
	if err != nil {
		return Output{}, fmt.Errorf("diff of %s: %w", name, err)
	}
	stat := board.FileStat{Path: relName(c, path)}
	stat.Added, stat.Removed = diffStat(diff)
	rows := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i, r := range rows {
		line, _, _ := visible(strings.TrimSuffix(r, "\r"))
		if cut := budget.Chars(line) - c.Caps.GrepLineChars; cut > 0 {
			line = fmt.Sprintf("%s… (+%d chars)", headChars(line, c.Caps.GrepLineChars), cut)
		}
		rows[i] = line
	}
	head := fmt.Sprintf("edited %s: %s, +%d −%d lines%s", name, plural(int64(places), "replacement"), stat.Added, stat.Removed, notes)
	p := page{head: head, rows: rows, offset: 1, total: int64(len(rows)), what: "the diff", unit: "lines", rest: "read_file shows the file"}
	out := p.output(c.Room)
	out.Facts.Files = []board.FileStat{stat}
	return out, nil
}
