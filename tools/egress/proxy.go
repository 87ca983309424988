package egress

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config is what a Proxy allows. The zero value allows no host.
type Config struct {
	Dialer  Dialer
	Allowed func(host string) bool // lower case, no trailing dot; an address as netip writes it. Called from many goroutines. Nil: none
	Log     func(Event)            // one a connection that asked for something, at its end; from many goroutines. Nil: nothing is told

	Connections int           // at once; as many more are told that there are too many. 0: 64
	HeadTime    time.Duration // for the head of a request; 0: 30 s
	IdleTime    time.Duration // without a byte either way; 0: 5 min
}

// Event is what became of a connection. All texts are one line of ASCII.
type Event struct {
	Method   string // "" where the request could not be read
	Target   string // host:port; "" where it was not understood
	Status   int    // as answered; 0: it ended before
	Why      string // of a refusal or an early end; "" where all went well
	Sent     int64  // bytes from the command, heads included
	Received int64  // bytes to the command
	Duration time.Duration
}

// Proxy is the HTTP proxy of the commands of a box.
type Proxy struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelCauseFunc
	unwind func() bool
	served sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool // true: one of the busy, false: turned away
	busy   int
	closed bool
}

// New makes a proxy, which listens nowhere: it serves what it is handed. The end of ctx ends all it serves.
func New(ctx context.Context, cfg Config) *Proxy {
	if cfg.Connections == 0 {
		cfg.Connections = 64
	}
	if cfg.HeadTime == 0 {
		cfg.HeadTime = 30 * time.Second
	}
	if cfg.IdleTime == 0 {
		cfg.IdleTime = 5 * time.Minute
	}
	if cfg.Allowed == nil {
		cfg.Allowed = func(string) bool { return false }
	}
	if cfg.Log == nil {
		cfg.Log = func(Event) {}
	}
	p := &Proxy{cfg: cfg, open: make(map[net.Conn]bool)}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.unwind = context.AfterFunc(p.ctx, p.shut)
	return p
}

// Serve serves the one request of a connection to its end, and closes it. A proxy's end closes it at once.
func (p *Proxy) Serve(conn net.Conn) {
	room, ok := p.enter(conn)
	if !ok {
		conn.Close()
		return
	}
	defer p.leave(conn)
	if event, asked := p.exchange(conn, room); asked {
		p.cfg.Log(event)
	}
}

// enter takes a connection in, with or without room to serve it, unless the proxy has ended or those turned away are too many too.
func (p *Proxy) enter(conn net.Conn) (room, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room = p.busy < p.cfg.Connections
	if p.closed || !room && len(p.open)-p.busy >= p.cfg.Connections {
		return false, false
	}
	p.open[conn] = room
	if room {
		p.busy++
	}
	p.served.Add(1)
	return room, true
}

func (p *Proxy) leave(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	if p.open[conn] {
		p.busy--
	}
	delete(p.open, conn)
	p.mu.Unlock()
	p.served.Done()
}

// shut closes every connection, and those to come.
func (p *Proxy) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for conn := range p.open {
		conn.Close()
	}
}

var errEnded = &fault{http.StatusServiceUnavailable, "the proxy has ended"}

// Close ends every connection and waits for it. Idempotent.
func (p *Proxy) Close() {
	p.unwind()
	p.cancel(errEnded)
	p.shut()
	p.served.Wait()
}

// Env is what makes the programs of a command's environment use the proxy at address, a host and a port.
func Env(address string) []string {
	const direct = "localhost,127.0.0.1,::1"
	var env []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		env = append(env, name+"=http://"+address)
	}
	return append(env, "NO_PROXY="+direct, "no_proxy="+direct)
}
