package secrets

import (
	"slices"
	"strings"
)

// A form is found by its anchors: pieces of 8 bytes, every 16 bytes and at its end. A text is looked through for all anchors of all forms at
// once, in steps of up to 6 bytes: a table says for each 3 bytes how far away from the end of an anchor they are at least. What an anchor
// finds is followed in both directions as far as text and form agree.
const (
	anchorBytes = 8
	anchorEvery = 16
	blockBytes  = 3
	farthest    = anchorBytes - blockBytes + 1
	tableBits   = 16
	alike       = 2 // anchors of one form with the same bytes that are followed: of "aaaa…" the others say nothing new
)

// cutMark stands where a text was cut: what is beside it of a form may be all that there was room for.
const cutMark = "…"

// place is where an anchor stands in a form.
type place struct{ form, at int }

// matcher finds the forms of values.
type matcher struct {
	forms   []form
	anchors map[uint64][]place
	step    []uint8    // by block; nil without forms
	first   [256][]int // forms by their first byte
	longest int        // bytes of a form

	shapeBase int // number of the first shape's name
}

// span is a part of a text that is not to be seen.
type span struct{ from, to, name int }

func block(a, b, c byte) uint32 {
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9E3779B1 >> (32 - tableBits)
}

func eight(s string, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

// add takes in a value.
func (m *matcher) add(name int, value string) {
	for _, text := range formsOf(value) {
		f := form{name: name, text: text, need: len(text)}
		if len(text) >= 2*anchorBytes {
			f.need = max(partChars, (len(text)+1)/2)
		}
		m.forms = append(m.forms, f)
	}
}

// seal makes the tables.
func (m *matcher) seal() {
	if len(m.forms) == 0 {
		return
	}
	m.anchors = map[uint64][]place{}
	m.step = slices.Repeat([]uint8{farthest}, 1<<tableBits)
	for i, f := range m.forms {
		m.longest = max(m.longest, len(f.text))
		m.first[f.text[0]] = append(m.first[f.text[0]], i)
		for at := 0; at+anchorBytes <= len(f.text); at += anchorEvery {
			m.anchor(i, at)
		}
		m.anchor(i, len(f.text)-anchorBytes)
	}
}

func (m *matcher) anchor(form, at int) {
	text := m.forms[form].text[at : at+anchorBytes]
	key := eight(text, 0)
	same := 0
	for _, p := range m.anchors[key] {
		if p == (place{form, at}) {
			return
		}
		if p.form == form {
			same++
		}
	}
	if same >= alike {
		return
	}
	m.anchors[key] = append(m.anchors[key], place{form, at})
	for i := range farthest {
		h := block(text[i], text[i+1], text[i+2])
		m.step[h] = min(m.step[h], uint8(farthest-1-i))
	}
}

// find returns what of s is not to be seen, from byte begin on, in order and without overlaps, and where something begins that what comes
// after s might make a secret: len(s) where nothing does.
func (r *Redactor) find(s string, begin int) (spans []span, open int) {
	open = len(s)
	spans, open = r.findForms(s, begin, spans, open)
	spans, open = r.findShapes(s, begin, spans, open)
	if len(spans) == 0 {
		return nil, open
	}
	spans = slices.DeleteFunc(spans, func(sp span) bool { return r.marked(s, sp) })
	slices.SortFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	kept := spans[:0]
	for _, sp := range spans {
		last := len(kept) - 1
		if last < 0 || sp.from >= kept[last].to {
			kept = append(kept, sp)
			continue
		}
		kept[last].to = max(kept[last].to, sp.to)
		if kept[last].name >= r.shapeBase && sp.name < r.shapeBase {
			kept[last].name = sp.name // a name that somebody gave says more
		}
	}
	return kept, open
}

// marked says that a span is within words that stand in place of a secret already.
func (r *Redactor) marked(s string, sp span) bool {
	near := max(0, sp.from-len(opening)-nameChars)
	from := strings.LastIndex(s[near:min(len(s), sp.from+len(opening))], opening)
	if from < 0 {
		return false
	}
	from += near
	name, _, ended := strings.Cut(s[from+len(opening):min(len(s), from+len(opening)+nameChars+1)], "]")
	return ended && from <= sp.from && sp.to <= from+len(opening)+len(name)+1 && slices.Contains(r.names, name)
}

// trail is what was followed last of a form: another anchor of it says nothing new.
type trail struct{ start, end int }

func (m *matcher) findForms(s string, begin int, spans []span, open int) ([]span, int) {
	if m.step == nil {
		return spans, open
	}
	var trails map[int]trail
	for i := begin; i+anchorBytes <= len(s); {
		if n := m.step[block(s[i+5], s[i+6], s[i+7])]; n > 0 {
			i += int(n)
			continue
		}
		next := i + 1
		for _, p := range m.anchors[eight(s, i)] {
			if t, ok := trails[p.form]; ok && t.start == i-p.at && i < t.end {
				continue
			}
			f := m.forms[p.form]
			from, before := f.back(s, i, p.at, begin)
			to, after, more := f.forward(s, i+anchorBytes, p.at+anchorBytes)
			got := after - before
			if more {
				open = min(open, from)
			}
			if got >= f.need || before == 0 && strings.HasPrefix(s[to:], cutMark) || after == len(f.text) && strings.HasSuffix(s[:from], cutMark) {
				spans = append(spans, span{from, to, f.name})
			}
			if got == len(f.text) { // what another form has of its own is after its last anchor but one
				next = max(next, to-anchorBytes+1)
			}
			if trails == nil {
				trails = map[int]trail{}
			}
			trails[p.form] = trail{i - p.at, to}
		}
		i = next
	}
	return spans, open
}

// begun is where the end of s may be the beginning of a form, len(s) where it is not.
func (m *matcher) begun(s string, begin int) int {
	for i := max(begin, len(s)-2*m.longest-64); i < len(s); i++ {
		for _, n := range m.first[s[i]] {
			f := m.forms[n]
			if _, _, more := f.forward(s, i, 0); more {
				return i
			}
		}
	}
	return len(s)
}

// forward follows the form from byte at of it along s from i on, over line breaks, and returns where they part; more says that s ended first.
func (f form) forward(s string, i, at int) (to, end int, more bool) {
	to, end = i, at
	broken := false // nothing but blanks of the form since the last break
	for end < len(f.text) {
		if rest := s[i:]; rest == "" || rest == `\` || rest == "%" || rest == "%0" || strings.HasPrefix(cutMark, rest) {
			return to, end, true
		}
		n := lineBreak(s[i:], broken)
		if n > 0 && (n == 1 && s[i] == f.text[end] || strings.HasPrefix(f.text[end:], s[i:i+n])) {
			n = 0 // the value has the same there
		}
		switch {
		case n > 0:
			i += n
			broken = true
		case s[i] == f.text[end]:
			broken = broken && s[i] == ' '
			i++
			end++
			to = i
		default:
			return to, end, begunNumber(s[i:], broken)
		}
	}
	return to, end, false
}

// back does the same against the direction.
func (f form) back(s string, i, at, begin int) (from, start int) {
	from, start = i, at
	for start > 0 && i > begin {
		if s[i-1] == f.text[start-1] {
			i--
			start--
			from = i
			continue
		}
		n := breakBefore(s[begin:i])
		if n == 0 {
			break
		}
		i -= n
	}
	return from, start
}

// lineBreak is how many bytes of a line break s begins with, 0 for none: a newline, or one that is escaped; behind it what the next line is
// indented or numbered with.
func lineBreak(s string, broken bool) int {
	switch {
	case s[0] == '\n' || s[0] == '\r':
		return 1
	case strings.HasPrefix(s, `\n`) || strings.HasPrefix(s, `\r`):
		return 2
	case len(s) >= 3 && escapedBreak(s[:3]):
		return 3
	case !broken:
		return 0
	case s[0] == ' ' || s[0] == '\t':
		return 1
	}
	return lineNumber(s)
}

// escapedBreak says that s is a newline or carriage return in percent-encoding.
func escapedBreak(s string) bool {
	return s == "%0A" || s == "%0D" || s == "%0a" || s == "%0d"
}

// numbered is the arrow that read_file writes after the number of a line.
const (
	numbered    = "→"
	numberBytes = 12
)

func lineNumber(s string) int {
	for i := 0; i < len(s) && i < numberBytes; i++ {
		if s[i] >= '0' && s[i] <= '9' {
			continue
		}
		if i > 0 && strings.HasPrefix(s[i:], numbered) {
			return i + len(numbered)
		}
		return 0
	}
	return 0
}

// begunNumber says that s is the beginning of a line's number, and nothing more.
func begunNumber(s string, broken bool) bool {
	rest := strings.TrimLeft(s, "0123456789")
	return broken && len(s) <= numberBytes && strings.HasPrefix(numbered, rest)
}

// breakBefore is how many bytes of a line break, with what stands behind it, s ends with.
func breakBefore(s string) int {
	i := len(s)
	if strings.HasSuffix(s[:i], numbered) {
		i -= len(numbered)
		digits := i
		for i > 0 && digits-i < numberBytes && s[i-1] >= '0' && s[i-1] <= '9' {
			i--
		}
	}
	for i > 0 && len(s)-i < 64 && (s[i-1] == ' ' || s[i-1] == '\t') {
		i--
	}
	end := i
	for i > 0 && (s[i-1] == '\n' || s[i-1] == '\r') {
		i--
	}
	for strings.HasSuffix(s[:i], `\n`) || strings.HasSuffix(s[:i], `\r`) {
		i -= 2
	}
	for i >= 3 && escapedBreak(s[i-3:i]) {
		i -= 3
	}
	if i == end {
		return 0
	}
	return len(s) - i
}
