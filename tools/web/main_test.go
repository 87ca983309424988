package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muster/tools/egress/egresstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far more than anything here takes on a busy machine.
const patience = time.Minute

// site is an HTTP server on loopback under a public name, and a client that may reach it there.
type site struct {
	*httptest.Server
	*Client
	t    *testing.T
	ns   *egresstest.Nameserver
	port uint16

	mu    sync.Mutex
	asked []string // paths, robots.txt aside
}

// newSite serves h as http://site.example.com. change may alter the client's options; the addresses of loopback stay allowed.
func newSite(t *testing.T, h http.HandlerFunc, change ...func(*Options)) *site {
	t.Helper()
	s := &site{t: t, ns: egresstest.NewNameserver(t, map[string][][]string{
		"site.example.com": {{"127.0.0.1"}}, "other.example.com": {{"127.0.0.1"}}, "site.example.org": {{"127.0.0.1"}}, "loop.example.com": {{"127.0.0.2"}},
		"turns.example.com": {{"127.0.0.1"}, {"127.0.0.2"}}, "mapped.example.com": {{"::ffff:127.0.0.2"}},
	})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			s.mu.Lock()
			s.asked = append(s.asked, r.Host+r.URL.RequestURI())
			s.mu.Unlock()
		}
		h(w, r)
	}))
	t.Cleanup(s.Close)
	s.port = portOf(s.Listener)
	s.Client = s.client(change...)
	return s
}

func (s *site) client(change ...func(*Options)) *Client {
	s.t.Helper()
	o := Options{Time: patience, Idle: patience}
	o.Dialer.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	o.Dialer.Ports = []uint16{s.port}
	o.Dialer.Resolver = s.ns.Resolver
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// at is a URL of the site.
func (s *site) at(path string) string {
	return fmt.Sprintf("http://site.example.com:%d%s", s.port, path)
}

// get fetches a page of the site that must come.
func (s *site) get(path string) *Page {
	s.t.Helper()
	p, err := s.Fetch(s.t.Context(), Request{URL: s.at(path), Bytes: 1 << 20})
	if err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
	return p
}

// paths are what was asked for so far.
func (s *site) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// fails fetches what must not come, and checks why.
func (s *site) fails(url string, kind Kind, why string) *Error {
	s.t.Helper()
	p, err := s.Fetch(s.t.Context(), Request{URL: url, Bytes: 1 << 20})
	return wants(s.t, url, p, err, kind, why)
}

func wants(t *testing.T, what string, p *Page, err error, kind Kind, why string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %+v, %v; want a failure with %q", what, p, err, why)
		return &Error{}
	}
	if e.Kind != kind || !strings.Contains(e.Text, why) || !isLine(e.Text) {
		t.Errorf("%s: kind %d, %q; want kind %d, %q", what, e.Kind, e.Text, kind, why)
	}
	return e
}

func listen(t *testing.T, address string) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

func portOf(l net.Listener) uint16 { return l.Addr().(*net.TCPAddr).AddrPort().Port() }

// notes are what is said of a page beside its text.
func notes(p *Page) string { return strings.Join(p.Notes, "\n") }

// isLine says of what an error says that it is one line of ASCII, and not long.
func isLine(s string) bool {
	return len(s) < 3*lineChars && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
