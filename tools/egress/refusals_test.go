package egress

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/tools/egress/egresstest"
)

// What is not allowed is answered with a reason in the status line, and nobody is connected to.
func TestRefusals(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	port := portOf(l)
	strict := newWorld(t, []uint16{port}, func(c *Config) { c.Dialer.Allow = nil }) // as a worker has it
	plain := newWorld(t, nil)
	get := func(url, host string) string {
		return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", url, host)
	}
	connect := func(target string) string {
		return fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target)
	}
	at := func(format string) string { return fmt.Sprintf(format, port) }
	for _, c := range []struct {
		w       *world
		request string
		status  int
		why     string
	}{
		{plain, connect("127.0.0.1:4222"), 403, "port 4222 is not allowed, only 80, 443"},
		{strict, connect(at("127.0.0.1:%d")), 403, "127.0.0.1 is not a public address"},
		{strict, connect(at("[::ffff:127.0.0.1]:%d")), 403, "not a public address"},
		{strict, connect(at("169.254.169.254:%d")), 403, "169.254.169.254 is not a public address"},
		{strict, connect(at("metadata.google.internal:%d")), 403, "name of this machine or its network"},
		{strict, connect(at("localhost:%d")), 403, "name of this machine or its network"},
		{strict, connect(at("2130706433:%d")), 403, "number in an odd form"},
		{strict, connect(at("0x7f.1:%d")), 403, "number in an odd form"},
		{strict, connect(at("unlisted.example.com:%d")), 403, "unlisted.example.com is not among the allowed domains"},
		{strict, connect(at("site.example.com:%d")), 403, "127.0.0.1 is not a public address"},
		{strict, connect(at("SITE.example.com.:%d")), 403, "127.0.0.1 is not a public address"},
		{strict, connect(at("user@site.example.com:%d")), 403, "not a domain name"},
		{strict, get(at("http://127.0.0.1:%d/"), at("127.0.0.1:%d")), 403, "127.0.0.1 is not a public address"},
		{strict, get(at("http://site.example.com:%d/"), at("site.example.com:%d")), 403, "127.0.0.1 is not a public address"},
		{strict, get(at("http://unlisted.example.com:%d/"), at("unlisted.example.com:%d")), 403, "not among the allowed domains"},
		{strict, get(at("http://user:pw@site.example.com:%d/"), at("site.example.com:%d")), 403, "user name or password"},
		{strict, get(at("http://site.example.com:%d/"), "unlisted.example.com"), 403, "the Host header \"unlisted.example.com\" is not that of site.example.com"},
		{strict, get(at("http://site.example.com:%d/"), "site.example.com:1"), 403, "the Host header"},
		{strict, get(at("http://site.example.com:%d/"), "[::1"), 403, "the Host header"},
		{strict, fmt.Sprintf("CONNECT site.example.com:%d HTTP/1.1\r\nHost: unlisted.example.com:%[1]d\r\n\r\n", port), 403, "the Host header"},
		{strict, get("ftp://site.example.com/", "site.example.com"), 403, "scheme \"ftp\" is not allowed"},
		{plain, connect("gone.example.com:80"), 502, "connect to gone.example.com:80: no such host"},
		{plain, connect("loop.example.com:80"), 403, "loop.example.com:80: 127.0.0.2 is not a public address"},
		{plain, connect("site.example.com:22"), 403, "port 22 is not allowed"},
	} {
		reply := c.w.raw(c.request)
		line, rest, _ := strings.Cut(reply, "\r\n")
		_, body, _ := strings.Cut(rest, "\r\n\r\n")
		if !strings.HasPrefix(line, fmt.Sprintf("HTTP/1.1 %d ", c.status)) || !strings.Contains(line, c.why) || !strings.Contains(body, c.why) || strings.Count(body, "\n") != 1 {
			t.Errorf("%q: %q\nwant %d, %s", c.request, reply, c.status, c.why)
		}
	}
	egresstest.Untouched(t, l)
	if asked := strict.ns.Names(); !slices.Equal(asked, []string{"site.example.com"}) {
		t.Errorf("resolved: %q", asked)
	}
	for _, e := range append(strict.end(), plain.end()...) {
		if e.Why == "" || e.Status == 0 || e.Sent == 0 || e.Received == 0 || oneLine(e.Why) != e.Why {
			t.Errorf("event: %+v", e)
		}
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	port := portOf(l)
	w := newWorld(t, []uint16{port})
	site := fmt.Sprintf("site.example.com:%d", port)
	for request, status := range map[string]int{
		"GET / HTTP/1.1\r\nHost: " + site + "\r\n\r\n":                                                                                 400,
		"OPTIONS * HTTP/1.1\r\nHost: " + site + "\r\n\r\n":                                                                             400,
		"GET http://" + site + "/\r\n\r\n":                                                                                             400,
		"GET http://" + site + "/ HTTP/2.0\r\nHost: " + site + "\r\n\r\n":                                                              400,
		"GET  http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\n\r\n":                                                             400,
		"GET http://" + site + "/ HTTP/1.1\nHost: " + site + "\n\n":                                                                    400,
		"GET http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\nX: y\r\n\r\n":                                                        400,
		"GET http://" + site + "/ HTTP/1.1\r\nX: a\rb\r\nHost: " + site + "\r\n\r\n":                                                   400,
		"GET http://" + site + "/ HTTP/1.1\r\n\r\n":                                                                                    400,
		"GET http://" + site + "/ HTTP/1.1\r\nHost:\r\n\r\n":                                                                           400,
		"GET http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nHost: " + site + "\r\n\r\n":                                        400,
		"GET http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\n folded: x\r\n\r\n":                                                400,
		"GET http://" + site + "/ HTTP/1.1\r\nHost : " + site + "\r\n\r\n":                                                             400,
		"GET http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nno colon\r\n\r\n":                                                  400,
		"GET http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nX: \x00\r\n\r\n":                                                   400,
		"GET http://" + site + "/\x7f HTTP/1.1\r\nHost: " + site + "\r\n\r\n":                                                          400,
		"POST http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": 400,
		"POST http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx":                  400,
		"POST http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nContent-Length: +1\r\n\r\nx":                                      400,
		"POST http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nContent-Length: 99999999999999999999\r\n\r\nx":                    400,
		"POST http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n":                400,
		"POST http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n": 400,
		"POST http://" + site + "/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                                            400,
		"POST http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nContent-Length: 1\r\nExpect: 200-ok\r\n\r\nx":                     417,
		"CONNECT " + site + " HTTP/1.1\r\nHost: " + site + "\r\nContent-Length: 1\r\n\r\nx":                                            400,
		"CONNECT http://" + site + " HTTP/1.1\r\nHost: " + site + "\r\n\r\n":                                                           400,
		"CONNECT site.example.com HTTP/1.1\r\nHost: site.example.com\r\n\r\n":                                                          400,
		"CONNECT :80 HTTP/1.1\r\nHost: x\r\n\r\n":                                                                                      400,
		"CONNECT ::1:80 HTTP/1.1\r\nHost: x\r\n\r\n":                                                                                   400,
		"CONNECT [site.example.com]" + site[strings.Index(site, ":"):] + " HTTP/1.1\r\nHost: x\r\n\r\n":                                400,
		"CONNECT site.example.com:https HTTP/1.1\r\nHost: x\r\n\r\n":                                                                   400,
		"GET https://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\n\r\n":                                                             400,
		"GET http://site.example.com\\@" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\n\r\n":                                           400,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                                                             400,
		"\x16\x03\x01\x02\x00\x01\r\n\r\n":                                                                                             400,
		"\r\n\r\n":                                                                                                                     400,
		"GET http://" + site + "/ HTTP/1.1\r\nHost: " + site + "\r\nX: " + strings.Repeat("x", headBytes):                              431,
		strings.Repeat("x", headBytes+1):                                                                                               431,
	} {
		if reply := w.raw(request); !strings.HasPrefix(reply, fmt.Sprintf("HTTP/1.1 %d ", status)) {
			t.Errorf("%.200q: %q, want %d", request, reply, status)
		}
	}
	conn := w.connect()
	_, _ = io.WriteString(conn, "GET http://"+site+"/ HTT")
	_ = conn.CloseWrite()
	if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 400 ") {
		t.Errorf("an end within the head: %q, %v", b, err)
	}
	egresstest.Untouched(t, l)
}

// A refused upload gets its answer, though nobody reads what it sends.
func TestRefusedUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	resp, err := w.client(nil).Post("http://unlisted.example.com/", "text/plain", strings.NewReader(strings.Repeat("x", lingerBytes/2)))
	if got := read(t, resp, err); resp.StatusCode != http.StatusForbidden || !strings.Contains(got, "not among the allowed domains") {
		t.Errorf("%s %q", resp.Status, got)
	}
}

// A server that answers with what was not asked for, or with nothing that can be read.
func TestBadServers(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n": "HTTP/1.1 502 ",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*headBytes) + "\r\n\r\n":          "HTTP/1.1 502 ",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n":               "HTTP/1.1 502 ",
		"NOT HTTP\r\n\r\n": "HTTP/1.1 502 ",
		"":                 "HTTP/1.1 502 ",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 Fine\x1b[31m\r\n\r\n":                                                          "HTTP/1.1 204 Fine?[31m\r\n",
		"HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n": "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	} {
		l := listen(t, "127.0.0.1:0")
		w := newWorld(t, []uint16{portOf(l)})
		served := make(chan struct{})
		go func() {
			defer close(served)
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			one := make([]byte, 1)
			_, _ = conn.Read(one)
			_, _ = io.WriteString(conn, answer)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
		}()
		if got := w.raw(fmt.Sprintf("GET http://site.example.com:%d/ HTTP/1.1\r\nHost: site.example.com\r\n\r\n", portOf(l))); !strings.HasPrefix(got, want) {
			t.Errorf("%.100q became %q, want %q", answer, got, want)
		}
		<-served
	}
}

// A response that ends too early does not look whole, whatever marks its end.
func TestCutResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ version, framing string }{{"1.1", "Content-Length: 100"}, {"1.1", "Transfer-Encoding: chunked"}, {"1.0", "Transfer-Encoding: chunked"}} {
		l := listen(t, "127.0.0.1:0")
		w := newWorld(t, []uint16{portOf(l)})
		conn := w.connect()
		fmt.Fprintf(conn, "GET http://site.example.com:%d/ HTTP/%s\r\nHost: site.example.com\r\n\r\n", portOf(l), c.version)
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		firstLine(t, server)
		fmt.Fprintf(server, "HTTP/1.1 200 OK\r\n%s\r\n\r\n5\r\nhello\r\n", c.framing)
		_ = server.(*net.TCPConn).CloseWrite()
		b, err := io.ReadAll(conn)
		if err == nil {
			t.Errorf("%v: %q, and no error", c, b)
		}
		server.Close()
		if events := w.end(); len(events) != 1 || events[0].Why == "" || events[0].Status != http.StatusOK {
			t.Errorf("%v: %+v", c, events)
		}
	}
}

// Connections beyond the limit are told so; a place is free again when one has ended.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	w := newWorld(t, []uint16{portOf(l)}, func(c *Config) { c.Connections = 2 })
	request := fmt.Sprintf("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", portOf(l))
	var open []net.Conn
	for range 2 {
		conn := w.connect()
		_, _ = io.WriteString(conn, request)
		if line := firstLine(t, conn); !strings.Contains(line, " 200 ") {
			t.Fatal(line)
		}
		open = append(open, conn)
	}
	if got := w.raw(request); !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "2 connections at once are the most") {
		t.Errorf("one more: %q", got)
	}
	var silent []net.Conn // they hold the places of those that are told
	for range 2 {
		silent = append(silent, w.connect())
	}
	eventually(t, "two more are in", func() bool {
		w.Proxy.mu.Lock()
		defer w.Proxy.mu.Unlock()
		return len(w.open) == 4
	})
	last := w.connect()
	if b, _ := io.ReadAll(last); len(b) != 0 {
		t.Errorf("one far too many: %q", b)
	}
	for _, conn := range append(open[:1], silent...) {
		conn.Close()
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	eventually(t, "a place is free", func() bool { return oneAnswer(w, request) == "HTTP/1.1 200" })
}

func firstLine(t *testing.T, r io.Reader) string {
	t.Helper()
	var line []byte
	b := make([]byte, 1)
	for {
		if _, err := r.Read(b); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if line = append(line, b[0]); b[0] == '\n' {
			return string(line)
		}
	}
}

// oneAnswer asks for a tunnel, tells how the answer begins, and lets go of it.
func oneAnswer(w *world, request string) string {
	conn := w.connect()
	defer conn.Close()
	_, _ = io.WriteString(conn, request)
	b := make([]byte, len("HTTP/1.1 200"))
	n, _ := io.ReadFull(conn, b)
	return string(b[:n])
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
