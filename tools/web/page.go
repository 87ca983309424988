package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"muster/budget"
)

// page reads the body and makes text of it, also of one that did not come to its end in time. ctx is of whoever asked for it.
func (a *answer) page(ctx context.Context, keep int) (*Page, error) {
	var c content
	b, err := a.read(keep, func(head []byte) bool {
		c = sniffed(head, a.resp.Header.Get("Content-Type"))
		return c.form != binary
	})
	if err != nil {
		return nil, err
	}
	if c.form == binary {
		as := ""
		if c.said != "" && c.said != c.media {
			as = ", which the server calls " + c.said
		}
		return nil, foreign(Lost, "it is no text but %s%s, %s", c.media, as, a.size(b))
	}
	if c.form == plainText && isMarkdown(a.url.Path) {
		c.form = markdown
	}
	p := &Page{Type: c.media, Seen: b.seen, Kept: int64(len(b.data)), AtLeast: b.more}
	if a.resp.StatusCode == http.StatusPartialContent { // which nobody asked for
		p.AtLeast = true
		p.note("the server sent only a part of it (Content-Range: %s)", oneLine(first(a.resp.Header.Get("Content-Range"), "none")))
	}
	if b.broken != nil {
		p.AtLeast = true
		p.note("it is not whole: %v", b.broken)
	}
	if p.AtLeast || p.Kept < p.Seen {
		b.data = b.data[:len(b.data)-cutRune(b.data)]
	}
	text, name, guess := decoded(b.data, c)
	if guess {
		p.note("it does not say its charset, or a wrong one; %s is a guess", name)
	}
	if bad := badRunes(b.data, text, name); bad > 0 {
		p.note("%d bytes that are not %s are shown as U+FFFD", bad, name)
	}
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if c.form == hypertext {
		if text, err = a.client.convert(ctx, p, text, a.url); err != nil {
			return nil, err
		}
	} else {
		p.Form = map[form]string{plainText: "the text as it is", jsonText: "the JSON as it is", xmlText: "the XML as it is", markdown: "the Markdown as it is"}[c.form]
	}
	if cause := ended(ctx); cause != nil {
		return nil, cause
	}
	p.Text = budget.Shown(strings.ToValidUTF8(text, "\ufffd"))
	if n := budget.Chars(text) - budget.Chars(p.Text) + p.spoken; n > 0 {
		p.note("%d control or invisible characters, with terminal sequences, are left out", n)
	}
	return p, nil
}

func (p *Page) note(format string, a ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, a...)) }

// size is how large a body is, as far as that is known without reading on.
func (a *answer) size(b body) string {
	switch {
	case !b.more:
		return fmt.Sprintf("%d bytes", b.seen)
	case a.resp.ContentLength > 0 && !a.resp.Uncompressed && a.resp.Header.Get("Content-Encoding") == "":
		return fmt.Sprintf("%d bytes by its header", a.resp.ContentLength)
	}
	return "of unknown size"
}

// cutRune is how many bytes at the end of data begin a letter of UTF-8 that is cut off.
func cutRune(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if last := data[len(data)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// badRunes counts what could not be decoded.
func badRunes(data []byte, text, name string) int {
	bad := 0
	if name != "utf-8" {
		return strings.Count(text, "\ufffd")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			bad++
		}
		i += size
	}
	return bad
}
