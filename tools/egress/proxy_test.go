package egress

import (
	"bufio"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/tools/egress/egresstest"
)

// world is a proxy on a port of its own, with names that lead to servers of the test.
type world struct {
	*Proxy
	t       *testing.T
	address string // of the proxy
	ns      *egresstest.Nameserver

	mu     sync.Mutex
	events []Event
}

// names are the hosts that the proxy allows.
var names = []string{"site.example.com", "example.com", "other.example.com", "loop.example.com", "gone.example.com", "127.0.0.1"}

// newWorld makes a proxy that may connect to ports of 127.0.0.1. change may alter its configuration.
func newWorld(t *testing.T, ports []uint16, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, ns: egresstest.NewNameserver(t, map[string][][]string{
		"site.example.com": {{"127.0.0.1"}}, "example.com": {{"127.0.0.1"}}, "unlisted.example.com": {{"127.0.0.1"}},
		"loop.example.com": {{"127.0.0.2"}}, // stands for whatever is not public
	})}
	cfg := Config{
		Dialer:  Dialer{Allow: []netip.Prefix{loopback}, Ports: ports, Resolver: w.ns.Resolver},
		Allowed: func(host string) bool { return slices.Contains(names, host) },
		Log: func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	w.Proxy = New(t.Context(), cfg)
	l := listen(t, "127.0.0.1:0")
	w.address = l.Addr().String()
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { w.Serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); w.Close(); served.Wait() })
	return w
}

// client is an HTTP client that knows the proxy, trusts server, and follows no redirect.
func (w *world) client(server *httptest.Server) *http.Client {
	roots := x509.NewCertPool()
	if server != nil && server.Certificate() != nil {
		roots.AddCert(server.Certificate())
	}
	transport := &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: w.address}),
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		DisableKeepAlives: true, DisableCompression: true,
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// connect opens a connection to the proxy.
func (w *world) connect() *net.TCPConn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.TCPConn)
}

// raw sends text and returns all that comes back.
func (w *world) raw(text string) string {
	w.t.Helper()
	conn := w.connect()
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	reply, err := io.ReadAll(conn)
	if err != nil {
		w.t.Errorf("%q: %v after %q", text, err, reply)
	}
	return string(reply)
}

// end closes the proxy and returns what it told.
func (w *world) end() []Event {
	w.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events
}

// read returns the body of a response.
func read(t *testing.T, resp *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("after %d bytes: %v", len(b), err)
	}
	return string(b)
}

// serverOf is a plain server for the test, with its port.
func serverOf(t *testing.T, h http.HandlerFunc) (*httptest.Server, uint16) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s, portOf(s.Listener)
}

// zipped is a body in gzip.
var zipped = func() string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, strings.Repeat("x", 1000))
	_ = z.Close()
	return b.String()
}()

// answers is a site with one page for each way to answer.
func answers(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/moved":
		http.Redirect(w, r, "http://unlisted.example.com/", http.StatusFound)
	case "/empty":
		w.WriteHeader(http.StatusNoContent)
	case "/zipped":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, zipped)
	case "/stream":
		for range 3 {
			_, _ = io.WriteString(w, "part ")
			w.(http.Flusher).Flush()
		}
	default:
		w.Header().Set("X-Answer", "yes")
		fmt.Fprintf(w, "%s %s host=%s body=%q length=%d agent=%q", r.Method, r.RequestURI, r.Host, body, r.ContentLength, r.UserAgent())
	}
}

func TestPlainRequests(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1") // nobody asks it
	}
	s, port := serverOf(t, answers)
	w := newWorld(t, []uint16{port})
	c := w.client(s)
	site := fmt.Sprintf("http://site.example.com:%d", port)

	resp, err := c.Get(fmt.Sprintf("http://Site.Example.com.:%d/a%%2Fb?q=%%20", port))
	if got, want := read(t, resp, err), fmt.Sprintf(`GET /a%%2Fb?q=%%20 host=site.example.com:%d body="" length=0 agent="Go-http-client/1.1"`, port); got != want {
		t.Errorf("GET: %s\nwant %s", got, want)
	}
	if resp.Header.Get("X-Answer") != "yes" {
		t.Errorf("headers of the response: %v", resp.Header)
	}
	big := strings.Repeat("0123456789", 200_000)
	for _, body := range []io.Reader{strings.NewReader(big), io.MultiReader(strings.NewReader(big))} { // by length, in chunks
		resp, err = c.Post(site+"/p", "text/plain", body)
		if got := read(t, resp, err); !strings.HasPrefix(got, "POST /p ") || !strings.Contains(got, big) {
			t.Errorf("POST: %d bytes: %.100s", len(got), got)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, site+"/put", strings.NewReader(big))
	req.Header.Set("Expect", "100-continue")
	resp, err = c.Do(req)
	if got := read(t, resp, err); !strings.Contains(got, big) {
		t.Errorf("PUT: %d bytes: %.100s", len(got), got)
	}
	resp, err = c.Head(site + "/")
	if got := read(t, resp, err); got != "" || resp.ContentLength <= 0 {
		t.Errorf("HEAD: %q, length %d", got, resp.ContentLength)
	}
	resp, err = c.Get(site + "/moved")
	if got := read(t, resp, err); resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "http://unlisted.example.com/" {
		t.Errorf("redirect: %s %v %s", resp.Status, resp.Header, got)
	}
	resp, err = c.Get(site + "/empty")
	if got := read(t, resp, err); resp.StatusCode != http.StatusNoContent || got != "" {
		t.Errorf("no content: %s %q", resp.Status, got)
	}
	resp, err = c.Get(site + "/zipped")
	if got := read(t, resp, err); got != zipped {
		t.Errorf("gzip: %q", got)
	}
	resp, err = c.Get(site + "/stream")
	if got := read(t, resp, err); got != "part part part " || resp.ContentLength != -1 {
		t.Errorf("stream: %q", got)
	}
	if got := w.raw(fmt.Sprintf("GET %s/stream HTTP/1.0\r\n\r\n", site)); !strings.HasSuffix(got, "\r\n\r\npart part part ") || strings.Contains(got, "chunked") {
		t.Errorf("HTTP/1.0: %q", got)
	}
	if asked := w.ns.Names(); !slices.Equal(asked, []string{"site.example.com"}) {
		t.Errorf("resolved: %q", asked)
	}
	for _, e := range w.end() {
		if e.Why != "" || e.Target != fmt.Sprintf("site.example.com:%d", port) || e.Status/100 > 3 || e.Sent == 0 || e.Received == 0 || e.Duration <= 0 {
			t.Errorf("event: %+v", e)
		}
	}
}

// What belongs to the hop stays there, and what a client says of itself goes on as it is.
func TestHeadersOfTheHop(t *testing.T) {
	t.Parallel()
	_, port := serverOf(t, func(w http.ResponseWriter, r *http.Request) { _ = r.Header.Write(w) })
	w := newWorld(t, []uint16{port})
	got := w.raw(fmt.Sprintf("GET http://site.example.com:%d/ HTTP/1.1\r\nHost: SITE.example.com.:%[1]d\r\nProxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n"+
		"Connection: Upgrade, HTTP2-Settings, x-mine\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\nX-Mine: 1\r\nTE: trailers\r\nKeep-Alive: 5\r\nX-Kept: one\r\nX-Kept: two\r\n\r\n", port))
	_, body, _ := strings.Cut(got, "\r\n\r\n")
	if want := "Connection: close\r\nX-Kept: one\r\nX-Kept: two\r\n"; !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || body != want {
		t.Errorf("the server saw %q, want %q; whole: %q", body, want, got)
	}
}

func TestConnect(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(w, r.Body)
		if n == 0 {
			fmt.Fprintf(w, "%s %s", r.Method, r.Host)
		}
	}))
	t.Cleanup(s.Close)
	port := portOf(s.Listener)
	w := newWorld(t, []uint16{port})
	c := w.client(s)
	resp, err := c.Get(fmt.Sprintf("https://example.com:%d/", port))
	if got := read(t, resp, err); got != fmt.Sprintf("GET example.com:%d", port) {
		t.Errorf("GET: %q", got)
	}
	big := strings.Repeat("0123456789", 500_000)
	resp, err = c.Post(fmt.Sprintf("https://EXAMPLE.com:%d/", port), "text/plain", strings.NewReader(big))
	if got := read(t, resp, err); got != big {
		t.Errorf("POST: %d bytes came back of %d", len(got), len(big))
	}
	resp, err = c.Get(fmt.Sprintf("https://unlisted.example.com:%d/", port))
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "unlisted.example.com is not among the allowed domains") {
		t.Errorf("a domain that is not allowed: %v", err)
	}
	events := w.end()
	if len(events) != 3 {
		t.Fatalf("%d events: %+v", len(events), events)
	}
	for _, e := range events {
		if e.Method != http.MethodConnect || e.Status == http.StatusOK && e.Target != fmt.Sprintf("example.com:%d", port) || e.Status != http.StatusOK && e.Why == "" {
			t.Errorf("event: %+v", e)
		}
	}
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Sent >= int64(len(big)) && e.Received >= int64(len(big)) }) {
		t.Errorf("an echo of %d bytes is told as %+v", len(big), events)
	}
}

// Each end of a tunnel ends by itself, and what a client sends before it has an answer is not lost.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	w := newWorld(t, []uint16{portOf(l)})
	client := w.connect()
	fmt.Fprintf(client, "CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nearly ", portOf(l))
	server, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(client)
	const answer = "HTTP/1.1 200 Connection established\r\n\r\n"
	head := make([]byte, len(answer))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != answer {
		t.Fatalf("%q, %v", head, err)
	}
	_, _ = io.WriteString(client, "late")
	_ = client.CloseWrite()
	if b, err := io.ReadAll(server); err != nil || string(b) != "early late" {
		t.Errorf("the server read %q, %v", b, err)
	}
	_, _ = io.WriteString(server, "answer after the end")
	server.Close()
	if b, err := io.ReadAll(in); err != nil || string(b) != "answer after the end" {
		t.Errorf("the client read %q, %v", b, err)
	}
}
