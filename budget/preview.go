package budget

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Preview makes one plain line for the board out of s: control characters, escape sequences, bidi marks and characters
// without a width removed (but what makes one emoji of several), blanks and newlines folded to one space, invalid bytes
// shown as U+FFFD. It is cut at a grapheme cluster so that the whole, "…" included, has at most limit characters. It
// looks at no more of s than it shows.
func Preview(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	// One character more than fits is enough to know that something is cut, and where the last cluster that fits ends.
	line := oneLine(s, limit+1)
	if Chars(line) <= limit {
		return line
	}
	kept, chars := 0, 0
	for g := graphemes.FromString(line); g.Next(); {
		chars += Chars(g.Value())
		if chars > limit-1 {
			break
		}
		kept = g.End()
	}
	return strings.TrimRight(line[:kept], " ") + "…"
}

// oneLine returns the first n characters of s as a plain line.
func oneLine(s string, n int) string {
	var b strings.Builder
	var last rune // the last character kept, 0 at the start
	blank := false
	for i, chars := 0, 0; i < len(s) && chars < n; {
		if size := escapeLen(s[i:]); size > 0 {
			i += size
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case unicode.IsSpace(r):
			blank = true
			continue
		case Hidden(r) && !shapes(last, r, s[i:]):
			continue
		}
		if blank && last != 0 {
			b.WriteByte(' ')
			if chars++; chars == n {
				break
			}
		}
		blank, last = false, r
		b.WriteRune(r)
		chars++
	}
	return b.String()
}
