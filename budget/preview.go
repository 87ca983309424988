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
		case r == zwj && joins(last, s[i:]), r == emojiStyle && pictorial(last):
		case invisible(r):
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

const (
	zwj        = '\u200d'
	emojiStyle = '\ufe0f'
)

// joins tells whether a zero-width joiner between last and next makes one emoji of two.
func joins(last rune, next string) bool {
	r, _ := utf8.DecodeRuneInString(next)
	return pictorial(r) && (pictorial(last) || last == emojiStyle || 0x1f3fb <= last && last <= 0x1f3ff)
}

// pictorial tells whether r may be the base of an emoji.
func pictorial(r rune) bool {
	return unicode.Is(unicode.So, r) || 0x2190 <= r && r <= 0x21ff
}

// invisible tells whether r has no picture of its own: controls, formats such as bidi marks and tags, fillers, variation
// selectors.
func invisible(r rune) bool {
	return unicode.IsControl(r) ||
		unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
