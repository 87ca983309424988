package web

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/temoto/robotstxt"
)

const (
	robotsBytes = 512 << 10 // of a robots.txt that are read; RFC 9309 asks for 500 KiB at least
	robotsTime  = 10 * time.Second
	robotsAge   = time.Hour       // that one is believed
	robotsRetry = 5 * time.Minute // until one that could not be had is asked for again
	robotsHosts = 50              // whose robots.txt is remembered
	robotsStars = 500             // rules with wildcards of one file: each is a pattern to compile and keep
)

// robots remembers the robots.txt of hosts.
type robots struct {
	mu    sync.Mutex
	known map[string]robotsFile // by scheme, host and port
}

type robotsFile struct {
	until time.Time
	group *robotstxt.Group // nil: everything is allowed
}

// welcome fails where the host of u asks agents not to fetch it. A robots.txt that cannot be had asks nothing.
func (c *Client) welcome(ctx context.Context, u *url.URL, judge func(string) error) error {
	if c.opts.IgnoreRobots(u.Hostname()) {
		return nil
	}
	group, err := c.robotsOf(ctx, u, judge)
	if err != nil || group == nil {
		return err
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	if !group.Test(path) {
		return failure(Refused, "the robots.txt of %s asks agents not to fetch this page", u.Host)
	}
	return nil
}

func (c *Client) robotsOf(ctx context.Context, u *url.URL, judge func(string) error) (*robotstxt.Group, error) {
	origin := u.Scheme + "://" + u.Host
	c.robots.mu.Lock()
	f, ok := c.robots.known[origin]
	c.robots.mu.Unlock()
	if ok && time.Now().Before(f.until) {
		return f.group, nil
	}
	group, err := c.fetchRobots(ctx, u, judge)
	f = robotsFile{until: time.Now().Add(robotsAge), group: group}
	if err != nil {
		f.until = time.Now().Add(robotsRetry)
	}
	if cause := ended(ctx); cause != nil { // it is not known
		return nil, (&answer{client: c, url: u, ctx: ctx}).cut(cause)
	}
	c.robots.keep(origin, f)
	return f.group, nil
}

func (r *robots) keep(origin string, f robotsFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= robotsHosts {
		r.known = map[string]robotsFile{}
	}
	r.known[origin] = f
}

// fetchRobots gets a robots.txt under the same guard as any page, and what it says to this agent: nil for nothing. The error is of one that could
// not be had.
func (c *Client) fetchRobots(ctx context.Context, u *url.URL, judge func(string) error) (*robotstxt.Group, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, robotsTime, errSlow)
	defer cancel()
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	a, err := c.get(ctx, at, judge, func(*url.URL) error { return nil })
	if err != nil {
		return nil, err
	}
	defer a.close()
	switch code := a.resp.StatusCode; {
	case code >= 500:
		return nil, failure(Later, "%s answers %s", u.Host, statusText(code))
	case code < 200 || code > 299:
		return nil, nil
	}
	b, err := a.read(robotsBytes, func(head []byte) bool { return sniffed(head, "text/plain").form == plainText })
	if err != nil || b.broken != nil {
		return nil, errors.Join(err, b.broken)
	}
	data, err := robotstxt.FromBytes(fewStars(b.data))
	if err != nil {
		return nil, nil // it says nothing that is understood
	}
	return data.FindGroup(agentName), nil
}

// fewStars is a robots.txt without the rules with wildcards that are too many.
func fewStars(data []byte) []byte {
	var out []byte
	stars := 0
	for line := range bytes.Lines(data) {
		if bytes.ContainsAny(line, "*$") && !bytes.Contains(bytes.ToLower(line), []byte("agent")) {
			if stars++; stars > robotsStars {
				continue
			}
		}
		out = append(out, line...)
	}
	return out
}
