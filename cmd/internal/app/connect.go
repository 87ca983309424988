package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/board/secrets"
)

// Connection says which board a command speaks to. Zero, with a Project: the embedded server of the project's data folder.
type Connection struct {
	URL      string        // nats://[user:pass@|token@]host[:port][,…]
	Env      bool          // URL is that of NATS_URL: whoever types the next command has it already
	Creds    string        // file with a NATS user's credentials
	NKey     string        // file with an nkey seed
	Data     string        // data folder of the embedded server; empty: the project's
	Wait     time.Duration // how long to try before giving up, all in all; 0: once
	Lease    time.Duration // board.Config.AckWait; 0: its default
	Beat     time.Duration // board.Config.Beat; 0: its default
	Existing bool          // a board that is not there is ErrNoBoard, and not made
	Prefix   string        // board.Config.Prefix; empty: its default
}

const (
	embeddedWait = 15 * time.Second // a server that this process starts is not "not there": a large store takes its time
	onceWait     = 5 * time.Second  // bound of a single try
)

// ErrNoBoard is for a data folder where no board was made yet; nothing was made.
var ErrNoBoard = errors.New("there is no board")

// ConnectFlags are the flags of every command that needs a board.
func ConnectFlags(wait time.Duration) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "connect", EnvVars: []string{"NATS_URL"}, Usage: "NATS server of the board, `nats://[user:pass@]host[:port]`"},
		&cli.StringFlag{Name: "creds", Usage: "`FILE` with NATS credentials, for --connect"},
		&cli.StringFlag{Name: "nkey", Usage: "`FILE` with an nkey seed, for --connect"},
		&cli.DurationFlag{
			Name: "connect-wait", Value: wait, DefaultText: fmt.Sprintf("%s; %s for the embedded server", wait, embeddedWait),
			Usage: "how long to try to connect before giving up, all in all; 0s: once",
		},
		&cli.StringFlag{Name: "prefix", EnvVars: []string{"MUSTER_PREFIX"}, Usage: "of the board's names on the server"},
		&cli.DurationFlag{Name: "lease", EnvVars: []string{"MUSTER_LEASE"}, Usage: "a worker that is cut off for so long loses its jobs (those of one that died move on when its heartbeat ends: after the same, 10s at most); the same for all of a board", DefaultText: "30s"},
		&cli.DurationFlag{Name: "beat", EnvVars: []string{"MUSTER_BEAT"}, Usage: "how often a worker says that it lives", DefaultText: "3s"},
	}
}

// ConnectionOf reads ConnectFlags (and --data where a command has it).
func ConnectionOf(c *cli.Context) (Connection, error) {
	// doctor tells of the configuration itself, and who starts commands refuses one that is wrong.
	if c.Command.Name != "doctor" && !slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "sandbox" }) {
		hideConfigured(c, os.Stderr)
	}
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
	o.Env = o.URL != "" && o.URL == os.Getenv("NATS_URL")
	if err := checkURL(o.URL); err != nil {
		return o, err
	}
	if o.Wait < 0 {
		return o, Usage("--connect-wait %s: from 0s", o.Wait)
	}
	if o.URL == "" && !c.IsSet("connect-wait") {
		o.Wait = max(o.Wait, embeddedWait)
	}
	if (o.Creds != "" || o.NKey != "") && o.URL == "" {
		return o, Usage("--creds and --nkey go with --connect")
	}
	if o.Lease != 0 && o.Lease < time.Second {
		return o, Usage("--lease %s: at least 1s", o.Lease)
	}
	return o, nil
}

// Settings are the flags, each after a blank, that all processes of the board need alike.
func (o Connection) Settings() string {
	text := ""
	if o.Prefix != "" {
		text += " --prefix " + o.Prefix
	}
	if o.Lease != 0 {
		text += " --lease " + o.Lease.String()
	}
	if o.Beat != 0 {
		text += " --beat " + o.Beat.String()
	}
	return text
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

// Open connects, within Wait all in all. embed is nil where a program has no embedded server; then a URL is needed. Close the Link.
func (o Connection) Open(ctx context.Context, p Project, log zerolog.Logger, embed Embed) (*Link, error) {
	limit := o.Wait
	if limit == 0 {
		limit = onceWait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("gave up after %s (--connect-wait)", limit))
	defer cancel()
	l := &Link{}
	o.hide()
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
		if l.Data = o.Data; l.Data == "" {
			var err error
			if l.Data, err = p.DataDir(); err != nil {
				return nil, err
			}
		}
		if v := os.Getenv("XDG_DATA_HOME"); o.Data == "" && v != "" && !filepath.IsAbs(v) {
			log.Warn().Str("XDG_DATA_HOME", v).Msg("ignored: it is no absolute path")
		}
		if o.Existing {
			if names, err := os.ReadDir(l.Data); errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
				return nil, &Fault{
					Code: ExitConnect, Err: fmt.Errorf("%w in %s", ErrNoBoard, l.Data),
					Hint: "`orchestrator run` or `orchestrator serve` makes one; --data, --dir or --connect name another",
				}
			}
		}
		h, err := embed(ctx, l.Data, func(m string) { log.Warn().Str("data", l.Data).Msg(oneLine(m)) })
		if err != nil {
			return nil, unreachable(ctx, err)
		}
		hideFile("nkey seed", h.KeyFile)
		l.Hold, l.nc, l.Where = h, h.Conn, h.URL
	}
	b, err := o.board(ctx, l.nc, log)
	if err != nil {
		err = unreachable(ctx, fmt.Errorf("board on %s: %w", l.Where, err))
		if l.Hold == nil {
			l.nc.Close() // nothing is under way that a drain would save
			return nil, err
		}
		return nil, errors.Join(err, l.Close())
	}
	l.Board = b
	return l, nil
}

// hide keeps what the connection is opened with out of all that is stored and said.
func (o Connection) hide() {
	_ = Hide(secrets.Credentials([]string{"NATS_URL=" + o.URL})) // of these all can be looked for
	if o.NKey != "" {
		hideFile("nkey seed", o.NKey)
	}
	if o.Creds != "" {
		hideFile("NATS credentials", o.Creds)
	}
}

// board opens the board on a connection, over again while the server is just changing hands.
func (o Connection) board(ctx context.Context, nc *nats.Conn, log zerolog.Logger) (*board.Board, error) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := board.Connect(ctx, nc, board.Config{Prefix: o.Prefix, AckWait: o.Lease, Beat: o.Beat, Secrets: Hidden(), Log: log})
		if err == nil || !moving(err) || ctx.Err() != nil {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, err
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

// unreachable is the end of an attempt to connect. A signal that broke it off stays one.
func unreachable(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case Interrupted(ctx) != nil:
		return cause
	case cause != nil && !errors.Is(err, cause):
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &Fault{Code: ExitConnect, Err: fmt.Errorf("cannot connect: %w", err)}
}

// dial connects to a server and, once connected, comes back to it for ever. A refusal is final; a server that is not there yet is tried again until
// ctx ends, or once with no Wait.
func (o Connection) dial(ctx context.Context, log zerolog.Logger) (*nats.Conn, error) {
	opts, err := o.options(log)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; said = true {
		nc, err := dialOnce(ctx, o.URL, opts)
		if err == nil {
			return nc, nil
		}
		final := errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrNkeysNotSupported) || errors.Is(err, nats.ErrBadTimeout)
		if !final && o.Wait > 0 && ctx.Err() == nil {
			if !said {
				log.Info().Str("server", redact(o.URL)).Err(err).Msg("waiting for the server")
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
				continue
			}
		}
		if i := Interrupted(ctx); i != nil {
			return nil, i
		}
		f := &Fault{
			Code: ExitConnect, Err: fmt.Errorf("cannot connect to %s: %w", redact(o.URL), err),
			Hint: "is the address right and the server up? `orchestrator serve` starts one, and prints how to connect to it",
		}
		if errors.Is(err, nats.ErrAuthorization) {
			f.Hint = "the server is up, and wants another key: --nkey FILE (user.nk in the data folder of an `orchestrator serve`), --creds FILE, or user:password@ in the address"
		}
		return nil, f
	}
}

// dialOnce is nats.Connect that ends with ctx. A dial that is under way then is left to its own time-out.
func dialOnce(ctx context.Context, servers string, opts []nats.Option) (*nats.Conn, error) {
	type dialled struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan dialled, 1)
	go func() {
		nc, err := nats.Connect(servers, opts...)
		done <- dialled{nc, err}
	}()
	select {
	case d := <-done:
		return d.nc, d.err
	case <-ctx.Done():
	}
	go func() {
		if d := <-done; d.nc != nil {
			d.nc.Close()
		}
	}()
	return nil, context.Cause(ctx)
}

func (o Connection) options(log zerolog.Logger) ([]nats.Option, error) {
	away := &absence{log: log}
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
				away.begin()
			}
		}),
		nats.ClosedHandler(func(*nats.Conn) { away.end() }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			away.end()
			log.Info().Str("server", nc.ConnectedUrlRedacted()).Msg("reconnected")
		}),
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

// checkURL says whether servers is a list of NATS addresses.
func checkURL(servers string) error {
	if servers == "" {
		return nil
	}
	for _, one := range strings.Split(servers, ",") {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		u, err := url.Parse(one)
		port := 1
		if err == nil && u.Port() != "" {
			port, err = strconv.Atoi(u.Port())
		}
		if err != nil || u.Hostname() == "" || port < 1 || port > 65_535 || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return Usage("--connect (or NATS_URL) %q: no server address; write nats://, tls://, ws:// or wss://, then host:port", redact(one))
		}
	}
	return nil
}

// redact takes passwords and tokens out of a server address.
func redact(servers string) string {
	all := strings.Split(servers, ",")
	for i, s := range all {
		s = strings.TrimSpace(s)
		u, err := url.Parse(s)
		if err != nil {
			s = s[strings.LastIndex(s, "@")+1:]
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
