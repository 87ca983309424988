package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

const (
	attachTimeout = 40 * time.Second       // of Attach, where its context has no deadline; a store of 1 GB takes 0.5 s warm, 3 s cold
	readyTimeout  = 5 * time.Second        // from the recovered store to the first connection
	lockPoll      = 40 * time.Millisecond  // how often a process that is attached asks for the lock: sooner than the next short command could take it
	firstPoll     = 20 * time.Millisecond  // the same while Attach waits for a server that another is starting
	retryWait     = 100 * time.Millisecond // between two dials of a lost connection, plus jitter
	drainTimeout  = 5 * time.Second
	dialTimeout   = 2 * time.Second // to a server on this machine; one that takes longer is dying or stopped
	tellAfter     = 2 * time.Second // when Attach says whom it waits for
)

// Options of a server. Zero, but for Dir: a random loopback port, nothing logged.
type Options struct {
	Dir  string       // the data folder; made 0700 where it is not there
	Port int          // 0: the one of the last server on this folder, else a free one
	Log  func(string) // gets what goes wrong beside the calls, once a state: server errors, a full disk, a takeover that did not work; nil: nobody
}

// Server is this process's hold on the data folder's server.
type Server struct {
	opts Options
	nc   *nats.Conn
	stop context.CancelFunc
	done chan struct{} // closed when keep has returned

	key nkeys.KeyPair // key and at belong to whoever holds the lock
	at  info          // what server.json has to say

	mu   sync.Mutex
	ns   *running // nil while another process runs it, and while it is restarted here
	lock *lock    // nil while another process owns the folder

	closing  sync.Once
	closeErr error
}

// Attach returns a connection to the board's server on a data folder, owned by this process (started here) or by another that runs already.
// Whoever is attached takes the server over when its owner ends: same store, port and keys; the connection reconnects by itself.
// The server ends with Close, which waits for it. ctx bounds the call only.
func Attach(ctx context.Context, o Options) (*Server, error) {
	dir, err := filepath.Abs(o.Dir)
	if o.Dir == "" || err != nil {
		return nil, fmt.Errorf("data folder %q: name a folder", o.Dir)
	}
	o.Dir = dir
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, attachTimeout)
		defer cancel()
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	s := &Server{opts: o, done: make(chan struct{})}
	if err := s.join(ctx); err != nil {
		if e := (*fullError)(nil); errors.As(err, &e) {
			err = fmt.Errorf("%w, or name a folder on another disk with --data", err)
		}
		return nil, errors.Join(err, s.end())
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = cancel
	go s.keep(life)
	return s, nil
}

// join owns the server or connects to the one that runs, whichever comes first.
func (s *Server) join(ctx context.Context) error {
	tick := time.NewTicker(firstPoll)
	defer tick.Stop()
	for told, begun := false, time.Now(); ; {
		owner, err := s.own(ctx)
		if err != nil {
			return err
		}
		if s.nc, err = s.connect(ctx); err == nil {
			return nil
		}
		if owner {
			return err
		}
		if !told && time.Since(begun) >= tellAfter {
			told = true
			s.opts.Log(fmt.Sprintf("waiting for the server on data folder %s, which %s holds: %v", s.opts.Dir, holder(s.opts.Dir), err))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("data folder %s: %s holds it and its server does not answer (%w): %w; end that process or name another folder with --data",
				s.opts.Dir, holder(s.opts.Dir), err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// own takes the lock and starts the server; false when another process has the lock.
func (s *Server) own(ctx context.Context) (bool, error) {
	l, err := tryLock(s.opts.Dir)
	if l == nil {
		return false, err
	}
	ns, err := s.serve(ctx)
	if err != nil {
		if r := room(s.opts.Dir); r != nil {
			err = r // the server tells of a full disk in many ways, few of which name it
		}
		return false, errors.Join(err, l.release())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ns, s.lock = ns, l
	return true, nil
}

// keep waits for the lock while another process owns the server, takes the server over when it comes free, and tends it.
func (s *Server) keep(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	n := notice{log: s.opts.Log}
	var failed time.Time
	for !s.Owner() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(failed) < tendPoll {
			continue
		}
		owner, err := s.own(ctx)
		if err != nil && ctx.Err() == nil {
			failed = time.Now()
			n.say("take over the server of "+s.opts.Dir+": ", err, "")
		}
		if owner {
			s.reconnect()
		}
	}
	s.tend(ctx)
}

// reconnect ends the wait of the connection between two dials: the reason to wait is gone. One that has found the new server
// by its address already may have requests under way, which a forced end would lose.
func (s *Server) reconnect() {
	if s.nc.IsConnected() {
		return
	}
	if err := s.nc.ForceReconnect(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.opts.Log("reconnect to the new server: " + err.Error())
	}
}

// connect makes the one connection of this process. It dials through s, so it lives on from one owner to the next.
func (s *Server) connect(ctx context.Context) (*nats.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	kp, err := loadKey(s.opts.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no server yet")
	}
	if err != nil {
		return nil, err
	}
	pub, err := kp.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	in, err := readInfo(s.opts.Dir)
	if err != nil {
		return nil, err
	}
	end, _ := ctx.Deadline()
	nc, err := nats.Connect(in.URL, s.options(pub, kp, max(time.Until(end), time.Millisecond))...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", in.URL, err)
	}
	// The server may have died since it let us in; its heir may be this very process, which does not see to that while it waits here.
	if err := nc.FlushWithContext(ctx); err != nil || !nc.IsConnected() {
		nc.Close()
		return nil, fmt.Errorf("server on %s: lost while connecting (%v)", in.URL, err)
	}
	return nc, nil
}

func (s *Server) options(pub string, kp nkeys.KeyPair, timeout time.Duration) []nats.Option {
	return []nats.Option{
		nats.Name("muster"),
		nats.Nkey(pub, kp.Sign),
		nats.SetCustomDialer(dialer{s}),
		nats.Timeout(timeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(retryWait),
		nats.ReconnectJitter(retryWait, retryWait),
		nats.IgnoreAuthErrorAbort(), // whatever answers on the port between two owners must not end the connection for good
		nats.DrainTimeout(drainTimeout),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if sub != nil {
				err = fmt.Errorf("subscription %s: %w", sub.Subject, err)
			}
			s.opts.Log("connection: " + err.Error())
		}),
	}
}

// dialer finds the server wherever it is now: in this process, or where server.json says.
type dialer struct{ s *Server }

func (d dialer) Dial(network, _ string) (net.Conn, error) {
	d.s.mu.Lock()
	ns := d.s.ns
	d.s.mu.Unlock()
	if ns != nil {
		return ns.InProcessConn()
	}
	in, err := readInfo(d.s.opts.Dir)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(in.URL)
	if err != nil {
		return nil, fmt.Errorf("server address: %w", err)
	}
	c, err := net.DialTimeout(network, u.Host, dialTimeout)
	if err != nil {
		return nil, fmt.Errorf("dial server: %w", err)
	}
	if c.LocalAddr().String() == c.RemoteAddr().String() {
		// With nobody listening, the kernel can hand out the very port that is dialled; it would then be taken for good.
		c.Close()
		return nil, fmt.Errorf("dial server: nobody listens on %s", u.Host)
	}
	return c, nil
}

// Conn is the connection of this process; it stays valid when the owner changes. Close closes it.
func (s *Server) Conn() *nats.Conn { return s.nc }

// URL says where the server listens; connecting takes the key of the folder too (KeyFile).
func (s *Server) URL() string {
	in, err := readInfo(s.opts.Dir)
	if err != nil {
		return s.nc.ConnectedUrl()
	}
	return in.URL
}

// KeyFile names the file with the user's seed.
func (s *Server) KeyFile() string { return filepath.Join(s.opts.Dir, keyFile) }

// Owner says whether the server runs in this process now.
func (s *Server) Owner() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lock != nil
}

// Close drains the connection, ends the server where this process owns it, waits for it and frees the folder. Calls after the first return the same.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.stop()
		<-s.done
		s.drain()
		s.closeErr = s.end()
	})
	return s.closeErr
}

// drain lets handlers finish what has arrived and sends what is buffered.
func (s *Server) drain() {
	closed := s.nc.StatusChanged(nats.CLOSED)
	defer s.nc.RemoveStatusListener(closed)
	if err := s.nc.Drain(); err == nil {
		select {
		case <-closed:
		case <-time.After(drainTimeout + time.Second):
		}
	}
	s.nc.Close()
}

func (s *Server) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	if s.ns != nil {
		s.ns.stop()
	}
	err := s.lock.release()
	s.ns, s.lock = nil, nil
	return err
}
