package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// forward sends the request again to server, and its response back while it comes.
func (x *exchange) forward(server net.Conn, h head, u *url.URL) error {
	request := &http.Request{Method: h.method, URL: u, Host: u.Host, Header: h.header, ContentLength: h.length, Body: http.NoBody, Close: true}
	dropHop(request.Header)
	if len(request.Header["User-Agent"]) == 0 {
		request.Header.Set("User-Agent", "") // none, rather than net/http's
	}
	if h.length != 0 {
		request.Body = x.body(h.length)
	}
	if h.waits && h.length != 0 {
		if _, err := io.WriteString(x, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		x.send(request, server)
	}()
	response, err := ask(server, request)
	if err == nil {
		err = x.respond(h, response)
	} else {
		err = &fault{http.StatusBadGateway, fmt.Sprintf("ask %s: %v", u.Host, err)}
	}
	_ = x.client.SetReadDeadline(past)
	server.Close()
	<-sent
	if response != nil {
		response.Body.Close() // not before the server's end, for which it would wait
	}
	return err
}

// send sends a request while its body comes, and then looks out for a client that leaves before it has its response.
func (x *exchange) send(request *http.Request, server net.Conn) {
	if err := request.Write(server); err != nil {
		_ = server.SetReadDeadline(time.Now().Add(lingerTime)) // a server may answer before it has all, and close
		return
	}
	if _, err := x.in.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		x.abort(&fault{http.StatusBadRequest, "the client left before the response had ended"})
	}
}

// body is what follows a head.
func (x *exchange) body(length int64) io.ReadCloser {
	if length < 0 {
		return io.NopCloser(httputil.NewChunkedReader(x.in))
	}
	return io.NopCloser(io.LimitReader(x.in, length))
}

// ask reads the response to a request that is being sent.
func ask(server net.Conn, request *http.Request) (*http.Response, error) {
	limit := &io.LimitedReader{R: server, N: headBytes}
	in := bufio.NewReader(limit)
	for {
		response, err := http.ReadResponse(in, request)
		switch {
		case err != nil && limit.N <= 0:
			return nil, fmt.Errorf("the head of the response is over %d bytes", headBytes)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("the server closed without a response")
		case err != nil:
			return nil, err
		case response.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the server switched protocols, which nobody asked for")
		case response.StatusCode >= http.StatusOK:
			limit.N = math.MaxInt64
			return response, nil
		}
	}
}

// respond streams a response to the client.
func (x *exchange) respond(h head, r *http.Response) error {
	dropHop(r.Header)
	r.Header.Set("Connection", "close")
	empty := h.method == http.MethodHead || r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified
	chunked := false
	switch {
	case empty: // a length tells of the body that there would be
	case r.ContentLength >= 0:
		r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	default:
		r.Header.Del("Content-Length")
		if chunked = !h.old; chunked {
			r.Header.Set("Transfer-Encoding", "chunked")
		}
	}
	x.begun, x.event.Status = true, r.StatusCode
	out := bufio.NewWriter(x)
	_, phrase, _ := strings.Cut(r.Status, " ")
	fmt.Fprintf(out, "HTTP/1.1 %03d %s\r\n", r.StatusCode, oneLine(phrase))
	_ = r.Header.Write(out)
	_, _ = out.WriteString("\r\n")
	if err := out.Flush(); err != nil || empty {
		return err
	}
	if !chunked {
		_, err := io.Copy(x, r.Body)
		return err
	}
	if _, err := io.Copy(chunks{out}, r.Body); err != nil {
		return err
	}
	_, _ = out.WriteString("0\r\n\r\n")
	return out.Flush()
}

// chunks writes each piece as a chunk, at once.
type chunks struct{ out *bufio.Writer }

func (c chunks) Write(b []byte) (int, error) {
	fmt.Fprintf(c.out, "%x\r\n", len(b))
	_, _ = c.out.Write(b)
	_, _ = c.out.WriteString("\r\n")
	return len(b), c.out.Flush()
}
