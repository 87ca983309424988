package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

// Whatever is sent, no name but an allowed one reaches the resolver, and nothing is connected to. And what the proxy takes for a
// request, net/http takes for one to the same host.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"CONNECT allowed.example.com:443 HTTP/1.1\r\nHost: allowed.example.com:443\r\n\r\n",
		"CONNECT [2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443 HTTP/1.0\r\n\r\n",
		"GET http://ALLOWED.example.com./a?b HTTP/1.1\r\nHost: allowed.example.com\r\nX: y\r\n\r\n",
		"POST http://allowed.example.com:80/ HTTP/1.1\r\nHost: allowed.example.com:80\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"GET http://other.example.com/ HTTP/1.1\r\nHost: allowed.example.com\r\n\r\n",
		"GET http://allowed.example.com@127.0.0.1/ HTTP/1.1\r\nHost: allowed.example.com\r\nContent-Length: 1\r\n\r\nx",
		"CONNECT 127.1:80 HTTP/1.1\r\nHost: 0x7f.1:80\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	const allowed = "allowed.example.com"
	errOver := errors.New("no name server here")
	f.Fuzz(func(t *testing.T, input []byte) {
		var asked atomic.Int32
		d := Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			asked.Add(1)
			return nil, errOver
		}}}
		p := New(t.Context(), Config{Dialer: d, Allowed: func(host string) bool { return host == allowed }})
		defer p.Close()
		text, err := readHead(bufio.NewReaderSize(bytes.NewReader(input), headBytes))
		may := false
		if err == nil {
			if h, err := parseHead(text); err == nil {
				may = judged(t, p, input, h)
			}
		}
		client, conn := net.Pipe()
		over := make(chan struct{})
		go func() { defer close(over); p.Serve(conn) }()
		go func() { _, _ = client.Write(input); client.Close() }()
		reply, _ := io.ReadAll(client)
		client.Close()
		<-over
		if bytes.HasPrefix(reply, []byte("HTTP/1.1 200")) {
			t.Errorf("%q was served", input)
		}
		if asked.Load() > 0 && !may {
			t.Errorf("%q made a lookup", input)
		}
	})
}

// judged tells whether h may be served, and checks that it could not be understood in another way.
func judged(t *testing.T, p *Proxy, input []byte, h head) bool {
	t.Helper()
	to, u, err := p.judge(h)
	if err != nil {
		return false
	}
	if to.host != "allowed.example.com" || to.port != 80 && to.port != 443 {
		t.Errorf("%q goes to %s", input, to)
	}
	other, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(input)))
	if err != nil {
		return true
	}
	host, _, err := net.SplitHostPort(other.Host)
	if err != nil {
		host = other.Host
	}
	if strings.TrimSuffix(strings.ToLower(host), ".") != to.host {
		t.Errorf("%q goes to %s, and to %q for net/http", input, to, other.Host)
	}
	if other.ContentLength != h.length || u != nil && (other.URL.RequestURI() != u.RequestURI() || other.Method != h.method) {
		t.Errorf("%q: %s %s, %d bytes; for net/http %s %s, %d bytes", input, h.method, u, h.length, other.Method, other.URL, other.ContentLength)
	}
	return true
}

// A host that passes is an ASCII name with a dot or a public address, in its one form.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"example.com", "EXAMPLE.com.", "127.0.0.1", "0x7f.1", "::1", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "fe80::1%eth0", "１27.0.0.1", "x.localhost", "user@example.com"} {
		f.Add(seed, strings.Contains(seed, ":"))
	}
	f.Fuzz(func(t *testing.T, host string, brackets bool) {
		var d Dialer
		check := func(host string) (string, error) {
			t := target{port: 80}
			err := d.checkTarget(&t, host, brackets)
			return t.host, err
		}
		got, err := check(host)
		if err != nil {
			if line := err.Error(); oneLine(line) != line {
				t.Errorf("%q: %q is not a line of ASCII", host, line)
			}
			return
		}
		if again, err := check(got); err != nil || again != got {
			t.Errorf("%q became %q, and that %q, %v", host, got, again, err)
		}
		if addr, err := netip.ParseAddr(got); err == nil {
			if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Is4In6() || addr.Zone() != "" {
				t.Errorf("%q passed as the address %s", host, addr)
			}
			return
		}
		if !strings.Contains(got, ".") || strings.ToLower(got) != got || strings.ContainsFunc(got, func(r rune) bool { return !isNameRune(r) && r != '.' }) || net.ParseIP(got) != nil {
			t.Errorf("%q passed as %q", host, got)
		}
	})
}
