package patch

import (
	"fmt"
	"io/fs"
)

// Op is what a patch does to a file.
type Op int

// The operations.
const (
	Modify Op = iota
	Create
	Delete
	Rename // perhaps changed on the way
	Copy
)

// Patch is what a text says is to be done, in its order.
type Patch struct {
	files []File
}

// File is one file of a patch.
type File struct {
	Op       Op
	Old, New string       // names, relative as a rule; Old is empty for Create, New for Delete
	Mode     *fs.FileMode // permission bits that the patch gives, nil for none
	Hunks    []Hunk
	Line     int // of the patch, where it begins

	names names
	exact bool    // names are as they are: the form that begins with *** has no prefixes
	never [2]bool // the date of a side is zero: there is no such file
}

// names are the names of a file as the patch has them.
type names struct {
	git      [2]string // of the line "diff --git", where it could be told apart
	old, new string    // of the lines --- and +++; nullName for none
	hasPair  bool      // those lines were there
	moved    bool      // rename or copy named Old and New
}

// nullName stands in a header for a side that does not exist.
const nullName = "/dev/null"

// Hunk is one block of a file: lines with a first letter of ' ', '-' or '+' and with their ends.
type Hunk struct {
	Lines   []string
	Line    int      // of the patch, where it begins
	Header  string   // as it stands in the patch, cut
	Old     int      // first line of the old side, 0 unknown; with no old lines, the line after which it goes
	New     int      // first line of the new side, 0 unknown
	Known   bool     // the header has numbers
	Blind   bool     // the header says that there are no old lines (-U0)
	Anchors []string // lines of which the first stands before the second, and so on, before the hunk
	AtEnd   bool     // it is at the end of the file
	loose   bool     // blank lines at its end may have been lost
}

// Whole says that a file is to be removed whatever it holds: the form that begins with *** names it only.
func (f *File) Whole() bool { return f.Op == Delete && f.exact && len(f.Hunks) == 0 }

// side lists the lines of a hunk that have one of two letters.
func (h *Hunk) side(letter byte) []string {
	out := make([]string, 0, len(h.Lines))
	for _, l := range h.Lines {
		if l[0] == ' ' || l[0] == letter {
			out = append(out, l[1:])
		}
	}
	return out
}

// counts are how many lines the hunk adds and removes.
func (h *Hunk) counts() (added, removed int) {
	for _, l := range h.Lines {
		switch l[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// Error is what is wrong with a patch itself.
type Error struct {
	Line    int // of the patch, 0 for the whole
	Text    string
	Refused bool // it is well-formed, and asks for what is never done
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Text)
}

func wrong(line int, format string, a ...any) error {
	return &Error{Line: line, Text: fmt.Sprintf(format, a...)}
}

func refused(line int, format string, a ...any) error {
	return &Error{Line: line, Text: fmt.Sprintf(format, a...), Refused: true}
}
