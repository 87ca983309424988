package git

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Header makes a line of a diff's header readable: a name that git wrote in quotes, with octal escapes, gets those of Go; and what cannot be seen, or
// is no text, is escaped.
func Header(line string) string {
	var b strings.Builder
	for line != "" {
		if name, rest, ok := unquote(line); ok {
			b.WriteString(strconv.Quote(name))
			line = rest
			continue
		}
		r, n := utf8.DecodeRuneInString(line)
		switch {
		case r == utf8.RuneError && n == 1, !strconv.IsPrint(r) && r != '\t':
			q := strconv.Quote(line[:n])
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteString(line[:n])
		}
		line = line[n:]
	}
	return b.String()
}

// unquote reads the name in quotes that s begins with, as git writes those that hold a quote, a backslash or a control character.
func unquote(s string) (name, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			c, n := unescape(s[i+1:])
			if n == 0 {
				return "", "", false
			}
			b.WriteByte(c)
			i += n
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// unescape reads what follows a backslash.
func unescape(s string) (c byte, n int) {
	if s == "" {
		return 0, 0
	}
	if i := strings.IndexByte(`abtnvfr"\`, s[0]); i >= 0 {
		return "\a\b\t\n\v\f\r\"\\"[i], 1
	}
	if len(s) < 3 {
		return 0, 0
	}
	v, err := strconv.ParseUint(s[:3], 8, 8)
	if err != nil {
		return 0, 0
	}
	return byte(v), 3
}
