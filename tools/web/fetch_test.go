package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"muster/tools/egress/egresstest"
)

// The table of the design: none of these is asked for, none of the names among them is looked up.
func TestRefusedURLs(t *testing.T) {
	t.Parallel()
	inner := listen(t, "127.0.0.1:0")
	port := portOf(inner)
	ns := egresstest.NewNameserver(t, nil)
	o := Options{}
	o.Dialer.Resolver, o.Dialer.Ports = ns.Resolver, []uint16{80, 443, port}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		"127.0.0.1", "127.127.127.127", "localhost", "LOCALHOST.", "foo.localhost", "0.0.0.0", "0", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::169.254.169.254]", "[64:ff9b:1::a00:1]",
		"[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]", "[fe80::1%25eth0]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "[::ffff:0:127.0.0.1]",
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "metadata.google.internal", "100.64.0.1",
		"198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "user@example.com", "user:pw@example.com", "example.com@127.0.0.1", "printer", "nas.local",
	} {
		for _, at := range []string{host, fmt.Sprintf("%s:%d", host, port)} {
			p, err := c.Fetch(t.Context(), Request{URL: "http://" + at + "/x", Bytes: 1 << 20})
			wants(t, at, p, err, Refused, "")
		}
	}
	for _, raw := range []string{
		"file:///etc/passwd", "ftp://example.com/", "gopher://127.0.0.1:70/", "data:text/html,x", "unix:/var/run/docker.sock", "javascript:alert(1)",
		"http://example.com:22/", "http://example.com:4222/", "http://example.com:8080/",
	} {
		p, err := c.Fetch(t.Context(), Request{URL: raw, Bytes: 1 << 20})
		wants(t, raw, p, err, Refused, "not allowed")
	}
	for _, raw := range []string{
		"", "http://", "example.com", "//example.com", "http:example.com", "http:///x", "http://example.com/\r\nHost: x", "http://example.com/\x00", "http://exa mple.com/", "http://example.com:99999/",
		"http://example.com\\@127.0.0.1/", "http://[::1", "http://example.com/\x1b[31m",
	} {
		p, err := c.Fetch(t.Context(), Request{URL: raw, Bytes: 1 << 20})
		wants(t, raw, p, err, Wrong, "")
	}
	egresstest.Untouched(t, inner)
	if asked := ns.Names(); len(asked) > 0 {
		t.Errorf("looked up: %q", asked)
	}
}

// A public name with a refused address is refused when the address is known, and so is one whose second answer is.
func TestRefusedAddresses(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })
	inner := listen(t, fmt.Sprintf("127.0.0.2:%d", s.port))
	s.fails(fmt.Sprintf("http://loop.example.com:%d/", s.port), Refused, "127.0.0.2 is not a public address")
	s.fails(fmt.Sprintf("http://mapped.example.com:%d/", s.port), Refused, "is not a public address")
	noRobots := s.client(func(o *Options) { o.IgnoreRobots = func(string) bool { return true } })
	turns := Request{URL: fmt.Sprintf("http://turns.example.com:%d/", s.port), Bytes: 1 << 20}
	if p, err := noRobots.Fetch(t.Context(), turns); err != nil || p.Text != "here" {
		t.Errorf("the first answer: %+v, %v", p, err)
	}
	p, err := noRobots.Fetch(t.Context(), turns)
	wants(t, "the second answer", p, err, Refused, "127.0.0.2 is not a public address")
	s.fails(fmt.Sprintf("http://nowhere.example.com:%d/", s.port), Lost, "there is no host nowhere.example.com")
	egresstest.Untouched(t, inner)
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	inner := listen(t, "127.0.0.2:0")
	targets := map[string]string{
		"/hop": "/page", "/relative": "deep/../page?q=1#there", "/other": "//other.example.com:PORT/page", "/absolute": "http://site.example.com:PORT/page",
		"/loop": "/loop2", "/loop2": "/loop", "/6": "/5", "/5": "/4", "/4": "/3", "/3": "/2", "/2": "/1", "/1": "/page",
		"/loopback": "http://127.0.0.1:1/", "/inner": "http://" + inner.Addr().String() + "/", "/inner-name": "http://loop.example.com:PORT/", "/localhost": "http://localhost:PORT/",
		"/metadata": "http://169.254.169.254/latest/meta-data/", "/file": "file:///etc/passwd", "/gopher": "gopher://site.example.com/", "/user": "http://user:hunter2hunter2@site.example.com:PORT/page",
		"/number": "http://2130706433:PORT/", "/port": "http://site.example.com:22/", "/bad": "http://[::1", "/slash": `http://site.example.com\@127.0.0.1/`, "/none": "",
	}
	var headers []http.Header
	s := newSite(t, nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers = append(headers, r.Header)
		if to, ok := targets[r.URL.Path]; ok {
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("Location", strings.ReplaceAll(to, "PORT", fmt.Sprint(s.port)))
			w.WriteHeader(http.StatusFound)
			return
		}
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "arrived at "+r.URL.String())
	})
	for path, want := range map[string]struct {
		text, url string
		n         int
	}{
		"/hop": {"arrived at /page", "/page", 1}, "/relative": {"arrived at /page?q=1", "/page?q=1#there", 1}, "/absolute": {"arrived at /page", "/page", 1}, "/5": {"arrived at /page", "/page", 5},
		"/hop#part": {"arrived at /page", "/page#part", 1},
	} {
		if p := s.get(path); p.Text != want.text || p.URL != s.at(want.url) || p.Redirects != want.n {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if p := s.get("/other"); p.URL != fmt.Sprintf("http://other.example.com:%d/page", s.port) {
		t.Errorf("/other leads to %s", p.URL)
	}
	for path, want := range map[string]struct {
		kind Kind
		why  string
	}{
		"/loop": {Lost, "redirects more than 5 times"}, "/6": {Lost, "redirects more than 5 times"},
		"/loopback": {Refused, "redirects to http://127.0.0.1:1/, and there port 1 is not allowed"}, "/inner": {Refused, "redirects to http://127.0.0.2"},
		"/inner-name": {Refused, "127.0.0.2 is not a public address"}, "/localhost": {Refused, "name of this machine"},
		"/metadata": {Refused, "and there "}, "/file": {Refused, `redirects to file:///etc/passwd, and there scheme "file" is not allowed`}, "/gopher": {Refused, "scheme"},
		"/user": {Refused, "a user name or password in a URL"}, "/number": {Refused, "number in an odd form"}, "/port": {Refused, "port 22 is not allowed"},
		"/bad": {Lost, "redirects to what is no URL"}, "/slash": {Lost, "redirects to what is no URL"}, "/none": {Lost, "answers 302 Found and does not say where to"},
	} {
		if e := s.fails(s.at(path), want.kind, want.why); strings.Contains(e.Text, "hunter2") {
			t.Errorf("%s: the password is in %q", path, e.Text)
		}
	}
	for _, h := range headers {
		for _, name := range []string{"Cookie", "Authorization", "Referer", "Proxy-Connection"} {
			if h.Get(name) != "" {
				t.Errorf("%s was sent: %q", name, h.Get(name))
			}
		}
	}
	egresstest.Untouched(t, inner)
}

// Whoever fetches judges every place that a redirect leads to, before anything is asked of it or of its name server.
func TestRedirectsAreJudged(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hop" {
			http.Redirect(w, r, fmt.Sprintf("http://other.example.com:%d/page", s.port), http.StatusMovedPermanently)
			return
		}
		fmt.Fprint(w, "arrived")
	})
	errNo := errors.New("no")
	var judged []string
	_, err := s.Fetch(t.Context(), Request{URL: s.at("/hop"), Bytes: 1 << 20, Judge: func(url string) error {
		judged = append(judged, url)
		return errNo
	}})
	if want := []string{fmt.Sprintf("http://other.example.com:%d/page", s.port)}; !errors.Is(err, errNo) || !slices.Equal(judged, want) {
		t.Errorf("%v, judged %q, want %q", err, judged, want)
	}
	if names := s.ns.Names(); slices.Contains(names, "other.example.com") {
		t.Errorf("looked up: %q", names)
	}
}

// TLS is verified, and what is wrong with it is said; from https to http nothing is followed.
func TestTLS(t *testing.T) {
	t.Parallel()
	plain := newSite(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "plain") })
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/down":
			http.Redirect(w, r, plain.at("/"), http.StatusFound)
		case "/robots.txt":
			http.NotFound(w, r)
		default:
			fmt.Fprint(w, "secret")
		}
	}))
	secure.StartTLS()
	defer secure.Close()
	port := portOf(secure.Listener)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	reach := func(o *Options) { o.Dialer.Ports = append(o.Dialer.Ports, port) }
	c := plain.client(reach, func(o *Options) { o.Roots = roots })
	at := func(host, path string) string { return fmt.Sprintf("https://%s:%d%s", host, port, path) }
	get := func(c *Client, url string) (*Page, error) {
		return c.Fetch(t.Context(), Request{URL: url, Bytes: 1 << 20})
	}
	if p, err := get(c, at("127.0.0.1", "/")); err != nil || p.Text != "secret" {
		t.Errorf("%+v, %v", p, err)
	}
	p, err := get(c, at("127.0.0.1", "/down"))
	wants(t, "https to http", p, err, Refused, "redirects from https to http://site.example.com")
	p, err = get(c, at("site.example.org", "/"))
	wants(t, "another host", p, err, Lost, "is not trusted: its certificate is for another host")
	p, err = get(plain.client(reach), at("127.0.0.1", "/"))
	wants(t, "unknown authority", p, err, Lost, "is not trusted: nobody who is trusted here vouches for its certificate")
	p, err = get(c, fmt.Sprintf("https://127.0.0.1:%d/", plain.port))
	wants(t, "no TLS", p, err, Lost, "it does not speak TLS there")
	p, err = get(c, fmt.Sprintf("http://127.0.0.1:%d/", port))
	wants(t, "TLS and not asked", p, err, Lost, "answers 400")
	if n := len(plain.paths()); n != 0 {
		t.Errorf("%d requests reached the plain server", n)
	}
}

// Variables of the environment that name proxies are not read.
func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	proxy := listen(t, "127.0.0.1:0")
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://"+proxy.Addr().String())
	}
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "direct") })
	if p := s.get("/"); p.Text != "direct" {
		t.Errorf("%+v", p)
	}
	egresstest.Untouched(t, proxy)
}

// No connection is of MPTCP, though the server would take one.
func TestNoMultipath(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	lc.SetMultipathTCP(true)
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	type key struct{}
	multi := make(chan bool, 4)
	server := &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, key{}, c) },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			is, err := r.Context().Value(key{}).(*net.TCPConn).MultipathTCP()
			multi <- is && err == nil
			fmt.Fprint(w, "x")
		}),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	defer func() { server.Close(); <-done }()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {})
	c := s.client(func(o *Options) {
		o.Dialer.Ports = []uint16{portOf(l)}
		o.IgnoreRobots = func(string) bool { return true }
	})
	if _, err := c.Fetch(t.Context(), Request{URL: fmt.Sprintf("http://site.example.com:%d/", portOf(l)), Bytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if <-multi {
		t.Error("the connection is one of MPTCP")
	}
	if c.pages.Proxy != nil || !c.pages.DisableKeepAlives || !c.pages.DisableCompression || c.pages.TLSClientConfig.InsecureSkipVerify || c.pages.TLSClientConfig.MinVersion > tls.VersionTLS13 {
		t.Errorf("the transport is %+v", c.pages)
	}
}

// What a fetch says of a status that is none of a page.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		var code int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &code); err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		fmt.Fprintf(w, "<title>Sorry</title><p>about that<script>x</script>%s", strings.Repeat("<p>long ", 300))
	})
	for code, kind := range map[int]Kind{
		400: Lost, 401: Refused, 402: Refused, 403: Refused, 404: Lost, 405: Lost, 408: Later, 410: Lost, 418: Lost, 425: Later, 429: Later, 451: Refused, 500: Later, 501: Lost, 502: Later, 503: Later, 504: Later, 505: Lost, 599: Later, 300: Lost,
	} {
		e := s.fails(s.at(fmt.Sprintf("/%d", code)), kind, fmt.Sprintf("answers %d", code))
		if !strings.HasPrefix(e.Body, "# Sorry\n\nabout that\n") || len(e.Body) > refusedChars || (e.After != 0) != (kind == Later) {
			t.Errorf("%d: %+v", code, e)
		}
	}
}
