package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"

	"muster/board"
)

// Connection says which board a command speaks to. Zero, with a Project: the embedded server of the project's data folder.
type Connection struct {
	URL    string        // nats://[user:pass@|token@]host[:port][,…]
	Creds  string        // file with a NATS user's credentials
	NKey   string        // file with an nkey seed
	Data   string        // data folder of the embedded server; empty: the project's
	Wait   time.Duration // how long to try before giving up
	Lease  time.Duration // board.Config.AckWait; 0: its default
	Beat   time.Duration // board.Config.Beat; 0: its default
	Prefix string        // board.Config.Prefix; empty: its default
}

// ConnectFlags are the flags of every command that needs a board.
func ConnectFlags(wait time.Duration) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "connect", EnvVars: []string{"NATS_URL"}, Usage: "NATS server of the board, `nats://[user:pass@]host[:port]`"},
		&cli.StringFlag{Name: "creds", Usage: "`FILE` with NATS credentials, for --connect"},
		&cli.StringFlag{Name: "nkey", Usage: "`FILE` with an nkey seed, for --connect"},
		&cli.DurationFlag{Name: "connect-wait", Value: wait, Usage: "how long to try to connect"},
		&cli.StringFlag{Name: "prefix", EnvVars: []string{"MUSTER_PREFIX"}, Usage: "of the board's names on the server"},
		&cli.DurationFlag{Name: "lease", EnvVars: []string{"MUSTER_LEASE"}, Usage: "a worker that is silent for so long loses its jobs; the same for all of a board (default: 30s)"},
		&cli.DurationFlag{Name: "beat", EnvVars: []string{"MUSTER_BEAT"}, Usage: "how often a worker says that it lives (default: 3s)"},
	}
}

// ConnectionOf reads ConnectFlags (and --data where a command has it).
func ConnectionOf(c *cli.Context) (Connection, error) {
	o := Connection{
		URL: c.String("connect"), Creds: c.String("creds"), NKey: c.String("nkey"), Data: c.String("data"),
		Wait: c.Duration("connect-wait"), Lease: c.Duration("lease"), Beat: c.Duration("beat"), Prefix: c.String("prefix"),
	}
	if o.Data != "" && !c.IsSet("data") {
		o.Data = ""
	}
	if o.Data != "" && o.URL != "" {
		if fromEnv := os.Getenv("NATS_URL"); fromEnv != o.URL {
			return o, Usage("--data names a folder of this machine, --connect a server: give one of them")
		}
		o.URL = "" // what the command line says wins over the environment
	}
	if (o.Creds != "" || o.NKey != "") && o.URL == "" {
		return o, Usage("--creds and --nkey go with --connect")
	}
	if o.Lease != 0 && o.Lease < time.Second {
		return o, Usage("--lease %s: at least 1s", o.Lease)
	}
	return o, nil
}

// Hold is a hold on the embedded server of a data folder, which runs in this process or in another.
type Hold struct {
	Conn    *nats.Conn
	URL     string
	KeyFile string      // seed that others on this machine connect with
	Owner   func() bool // the server runs in this process now
	Close   func() error
}

// Embed attaches to the embedded server of a data folder.
type Embed func(ctx context.Context, dir string, log func(string)) (*Hold, error)

// Link is an open connection to a board.
type Link struct {
	Board *board.Board
	Where string // the server's address, without secrets
	Data  string // the data folder; empty when connected to a server
	Hold  *Hold  // the embedded server; nil when connected to a server

	nc *nats.Conn
}

// Open connects. embed is nil where a program has no embedded server; then a URL is needed. Close the Link.
func (o Connection) Open(ctx context.Context, p Project, log zerolog.Logger, embed Embed) (*Link, error) {
	l := &Link{}
	switch {
	case o.URL != "":
		nc, err := o.dial(ctx, log)
		if err != nil {
			return nil, err
		}
		l.nc, l.Where = nc, nc.ConnectedUrlRedacted()
	case embed == nil:
		return nil, Usage("which server? give --connect nats://HOST or set NATS_URL")
	default:
		l.Data = o.Data
		if l.Data == "" {
			l.Data = p.DataDir()
		}
		h, err := embed(ctx, l.Data, func(m string) { log.Warn().Str("data", l.Data).Msg(oneLine(m)) })
		if err != nil {
			return nil, unreachable(err)
		}
		l.Hold, l.nc, l.Where = h, h.Conn, h.URL
	}
	b, err := o.board(ctx, l.nc, log)
	if err != nil {
		return nil, errors.Join(unreachable(fmt.Errorf("board on %s: %w", l.Where, err)), l.Close())
	}
	l.Board = b
	return l, nil
}

// board opens the board on a connection, over again while the server is just changing hands.
func (o Connection) board(ctx context.Context, nc *nats.Conn, log zerolog.Logger) (*board.Board, error) {
	end := time.Now().Add(max(o.Wait, 10*time.Second))
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := board.Connect(ctx, nc, board.Config{Prefix: o.Prefix, AckWait: o.Lease, Beat: o.Beat, Log: log})
		if err == nil || !moving(err) || time.Now().After(end) || ctx.Err() != nil {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Close ends the connection, and the server where this process owns it.
func (l *Link) Close() error {
	if l.Hold != nil {
		return l.Hold.Close()
	}
	closed := l.nc.StatusChanged(nats.CLOSED)
	defer l.nc.RemoveStatusListener(closed)
	if err := l.nc.Drain(); err == nil {
		select {
		case <-closed:
		case <-time.After(5 * time.Second):
		}
	}
	l.nc.Close()
	return nil
}

// moving says that the server was away for a moment, or is just changing hands: the same may work soon.
func moving(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, context.DeadlineExceeded)
}

func unreachable(err error) error {
	return &Fault{Code: ExitConnect, Err: fmt.Errorf("cannot connect: %w", err)}
}

// dial connects to a server and, once connected, comes back to it for ever. A refusal is final; a server that is not there yet is tried again until Wait is over.
func (o Connection) dial(ctx context.Context, log zerolog.Logger) (*nats.Conn, error) {
	opts, err := o.options(log)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(o.Wait)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; said = true {
		nc, err := nats.Connect(o.URL, opts...)
		if err == nil {
			return nc, nil
		}
		final := errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrNkeysNotSupported) || errors.Is(err, nats.ErrBadTimeout)
		if final || !time.Now().Before(end) {
			return nil, &Fault{
				Code: ExitConnect, Err: fmt.Errorf("cannot connect to %s: %w", redact(o.URL), err),
				Hint: "is the address right and the server up? `orchestrator serve` starts one, and prints how to connect to it",
			}
		}
		if !said {
			log.Info().Str("server", redact(o.URL)).Err(err).Msg("waiting for the server")
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (o Connection) options(log zerolog.Logger) ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name("muster"),
		nats.Timeout(5 * time.Second),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(200*time.Millisecond, 500*time.Millisecond),
		nats.IgnoreAuthErrorAbort(),
		nats.DrainTimeout(4 * time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn().Err(err).Msg("lost the server; reconnecting")
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info().Str("server", nc.ConnectedUrlRedacted()).Msg("reconnected") }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			e := log.Warn().Err(err)
			if sub != nil {
				e = e.Str("subject", sub.Subject)
			}
			e.Msg("connection")
		}),
	}
	if o.Creds != "" {
		if _, err := os.Stat(o.Creds); err != nil {
			return nil, Usage("--creds: %w", err)
		}
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.NKey != "" {
		opt, err := nats.NkeyOptionFromSeed(o.NKey)
		if err != nil {
			return nil, Usage("--nkey %s: %w", o.NKey, err)
		}
		opts = append(opts, opt)
	}
	return opts, nil
}

// redact takes passwords and tokens out of a server address.
func redact(servers string) string {
	all := strings.Split(servers, ",")
	for i, s := range all {
		s = strings.TrimSpace(s)
		u, err := url.Parse(s)
		if err != nil {
			if _, host, ok := strings.Cut(s, "@"); ok {
				s = host
			}
			all[i] = s
			continue
		}
		if u.User != nil {
			u.User = url.User("xxxxx")
		}
		all[i] = u.String()
	}
	return strings.Join(all, ",")
}
