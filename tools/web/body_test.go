package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const kept = 64 << 10 // bytes of a page in these tests

func (s *site) fetch(path string) (*Page, error) {
	return s.Fetch(s.t.Context(), Request{URL: s.at(path), Bytes: kept})
}

// What is beyond the limit is counted where it ends soon, and is "at least" so much where it does not; what Content-Length says is nothing.
func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	packed := func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(data)
		z.Close()
		return b.Bytes()
	}
	bomb := func(w io.Writer) { // 200 MiB in 200 kB
		z := gzip.NewWriter(w)
		zeros := bytes.Repeat([]byte("a"), 1<<20)
		for range 200 {
			if _, err := z.Write(zeros); err != nil {
				return
			}
		}
		z.Close()
	}
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("asked for %q", r.Header.Get("Accept-Encoding"))
		}
		switch r.URL.Path {
		case "/exact":
			fmt.Fprint(w, strings.Repeat("x", kept))
		case "/one-more":
			fmt.Fprint(w, strings.Repeat("x", kept+1))
		case "/twice":
			fmt.Fprint(w, strings.Repeat("x", 2*kept))
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("y", 1<<10)); err != nil {
					return
				}
			}
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed([]byte(strings.Repeat("中", kept/3))))
		case "/gzip-more":
			w.Header().Set("Content-Encoding", "x-gzip")
			w.Write(packed([]byte(strings.Repeat("z", 3*kept))))
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			bomb(w)
		case "/cut-letter":
			fmt.Fprint(w, "x"+strings.Repeat("中", kept))
		}
	})
	for path, want := range map[string]Page{
		"/exact":     {Seen: kept, Kept: kept},
		"/one-more":  {Seen: kept + 1, Kept: kept},
		"/twice":     {Seen: 2 * kept, Kept: kept},
		"/endless":   {Seen: wireFactor * kept, Kept: kept, AtLeast: true},
		"/gzip":      {Seen: kept / 3 * 3, Kept: kept / 3 * 3},
		"/gzip-more": {Seen: 3 * kept, Kept: kept},
	} {
		p, err := s.fetch(path)
		if err != nil || p.Seen != want.Seen || p.Kept != want.Kept || p.AtLeast != want.AtLeast || len(p.Text) != int(want.Kept) || len(p.Notes) > 0 {
			t.Errorf("%s: %v, %d of %d (at least: %v), %d bytes of text, %q", path, err, p.Kept, p.Seen, p.AtLeast, len(p.Text), p.Notes)
		}
	}
	p, err := s.fetch("/bomb")
	if err != nil || p.Kept != kept || p.Seen < decodedFactor*kept || p.Seen > decodedFactor*kept+chunkBytes || !p.AtLeast {
		t.Errorf("/bomb: %v, %d of %d (at least: %v)", err, p.Kept, p.Seen, p.AtLeast)
	}
	p, err = s.fetch("/cut-letter")
	if err != nil || p.Text != "x"+strings.Repeat("中", (kept-1)/3) || len(p.Notes) > 0 {
		t.Errorf("/cut-letter: %v, ends with %q, %q", err, p.Text[len(p.Text)-6:], p.Notes)
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if encoding := r.URL.Query().Get("e"); encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
			fmt.Fprint(w, "this is no gzip at all")
		}
	})
	for _, encoding := range []string{"br", "deflate", "zstd", "compress", "gzip, gzip", "gzip,br", "x"} {
		s.fails(s.at("/?e="+strings.ReplaceAll(encoding, " ", "%20")), Lost, "the page is encoded as "+encoding+", and only gzip was asked for")
	}
	s.fails(s.at("/?e=gzip"), Lost, "is not the gzip that it says it is")
	if p := s.get("/?e=identity"); p.Text != "this is no gzip at all" {
		t.Errorf("identity: %+v", p)
	}
}

// A body that ends too early, or never, is shown as far as it came, and that is said. One that never begins is a failure that may pass.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		flush := func(text string) {
			fmt.Fprint(w, text)
			w.(http.Flusher).Flush()
		}
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		switch r.URL.Path {
		case "/drip":
			for {
				select {
				case <-r.Context().Done():
					return
				case <-tick.C:
					flush("drop ")
				}
			}
		case "/stall":
			flush("begun")
			<-r.Context().Done()
		case "/nothing":
			flush("")
			<-r.Context().Done()
		case "/silent":
			<-r.Context().Done()
		}
	})
	hasty := func(time, idle time.Duration) *Client {
		return s.client(func(o *Options) {
			o.Time, o.Idle = time, idle
			o.IgnoreRobots = func(string) bool { return true }
		})
	}
	get := func(c *Client, path string) (*Page, error) {
		return c.Fetch(t.Context(), Request{URL: s.at(path), Bytes: kept})
	}
	p, err := get(hasty(300*time.Millisecond, patience), "/drip")
	if err != nil || !strings.HasPrefix(p.Text, "drop drop") || !p.AtLeast || !strings.Contains(notes(p), "it is not whole: site.example.com") || !strings.Contains(notes(p), "longer than the time there is") {
		t.Errorf("/drip: %+v, %v", p, err)
	}
	p, err = get(hasty(patience, 100*time.Millisecond), "/stall")
	if err != nil || p.Text != "begun" || !strings.Contains(notes(p), "nothing came any more") {
		t.Errorf("/stall: %+v, %v", p, err)
	}
	p, err = get(hasty(patience, 100*time.Millisecond), "/nothing")
	wants(t, "/nothing", p, err, Later, "nothing came any more")
	p, err = get(hasty(patience, 100*time.Millisecond), "/silent")
	wants(t, "/silent", p, err, Later, "no answer of site.example.com")
	p, err = get(hasty(100*time.Millisecond, patience), "/silent")
	wants(t, "/silent", p, err, Later, "it took longer than the time there is")
}

// Answers that are no good HTTP, byte by byte.
func TestRawAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		text   string // of the page
		note   string
		kind   Kind
		why    string
	}{
		"too long a length":  {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nonly this", "only this", "ended before the page did", 0, ""},
		"too short a length": {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nonly this", "only", "", 0, ""},
		"no length":          {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it", "all of it", "", 0, ""},
		"cut chunks":         {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "hello", "ended before the page did", 0, ""},
		"bad chunks":         {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n", "hello", "ended before the page did", 0, ""},
		"nothing":            {"", "", "", Later, "no answer of"},
		"nothing after":      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "", "", Later, "ended before the page did"},
		"no HTTP":            {"SSH-2.0-OpenSSH_9.2\r\n", "", "", Later, "no answer of"},
		"a large header":     {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\nx", "", "", Lost, "is over 65536 bytes"},
		"many headers":       {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<16) + "\r\nx", "", "", Lost, "is over 65536 bytes"},
		"early hints":        {strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", 100_000), "", "", Lost, "is over 65536 bytes"},
		"escapes":            {"HTTP/1.1 200 O\x1b[31mK\r\nContent-Type: text/plain\r\n\r\n\x1b[31mred\x1b[0m \u202eevil\r\nnext\rlast", "red evil\nnext\nlast", "control or invisible characters, with terminal sequences, are left out", 0, ""},
		"a bell":             {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nit rings \a and goes on, and \x0e shifts", "it rings  and goes on, and  shifts", "2 control or invisible characters", 0, ""},
		"a part":             {"HTTP/1.1 206 Partial Content\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-3/100\r\nContent-Length: 4\r\n\r\npart", "part", "sent only a part of it (Content-Range: bytes 0-3/100)", 0, ""},
		"status 999":         {"HTTP/1.1 999 No\r\nContent-Length: 3\r\n\r\nbye", "", "", Later, "answers 999"},
		"empty":              {"HTTP/1.1 204 No Content\r\n\r\n", "", "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t, "127.0.0.1:0")
			done := make(chan struct{})
			go func() {
				defer close(done)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				buf := make([]byte, 4<<10)
				for read := ""; !strings.Contains(read, "\r\n\r\n"); {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					read += string(buf[:n])
				}
				_, _ = io.WriteString(conn, c.answer)
			}()
			s := newSite(t, nil)
			cl := s.client(func(o *Options) {
				o.Dialer.Ports = []uint16{portOf(l)}
				o.IgnoreRobots = func(string) bool { return true }
			})
			p, err := cl.Fetch(t.Context(), Request{URL: fmt.Sprintf("http://site.example.com:%d/", portOf(l)), Bytes: kept})
			l.Close()
			<-done
			if c.why != "" {
				wants(t, name, p, err, c.kind, c.why)
				return
			}
			if err != nil || p.Text != c.text || c.note == "" && len(p.Notes) > 0 || !strings.Contains(notes(p), c.note) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// The end of the caller's context ends a fetch at once, with its cause.
func TestCancel(t *testing.T) {
	t.Parallel()
	errEnough := errors.New("enough")
	for _, path := range []string{"/silent", "/begun"} {
		begun := make(chan struct{})
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
				return
			}
			if r.URL.Path == "/begun" {
				fmt.Fprint(w, strings.Repeat("x", sniffBytes))
				w.(http.Flusher).Flush()
			}
			close(begun)
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-begun
			cancel(errEnough)
		}()
		if p, err := s.Fetch(ctx, Request{URL: s.at(path), Bytes: kept}); !errors.Is(err, errEnough) {
			t.Errorf("%s: %+v, %v", path, p, err)
		}
	}
}
