package patch

import "strings"

// The lines of the form that begins with ***.
const (
	envelopeBegin  = "*** Begin Patch"
	envelopeEnd    = "*** End Patch"
	envelopeAdd    = "*** Add File:"
	envelopeDelete = "*** Delete File:"
	envelopeUpdate = "*** Update File:"
	envelopeMove   = "*** Move to:"
	envelopeEOF    = "*** End of File"
)

// envelope reads from the line that begins the form to the one that ends it.
func (s *scanner) envelope() error {
	begun := s.line()
	s.at++
	files := len(s.files)
	for s.at < len(s.lines) {
		l := strings.TrimRight(s.head(s.at), " \t")
		var err error
		switch {
		case l == envelopeEnd:
			s.at++
			if len(s.files) == files {
				return wrong(begun, "the patch names no file")
			}
			return nil
		case l == "":
			s.at++
		case strings.HasPrefix(l, envelopeAdd):
			err = s.addFile(l)
		case strings.HasPrefix(l, envelopeDelete):
			err = s.named(File{Op: Delete}, strings.TrimPrefix(l, envelopeDelete))
		case strings.HasPrefix(l, envelopeUpdate):
			err = s.updateFile(l)
		default:
			err = wrong(s.line(), "%q is none of %q, %q, %q and %q", cut(l), envelopeAdd, envelopeUpdate, envelopeDelete, envelopeEnd)
		}
		if err != nil {
			return err
		}
	}
	return wrong(len(s.lines), "%s is missing at the end: the text may have been cut", envelopeEnd)
}

// named adds a file under the name that its line gives.
func (s *scanner) named(f File, name string) error {
	if name = strings.TrimSpace(name); name == "" {
		return wrong(s.line(), "it names no file")
	}
	f.Line, f.exact = s.line(), true
	f.Old, f.New = name, name
	switch f.Op {
	case Create:
		f.Old = ""
	case Delete:
		f.New = ""
	}
	s.files = append(s.files, f)
	s.at++
	return nil
}

func (s *scanner) addFile(l string) error {
	if err := s.named(File{Op: Create}, strings.TrimPrefix(l, envelopeAdd)); err != nil {
		return err
	}
	h := Hunk{Line: s.line(), Header: "the new file", Known: true, Blind: true}
	for ; s.at < len(s.lines) && s.lines[s.at][0] == '+'; s.at++ {
		h.Lines = append(h.Lines, s.lines[s.at])
	}
	if next := s.head(s.at); s.at < len(s.lines) && next != "" && !strings.HasPrefix(next, "***") {
		return wrong(s.line(), "%q does not begin with +, as every line of a new file must", cut(next))
	}
	if len(h.Lines) > 0 {
		s.files[len(s.files)-1].Hunks = []Hunk{h}
	}
	return nil
}

func (s *scanner) updateFile(l string) error {
	if err := s.named(File{}, strings.TrimPrefix(l, envelopeUpdate)); err != nil {
		return err
	}
	f := &s.files[len(s.files)-1]
	if to, ok := strings.CutPrefix(s.head(s.at), envelopeMove); ok {
		if f.New = strings.TrimSpace(to); f.New == "" {
			return wrong(s.line(), "it names no file")
		}
		if f.New != f.Old {
			f.Op = Rename
		}
		s.at++
	}
	for s.at < len(s.lines) && !s.marker() {
		h, err := s.chunk()
		if err != nil {
			return err
		}
		f.Hunks = append(f.Hunks, h)
	}
	if len(f.Hunks) == 0 && f.Op != Rename {
		return wrong(f.Line, "it names a file and has no hunk for it")
	}
	return nil
}

// marker says that the present line begins something else than a chunk.
func (s *scanner) marker() bool { return strings.HasPrefix(s.head(s.at), "***") }

// chunk reads the lines of a hunk and what stands before and after it.
func (s *scanner) chunk() (Hunk, error) {
	h := Hunk{Line: s.line(), loose: true}
	for ; strings.HasPrefix(s.head(s.at), "@@"); s.at++ {
		l := s.head(s.at)
		h.Header = cut(l)
		if _, _, known := numbersOf(l, &h); known {
			continue
		}
		if a := anchorOf(l); a != "" {
			h.Anchors = append(h.Anchors, a)
		}
	}
	if h.Blind = false; h.Header == "" {
		h.Header = "without a header"
	}
	end := s.at
	for end < len(s.lines) && (s.blank(end) || strings.IndexByte(" +-\\", s.lines[end][0]) >= 0) {
		end++
	}
	if end < len(s.lines) && !strings.HasPrefix(s.head(end), "***") && !strings.HasPrefix(s.head(end), "@@") {
		return h, wrong(end+1, "%q is no line of a hunk; each begins with a space, + or -", cut(s.head(end)))
	}
	h.AtEnd = strings.TrimRight(s.head(end), " \t") == envelopeEOF
	if err := s.take(&h, end, h.AtEnd); err != nil {
		return h, err
	}
	if h.AtEnd {
		s.at++
	}
	return h, nil
}
