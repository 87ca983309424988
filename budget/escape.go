package budget

import "strings"

const (
	bel = '\a'
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// isC1 tells whether r is one of the 8-bit control characters, some of which begin or end an escape sequence.
func isC1(r rune) bool { return 0x80 <= r && r <= 0x9f }

// escapeLen returns the length of the escape sequence (ECMA-48) that s begins with, 0 when it begins with none. What
// was begun and not ended counts up to where it breaks off. Sequences that carry a string end at their terminator, at
// CAN or SUB, or where another control sequence breaks them off; without a terminator they end before the newline, so
// that a stray introducer does not hide what follows it. No byte is looked at by more than two calls that do not overlap.
func escapeLen(s string) int {
	kind, n := introducer(s)
	switch kind {
	case 0:
		return n
	case '[':
		return n + csiLen(s[n:])
	case ']', 'P', 'X', '^', '_':
		return n + stringLen(s[n:], kind == ']')
	}
	for n < len(s) && 0x20 <= s[n] && s[n] <= 0x2f {
		n++
	}
	if n < len(s) && 0x30 <= s[n] && s[n] <= 0x7e {
		n++
	}
	return n
}

// introducer returns what kind of sequence s begins with, by the byte that follows ESC in its 7-bit form, and how long
// the introducer is. Kind 0 is none (length 0) or one that is whole already.
func introducer(s string) (kind byte, n int) {
	switch {
	case s == "":
		return 0, 0
	case s[0] == esc && len(s) == 1:
		return 0, 1
	case s[0] == esc && strings.IndexByte("[]PX^_", s[1]) >= 0:
		return s[1], 2
	case s[0] == esc && 0x20 <= s[1] && s[1] <= 0x2f:
		return ' ', 1
	case s[0] == esc && 0x30 <= s[1] && s[1] <= 0x7e:
		return 0, 2
	case s[0] == esc:
		return 0, 1
	case strings.HasPrefix(s, "\u0085"): // a line end, not a sequence
		return 0, 0
	case startsC1(s):
		if k := s[1] - 0x40; strings.IndexByte("[]PX^_", k) >= 0 {
			return k, 2
		}
		return 0, 2
	}
	return 0, 0
}

// startsC1 tells whether s begins with a C1 control character in UTF-8.
func startsC1(s string) bool {
	return len(s) >= 2 && s[0] == 0xc2 && s[1] < 0xa0 && s[1] >= 0x80
}

// csiLen returns the length of parameters, intermediates and final byte.
func csiLen(s string) int {
	n := 0
	for n < len(s) && 0x20 <= s[n] && s[n] <= 0x3f {
		n++
	}
	if n < len(s) && 0x40 <= s[n] && s[n] <= 0x7e {
		n++
	}
	return n
}

// stringLen returns the length of a string and its terminator. An operating system command may end with BEL and holds
// no newline; the others may hold newlines when they are ended properly.
func stringLen(s string, command bool) int {
	newline := -1
	for i := range len(s) {
		switch b := s[i]; {
		case b == '\n' && command:
			return i
		case b == '\n' && newline < 0:
			newline = i
		case b == bel && command, b == can, b == sub:
			return i + 1
		case b == esc && strings.HasPrefix(s[i:], "\x1b\\"), strings.HasPrefix(s[i:], "\u009c"):
			return i + 2
		case b == esc, startsC1(s[i:]):
			if newline >= 0 {
				return newline
			}
			return i
		}
	}
	if newline >= 0 {
		return newline
	}
	return len(s)
}
