package app

import (
	"bytes"
	"strings"
	"unicode"

	"muster/budget"
)

// Field is a one-line text for a terminal, of at most limit characters.
func Field(s string, limit int) string { return budget.Preview(s, limit) }

// Body is a text of many lines for a terminal: no control characters but newline and tab, nothing that turns or hides what stands there.
func Body(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u2028', r == '\u2029':
			return '\n'
		case hidden(r):
			return -1
		}
		return r
	}, budget.Plain(s))
}

// hidden says that r has no picture of its own: bidi controls, tags, zero-width characters; but the joiners, which make one letter or emoji of several.
func hidden(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner
}

// stripHidden does for bytes that hold escape sequences of our own what Body does for a text.
func stripHidden(p []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if hidden(r) || r >= 0x7f && r <= 0x9f {
			return -1
		}
		return r
	}, p)
}
