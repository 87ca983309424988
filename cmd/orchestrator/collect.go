package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
)

type collectOptions struct {
	boardOptions
	ids   []string
	wait  bool
	patch string
}

// collected is a result with the names of its job.
type collected struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	Title string `json:"title"`
	board.Result
}

func newCollect() *cli.Command {
	return &cli.Command{
		Name: "collect", Usage: "print the whole result of jobs", ArgsUsage: "ID…",
		UsageText: `orchestrator collect ID
orchestrator collect --wait ID ID
orchestrator collect ID --patch changes.patch`,
		Description: `The text goes to stdout, byte for byte into a file or pipe, readable and with a newline at its end on a terminal; how the job ended goes to stderr and into the exit code. So does what it changed and a patch cannot hold.
--json prints an object a line.`,
		Flags: boardFlags(
			&cli.BoolFlag{Name: "wait", Usage: "wait for jobs that have not ended"},
			&cli.StringFlag{Name: "patch", Usage: "write what the job changed to `FILE`, for git apply"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			o := collectOptions{b, c.Args().Slice(), c.Bool("wait"), c.String("patch")}
			switch {
			case len(o.ids) == 0:
				return app.Usage("collect takes job ids")
			case o.patch != "" && len(o.ids) > 1:
				return app.Usage("--patch goes with one job id")
			}
			return runCollect(c.Context, o)
		},
	}
}

func runCollect(ctx context.Context, o collectOptions) error {
	return o.with(ctx, func(s *session) error {
		var entries []board.Entry
		for _, id := range o.ids {
			e, err := s.Board.Get(ctx, id)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		if o.wait && slices.ContainsFunc(entries, func(e board.Entry) bool { return !e.State.Terminal() }) {
			stop, err := s.attend(ctx)
			if err != nil {
				return err
			}
			defer stop()
		}
		for i, e := range entries {
			if o.wait && !e.State.Terminal() {
				es, err := s.Board.Wait(ctx, e.ID)
				if err != nil {
					return fmt.Errorf("wait for job %s: %w", e.ID, err)
				}
				entries[i] = es[0]
			}
			c, err := s.collect(ctx, entries[i])
			if err != nil {
				return err
			}
			entries[i].State = c.State
			changed := c.Patch != (board.Artifact{})
			if o.patch != "" && changed {
				if err := s.savePatch(ctx, c, o.patch); err != nil {
					return err
				}
			}
			if err := s.print(c, len(entries) > 1); err != nil {
				return err
			}
			if o.patch != "" && !changed {
				app.Note(os.Stderr, "job %s changed no files: no patch was written", short(c.ID))
			}
		}
		return app.Ended(entries)
	})
}

func (s *session) collect(ctx context.Context, e board.Entry) (collected, error) {
	r, err := s.Board.Collect(ctx, e.ID)
	if err != nil {
		return collected{}, fmt.Errorf("collect job %s: %w", e.ID, err)
	}
	return collected{e.ID, e.Name, e.Title, r}, nil
}

// warn says what the patch of the job does not hold.
func (c collected) warn() {
	if text := unpatched(c.Result); text != "" {
		app.Note(os.Stderr, "%s %s", short(c.ID), text)
	}
}

// print writes a result; with a heading where several follow each other.
func (s *session) print(c collected, heading bool) error {
	c.warn()
	if s.out.JSON {
		return s.out.Line(c)
	}
	if heading {
		if err := s.out.Text("## " + app.Field(c.Title, 200) + "\n\n"); err != nil {
			return err
		}
	}
	if err := s.out.Text(c.Text); err != nil {
		return err
	}
	if heading {
		if err := s.out.Text("\n\n"); err != nil {
			return err
		}
	}
	if c.State != board.Done {
		app.Note(os.Stderr, "%s %s: %s", short(c.ID), c.State, app.Field(c.Error, 1_000))
	}
	return nil
}

// savePatch writes what a job changed; the file appears whole or not at all.
func (s *session) savePatch(ctx context.Context, c collected, name string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".patch-*")
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	defer os.Remove(f.Name()) // gone already after the rename
	err = errors.Join(s.Board.Fetch(ctx, c.Patch, f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	app.Note(os.Stderr, "%s: changes of %s, for git apply", app.Field(name, 200), english.Plural(c.Files, "file", ""))
	return nil
}
