package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"muster/board/memory"
	"muster/budget"
	"muster/cmd/internal/app"
)

type memoryOptions struct {
	boardOptions
	project string // as it was given
	limit   int    // 0: all
	verb    string // list, search or forget
	words   []string
}

// projectFlag names the project whose memories agents share.
func projectFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "project", EnvVars: []string{"MUSTER_PROJECT"}, DefaultText: "by the repository's first commit, else by host and folder",
		Usage: "`NAME` of the project whose memories agents share",
	}
}

func newMemory() *cli.Command {
	return &cli.Command{
		Name: "memory", Usage: "list, search and remove what agents saved for each other", ArgsUsage: "[search QUERY | forget ID…]",
		UsageText: `orchestrator memory
orchestrator memory search "deploy thursday"
orchestrator memory forget 3f9a1c
orchestrator memory --json | jq '.[].text'`,
		Description: `Agents save sentences with memory_save and find them with memory_search, in every run on a board that is for the same project. Which that is
the repository around --dir says by its first commit, which is the same in every clone (of a fork too); a folder without one counts by
host and path; --project names another, or the same for folders on several machines.

ID is the whole id, or six of its digits or more. What is forgotten is removed for good.`,
		Flags: boardFlags(
			projectFlag(),
			&cli.IntFlag{Name: "limit", DefaultText: "all", Usage: "show so many at most"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			o := memoryOptions{boardOptions: b, project: c.String("project"), limit: c.Int("limit"), verb: c.Args().First(), words: c.Args().Tail()}
			switch {
			case o.limit < 0:
				return app.Usage("--limit %d: from 0, which shows all", o.limit)
			case o.verb == "":
				o.verb = "list"
			case o.verb == "list" && len(o.words) == 0:
			case o.verb == "search" && len(o.words) > 0 && strings.TrimSpace(strings.Join(o.words, "")) != "":
			case o.verb == "forget" && len(o.words) > 0:
			default:
				return app.Usage("memory takes nothing, or search and words, or forget and ids: orchestrator memory search \"deploy thursday\"")
			}
			return runMemory(c.Context, o)
		},
	}
}

func runMemory(ctx context.Context, o memoryOptions) error {
	err := o.with(ctx, func(s *session) error {
		project, err := s.project.Memories(ctx, o.project)
		if err != nil {
			return err
		}
		if o.verb == "forget" {
			return s.forget(ctx, project, o.words)
		}
		all, err := s.Board.Memories(ctx, project)
		if err != nil {
			return err
		}
		most := o.limit
		if most == 0 {
			most = len(all)
		}
		query := ""
		if o.verb == "search" {
			query = strings.Join(o.words, " ")
		}
		hits, total, err := memory.Search(ctx, all, query, most)
		if err != nil {
			return err
		}
		if err := printMemories(s.out, hits); err != nil || s.out.JSON || total == len(hits) {
			return err
		}
		return s.out.Text(fmt.Sprintf("%d more; --limit 0 shows all\n", total-len(hits)))
	})
	if o.conn.Data == "" && o.verb != "forget" && errors.Is(err, app.ErrNoBoard) {
		return printMemories(app.Stdout(o.json), nil) // a project without a board yet has none
	}
	return err
}

// forget removes memories, and tells of each what it was.
func (s *session) forget(ctx context.Context, project string, ids []string) error {
	var gone []memory.Memory
	var failed error
	for _, id := range ids {
		m, err := s.Board.Forget(ctx, project, id)
		if err != nil {
			failed = errors.Join(failed, forgetting(id, err))
			continue
		}
		gone = append(gone, m)
	}
	if len(gone) > 0 || s.out.JSON {
		if err := printMemories(s.out, gone); err != nil {
			return err
		}
	}
	return failed
}

func forgetting(id string, err error) error {
	f := &app.Fault{Code: app.ExitFailed, Err: fmt.Errorf("%s: %w", app.Field(id, 60), err), Hint: "`orchestrator memory` shows the ids"}
	if len(id) < shortMemory {
		f.Hint = fmt.Sprintf("give at least %d digits of its id; `orchestrator memory` shows the ids", shortMemory)
	}
	if errors.Is(err, memory.ErrAmbiguous) {
		f.Hint = "give more digits of the id, or the whole"
	}
	return f
}

func printMemories(out app.Out, all []memory.Memory) error {
	if out.JSON {
		return out.Value(append([]memory.Memory{}, all...))
	}
	rows := make([][]string, 0, len(all))
	for _, m := range all {
		by := app.Field(m.By.Title, 32)
		if m.By.Job != "" {
			by = strings.TrimSpace(short(m.By.Job) + " " + by)
		}
		rows = append(rows, []string{
			m.ID[:min(len(m.ID), shownID)], m.Saved.Local().Format("2006-01-02 15:04"), by, app.Field(strings.Join(m.Tags, ","), 32), app.Field(m.Text, budget.Chars(m.Text)),
		})
	}
	return out.Table([]string{"ID", "SAVED", "BY", "TAGS", "MEMORY"}, rows)
}

const (
	shownID     = 8 // digits of a memory's id in a table
	shortMemory = 6 // that a memory is found by at least
)
