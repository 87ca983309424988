package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A head that does not come in time is answered so; a connection that never says anything just ends.
func TestHeadTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context(), Config{})
		defer p.Close()
		start := time.Now()
		client, conn := net.Pipe()
		go p.Serve(conn)
		_, _ = io.WriteString(client, "GET http://")
		b, err := io.ReadAll(client)
		if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 408 ") || time.Since(start) > time.Minute {
			t.Errorf("after %v: %q, %v", time.Since(start), b, err)
		}
	})
}

// A tunnel, a response and a request end where nothing moves any more, and not before.
func TestIdleTime(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	port := portOf(l)
	var servers sync.WaitGroup
	defer servers.Wait()
	defer l.Close()
	servers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			servers.Go(func() { _, _ = io.Copy(io.Discard, conn); conn.Close() }) // it never answers
		}
	})
	for _, request := range []string{
		fmt.Sprintf("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", port),
		fmt.Sprintf("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", port),
		fmt.Sprintf("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nless", port),
	} {
		w := newWorld(t, []uint16{port}, func(c *Config) { c.IdleTime = 100 * time.Millisecond })
		conn := w.connect()
		_, _ = io.WriteString(conn, request)
		b, err := io.ReadAll(conn)
		tunnel := strings.HasPrefix(request, http.MethodConnect)
		if !tunnel && (err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 504 ")) || tunnel && !strings.HasPrefix(string(b), "HTTP/1.1 200 ") {
			t.Errorf("%.20q: %q, %v", request, b, err)
		}
		if events := w.end(); len(events) != 1 || events[0].Why != "nothing moved for 100ms" {
			t.Errorf("%.20q: %+v", request, events)
		}
	}
}

// A server that answers before it has the whole request, and a client that goes on sending.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	w := newWorld(t, []uint16{portOf(l)})
	conn := w.connect()
	fmt.Fprintf(conn, "POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", portOf(l))
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, _ = io.WriteString(server, "HTTP/1.1 413 Too Much\r\nContent-Length: 4\r\n\r\nstop")
	b, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 413 Too Much\r\n") || !strings.HasSuffix(string(b), "\r\n\r\nstop") {
		t.Errorf("%q, %v", b, err)
	}
}

// A client that leaves while it waits gives its place back.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	w := newWorld(t, []uint16{portOf(l)})
	for _, rest := range []string{"\r\n", "Content-Length: 5\r\n\r\nhello", "Content-Length: 9\r\n\r\nless"} {
		conn := w.connect()
		fmt.Fprintf(conn, "POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", portOf(l), rest)
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		server.SetDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, server); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: %v", rest, err)
		}
		server.Close()
	}
	eventually(t, "all places are free", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.events) == 3
	})
}

// The end of the proxy ends whatever stage a connection is at, from its own Close and from its context.
func TestEnd(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	port := portOf(l)
	deaf := listen(t, "127.0.0.1:0") // a name server over TCP that does not answer
	stages := []string{
		"",
		"GET http://",
		fmt.Sprintf("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", port),
		fmt.Sprintf("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", port),
		fmt.Sprintf("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nless", port),
		fmt.Sprintf("CONNECT site.example.com:%d HTTP/1.1\r\nHost: site.example.com\r\n\r\n", port),
	}
	for _, end := range []string{"close", "context"} {
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan struct{}, 100)
		p := New(ctx, Config{
			Dialer: Dialer{Allow: []netip.Prefix{loopback}, Ports: []uint16{port}, Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				asked <- struct{}{}
				return (&net.Dialer{}).DialContext(ctx, "tcp", deaf.Addr().String())
			}}},
			Allowed: func(host string) bool { return slices.Contains(names, host) },
		})
		front := listen(t, "127.0.0.1:0")
		var clients []net.Conn
		var served sync.WaitGroup
		for _, text := range stages {
			client, err := net.Dial("tcp", front.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conn, err := front.Accept()
			if err != nil {
				t.Fatal(err)
			}
			served.Go(func() { p.Serve(conn) })
			_, _ = io.WriteString(client, text)
			clients = append(clients, client)
		}
		for range 3 { // the tunnel, the request, the one with a body
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
		}
		<-asked
		if end == "context" {
			cancel()
			served.Wait()
		}
		p.Close()
		served.Wait()
		for i, client := range clients {
			client.SetDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, client); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %.20q: %v", end, stages[i], err)
			}
			client.Close()
		}
		if n := len(p.open); n != 0 {
			t.Errorf("%s: %d connections are still open", end, n)
		}
		client, late := net.Pipe()
		p.Serve(late)
		if b, err := io.ReadAll(client); err != nil || len(b) != 0 {
			t.Errorf("%s: after the end: %q, %v", end, b, err)
		}
		p.Close()
		cancel()
	}
}

// Connections come and go while the proxy ends.
func TestEndUnderLoad(t *testing.T) {
	t.Parallel()
	s, port := serverOf(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	for range 20 {
		w := newWorld(t, []uint16{port}, func(c *Config) { c.Connections = 4 })
		c := w.client(s)
		var clients sync.WaitGroup
		first := make(chan struct{}, 8)
		for range 8 {
			clients.Go(func() {
				for {
					resp, err := c.Post(fmt.Sprintf("http://127.0.0.1:%d/", port), "text/plain", strings.NewReader("echo"))
					if err != nil {
						break
					}
					b, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if resp.StatusCode == http.StatusOK && err == nil && string(b) != "echo" {
						t.Errorf("echo: %q", b)
					}
					select {
					case first <- struct{}{}:
					default:
					}
				}
			})
		}
		<-first
		for _, e := range w.end() {
			if e.Method != http.MethodPost && e.Method != "" {
				t.Errorf("event: %+v", e)
			}
		}
		clients.Wait()
	}
}

func TestEnv(t *testing.T) {
	t.Parallel()
	got := Env("127.0.0.1:3128")
	for _, want := range []string{"HTTP_PROXY=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128", "all_proxy=http://127.0.0.1:3128", "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
}
