package patch

import (
	"regexp"
	"strconv"
	"strings"
)

var numbered = regexp.MustCompile(`^@@+\s*-(\d+)(?:,(\d+))?\s+\+(\d+)(?:,(\d+))?\s*(?:@@.*)?$`)

// most is the highest line number or count that is taken from a header; a higher one is as good as none.
const most = 1 << 30

// numbersOf reads the header of a hunk; false where it has no numbers.
func numbersOf(l string, h *Hunk) (oldCount, newCount int, ok bool) {
	m := numbered.FindStringSubmatch(l)
	if m == nil {
		return 0, 0, false
	}
	var n [4]int
	for i, text := range m[1:] {
		n[i] = 1 // a count that is left out
		if text == "" {
			continue
		}
		v, err := strconv.Atoi(text)
		if err != nil || v > most {
			return 0, 0, false
		}
		n[i] = v
	}
	h.Old, h.New, h.Known, h.Blind = n[0], n[2], true, n[1] == 0
	return n[1], n[3], true
}

// anchorOf is the line that the header of a hunk without numbers names, "" for none.
func anchorOf(l string) string {
	rest := strings.TrimPrefix(l, "@@")
	if before, _, closed := strings.Cut(rest, "@@"); closed {
		rest = before
	}
	rest = strings.TrimSpace(rest)
	if strings.Trim(rest, "0123456789-+,. …") == "" {
		return ""
	}
	return rest
}

// hunk reads a hunk of a unified diff.
func (s *scanner) hunk(l string) error {
	if s.cur == nil {
		return wrong(s.line(), "a hunk comes before the name of its file; begin with --- a/file and +++ b/file")
	}
	h := Hunk{Line: s.line(), Header: cut(l)}
	oldCount, newCount, known := numbersOf(l, &h)
	if !known {
		if a := anchorOf(l); a != "" && !strings.HasSuffix(l, "@@") {
			h.Anchors = []string{a}
		}
	}
	s.heads = false
	s.at++
	end, fits := s.at, false
	if known {
		end, fits = s.counted(oldCount, newCount)
	}
	if !fits {
		end = s.guessed()
		h.loose = true
	}
	if err := s.take(&h, end, fits); err != nil {
		return err
	}
	s.cur.Hunks = append(s.cur.Hunks, h)
	s.after = true
	return nil
}

// blank says that line i is empty: a line of context whose space was lost.
func (s *scanner) blank(i int) bool { return s.head(i) == "" }

// counted finds the end of a hunk by the counts of its header; false where its lines are not what they say.
func (s *scanner) counted(oldCount, newCount int) (end int, ok bool) {
	i := s.at
	for oldCount > 0 || newCount > 0 {
		if i == len(s.lines) {
			return 0, false
		}
		switch c := s.lines[i][0]; {
		case c == ' ' || s.blank(i):
			oldCount--
			newCount--
		case c == '-':
			oldCount--
		case c == '+':
			newCount--
		case c == '\\' && i > s.at:
		default:
			return 0, false
		}
		if oldCount < 0 || newCount < 0 {
			return 0, false
		}
		i++
	}
	if i < len(s.lines) && s.lines[i][0] == '\\' && i > s.at {
		i++
	}
	next := i
	for next < len(s.lines) && s.blank(next) {
		next++
	}
	if next == len(s.lines) || s.elsewhere(next) {
		return i, true
	}
	c := s.lines[next][0]
	return i, c != '+' && c != '-' && (c != ' ' || next > i)
}

// elsewhere says that line i, though it may look like a line of a hunk, begins something else.
func (s *scanner) elsewhere(i int) bool {
	if s.signature(i) {
		return true
	}
	return s.isPair(i) && (i+2 >= len(s.lines) || strings.HasPrefix(s.head(i+2), "@@"))
}

// guessed finds the end of a hunk by its lines alone.
func (s *scanner) guessed() int {
	i := s.at
	for i < len(s.lines) && (s.blank(i) || strings.IndexByte(" +-\\", s.lines[i][0]) >= 0) && !s.elsewhere(i) {
		i++
	}
	return i
}

// take makes the lines up to end those of h. Empty lines at the end of a hunk that was only guessed belong to it or not; they are left out.
func (s *scanner) take(h *Hunk, end int, counted bool) error {
	last := end
	for !counted && last > s.at && s.blank(last-1) {
		last--
	}
	changes := false
	for i := s.at; i < last; i++ {
		l := s.lines[i]
		switch {
		case s.blank(i):
			l = " " + l
		case l[0] == '\\':
			if len(h.Lines) == 0 {
				return wrong(i+1, "%q has no line before it", cut(Body(l)))
			}
			p := &h.Lines[len(h.Lines)-1]
			if *p = strings.TrimSuffix(*p, "\n"); End(l) == "\r\n" {
				*p = strings.TrimSuffix(*p, "\r") // it came from how the patch was sent
			}
			if len(*p) == 1 {
				return wrong(i+1, "%q stands after an empty line, which is nothing without its newline", cut(Body(l)))
			}
			continue
		default:
			changes = changes || l[0] != ' '
		}
		h.Lines = append(h.Lines, l)
	}
	// A line that is none of a hunk ends it only where that was to be expected.
	if !counted && end == last && end < len(s.lines) && !strings.HasPrefix(s.head(end), "@@") && !s.elsewhere(end) {
		s.at = end
		if !s.endsHunks() {
			return wrong(end+1, "%q is no line of a hunk; each begins with a space, + or -", cut(s.head(end)))
		}
	}
	if !changes {
		return wrong(h.Line, "the hunk has no line that is added or removed")
	}
	s.at = end
	return nil
}
