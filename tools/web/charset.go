package web

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

const (
	guessBytes = 64 << 10 // that the charset is guessed from
	sureEnough = 15       // of 100, how sure a guess must be; it is 10 of whatever fits by chance
	stray      = 50       // so many times more good letters than bad bytes make a text UTF-8 all the same
)

// decoded is the bytes of a page as text, and the name of their charset: as the header says, a byte order mark, the page itself; else UTF-8 where
// they are that, else, with guess, what they look like.
func decoded(data []byte, c content) (text, name string, guess bool) {
	e, name, certain := charset.DetermineEncoding(data, c.header) // header and byte order mark are certain
	if !certain {
		e, name = declared(data, c.form, e, name)
	}
	switch {
	case e == nil && isUTF8(data):
		name = "utf-8"
	case e == nil, name == "utf-8" && !isUTF8(data): // the second says what cannot be
		e, name = guessed(data, c.form)
		guess = true
	}
	if name == "utf-8" || name == "replacement" { // the second is of charsets that nothing decodes
		return string(data), name, guess
	}
	b, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return string(data), name, guess
	}
	return string(b), name, guess
}

var xmlCharset = regexp.MustCompile(`^\s*<\?xml[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']`)

// declared is the charset that a page gives itself, nil for none. e and name are what its meta elements say, or a default.
func declared(data []byte, f form, e encoding.Encoding, name string) (encoding.Encoding, string) {
	if m := xmlCharset.FindSubmatch(data[:min(len(data), 1024)]); m != nil && (f == xmlText || f == hypertext) {
		if e, name := charset.Lookup(string(m[1])); e != nil && !strings.HasPrefix(name, "utf-16") { // it is legible, so it is not wide
			return e, name
		}
	}
	if f != hypertext || name == "utf-8" && e == encoding.Nop || name == "windows-1252" && !bytes.Contains(bytes.ToLower(data[:min(len(data), 1024)]), []byte("charset")) {
		return nil, ""
	}
	return e, name
}

// isUTF8 says that data is UTF-8, but for a letter that is cut at its end and a few stray bytes.
func isUTF8(data []byte) bool {
	good, bad := 0, 0
	for i := 0; i < len(data); {
		if data[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r != utf8.RuneError || size > 1:
			good++
		case utf8.FullRune(data[i:]):
			bad++
		}
		i += size
	}
	return bad == 0 || bad*stray <= good
}

// guessed is the charset that data looks like.
func guessed(data []byte, f form) (encoding.Encoding, string) {
	d := chardet.NewTextDetector()
	if f == hypertext {
		d = chardet.NewHtmlDetector()
	}
	best, err := d.DetectBest(data[:min(len(data), guessBytes)])
	if err == nil && best.Confidence >= sureEnough {
		label := best.Charset
		if label == "GB-18030" {
			label = "gb18030"
		}
		if e, name := charset.Lookup(label); e != nil && name != "replacement" && !strings.HasPrefix(name, "utf-") {
			return e, name
		}
	}
	return charset.Lookup("windows-1252")
}
