package patch

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func (s *scanner) gitHeader(l string) error {
	if err := s.begin(); err != nil {
		return err
	}
	s.cur.names.git = gitNames(strings.TrimPrefix(l, "diff --git "))
	s.heads = true
	s.at++
	return nil
}

// extended reads one of git's header lines; false where l is none.
func (s *scanner) extended(l string) (bool, error) {
	f := s.cur
	word := func(prefix string) (string, bool) { return strings.CutPrefix(l, prefix) }
	var err error
	switch {
	case strings.HasPrefix(l, "similarity index "), strings.HasPrefix(l, "dissimilarity index "):
	default:
		var rest string
		var ok bool
		if rest, ok = word("old mode "); ok {
			_, err = modeOf(rest, s.line())
		} else if rest, ok = word("new mode "); ok {
			f.Mode, err = modeOf(rest, s.line())
		} else if rest, ok = word("new file mode "); ok {
			f.Op = Create
			f.Mode, err = modeOf(rest, s.line())
		} else if rest, ok = word("deleted file mode "); ok {
			f.Op = Delete
			_, err = modeOf(rest, s.line())
		} else if rest, ok = word("index "); ok {
			if _, mode, has := strings.Cut(rest, " "); has {
				_, err = modeOf(mode, s.line())
			}
		} else {
			ok, err = s.moved(l)
		}
		if !ok || err != nil {
			return false, err
		}
	}
	s.at++
	return true, nil
}

// moved reads the names of a rename or a copy, which have no prefix.
func (s *scanner) moved(l string) (bool, error) {
	f := s.cur
	for _, m := range []struct {
		prefix string
		op     Op
		name   *string
	}{{"rename from ", Rename, &f.Old}, {"rename to ", Rename, &f.New}, {"copy from ", Copy, &f.Old}, {"copy to ", Copy, &f.New}} {
		rest, ok := strings.CutPrefix(l, m.prefix)
		if !ok {
			continue
		}
		name, err := unquote(rest)
		if err != nil || name == "" {
			return false, wrong(s.line(), "the name %s cannot be read", cut(rest))
		}
		f.Op, f.names.moved, *m.name = m.op, true, name
		return true, nil
	}
	return false, nil
}

// modeOf reads git's octal mode of a regular file.
func modeOf(text string, line int) (*fs.FileMode, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
	if err != nil {
		return nil, wrong(line, "the mode %q is no octal number", cut(text))
	}
	const kind, regular = 0o170000, 0o100000
	switch n & kind {
	case regular:
	case 0o120000:
		return nil, refused(line, "mode %o is a symlink, which a patch may not make, change or remove; nothing was applied", n)
	case 0o160000:
		return nil, refused(line, "mode %o is a submodule, which a patch may not make, change or remove; nothing was applied", n)
	default:
		return nil, refused(line, "mode %o is no regular file's; nothing was applied", n)
	}
	if n&^kind > 0o777 {
		return nil, refused(line, "mode %o asks for more than permissions (set-user-id and the like); nothing was applied", n)
	}
	perm := fs.FileMode(n & 0o777)
	return &perm, nil
}

// pair reads the lines --- and +++.
func (s *scanner) pair() error {
	if !s.heads {
		if err := s.begin(); err != nil {
			return err
		}
	}
	f := s.cur
	var err error
	if f.names.old, f.never[0], err = headerName(s.head(s.at), s.line()); err != nil {
		return err
	}
	if f.names.new, f.never[1], err = headerName(s.head(s.at+1), s.line()+1); err != nil {
		return err
	}
	f.names.hasPair = true
	s.heads = false
	s.at += 2
	if binary(s.head(s.at)) {
		return s.isBinary()
	}
	return nil
}

// dated is what diff -u writes behind a name; some put blanks where the tab belongs.
var dated = regexp.MustCompile(`^(.*?)[\t ]+(\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*)$`)

// headerName takes the name out of a line --- or +++. never says that it has the date of a file that does not exist.
func headerName(l string, line int) (name string, never bool, err error) {
	rest := l[len("--- "):]
	if strings.HasPrefix(rest, `"`) {
		end := closingQuote(rest)
		if name, err = unquote(rest[:end]); err != nil || name == "" {
			return "", false, wrong(line, "the name %s cannot be read", cut(rest))
		}
		return name, never, nil
	}
	name = rest
	if m := dated.FindStringSubmatch(rest); m != nil {
		name = m[1]
		at, perr := time.Parse("2006-01-02 15:04:05.999999999 -0700", strings.TrimSpace(m[2]))
		never = perr == nil && at.Unix() == 0
	} else if before, _, tab := strings.Cut(rest, "\t"); tab {
		name = before // git ends a name with blanks in it with a tab
	} else {
		name = strings.TrimRight(name, " ")
	}
	if name == "" {
		return "", false, wrong(line, "it names no file")
	}
	return name, never, nil
}

// complete checks that a file of the patch says all that is needed, and that it does not contradict itself.
func (f *File) complete() error {
	if f.exact {
		return nil
	}
	n := f.names
	if n.moved && (f.Old == "" || f.New == "") {
		return wrong(f.Line, "a rename or copy needs both names, from and to")
	}
	if n.hasPair {
		switch {
		case n.old == nullName && n.new == nullName:
			return wrong(f.Line, "both sides are %s", nullName)
		case n.old == nullName, f.never[0] && f.onlyAdds():
			f.Op = Create
		case n.new == nullName, f.never[1] && f.onlyRemoves():
			f.Op = Delete
		}
		if len(f.Hunks) == 0 {
			return wrong(f.Line, "it names a file and has no hunk for it; a hunk begins with @@ -1,3 +1,3 @@")
		}
	}
	if !n.hasPair && !n.moved && n.git == [2]string{} {
		return wrong(f.Line, "its two names cannot be told apart; add the lines --- and +++")
	}
	switch {
	case f.Op == Create && !f.onlyAdds():
		return wrong(f.Line, "it makes a new file and has lines that are not added")
	case f.Op == Delete && !f.onlyRemoves():
		return wrong(f.Line, "it removes a file and has lines that are not removed")
	case len(f.Hunks) == 0 && f.Op == Modify && f.Mode == nil:
		return wrong(f.Line, "it names a file and says nothing to be done with it")
	}
	return nil
}

// onlyAdds says that every line of every hunk is added.
func (f *File) onlyAdds() bool { return f.only('+') }

func (f *File) onlyRemoves() bool { return f.only('-') }

func (f *File) only(letter byte) bool {
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if l[0] != letter {
				return false
			}
		}
	}
	return true
}
