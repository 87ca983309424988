package tools

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"muster/budget"
)

// What a not-found old_string is compared with, and how much of it is shown.
const (
	nearPlaces = 3   // places shown
	nearRows   = 6   // lines shown of each
	nearChars  = 200 // characters of a line shown
	likeEnough = 0.4 // likeness of a line that is shown
)

var numberPrefix = regexp.MustCompile(`(?m)^ *\d+→`)

// looseness is a way to compare lines that forgives one kind of difference.
type looseness struct {
	differs string
	fold    func(string) string
}

func loosenesses() []looseness {
	return []looseness{
		{"newlines at its start or end", func(s string) string { return s }},
		{"line-number prefixes of read_file, which are not part of the file", unnumbered},
		{"line ends: old_string has \\r\\n, the file has \\n there", func(s string) string { return strings.TrimSuffix(s, "\r") }},
		{"white space (tabs, spaces, indentation)", foldSpace},
		{"letter case", strings.ToLower},
		{"quotes or dashes (typographic against plain)", foldQuotes},
		{"white space, letter case and quotes", func(s string) string {
			return strings.ToLower(foldQuotes(foldSpace(unnumbered(s))))
		}},
	}
}

// unnumbered drops the line number that read_file puts before a line.
func unnumbered(s string) string {
	if !strings.Contains(s, "→") {
		return s
	}
	return numberPrefix.ReplaceAllString(s, "")
}

// foldSpace drops all white space, Unicode's too.
func foldSpace(s string) string {
	if !strings.ContainsFunc(s, isSpace) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isSpace(r) {
			return -1
		}
		return r
	}, s)
}

func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff' }

func foldQuotes(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '“', '”', '„', '«', '»':
			return '"'
		case '‘', '’', '‚', '`', '´':
			return '\''
		case '–', '—', '−', '‐', '‑':
			return '-'
		}
		return r
	}, s)
}

// nearestLines says where the file comes closest to old and what differs, in about room characters. The first and last line of old are whole lines, or may
// be parts.
func nearestLines(text, old string, whole bool, room int) string {
	if text == "" {
		return "the file is empty; write_file fills it"
	}
	lines := strings.Split(text, "\n")
	want := strings.Split(strings.Trim(old, "\n"), "\n")
	for i, l := range loosenesses() {
		if whole && i == 0 {
			continue // it is about parts of lines
		}
		if at := looseMatches(lines, want, whole, l.fold); len(at) > 0 {
			return "it differs only in " + l.differs + "; the file has:\n" + showPlaces(lines, at, len(want), room)
		}
	}
	at := similar(lines, want)
	if len(at) == 0 {
		return "no line of the file is like it; read_file or grep shows what it holds"
	}
	return "the nearest lines are:\n" + showPlaces(lines, at, min(len(want), nearRows), room)
}

// looseMatches finds where want stands in lines when both are folded.
func looseMatches(lines, want []string, whole bool, fold func(string) string) []int {
	folded := make([]string, len(want))
	blank := true
	for i, w := range want {
		folded[i] = fold(w)
		blank = blank && folded[i] == ""
	}
	if blank {
		return nil
	}
	var at []int
	for i := 0; i+len(want) <= len(lines) && len(at) < nearPlaces; i++ {
		if matchesAt(lines[i:], folded, whole, fold) {
			at = append(at, i)
		}
	}
	return at
}

func matchesAt(lines, folded []string, whole bool, fold func(string) string) bool {
	last := len(folded) - 1
	for j, f := range folded {
		l := strings.TrimSuffix(fold(lines[j]), "\r")
		var same bool
		switch {
		case whole:
			same = l == f
		case last == 0:
			same = strings.Contains(l, f)
		case j == 0:
			same = strings.HasSuffix(l, f)
		case j == last:
			same = strings.HasPrefix(l, f)
		default:
			same = l == f
		}
		if !same {
			return false
		}
	}
	return true
}

// similar finds the places where lines share the most letter pairs with the first telling line of want.
func similar(lines, want []string) []int {
	first := 0
	for i, w := range want {
		if len(strings.TrimSpace(w)) > 2 {
			first = i
			break
		}
	}
	pairs := letterPairs(unnumbered(want[first]))
	type scored struct {
		line  int
		score float64
	}
	var best []scored
	for i, l := range lines {
		if s := pairs.likeness(l); s >= likeEnough {
			best = append(best, scored{max(0, i-first), s})
		}
	}
	slices.SortStableFunc(best, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var at []int
	for _, b := range best[:min(nearPlaces, len(best))] {
		at = append(at, b.line)
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// pairsOf counts the pairs of letters that follow each other in a line, as bytes of UTF-8, without white space and case.
type pairsOf struct {
	count map[uint16]int
	left  map[uint16]int // of count, while another line is compared
	total int
	buf   []byte
}

func letterPairs(s string) *pairsOf {
	p := &pairsOf{count: map[uint16]int{}, left: map[uint16]int{}}
	letters := p.letters(s)
	for i := 0; i+1 < len(letters); i++ {
		p.count[uint16(letters[i])<<8|uint16(letters[i+1])]++
		p.total++
	}
	return p
}

// letters is the beginning of a line without white space and case. Most lines are ASCII, and there may be very many of them.
func (p *pairsOf) letters(line string) []byte {
	p.buf = p.buf[:0]
	for i := range min(len(line), nearChars) {
		switch c := line[i]; {
		case c >= 0x80:
			return append(p.buf[:0], foldSpace(strings.ToLower(headChars(line, nearChars)))...)
		case c >= 'A' && c <= 'Z':
			p.buf = append(p.buf, c+'a'-'A')
		case c > ' ':
			p.buf = append(p.buf, c)
		}
	}
	return p.buf
}

// likeness is the Dice coefficient of letter pairs, 0 to 1.
func (p *pairsOf) likeness(line string) float64 {
	letters := p.letters(line)
	total := p.total + max(0, len(letters)-1)
	if total == 0 || float64(2*min(p.total, len(letters))) < likeEnough*float64(total) { // too different in length
		return 0
	}
	shared := 0
	clear(p.left)
	for i := 0; i+1 < len(letters); i++ {
		pair := uint16(letters[i])<<8 | uint16(letters[i+1])
		if n := p.count[pair]; n > p.left[pair] {
			p.left[pair]++
			shared++
		}
	}
	return 2 * float64(shared) / float64(total)
}

// showPlaces lists the lines at each place with their numbers.
func showPlaces(lines []string, at []int, rows, room int) string {
	var b strings.Builder
	for k, i := range at {
		if k > 0 {
			b.WriteString("  …\n")
		}
		for j := i; j < min(i+min(rows, nearRows), len(lines)); j++ {
			line, _, _ := visible(strings.TrimSuffix(lines[j], "\r"))
			if cut := budget.Chars(line) - nearChars; cut > 0 {
				line = fmt.Sprintf("%s… (+%d chars)", headChars(line, nearChars), cut)
			}
			row := fmt.Sprintf("%d→%s\n", j+1, line)
			if room -= budget.Chars(row); room < 0 && j > i {
				return strings.TrimSuffix(b.String(), "\n")
			}
			b.WriteString(row)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
