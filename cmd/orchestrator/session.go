package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/board/embedded"
	"muster/cmd/internal/app"
)

// boardOptions are the flags of every command that needs a board.
type boardOptions struct {
	conn  app.Connection
	dir   string
	level string
	json  bool
}

func boardFlags(more ...cli.Flag) []cli.Flag {
	return append(append(more, app.ConnectFlags(5*time.Second)...),
		&cli.StringFlag{Name: "data", EnvVars: []string{"MUSTER_DATA"}, Usage: "data `FOLDER` of the embedded server (default: the project's, below XDG_DATA_HOME)"},
		&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` that is worked on; its repository names the project"},
		app.LogFlag("warn"),
	)
}

func boardOptionsOf(c *cli.Context) (boardOptions, error) {
	conn, err := app.ConnectionOf(c)
	return boardOptions{conn: conn, dir: c.String("dir"), level: c.String("log-level"), json: c.Bool("json")}, err
}

// session is a command's open board and what it prints to.
type session struct {
	*app.Link
	conn    app.Connection
	project app.Project
	log     zerolog.Logger
	out     app.Out
}

func (o boardOptions) open(ctx context.Context) (*session, error) {
	p, err := app.FindProject(o.dir)
	if err != nil {
		return nil, err
	}
	log, err := app.Logger(os.Stderr, o.level)
	if err != nil {
		return nil, err
	}
	l, err := o.conn.Open(ctx, p, log, embed)
	if err != nil {
		return nil, err
	}
	return &session{Link: l, conn: o.conn, project: p, log: log, out: app.Stdout(o.json)}, nil
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

// where names the board for a person, as the flags that reach it from the same folder.
func (s *session) where() string {
	if s.Data == "" {
		flags := "--connect " + quote(s.Where)
		if s.conn.NKey != "" {
			flags += " --nkey " + quote(s.conn.NKey)
		}
		if s.conn.Creds != "" {
			flags += " --creds " + quote(s.conn.Creds)
		}
		return flags
	}
	if s.Data == s.project.DataDir() {
		return "--dir " + quote(s.project.Dir)
	}
	return "--data " + quote(s.Data)
}

// quote makes one word of a path for a shell.
func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// findRun returns the whole id of a run that is given whole or by at least six characters of its start or end.
func (s *session) findRun(ctx context.Context, id string) (string, error) {
	if id == "" {
		return "", nil
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
