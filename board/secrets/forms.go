package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"strconv"
	"strings"
)

// form is one way in which a value may be written. Where it has no line break, one of the text is skipped.
type form struct {
	name int // of the value
	text string
	need int // how many bytes of text must stand in a row
}

const (
	lineChars = 16 // of a line that is a secret of its own
	partChars = 12 // of a part that counts as the value
)

// formsOf lists the ways in which a value may be written, each once.
func formsOf(value string) []string {
	var all []string
	seen := map[string]bool{}
	add := func(texts ...string) {
		for _, t := range texts {
			if len(t) >= anchorBytes && !seen[t] {
				seen[t] = true
				all = append(all, t)
			}
		}
	}
	lines := strings.FieldsFunc(value, func(c rune) bool { return c == '\n' || c == '\r' })
	whole := strings.Join(lines, "")
	add(written(whole)...)
	add(encoded(value)...)
	if whole != value { // lines that are too short to be found by themselves
		add(written(value)...)
		add(strings.Join(lines, "\r\n"))
	}
	if len(lines) > 1 {
		for _, l := range lines {
			if l = strings.TrimSpace(l); len(l) >= lineChars && !strings.HasPrefix(l, "-----") {
				add(written(l)...)
			}
		}
	}
	return all
}

// written are the forms in which most letters stay what they are.
func written(v string) []string {
	all := []string{v, html.EscapeString(v)}
	for _, kept := range []string{
		"-_.~",                   // query strings
		"-_.~/",                  // Python
		"-_.~$&+=:@",             // a segment of a path, as Go writes it
		"-_.!~*'()",              // encodeURIComponent
		"-_.!~*'();/?:@&=+$,#",   // encodeURI
		"-_.*", "-_.", "-_.~!*'", // forms, wget, others
	} {
		upper := percent(v, kept, "0123456789ABCDEF")
		lower := percent(v, kept, "0123456789abcdef")
		all = append(all, upper, lower, strings.ReplaceAll(upper, "%20", "+"), strings.ReplaceAll(lower, "%20", "+"))
	}
	quoted := strconv.Quote(v)
	ascii := strconv.QuoteToASCII(v)
	all = append(all, quoted[1:len(quoted)-1], ascii[1:len(ascii)-1])
	if b, err := json.Marshal(v); err == nil {
		escaped := string(b[1 : len(b)-1])
		plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(escaped)
		all = append(all, escaped, plain, strings.ReplaceAll(plain, "/", `\/`), jsonASCII(plain))
	}
	return all
}

// jsonASCII escapes what is not ASCII, as many encoders do.
func jsonASCII(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c < 0x80 {
			b.WriteRune(c)
			continue
		}
		q := strconv.QuoteToASCII(string(c))
		if c > 0xffff {
			c -= 0x10000
			q = `"` + `\u` + strconv.FormatInt(int64(0xd800+c>>10), 16) + `\u` + strconv.FormatInt(int64(0xdc00+c&0x3ff), 16) + `"`
		}
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

func percent(v, kept, digits string) string {
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(kept, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// encoded are the forms that have no letter in common with the value.
func encoded(v string) []string {
	lower := hex.EncodeToString([]byte(v))
	all := []string{lower, strings.ToUpper(lower)}
	for before := range 3 { // bytes that stand before it in its group of three
		group := append(make([]byte, before, before+len(v)), v...)
		from, to := (8*before+5)/6, 8*len(group)/6 // the letters that no neighbour has a part in
		all = append(all, base64.RawStdEncoding.EncodeToString(group)[from:to], base64.RawURLEncoding.EncodeToString(group)[from:to])
	}
	return all
}
