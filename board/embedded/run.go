package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// errPort: the port is in use; another one may do.
var errPort = errors.New("port is in use")

// Ports are chosen below the range from which Linux takes the near end of outgoing connections, so that a restarted server finds its old one free.
const firstPort, lastPort = 16384, 32767

// maxStore is no limit, so that the disk is the only one; without it the server takes three quarters of what is free when it starts.
const maxStore = 1 << 60

// serve starts a server on the folder, whose lock the caller holds: on the port asked for, else the remembered one, else a free one.
func (s *Server) serve(ctx context.Context) (*running, error) {
	if err := room(s.opts.Dir); err != nil {
		return nil, err
	}
	if s.key == nil {
		kp, err := makeKey(s.opts.Dir)
		if err != nil {
			return nil, err
		}
		s.key = kp
	}
	ports := make([]int, 0, 22)
	if s.opts.Port != 0 {
		ports = append(ports, s.opts.Port)
	} else {
		if p := s.remembered(); p != 0 {
			ports = append(ports, p)
		}
		for range 20 {
			ports = append(ports, firstPort+rand.IntN(lastPort-firstPort+1))
		}
		ports = append(ports, server.RANDOM_PORT)
	}
	var ns *running
	var err error
	for _, p := range ports {
		if ns, err = start(ctx, s.opts, s.key, p); err == nil || !errors.Is(err, errPort) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	in := info{URL: ns.ClientURL(), PID: os.Getpid(), Start: time.Now().UTC()}
	if err := writeInfo(s.opts.Dir, in); err != nil {
		ns.stop()
		return nil, err
	}
	s.at = in
	return ns, nil
}

// remembered is the port of the folder's last server, 0 for none.
func (s *Server) remembered() int {
	in, err := s.at, error(nil)
	if in.URL == "" {
		in, err = readInfo(s.opts.Dir)
	}
	if err != nil {
		return 0
	}
	u, err := url.Parse(in.URL)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return 0
	}
	return port
}

// start runs a server on one port; errPort when that is taken.
func start(ctx context.Context, o Options, kp nkeys.KeyPair, port int) (*running, error) {
	if port > 0 {
		// Looked at before the server is made: it would recover the whole store first and complain then.
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return nil, fmt.Errorf("listen on 127.0.0.1:%d: %w (%v)", port, errPort, err)
		}
		l.Close()
	}
	pub, err := kp.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	srv, err := server.NewServer(&server.Options{
		ServerName:        "muster",
		Host:              "127.0.0.1",
		Port:              port,
		JetStream:         true,
		JetStreamMaxStore: maxStore,
		StoreDir:          o.Dir,
		Nkeys:             []*server.NkeyUser{{Nkey: pub}},
		NoLog:             true,
		NoSigs:            true,
	})
	if err != nil {
		return nil, fmt.Errorf("configure server: %w", err)
	}
	ns := &running{Server: srv, quiet: &quiet{log: o.Log, fatal: make(chan string, 1)}}
	ns.SetLoggerV2(ns.quiet, false, false, false)
	started := make(chan struct{})
	go func() {
		ns.Start() // returns once the store is recovered and the port listens
		close(started)
	}()
	select {
	case <-started:
	case <-ctx.Done():
		ns.stop()
		<-started
		return nil, fmt.Errorf("start server on %s: %w", o.Dir, context.Cause(ctx))
	}
	select {
	case why := <-ns.fatal:
		err = fatal(why, port)
	default:
		if !ns.ReadyForConnections(readyTimeout) {
			err = fmt.Errorf("server on %s does not accept connections after %s", o.Dir, readyTimeout)
		}
	}
	if err != nil {
		ns.stop()
		return nil, err
	}
	return ns, nil
}

// fatal makes an error of what the server called fatal.
func fatal(why string, port int) error {
	if strings.HasPrefix(why, "Error listening on port") {
		return fmt.Errorf("listen on 127.0.0.1:%d: %w", port, errPort)
	}
	return fmt.Errorf("start server: %s", why)
}

// running is a server and what it has said.
type running struct {
	*server.Server
	*quiet
}

func (r *running) stop() {
	r.Shutdown()
	r.WaitForShutdown()
}

// quiet passes on what went wrong and nothing else.
type quiet struct {
	log    func(string)
	fatal  chan string // the first fatal one
	broken atomic.Bool // a store could not write, and will not write again before it is opened anew
}

func (q *quiet) say(level, format string, v []any) {
	q.log(level + fmt.Sprintf(format, v...))
}

func (q *quiet) Fatalf(format string, v ...any) {
	select {
	case q.fatal <- fmt.Sprintf(format, v...):
	default:
		q.say("server: ", format, v)
	}
}

// Errorf passes on the first write error and is silent then: every stream says the same, again and again. The server tells
// nobody else of a store that has stopped writing.
func (q *quiet) Errorf(format string, v ...any) {
	if q.broken.Load() {
		return
	}
	q.say("server: ", format, v)
	if strings.Contains(strings.ToLower(format), "critical write error") {
		q.broken.Store(true)
	}
}
func (q *quiet) Warnf(string, ...any)   {}
func (q *quiet) Noticef(string, ...any) {}
func (q *quiet) Debugf(string, ...any)  {}
func (q *quiet) Tracef(string, ...any)  {}
