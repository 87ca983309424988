package tools

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"muster/budget"
)

type listArgs struct {
	Path   string `json:"path,omitempty" default:"." jsonschema:"folder, workspace-relative or absolute"`
	Offset int64  `json:"offset,omitempty" default:"1" min:"1" jsonschema:"first entry"`
	Limit  int64  `json:"limit,omitempty" default:"list_entries" min:"1" max:"list_entries" jsonschema:"entries"`
}

func listDir() Tool {
	return define("list_dir", Read,
		"Lists one folder: folders, then files with sizes, sorted, and the total; in pages by offset. To find files in a tree use glob.",
		runList)
}

func runList(_ context.Context, c *Call, a listArgs) (Output, error) {
	name := shownName(shorten(relName(c, a.Path), 200))
	if info, err := c.Tree.Stat(a.Path); err == nil && !info.IsDir() {
		return Output{}, fail(Input, "%s is a file of %s, not a folder; read_file shows it", name, plural(info.Size(), "byte"))
	}
	entries, err := c.Tree.ReadDir(a.Path)
	if err != nil {
		return Output{}, err
	}
	slices.SortFunc(entries, func(x, y fs.FileInfo) int {
		if x.IsDir() != y.IsDir() {
			if x.IsDir() {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.Name(), y.Name())
	})
	kept := 0
	if ruled := c.leftOut("list_dir", a.Path); ruled != nil {
		all, dir := len(entries), path.Clean(relName(c, a.Path))
		entries = slices.DeleteFunc(entries, func(e fs.FileInfo) bool { return ruled(path.Join(dir, e.Name())) })
		kept = all - len(entries)
	}
	total := int64(len(entries))
	if total == 0 && kept == 0 {
		return Output{Text: name + " is an empty folder"}, nil
	}
	if a.Offset > max(total, 1) {
		return Output{}, fail(Input, "offset %d is past the end: %s has %s; give an offset of at most %d", a.Offset, name, plural(total, "entry"), total)
	}
	folders, _ := slices.BinarySearchFunc(entries, false, func(e fs.FileInfo, _ bool) int {
		if e.IsDir() {
			return -1
		}
		return 1
	})
	head := fmt.Sprintf("%s: %s (%s, %s)", name, plural(total, "entry"), plural(int64(folders), "folder"), plural(total-int64(folders), "file"))
	rows := make([]string, 0, min(a.Limit, total-a.Offset+1))
	for _, e := range entries[a.Offset-1 : a.Offset-1+min(a.Limit, total-a.Offset+1)] {
		rows = append(rows, entryRow(e))
	}
	p := page{head: head, rows: rows, offset: a.Offset, total: total, what: name, unit: "entries"}
	if kept > 0 {
		p.foot = fmt.Sprintf("[skipped: %d that rules keep from you]", kept)
	}
	return p.output(c.Room), nil
}

// entryRow is a name and its exact and human size; what is neither folder nor file says what it is.
func entryRow(e fs.FileInfo) string {
	name := shownName(e.Name())
	switch m := e.Mode(); {
	case m.IsDir():
		return name + "/"
	case m.IsRegular() && e.Size() < 1000:
		return fmt.Sprintf("%s  %s", name, plural(e.Size(), "byte"))
	case m.IsRegular():
		return fmt.Sprintf("%s  %d bytes (%s)", name, e.Size(), humanize.Bytes(uint64(e.Size())))
	case m&fs.ModeSymlink != 0:
		return name + "  symlink"
	case m&fs.ModeNamedPipe != 0:
		return name + "  fifo"
	case m&fs.ModeSocket != 0:
		return name + "  socket"
	}
	return name + "  device"
}

// page is a part of a list: rows from offset on of total, each one line. It is cut at a row when the characters run out.
type page struct {
	head    string
	heading func(shown int64) string // instead of head, where it says how many rows are shown
	rows    []string
	offset  int64 // of the first row, from 1
	total   int64
	what    string
	unit    string
	foot    string // what stands under the rows whatever is cut
	rest    string // what gets the rest; empty: the next offset
	source  string // the rows hold words from there, and are fenced
}

// output writes the rows that fit in room characters, and the notice where rows follow. Its numbers are of the rows really shown.
func (p page) output(room int) Output {
	for i, r := range p.rows { // a single row may not take the whole page, or the next offset would never move
		p.rows[i] = shorten(r, room/2)
	}
	for n := rowsThatFit(p.rows, room); ; n-- {
		out := p.with(n)
		if n == 0 || budget.Chars(joined(out.Before, out.Text, out.After)) <= room {
			return out
		}
	}
}

// with is the page with its first n rows.
func (p page) with(n int) Output {
	notice, facts := p.notice(n)
	head := p.head
	if p.heading != nil {
		head = p.heading(int64(n))
	}
	out := Output{Before: head, Text: strings.Join(p.rows[:n], "\n"), After: joined(notice, p.foot), Facts: facts}
	if p.source == "" || n == 0 {
		return Output{Text: joined(out.Before, out.Text, out.After), Facts: facts}
	}
	out.Untrusted = p.source
	return out
}

// notice says how many of the total are shown when n rows are.
func (p page) notice(n int) (string, Facts) {
	next := p.offset + int64(n)
	if next > p.total {
		return "", Facts{}
	}
	cut := budget.Cut{What: p.what, Unit: p.unit, Shown: int64(n), Total: p.total, Next: next}
	rest := p.rest
	if rest == "" {
		rest = fmt.Sprintf("the next offset is %d", next)
	} else {
		cut.Next = 0
	}
	return cut.Notice(rest), Facts{Cuts: []budget.Cut{cut}}
}
