package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"strconv"
	"strings"
)

// headBytes bounds the head of a request, and that of a response.
const headBytes = 64 << 10

// head is a request up to its body.
type head struct {
	method string
	target string // as it was sent
	old    bool   // HTTP/1.0
	host   string // of the Host header; empty: there is none
	header http.Header
	length int64 // of the body; -1: chunked
	waits  bool  // for leave to send the body
}

// errSilent says that a connection ended before its first byte.
var errSilent = errors.New("nothing was asked")

// readHead takes the head of a request from r, whose buffer bounds it, without the empty line at its end.
func readHead(r *bufio.Reader) ([]byte, error) {
	seen := 0
	for {
		_, err := r.Peek(seen + 1)
		b, _ := r.Peek(r.Buffered())
		end := bytes.Index(b, []byte("\r\n\r\n"))
		if end >= 0 {
			text := bytes.Clone(b[:end])
			_, err := r.Discard(end + 4)
			return text, err
		}
		switch {
		case bareLF(b):
			return nil, malformed("a line of the request ends without a carriage return")
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, &fault{http.StatusRequestHeaderFieldsTooLarge, "the head of the request is over " + strconv.Itoa(headBytes) + " bytes"}
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, &fault{http.StatusRequestTimeout, "the head of the request did not come in time"}
		case errors.Is(err, io.EOF) && len(b) == 0:
			return nil, errSilent
		case errors.Is(err, io.EOF):
			return nil, malformed("the request ends within its head")
		case err != nil:
			return nil, err
		}
		seen = len(b)
	}
}

func bareLF(b []byte) bool { return bytes.Count(b, []byte("\n")) != bytes.Count(b, []byte("\r\n")) }

// parseHead reads what could not be read in another way: no folded lines, no bare line ends, one length.
func parseHead(text []byte) (head, error) {
	lines := strings.Split(string(text), "\r\n")
	parts := strings.Split(lines[0], " ")
	if len(parts) != 3 || !isToken(parts[0]) || parts[1] == "" || strings.ContainsFunc(parts[1], notVisible) ||
		parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0" {
		return head{}, malformed("not a request line of HTTP/1.1: %s", strconv.QuoteToASCII(short(lines[0])))
	}
	h := head{method: parts[0], target: parts[1], old: parts[2] == "HTTP/1.0", header: make(http.Header)}
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !isToken(name) || strings.ContainsFunc(value, isControl) {
			return head{}, malformed("not a header line: %s", strconv.QuoteToASCII(short(line)))
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		h.header[name] = append(h.header[name], value)
	}
	if err := h.takeHost(); err != nil {
		return head{}, err
	}
	if err := h.takeLength(); err != nil {
		return head{}, err
	}
	return h, h.takeWish()
}

func (h *head) takeHost() error {
	hosts := h.header["Host"]
	delete(h.header, "Host")
	switch {
	case len(hosts) > 1, len(hosts) == 1 && hosts[0] == "":
		return malformed("not one Host header")
	case len(hosts) == 1:
		h.host = hosts[0]
	case !h.old:
		return malformed("no Host header")
	}
	return nil
}

func (h *head) takeLength() error {
	lengths, codings := h.header["Content-Length"], h.header["Transfer-Encoding"]
	delete(h.header, "Content-Length")
	delete(h.header, "Transfer-Encoding")
	switch {
	case len(lengths) > 1, len(codings) > 1, len(lengths) == 1 && len(codings) == 1:
		return malformed("more than one length of the body")
	case len(codings) == 1 && (h.old || !strings.EqualFold(codings[0], "chunked")):
		return malformed("transfer encoding %s: only chunked is known", strconv.QuoteToASCII(short(codings[0])))
	case len(codings) == 1:
		h.length = -1
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 63)
		if err != nil {
			return malformed("content length %s", strconv.QuoteToASCII(short(lengths[0])))
		}
		h.length = int64(n)
	}
	return nil
}

func (h *head) takeWish() error {
	wish := strings.Join(h.header["Expect"], ", ")
	delete(h.header, "Expect")
	if wish != "" && !strings.EqualFold(wish, "100-continue") {
		return &fault{http.StatusExpectationFailed, "only the expectation 100-continue is known"}
	}
	h.waits = wish != "" && !h.old
	return nil
}

// perHop are the headers that belong to one connection.
var perHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Http2-Settings", "Proxy-Authentication-Info",
}

// dropHop removes what belongs to the connection that a head came over, and what it names as such.
func dropHop(header http.Header) {
	for _, list := range header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			delete(header, textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t")))
		}
	}
	for _, name := range perHop {
		delete(header, name)
	}
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return notVisible(r) || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func notVisible(r rune) bool { return r <= ' ' || r > '~' }

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
