package tools

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"muster/budget"
)

// sniffBytes is how much of a file decides whether it is text.
const sniffBytes = 8 << 10

// encoding is how a text file is stored.
type encoding int

const (
	plainUTF8 encoding = iota
	utf8BOM
	utf16LE
	utf16BE
)

var boms = [...]string{plainUTF8: "", utf8BOM: "\xEF\xBB\xBF", utf16LE: "\xFF\xFE", utf16BE: "\xFE\xFF"}

func (e encoding) String() string {
	return [...]string{"UTF-8", "UTF-8 with a byte order mark", "UTF-16LE with a byte order mark", "UTF-16BE with a byte order mark"}[e]
}

// sniff tells text from binary by the first bytes of a file. kind is the type of a binary file, "" for text.
func sniff(head []byte) (e encoding, kind string) {
	utf32 := bytes.HasPrefix(head, []byte("\xFF\xFE\x00\x00"))
	switch {
	case bytes.HasPrefix(head, []byte(boms[utf8BOM])):
		e = utf8BOM
	case bytes.HasPrefix(head, []byte(boms[utf16LE])) && !utf32:
		return utf16LE, ""
	case bytes.HasPrefix(head, []byte(boms[utf16BE])):
		return utf16BE, ""
	}
	if bytes.IndexByte(head, 0) < 0 {
		return e, ""
	}
	if kind = http.DetectContentType(head); strings.HasPrefix(kind, "text/") { // it looks at 512 bytes only
		kind = "application/octet-stream"
	}
	return e, kind
}

// decoded turns the bytes after the byte order mark into UTF-8 while they stream by.
func (e encoding) decoded(r *bufio.Reader) io.Reader {
	if e == utf16LE || e == utf16BE {
		return &utf16Reader{r: r, big: e == utf16BE}
	}
	return r
}

// utf16Reader decodes UTF-16; what is no character becomes U+FFFD.
type utf16Reader struct {
	r    *bufio.Reader
	big  bool
	held []rune // a unit that was read too far
	out  []byte
}

func (u *utf16Reader) unit() (rune, error) {
	if len(u.held) > 0 {
		r := u.held[0]
		u.held = u.held[:0]
		return r, nil
	}
	a, err := u.r.ReadByte()
	if err != nil {
		return 0, err
	}
	b, err := u.r.ReadByte()
	if err == io.EOF {
		return utf8.RuneError, nil // half a unit at the end
	} else if err != nil {
		return 0, err
	}
	if u.big {
		a, b = b, a
	}
	return rune(a) | rune(b)<<8, nil
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) < len(p) {
		r, err := u.unit()
		if err != nil {
			if len(u.out) == 0 {
				return 0, err
			}
			break
		}
		if utf16.IsSurrogate(r) {
			low, err := u.unit()
			if pair := utf16.DecodeRune(r, low); err == nil && pair == utf8.RuneError {
				u.held = append(u.held, low)
				r = utf8.RuneError
			} else {
				r = pair
			}
		}
		u.out = utf8.AppendRune(u.out, r)
	}
	n := copy(p, u.out)
	u.out = u.out[:copy(u.out, u.out[n:])]
	return n, nil
}

// encode is the inverse of decode for a whole file, byte order mark included.
func (e encoding) encode(text string) []byte {
	out := []byte(boms[e])
	switch e {
	case utf16LE, utf16BE:
		for _, u := range utf16.Encode([]rune(text)) {
			if e == utf16BE {
				out = append(out, byte(u>>8), byte(u))
			} else {
				out = append(out, byte(u), byte(u>>8))
			}
		}
		return out
	default:
		return append(out, text...)
	}
}

// decode is the text of a whole file without its byte order mark. exact is false where encoding it again would give other bytes.
func (e encoding) decode(data []byte) (text string, exact bool) {
	body := data[len(boms[e]):]
	if e != utf16LE && e != utf16BE {
		return string(body), true // bytes stay what they are, valid or not
	}
	var b strings.Builder
	// Reading from memory cannot fail.
	_, _ = io.Copy(&b, e.decoded(bufio.NewReader(bytes.NewReader(body))))
	return b.String(), bytes.Equal(e.encode(b.String()), data)
}

// visible makes one line safe to show: control characters become their pictures (␛), which tells them from nothing; invalid bytes become U+FFFD.
// It counts what it changed.
func visible(s string) (out string, controls, invalid int) {
	if !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\t' || r == 0x7F || r >= 0x80 && r <= 0x9F || r == utf8.RuneError
	}) {
		return s, 0, 0
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			invalid++
		case r < 0x20 && r != '\t':
			controls++
			r += 0x2400
		case r == 0x7F:
			controls++
			r = 0x2421
		case r >= 0x80 && r <= 0x9F:
			controls++
			r = 0x2426 // ␦, the picture of a substitute: C1 controls have none of their own
		}
		b.WriteRune(r)
		i += n
	}
	return b.String(), controls, invalid
}

// shownName is a file name on one line: as it is, or quoted where it holds what cannot be seen.
func shownName(name string) string {
	for _, r := range name {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(name)
		}
	}
	return name
}

// headChars is the first n characters of s; an invalid byte counts as one.
func headChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// rowsThatFit is how many of rows, each on a line of its own, fit in room characters.
func rowsThatFit(rows []string, room int) int {
	for i, r := range rows {
		room -= budget.Chars(r) + 1
		if room < 0 {
			return i
		}
	}
	return len(rows)
}

// countLines counts lines as an editor does: a last one without newline counts.
func countLines(data []byte) int64 {
	n := int64(bytes.Count(data, []byte{'\n'}))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}
