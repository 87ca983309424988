package web

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"muster/tools/egress"
)

// Options are what a host allows its agents on the web. The zero value works: public addresses, robots.txt obeyed, no search.
type Options struct {
	Dialer       egress.Dialer          // where pages may be
	IgnoreRobots func(host string) bool // hosts whose robots.txt is not asked for; nil: none
	Search       Search                 // zero: there is none
	Time         time.Duration          // for a page, redirects and robots.txt included; 0: a minute
	Idle         time.Duration          // without a byte of an answer; 0: 20 s
	Roots        *x509.CertPool         // who vouches for certificates; nil: those that the system trusts
}

// Client fetches pages and searches. Safe for use by many goroutines.
type Client struct {
	opts   Options
	pages  *http.Transport
	engine *engine // nil: no search
	robots robots
	making chan struct{} // holds one for each page that is being converted
}

const (
	headerBytes   = 64 << 10
	handshakeTime = 15 * time.Second
	maxRedirects  = 5
	atOnce        = 2 // pages that are converted

	agentName = "muster" // as robots.txt may name it
	userAgent = "muster/1.0 (agent acting for a user)"
)

// New makes a client. The error is of opts.Search.
func New(opts Options) (*Client, error) {
	if opts.Time == 0 {
		opts.Time = time.Minute
	}
	if opts.Idle == 0 {
		opts.Idle = 20 * time.Second
	}
	if opts.IgnoreRobots == nil {
		opts.IgnoreRobots = func(string) bool { return false }
	}
	c := &Client{opts: opts, pages: transport(&opts.Dialer, opts), making: make(chan struct{}, atOnce)}
	if opts.Search == (Search{}) {
		return c, nil
	}
	var err error
	c.engine, err = newEngine(opts)
	return c, err
}

// transport is HTTP/1.1 over connections of d alone: no proxy of the environment, nothing kept open, nothing unpacked.
func transport(d *egress.Dialer, o Options) *http.Transport {
	return &http.Transport{
		Proxy: nil, DialContext: d.DialContext, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: headerBytes, ResponseHeaderTimeout: o.Idle, TLSHandshakeTimeout: handshakeTime,
		TLSClientConfig: &tls.Config{RootCAs: o.Roots},
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}
