package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	answerTime  = 10 * time.Second // for sending a refusal
	lingerTime  = time.Second      // for what a client still sends: closing over it could take the answer back
	lingerBytes = 256 << 10
)

// past is a deadline that ends every read and write.
var past = time.Unix(1, 0)

// exchange is a connection with its one request. It is the client's end as a reader and writer that counts.
type exchange struct {
	proxy    *Proxy
	client   net.Conn
	in       *bufio.Reader
	ctx      context.Context
	cancel   context.CancelCauseFunc
	idle     *time.Timer
	sent     atomic.Int64
	received atomic.Int64
	event    Event
	aborted  sync.Once
	begun    bool // the response is on its way: a fault can only cut it
}

// exchange serves conn and tells what became of it, if something was asked for.
func (p *Proxy) exchange(conn net.Conn, room bool) (event Event, asked bool) {
	x := &exchange{proxy: p, client: conn}
	x.in = bufio.NewReaderSize(x, headBytes)
	x.ctx, x.cancel = context.WithCancelCause(p.ctx)
	defer x.cancel(nil)
	start := time.Now()
	x.idle = time.AfterFunc(p.cfg.IdleTime, func() {
		x.abort(&fault{http.StatusGatewayTimeout, fmt.Sprintf("nothing moved for %v", p.cfg.IdleTime)})
	})
	defer x.idle.Stop()
	err := x.run(room)
	if errors.Is(err, errSilent) {
		return Event{}, false
	}
	if cause := context.Cause(x.ctx); cause != nil && err != nil {
		err = cause // the rest followed from it
	}
	x.finish(err)
	x.event.Sent, x.event.Received, x.event.Duration = x.sent.Load(), x.received.Load(), time.Since(start)
	return x.event, true
}

func (x *exchange) run(room bool) error {
	_ = x.client.SetReadDeadline(time.Now().Add(x.proxy.cfg.HeadTime))
	text, err := readHead(x.in)
	if err != nil {
		return err
	}
	_ = x.client.SetReadDeadline(time.Time{})
	h, err := parseHead(text)
	if err != nil {
		return err
	}
	x.event.Method = short(h.method)
	t, u, err := x.proxy.judge(h)
	if t.host != "" {
		x.event.Target = t.String()
	}
	if err != nil {
		return err
	}
	if !room {
		return &fault{http.StatusServiceUnavailable, fmt.Sprintf("%d connections at once are the most; try again when one has ended", x.proxy.cfg.Connections)}
	}
	server, err := x.proxy.cfg.Dialer.dial(x.ctx, "tcp", t)
	if err != nil {
		return unreachable(t, err)
	}
	defer server.Close()
	stop := context.AfterFunc(x.ctx, func() { server.Close() })
	defer stop()
	if u == nil {
		return x.tunnel(server)
	}
	return x.forward(server, h, u)
}

// judge says where a request goes, if it may; the URL is nil for CONNECT. With an error, the target is set as far as it is understood.
func (p *Proxy) judge(h head) (t target, u *url.URL, err error) {
	if h.method == http.MethodConnect {
		if h.length != 0 {
			return t, nil, malformed("CONNECT with a body")
		}
		t, err = p.cfg.Dialer.checkAddress(h.target)
	} else {
		u, t, err = p.cfg.Dialer.checkURL(h.target)
		if err == nil && u.Scheme != "http" {
			err = malformed("%s goes through CONNECT, not through a request with a full URL", u.Scheme)
		}
	}
	if err != nil {
		return t, nil, err
	}
	if h.host != "" {
		named, err := p.cfg.Dialer.checkAddress(h.host)
		if err != nil {
			named, err = p.cfg.Dialer.checkAddress(h.host + ":" + t.portText())
		}
		if err != nil || named != t {
			return t, nil, refuse("the Host header %s is not that of %s", strconv.QuoteToASCII(short(h.host)), t)
		}
	}
	if !p.cfg.Allowed(t.host) {
		return t, nil, refuse("%s is not among the allowed domains, which the job's sandbox lists (domains) within those of its host (--allow-domain)", t.host)
	}
	if u != nil {
		u.Host = t.authority(u.Scheme)
	}
	return t, u, nil
}

// tunnel passes bytes both ways until both ends have ended.
func (x *exchange) tunnel(server net.Conn) error {
	x.begun, x.event.Status = true, http.StatusOK
	if _, err := io.WriteString(x, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	up := make(chan struct{})
	go func() {
		defer close(up)
		x.relay(server, x.in)
	}()
	x.relay(x, server)
	<-up
	return context.Cause(x.ctx)
}

// relay passes on what comes, and its end; anything else ends the exchange.
func (x *exchange) relay(to io.Writer, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		x.abort(err)
		return
	}
	_ = closeWrite(to) // one that has gone already needs no end
}

// abort ends the exchange from anywhere. Only the first cause counts.
func (x *exchange) abort(cause error) {
	x.aborted.Do(func() {
		_ = x.client.SetDeadline(past) // before anybody learns of the end and sets another, to answer
		x.cancel(cause)
	})
}

// finish answers err where no answer has begun, and closes so that the client can tell a whole answer from a cut one.
func (x *exchange) finish(err error) {
	if err != nil {
		f := faultOf(err)
		x.event.Why = oneLine(f.why)
		if x.begun {
			if tcp, ok := x.client.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // a reset
			}
			return
		}
		x.answer(f)
	}
	_ = closeWrite(x)
	_ = x.client.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, x.in, lingerBytes)
}

// answer says in the status line too why: many clients show nothing else of a refused CONNECT.
func (x *exchange) answer(f *fault) {
	x.event.Status = f.status
	_ = x.client.SetWriteDeadline(time.Now().Add(answerTime))
	text := "egress proxy: " + x.event.Why + "\n"
	_, err := fmt.Fprintf(x, "HTTP/1.1 %d %s: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		f.status, http.StatusText(f.status), x.event.Why, len(text), text)
	if err != nil {
		x.event.Status = 0
	}
}

func (x *exchange) Read(b []byte) (int, error) {
	n, err := x.client.Read(b)
	x.moved(&x.sent, n)
	return n, err
}

func (x *exchange) Write(b []byte) (int, error) {
	n, err := x.client.Write(b)
	x.moved(&x.received, n)
	return n, err
}

// CloseWrite passes the end of the server's bytes on.
func (x *exchange) CloseWrite() error { return closeWrite(x.client) }

func (x *exchange) moved(sum *atomic.Int64, n int) {
	if n > 0 {
		sum.Add(int64(n))
		x.idle.Reset(x.proxy.cfg.IdleTime)
	}
}

// closeWrite ends one direction, or both where there is only that.
func closeWrite(w io.Writer) error {
	switch w := w.(type) {
	case interface{ CloseWrite() error }:
		return w.CloseWrite()
	case io.Closer:
		return w.Close()
	}
	return nil
}

// unreachable says why there is no connection to t, without what the host's resolver is.
func unreachable(t target, err error) error {
	var f *fault
	if errors.As(err, &f) {
		return refuse("%s: %s", t, f.why)
	}
	why := "no connection"
	var lookup *net.DNSError
	var number syscall.Errno
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		why = "no such host"
	case errors.As(err, &timeout) && timeout.Timeout():
		why = "timed out"
	case errors.As(err, &lookup):
		why = "its address could not be found"
	case errors.As(err, &number):
		why = number.Error()
	}
	return &fault{http.StatusBadGateway, fmt.Sprintf("connect to %s: %s", t, why)}
}

func faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return &fault{http.StatusBadGateway, err.Error()}
}

// oneLine makes a text fit for a status line and for one record of a log.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r != ' ' && notVisible(r) {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 500)]
}
