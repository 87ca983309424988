package patch

import (
	"regexp"
	"strings"
)

// scanner goes over the lines of a patch.
type scanner struct {
	lines []string // each with its end
	at    int
	files []File
	cur   *File // the file whose headers or hunks are being read, nil for none
	heads bool  // git's own header lines may still come
	after bool  // a hunk has just ended, and nothing has come that shows that the rest is no part of it
}

// Parse reads a patch. Its error is an *Error.
func Parse(text string) (*Patch, error) {
	s := scanner{lines: Lines(text)}
	if n := len(s.lines); n > 0 && End(s.lines[n-1]) == "" {
		s.lines[n-1] += "\n" // the patch lacks it, not the file
	}
	for s.at < len(s.lines) {
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	if err := s.closeFile(); err != nil {
		return nil, err
	}
	if len(s.files) == 0 {
		return nil, wrong(0, "it holds no diff; send a unified diff (--- a/file, +++ b/file, @@ -1,3 +1,3 @@), or the form that begins with *** Begin Patch")
	}
	return &Patch{files: s.files}, nil
}

// line is the number of the present line, from 1.
func (s *scanner) line() int { return s.at + 1 }

// head is line i without its end, "" past the last.
func (s *scanner) head(i int) string {
	if i >= len(s.lines) {
		return ""
	}
	return Body(s.lines[i])
}

// step reads one header line, a hunk, or a line that is none of it.
func (s *scanner) step() error {
	l := s.head(s.at)
	switch {
	case strings.TrimSpace(l) == envelopeBegin:
		if err := s.closeFile(); err != nil {
			return err
		}
		return s.envelope()
	case strings.HasPrefix(l, "diff --git "):
		return s.gitHeader(l)
	case strings.HasPrefix(l, "diff --cc "), strings.HasPrefix(l, "diff --combined "), strings.HasPrefix(l, "@@@ "):
		return wrong(s.line(), "it is a combined diff of a merge, which says not which side it is for; send a diff against one side")
	case strings.HasPrefix(l, "***************"):
		return wrong(s.line(), "it is a context diff; send a unified diff (diff -u, git diff)")
	case s.isPair(s.at):
		return s.pair()
	case strings.HasPrefix(l, "@@"):
		return s.hunk(l)
	case s.heads:
		if known, err := s.extended(l); known || err != nil {
			return err
		}
		s.heads = false
		return nil // looked at once more
	}
	for _, p := range []string{envelopeAdd, envelopeDelete, envelopeUpdate} {
		if strings.HasPrefix(l, p) {
			return wrong(s.line(), "%s stands outside of %s and %s", p, envelopeBegin, envelopeEnd)
		}
	}
	if binary(l) {
		return s.isBinary()
	}
	return s.prose(l)
}

// binary recognises what git and diff write in place of the lines of a binary file.
func binary(l string) bool {
	return l == "GIT binary patch" || strings.HasSuffix(l, " differ") && (strings.HasPrefix(l, "Binary files ") || strings.HasPrefix(l, "Files "))
}

func (s *scanner) isBinary() error {
	return wrong(s.line(), "it is for a binary file, which cannot be patched as text; nothing else of the patch was applied: leave this file out and make it with a command")
}

// prose passes over a line that belongs to no diff. After a hunk it may be one whose first letter was lost: where lines with + or - follow, a part of
// the patch would be dropped in silence.
func (s *scanner) prose(l string) error {
	if s.after && strings.TrimSpace(l) != "" {
		switch {
		case s.endsHunks():
			s.after = false
		case l[0] == '+', l[0] == '-':
			return wrong(s.line(), "%q stands after the end of a hunk; every line of a hunk begins with a space, + or -, and an empty one may be empty", cut(l))
		}
	}
	s.at++
	return nil
}

// ending is how a line begins that follows the hunks of a diff: the end of a block, the next diff, mail or commit.
var ending = regexp.MustCompile("^(?:```|~~~|\\*\\*\\*|diff |Index: |Only in |From [0-9a-f]{7}|commit [0-9a-f]{7}|={3,}$|-{3,}$|EOF$)")

// endsHunks says that the present line shows that the hunk before it is over.
func (s *scanner) endsHunks() bool {
	return ending.MatchString(s.head(s.at)) || s.signature(s.at)
}

// signature says that line i begins the end of a mail, which git makes of its version.
func (s *scanner) signature(i int) bool {
	if l := s.head(i); l != "-- " && l != "--" {
		return false
	}
	next := s.head(i + 1)
	return i+1 == len(s.lines) || next != "" && next[0] >= '0' && next[0] <= '9'
}

// isPair says that line i and the next name the two sides of a file.
func (s *scanner) isPair(i int) bool {
	return strings.HasPrefix(s.head(i), "--- ") && strings.HasPrefix(s.head(i+1), "+++ ")
}

// begin opens a new file.
func (s *scanner) begin() error {
	if err := s.closeFile(); err != nil {
		return err
	}
	s.cur = &File{Line: s.line()}
	return nil
}

// closeFile ends the present file, if there is one, and checks that it is whole.
func (s *scanner) closeFile() error {
	f := s.cur
	s.cur, s.heads, s.after = nil, false, false
	if f == nil {
		return nil
	}
	if err := f.complete(); err != nil {
		return err
	}
	s.files = append(s.files, *f)
	return nil
}

// cut keeps a quoted line of the patch short.
func cut(l string) string {
	const most = 80
	n := 0
	for i := range l {
		if n++; n > most {
			return l[:i] + "…"
		}
	}
	return l
}
