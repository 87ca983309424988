package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/board/embedded"
	"muster/budget"
	"muster/cmd/internal/app"
	"muster/cmd/internal/config"
)

// boardOptions are the flags of every command that needs a board.
type boardOptions struct {
	conn  app.Connection
	dir   string
	level string
	json  bool
}

func boardFlags(more ...cli.Flag) []cli.Flag {
	if !slices.ContainsFunc(more, func(f cli.Flag) bool { return f.Names()[0] == "config" }) {
		more = append(more, config.FileFlag())
	}
	return append(append(more, app.ConnectFlags(5*time.Second)...),
		&cli.StringFlag{Name: "data", EnvVars: []string{"MUSTER_DATA"}, Usage: "data `FOLDER` of the embedded server (default: the project's, below XDG_DATA_HOME)"},
		&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` that is worked on; its repository names the project"},
		app.LogFlag("warn"),
	)
}

func boardOptionsOf(c *cli.Context) (boardOptions, error) {
	conn, err := app.ConnectionOf(c)
	conn.Existing = slices.Contains([]string{"list", "show", "logs", "collect", "kill", "watch", "workers", "memory", "approvals", "approve", "deny", "stats", "requeue"}, c.Command.Name)
	return boardOptions{conn: conn, dir: c.String("dir"), level: c.String("log-level"), json: c.Bool("json")}, err
}

// session is a command's open board and what it prints to.
type session struct {
	*app.Link
	conn    app.Connection
	project app.Project
	log     zerolog.Logger
	lines   *app.Lines // where log goes
	out     app.Out
}

func (o boardOptions) open(ctx context.Context) (*session, error) {
	p, err := app.FindProject(o.dir)
	if err != nil {
		return nil, err
	}
	log, lines, err := app.Logger(os.Stderr, o.level)
	if err != nil {
		return nil, err
	}
	l, err := o.conn.Open(ctx, p, log, embed)
	if err != nil {
		return nil, err
	}
	return &session{Link: l, conn: o.conn, project: p, log: log, lines: lines, out: app.Stdout(o.json)}, nil
}

// with opens the board, runs fn and closes it again.
func (o boardOptions) with(ctx context.Context, fn func(*session) error) error {
	s, err := o.open(ctx)
	if err != nil {
		return err
	}
	err = fn(s)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

// embed is the embedded server as package app takes it.
func embed(ctx context.Context, dir string, log func(string)) (*app.Hold, error) {
	s, err := embedded.Attach(ctx, embedded.Options{Dir: dir, Log: log})
	if err != nil {
		return nil, err
	}
	return &app.Hold{Conn: s.Conn(), URL: s.URL(), KeyFile: s.KeyFile(), Owner: s.Owner, Close: s.Close}, nil
}

// attend looks after the board while a command of its own waits on it: the command may be all that is left of those that shared the embedded
// server. Call what it returns.
func (s *session) attend(ctx context.Context) (stop func(), err error) {
	if s.Hold == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	shift, err := app.Steward().Start(ctx, s.Board, s.log, func(err error) { s.log.Warn().Err(err).Msg("look after the board") })
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return func() {
		cancel(nil)
		_ = shift.Wait() // a steward that could not go on has said so
	}, nil
}

// command is a command line that reaches the same board from the same folder, for a person.
func (s *session) command(words ...string) string {
	return strings.TrimSpace("orchestrator " + strings.Join(words, " ") + " " + s.where())
}

// where names the board as flags. What NATS_URL says need not be said again.
func (s *session) where() string {
	prefix := ""
	if p := s.conn.Prefix; p != "" && p != os.Getenv("MUSTER_PREFIX") {
		prefix = " --prefix " + quote(p)
	}
	if s.Data == "" {
		flags := "--connect " + quote(s.Where)
		if s.conn.Env {
			flags = ""
		}
		if s.conn.NKey != "" {
			flags += " --nkey " + quote(s.conn.NKey)
		}
		if s.conn.Creds != "" {
			flags += " --creds " + quote(s.conn.Creds)
		}
		return strings.TrimSpace(flags + prefix)
	}
	if usual, err := s.project.DataDir(); err == nil && s.Data == usual {
		return "--dir " + quote(s.project.Dir) + prefix
	}
	return "--data " + quote(s.Data) + prefix
}

// quote makes one word of a path for a shell. What cannot be seen in it is written as an escape.
func quote(s string) string {
	if name := visible(s); name != s {
		return name
	}
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// visible is a path as it is, or in the $'…' of bash and zsh where it holds what cannot be seen.
func visible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || budget.Hidden(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(c))
		case c >= ' ' && c < 0x7f:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return "$'" + b.String() + "'"
}

// findRun returns the whole id of a run that is given whole or by at least six characters of its start or end.
func (s *session) findRun(ctx context.Context, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	if _, jobs, _, err := s.Board.Page(ctx, board.Filter{Run: id}, 0, 1); err != nil || jobs > 0 {
		return id, err
	}
	entries, err := s.Board.List(ctx, board.Filter{})
	if err != nil {
		return "", err
	}
	found := ""
	for _, e := range entries {
		if e.Run == id {
			return id, nil
		}
		if len(id) >= 6 && (strings.HasPrefix(e.Run, id) || strings.HasSuffix(e.Run, id)) && e.Run != found {
			if found != "" {
				return "", fmt.Errorf("run %s: %w", app.Field(id, 60), board.ErrAmbiguous)
			}
			found = e.Run
		}
	}
	if found == "" {
		return "", &app.Fault{Code: app.ExitFailed, Err: fmt.Errorf("no such run: %s", app.Field(id, 60)), Hint: "`orchestrator list --json` shows the runs"}
	}
	return found, nil
}

// findJobs returns the job that id names, or the first jobs of the run that it names.
func (s *session) findJobs(ctx context.Context, id string) ([]board.Entry, error) {
	e, err := s.Board.Get(ctx, id)
	if err == nil {
		return []board.Entry{e}, nil
	}
	if !errors.Is(err, board.ErrNotFound) {
		return nil, err
	}
	run, rerr := s.findRun(ctx, id)
	if rerr != nil {
		return nil, fmt.Errorf("%s: %w", app.Field(id, 60), err)
	}
	entries, err := s.Board.List(ctx, board.Filter{Run: run})
	if err != nil {
		return nil, err
	}
	var roots []board.Entry
	for _, e := range entries {
		if e.Parent == "" {
			roots = append(roots, e)
		}
	}
	return roots, nil
}
