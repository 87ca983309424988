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
		{"line-number prefixes of read_file, which are not part of the file", func(s string) string { return numberPrefix.ReplaceAllString(s, "") }},
		{"line ends: old_string has \\r\\n, the file has \\n there", func(s string) string { return strings.TrimSuffix(s, "\r") }},
		{"white space (tabs, spaces, indentation)", foldSpace},
		{"letter case", strings.ToLower},
		{"quotes or dashes (typographic against plain)", foldQuotes},
		{"white space, letter case and quotes", func(s string) string {
			return strings.ToLower(foldQuotes(foldSpace(numberPrefix.ReplaceAllString(s, ""))))
		}},
	}
}

// foldSpace drops all white space, Unicode's too.
func foldSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff' {
			return -1
		}
		return r
	}, s)
}

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

// nearestLines says where the file comes closest to old and what differs, in about room characters.
func nearestLines(text, old string, room int) string {
	if text == "" {
		return "the file is empty; write_file fills it"
	}
	lines := strings.Split(text, "\n")
	want := strings.Split(strings.Trim(old, "\n"), "\n")
	for _, l := range loosenesses() {
		if at := looseMatches(lines, want, l.fold); len(at) > 0 {
			return "it differs only in " + l.differs + "; the file has:\n" + showPlaces(lines, at, len(want), room)
		}
	}
	at := similar(lines, want)
	if len(at) == 0 {
		return "no line of the file is like it; read_file or grep shows what it holds"
	}
	return "the nearest lines are:\n" + showPlaces(lines, at, min(len(want), nearRows), room)
}

// looseMatches finds where want stands in lines when both are folded; the first and last line of want may be parts of a line.
func looseMatches(lines, want []string, fold func(string) string) []int {
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
		if matchesAt(lines[i:], folded, fold) {
			at = append(at, i)
		}
	}
	return at
}

func matchesAt(lines, folded []string, fold func(string) string) bool {
	last := len(folded) - 1
	for j, f := range folded {
		l := strings.TrimSuffix(fold(lines[j]), "\r")
		var same bool
		switch {
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
	pairs := letterPairs(numberPrefix.ReplaceAllString(want[first], ""))
	type scored struct {
		line  int
		score float64
	}
	var best []scored
	for i, l := range lines {
		if s := likeness(pairs, l); s >= 0.4 {
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

func letterPairs(s string) map[string]int {
	s = foldSpace(strings.ToLower(headChars(s, nearChars)))
	pairs := map[string]int{}
	for i := 0; i+1 < len(s); i++ {
		pairs[s[i:i+2]]++
	}
	return pairs
}

// likeness is the Dice coefficient of letter pairs, 0 to 1.
func likeness(pairs map[string]int, line string) float64 {
	line = foldSpace(strings.ToLower(headChars(line, nearChars)))
	total, shared := 0, 0
	for _, n := range pairs {
		total += n
	}
	left := map[string]int{}
	for i := 0; i+1 < len(line); i++ {
		total++
		if p := line[i : i+2]; left[p] < pairs[p] {
			left[p]++
			shared++
		}
	}
	if total == 0 {
		return 0
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
