package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Request is a page to fetch.
type Request struct {
	URL   string
	Bytes int                    // how much of it is kept, after decompression
	Judge func(url string) error // asked of every URL that a redirect leads to; its error ends the fetch. Nil: each may be followed
}

// Page is what was fetched, as text. Nothing in Text is ours; everything else is a fact or a sentence of ours.
type Page struct {
	URL       string // where it is in the end
	Redirects int
	Type      string   // media type, as its content tells it
	Form      string   // what Text is: "the main content as Markdown", "the text as it is", …
	Text      string   // valid UTF-8 without control characters but newline and tab
	Notes     []string // what was left out of it or changed, a sentence each
	Seen      int64    // bytes that came, after decompression
	Kept      int64    // of those, the ones that Text is made of
	AtLeast   bool     // Seen is not all there is

	spoken int // characters of terminal sequences and controls that were left out already
}

// Fetch gets a page and makes text of it. The error is an *Error, or the cause of the end of ctx.
func (c *Client) Fetch(ctx context.Context, r Request) (*Page, error) {
	asker := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.Time, errSlow)
	defer cancel()
	if r.Judge == nil {
		r.Judge = func(string) error { return nil }
	}
	u, err := c.opts.Dialer.CheckURL(r.URL)
	if err != nil {
		return nil, refusal(err)
	}
	if err := c.welcome(ctx, u, r.Judge); err != nil {
		return nil, err
	}
	a, err := c.get(ctx, u, r.Judge, func(next *url.URL) error { return c.welcome(ctx, next, r.Judge) })
	if err != nil {
		return nil, err
	}
	defer a.close()
	if a.resp.StatusCode < 200 || a.resp.StatusCode > 299 {
		return nil, a.refused(asker)
	}
	p, err := a.page(asker, r.Bytes)
	if err != nil {
		return nil, err
	}
	p.URL, p.Redirects = a.url.String(), a.redirects
	return p, nil
}

// answer is a response whose body is still to be read.
type answer struct {
	client    *Client
	url       *url.URL
	redirects int
	resp      *http.Response
	idle      *time.Timer
	cancel    context.CancelCauseFunc
	ctx       context.Context // ends when nothing comes
}

func (a *answer) close() {
	a.idle.Stop()
	a.resp.Body.Close()
	a.cancel(nil)
}

// get asks for u and follows where it leads to, after check of each place.
func (c *Client) get(ctx context.Context, u *url.URL, judge func(string) error, check func(*url.URL) error) (*answer, error) {
	for n := 0; ; n++ {
		a, err := c.ask(ctx, u)
		if err != nil {
			return nil, err
		}
		a.redirects = n
		to := a.resp.Header.Get("Location")
		if !redirects(a.resp.StatusCode) || to == "" {
			return a, nil
		}
		a.close()
		next, err := c.follow(u, to, n, judge)
		if err == nil {
			err = check(next)
		}
		if err != nil {
			return nil, err
		}
		u = next
	}
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow checks the n-th redirect, counted from 0, like a URL that was asked for.
func (c *Client) follow(from *url.URL, location string, n int, judge func(string) error) (*url.URL, error) {
	if n == maxRedirects {
		return nil, failure(Lost, "it redirects more than %d times, the last time from %s", maxRedirects, from.Host)
	}
	to, err := from.Parse(location)
	if err != nil {
		return nil, foreign(Lost, "%s redirects to what is no URL: %s", from.Host, oneLine(location))
	}
	next, err := c.opts.Dialer.CheckURL(to.String())
	if err != nil {
		return nil, foreign(Refused, "%s redirects to %s, and there %v", from.Host, oneLine(to.Redacted()), err)
	}
	if from.Scheme == "https" && next.Scheme == "http" {
		return nil, foreign(Refused, "%s redirects from https to %s, which anybody on the way could read and change", from.Host, oneLine(next.String()))
	}
	if next.Fragment == "" {
		next.Fragment = from.Fragment
	}
	return next, judge(next.String())
}

// ask sends one GET. Its context ends with ctx, or when nothing comes for a while.
func (c *Client) ask(ctx context.Context, u *url.URL) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	plain := *u
	plain.Fragment, plain.RawFragment, plain.RawQuery = "", "", asciiQuery(u.RawQuery)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, plain.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, failure(Wrong, "not a URL to fetch: %s", oneLine(err.Error()))
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, */*;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := c.pages.RoundTrip(req) //nolint:bodyclose // answer.close
	if err != nil {
		err = unreached(u.Host, err, ended(ctx))
		cancel(nil)
		return nil, err
	}
	idle := time.AfterFunc(c.opts.Idle, func() { cancel(errIdle) })
	return &answer{client: c, url: u, resp: resp, idle: idle, cancel: cancel, ctx: ctx}, nil
}

// asciiQuery is a query in which what is not ASCII is escaped, as browsers do.
func asciiQuery(query string) string {
	var b strings.Builder
	for _, c := range []byte(query) {
		if c >= 0x80 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// kindOf is the kind of an error, Lost for one that has none.
func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Lost
}
