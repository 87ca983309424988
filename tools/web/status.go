package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	refusedBytes = 64 << 10  // of the body of an answer that is no page
	refusedChars = 1_000     // of the text that is made of it
	longestWait  = time.Hour // that a server is believed to ask for
)

// refused is the error of an answer that is not 2xx, with the first part of what the server wrote.
func (a *answer) refused(ctx context.Context) error {
	code := a.resp.StatusCode
	e := failure(Lost, "%s answers %s", a.url.Host, statusText(code))
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusPaymentRequired, code == http.StatusProxyAuthRequired,
		code == http.StatusUnavailableForLegalReasons:
		e.Kind = Refused
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests,
		code >= 500 && code != http.StatusNotImplemented && code != http.StatusHTTPVersionNotSupported:
		e.Kind = Later
		e.After = wait(a.resp.Header.Get("Retry-After"), time.Now())
	case redirects(code):
		e.Text += " and does not say where to"
	}
	p, err := a.page(ctx, refusedBytes)
	if cause := ended(ctx); cause != nil && kindOf(err) == Lost {
		return cause
	}
	if err == nil {
		e.Body = firstChars(p.Text, refusedChars)
	}
	return e
}

func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// wait reads a Retry-After: seconds, or a date.
func wait(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if secs, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(secs)*time.Second, longestWait)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now).Round(time.Second), longestWait))
	}
	return 0
}

// firstChars is the first n characters of s.
func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
