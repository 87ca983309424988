package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"muster/budget"
)

var seeds = []string{
	"<title>T</title><h1>a</h1><p>b <b>c</b> <a href='/x'>d</a><table><tr><td colspan=3>e|f</table>", "<ul><li>a<ol><li>b</ul><pre><code class=language-go>x\n</code></pre>",
	"<p style='display:none'>a<math><annotation encoding='application/x-tex'>x</annotation></math><svg><title>b</title></svg>", "<b a=1><i><b a=2></p><p>x</b></i><td></table><table><tr></div>",
	"<base href='//x'><img src='data:x' data-src=y alt='[<|>]'><meta http-equiv=refresh content='0;url=//y'>", "&#0;&#27;[31m&#x202e;&#xf8f1;&#xf002;\x00\x1b]0;x\x07\r\r\n\xff\xfe", "<blockquote><blockquote>x<br>\n\n\n<hr><dl><dt>y",
	"<script><!--</script>x<style></style><textarea></p>", "<p>" + "[![*_`", "<a href='http://[::1'><a href='%zz'><a href=\"a\nb\">c", "<table><caption>x<thead><tr><th><p>a<p>b<tfoot><tr><td><ul><li>c", "<div><div><div></div>x</span>",
}

// FuzzHTML makes text of any page: it ends, in valid UTF-8 in proportion to the page, with one node a tag, and no letter is lost.
func FuzzHTML(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		p := &Page{}
		got := p.fromHTML(text, place)
		if !utf8.ValidString(got) && utf8.ValidString(text) {
			t.Errorf("not valid UTF-8: %q", got)
		}
		if len(got) > 100*len(text)+1_000 {
			t.Errorf("%d bytes of %d", len(got), len(text))
		}
		if strings.ContainsAny(got, string([]rune{less, greater, pipe})) {
			t.Errorf("a stand-in stayed: %q", got)
		}
		doc, nodes := treeOf(text)
		if nodes > len(text)+1 {
			t.Errorf("%d nodes of %d bytes", nodes, len(text))
		}
		c := &cleaner{page: place, base: place}
		c.clean(doc, around{})
		if p.Form != "the whole page as Markdown" {
			return
		}
		count := map[rune]int{}
		for _, r := range got {
			count[r]++
		}
		for _, r := range textOf(doc) {
			if count[r]--; count[r] < 0 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
				t.Fatalf("%q is lost of %q: %q", r, text, got)
			}
		}
	})
}

// FuzzPage makes a page of any bytes under any header: its text can be shown as it is, or it is named and refused.
func FuzzPage(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), "text/html", "")
		f.Add([]byte(s), "text/plain; charset=utf-16le", "gzip")
	}
	f.Add([]byte("%PDF-1.4"), "text/html; charset=gbk", "")
	f.Add([]byte("\xff\xfex\x00"), "application/json; charset=\"iso-2022-jp\"", "br")
	f.Add([]byte("<?xml version='1.0' encoding='koi8-r'?>\xf0"), "text/xml", "identity")
	c, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, header, encoding string) {
		if len(data) > 64<<10 {
			return
		}
		a := &answer{
			client: c, url: place, ctx: context.Background(), idle: time.AfterFunc(time.Hour, func() {}),
			resp: &http.Response{Header: http.Header{"Content-Type": {header}, "Content-Encoding": {encoding}}, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(data))},
		}
		defer a.idle.Stop()
		p, err := a.page(context.Background(), 16<<10)
		if err != nil {
			if text := err.Error(); !isLine(text) {
				t.Errorf("%q is not one line of ASCII", text)
			}
			return
		}
		if p.Text != budget.Shown(p.Text) || !utf8.ValidString(p.Text) || p.Form == "" || strings.Contains(p.Text, "\r") {
			t.Errorf("%q (%s)", p.Text, p.Form)
		}
		if p.Kept > p.Seen || p.Kept > 16<<10 || oneLine(p.Type) != p.Type {
			t.Errorf("%+v", p)
		}
	})
}

// FuzzLocation follows any redirect: what is followed passes the same checks as a URL that is asked for, and never goes from https to http.
func FuzzLocation(f *testing.F) {
	for _, s := range []string{"/x", "//other.example.com/", "https://example.org/?a#b", "http://127.0.0.1/", "http:x", "file:///etc/passwd", "//user@example.com/", "\\\\example.com\\", "http://2130706433/", "//[::1]/", "http://example.com:22/", "?q", "#f", ""} {
		f.Add(s, true)
		f.Add(s, false)
	}
	c, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, location string, secure bool) {
		from := &url.URL{Scheme: "http", Host: "site.example.com", Path: "/dir/page"}
		if secure {
			from.Scheme = "https"
		}
		to, err := c.follow(from, location, 0, func(string) error { return nil })
		if err != nil {
			if text := err.Error(); !isLine(text) {
				t.Errorf("%q: %q is not one line of ASCII", location, text)
			}
			return
		}
		again, err := c.opts.Dialer.CheckURL(to.String())
		if err != nil || again.Host != to.Host || to.User != nil || to.Scheme != "https" && (secure || to.Scheme != "http") {
			t.Errorf("%q leads to %s: %v, %v", location, to, again, err)
		}
	})
}

// FuzzStyle reads any style.
func FuzzStyle(f *testing.F) {
	for _, s := range []string{"display:none", "a:b;;:c", "/*", "opacity:.", "left:-1e400px", "color:red;background:red", "clip:rect(0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, style string) {
		is := hidingStyle(style)
		if len(style) < maxStyle-20 && !strings.Contains(style, "/*") && !is && hidingStyle(style+";") {
			t.Errorf("%q hides with an end alone", style)
		}
		if len(style) < maxStyle-20 && !strings.Contains(style, "/*") && !hidingStyle(style+";display:none") {
			t.Errorf("%q;display:none is shown", style)
		}
	})
}
