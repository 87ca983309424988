package budget

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown makes text of many lines for a person out of anything: Plain, and without what turns, hides or imitates text: bidi controls, characters
// without a width, tags, fillers and variation selectors, but for those that make one emoji or letter of several. A line or paragraph
// separator is a newline.
func Shown(s string) string {
	s = Plain(s)
	clean := strings.IndexFunc(s, func(r rune) bool { return Hidden(r) || separates(r) })
	if clean < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:clean])
	last, _ := utf8.DecodeLastRuneInString(s[:clean])
	for i := clean; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case separates(r):
			r = '\n'
		case r == '\n' || r == '\t':
		case Hidden(r) && !shapes(last, r, s[i:]):
			continue
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}

func separates(r rune) bool { return r == '\u2028' || r == '\u2029' }

// Hidden tells whether r has no picture of its own: controls but newline and tab, formats such as bidi marks and tags, fillers, variation
// selectors.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x7f:
		return r < ' '
	}
	return unicode.IsControl(r) ||
		unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

const (
	nonJoiner  = '\u200c'
	joiner     = '\u200d'
	emojiStyle = '\ufe0f'
	keycap     = '\u20e3'
)

// shapes tells whether r, between last and rest, makes one picture of its neighbours, as hidden characters do in emoji and in scripts whose
// letters join.
func shapes(last, r rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	switch r {
	case emojiStyle:
		return pictorial(last) || next == keycap && (last == '#' || last == '*' || '0' <= last && last <= '9')
	case joiner:
		if pictorial(next) && (pictorial(last) || last == emojiStyle || 0x1f3fb <= last && last <= 0x1f3ff) {
			return true
		}
	case nonJoiner:
	default:
		return false
	}
	return joined(last) && joined(next)
}

// joined tells whether r is of a script whose letters take another form beside each other.
func joined(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
		unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar)
}

// pictorial tells whether r may be the base of an emoji.
func pictorial(r rune) bool {
	return unicode.Is(unicode.So, r) || 0x2190 <= r && r <= 0x21ff
}
