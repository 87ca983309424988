package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"muster/board"
	"muster/cmd/internal/app"
	"muster/cmd/internal/config"
)

type doctorOptions struct {
	boardOptions
	host    config.Host
	hostErr error // what is wrong with the flags or the file
}

// finding is what one check found, in the words for people.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warn, fail
	Text   string `json:"text"`
	Next   string `json:"next,omitempty"` // what to do about it
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	OK       bool          `json:"ok"`
	Findings []finding     `json:"findings"`
	Sandbox  board.Sandbox `json:"sandbox"` // as a worker started here with the same flags would have it
	Config   string        `json:"config"`  // the file that is read, or would be
}

func newDoctor() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "check what this machine has, and say what to do about what it lacks",
		UsageText: `orchestrator doctor
orchestrator doctor --sandbox required        (what serve and worker need)
orchestrator doctor --connect nats://host:4222 --json`,
		Description: `Checks the system, git, the configuration, the folders, each rung of the sandbox, the skills of --dir and of the user, and the board when
there is one; it starts no server and submits nothing. A rung that is not to be had is told with the reason and the way to get it.

Exit codes: 0 all that is needed works, 1 something does not, 2 usage.`,
		Flags: boardFlags(append(config.Flags("auto"), app.JSONFlag())...),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			if _, err := config.AskedBy(c); err != nil {
				return app.Usage("%w", err)
			}
			o := doctorOptions{boardOptions: b}
			o.host, o.hostErr = app.HostOf(c, "auto") // as whoever starts commands reads it
			return runDoctor(c.Context, o)
		},
	}
}

// checkTime bounds each check: a folder on a server that does not answer holds up the others no longer.
const checkTime = 40 * time.Second

func runDoctor(ctx context.Context, o doctorOptions) error {
	d := diagnosis{OK: true, Findings: []finding{}, Config: o.host.File.Path}
	out := app.Stdout(o.json)
	p := patient{doctorOptions: o}
	for _, c := range []struct {
		name string
		look func(context.Context) []finding
	}{
		{"version", p.version}, {"system", p.system}, {"git", p.git}, {"configuration", p.configuration}, {"folders", p.folders},
		{"sandbox", p.sandbox}, {"path", p.path}, {"skills", p.skills}, {"board", p.board},
	} {
		found := bounded(ctx, c.name, c.look)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, f := range found {
			d.OK = d.OK && f.Status != "fail"
			if o.json {
				continue
			}
			if err := out.Text(f.line()); err != nil {
				return err
			}
		}
		d.Findings = append(d.Findings, found...)
	}
	if o.json {
		if o.hostErr == nil {
			d.Sandbox, _ = o.host.Found() // what is lacking is a finding
		}
		if err := out.Value(d); err != nil {
			return err
		}
	}
	if !d.OK {
		return &app.Fault{Code: app.ExitFailed}
	}
	return nil
}

// bounded runs a check that may hang in a system call, for checkTime or until ctx ends.
func bounded(ctx context.Context, name string, look func(context.Context) []finding) []finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	done := make(chan []finding, 1)
	go func() { done <- look(ctx) }()
	select {
	case found := <-done:
		return found
	case <-ctx.Done():
		return []finding{{name, "fail", fmt.Sprintf("no answer within %s", checkTime), "the machine is under load, or a folder is on a server that is away"}}
	}
}

// line is a finding for people: what to do about it stands below.
func (f finding) line() string {
	text := fmt.Sprintf("%-4s  %-14s %s\n", f.Status, f.Check, app.Field(f.Text, 1_000))
	if f.Next != "" {
		text += strings.Repeat(" ", 21) + "→ " + app.Field(f.Next, 1_000) + "\n"
	}
	return text
}
