package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"muster/agents"
	"muster/budget"
	"muster/cmd/internal/app"
	"muster/cmd/internal/config"
	"muster/tools"
	"muster/tools/skills"
	"muster/tools/workspace"
)

type callOptions struct {
	boardOptions // of the board that has the memories; opened when it is first needed
	mode         string
	caps         budget.Choice
	host         config.Host
	project      string   // as it was given
	skills       []string // folders, beside those of the files
	idle         []string // flags that were given and have no effect in this version
}

func newCall() *cli.Command {
	return &cli.Command{
		Name: "call", Usage: "run tool calls from standard input, as an agent's would run",
		UsageText: `printf '{"id":1,"tool":"grep","args":{"pattern":"TODO"}}\n' | orchestrator call --dir .
printf '{"tool":"@tools"}\n' | orchestrator call`,
		Description: `Reads a JSON object a line: {"id":1,"tool":"grep","args":{…}}. Prints one a line as each call ends:
{"id","tool","ok","class","text","facts"}, class only with an error of one. A call without an id gets its number. Calls run in order; those that only read and
arrive together run side by side. @tools and @skills in place of a tool list what the session sees.
The tools work on --dir itself. End of input ends the session and everything it started. Memories are on the board of the project, as agents have
them: the first call that needs one opens it, and runs its server where nobody does.`,
		Flags: boardFlags(append([]cli.Flag{
			&cli.StringFlag{Name: "mode", Value: "goal", Usage: strings.Join(tools.Modes(), ", ")},
			&cli.StringFlag{Name: "caps", Usage: "limits, `KEY=VALUE,…`, such as preset=compact,grep_matches=100"},
			&cli.StringFlag{Name: "skills", Usage: "`FOLDER` of skills, in place of the user's own ones; those of --dir come first"},
			projectFlag(),
			&cli.StringFlag{Name: "mcp", Usage: "`FILE` of MCP servers (no effect in this version)"},
			&cli.StringSliceFlag{Name: "allow-host", Usage: "`HOST` that web_fetch may reach wherever it is, such as 127.0.0.1:8080; may be repeated"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON; call always does"},
		}, config.Flags("auto")...)...),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			o := callOptions{boardOptions: b, mode: c.String("mode"), project: c.String("project"), skills: config.SkillFolders()}
			if f := c.String("skills"); f != "" {
				if st, err := os.Stat(f); err != nil || !st.IsDir() {
					return app.Usage("--skills %s: not a folder", f)
				}
				o.skills = []string{f}
			}
			if !slices.Contains(tools.Modes(), o.mode) {
				return app.Usage("--mode %q: there are %s", o.mode, strings.Join(tools.Modes(), ", "))
			}
			if o.host, err = app.HostOf(c, "auto"); err != nil {
				return err
			}
			if o.caps, err = choice(c.String("caps")); err != nil {
				return err
			}
			for _, f := range []string{"mcp"} {
				if c.IsSet(f) {
					o.idle = append(o.idle, "--"+f)
				}
			}
			return runCall(c.Context, o, os.Stdin, os.Stdout)
		},
	}
}

// answer is a line of output: the reply of a tool under the id that its call had.
type answer struct {
	ID json.RawMessage `json:"id"`
	tools.Reply
}

// runCall works through in until its end, or until ctx ends or nobody reads out any more.
func runCall(ctx context.Context, o callOptions, in io.Reader, out io.Writer) error {
	for _, f := range o.idle {
		app.Note(os.Stderr, "orchestrator: %s has no effect: this version does not support it yet", f)
	}
	caps, err := o.caps.Caps()
	if err != nil {
		return app.Usage("--caps: %w", err)
	}
	p, err := app.FindProject(o.dir)
	if err != nil {
		return err
	}
	if err := p.Direct(o.host.File); err != nil {
		return app.Usage("--dir: %w", err)
	}
	o.host.Warn(os.Stderr)
	if err := o.host.Ready(); err != nil {
		return err
	}
	return o.session(ctx, p, caps, in, out)
}

func (o callOptions) session(ctx context.Context, p app.Project, caps budget.Caps, in io.Reader, out io.Writer) error {
	scratch, err := p.ScratchDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tree, err := openFolder(ctx, p.Dir, filepath.Join(scratch, "session"))
	if err != nil {
		return fmt.Errorf("open %s: %w", p.Dir, err)
	}
	limits, release := agents.Confine(ctx, o.host.Policy(), o.host.Sandbox, zerolog.Nop())
	defer release()
	kept := &callBoard{options: o.boardOptions, given: o.project, place: p}
	found, _ := skills.Find(tree, o.skills) // what is wrong with one is for doctor to tell
	set, err := tools.New(tools.Config{
		Tree: tree, Caps: caps, Mode: o.mode, Policy: limits, Rules: o.host.File.RuleSets(), Prune: o.host.File.Walk.Pruned(), Secrets: app.Hidden(),
		Skills: found, Memory: kept.memory(), Web: o.host.Web,
	})
	if err != nil {
		return errors.Join(err, tree.Close())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	if f, ok := out.(*os.File); ok {
		watcher.Go(func() { watchReader(ctx, int(f.Fd()), cancel) })
	}
	s := &callSession{set: set, skills: found, out: app.Out{W: out}, cancel: cancel}
	err = s.serve(ctx, in)
	cancel(nil)
	watcher.Wait()
	_, survivors := set.Close()
	if survivors > 0 {
		err = errors.Join(err, fmt.Errorf("%d processes of the session could not be ended", survivors))
	}
	return errors.Join(err, tree.Close(), kept.close())
}

// watchReader ends the session when nobody reads its output any more, also while a call is under way that will not write for long.
func watchReader(ctx context.Context, fd int, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		fds := []unix.PollFd{{Fd: int32(fd)}}
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 && fds[0].Revents&unix.POLLERR != 0 {
			cancel(fmt.Errorf("write answer: %w", unix.EPIPE))
			return
		}
	}
}

// callSession is one run of call.
type callSession struct {
	set    *tools.Set
	skills []skills.Skill
	cancel context.CancelCauseFunc // ends it when its output has no reader
	calls  int
	begun  bool // the first line has been read

	mu  sync.Mutex // a line at a time
	out app.Out
}

// proposal is a line of input. A field that is missing, or not what it should be, is told apart from an empty one.
type proposal struct {
	ID   json.RawMessage `json:"id"`
	Tool *string         `json:"tool"`
	Args json.RawMessage `json:"args"`
}

func (s *callSession) serve(ctx context.Context, in io.Reader) error {
	batches := readLines(ctx, in)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case b, ok := <-batches:
			if !ok {
				return context.Cause(ctx) // a signal may have come with the end; else nil
			}
			s.do(ctx, b.lines)
			if b.err != nil && ctx.Err() == nil {
				return fmt.Errorf("read calls: %w", b.err)
			}
		}
	}
}

// do answers the lines of one batch in order, but lets calls that only read go side by side.
func (s *callSession) do(ctx context.Context, lines []line) {
	var requests []tools.Request
	ids := map[string]json.RawMessage{}
	flush := func() {
		if len(requests) > 0 {
			s.set.InvokeAll(ctx, requests, func(r tools.Reply) { s.say(ids[r.ID], r) })
			requests = nil
		}
	}
	for _, l := range lines {
		if !s.begun {
			s.begun, l.text = true, bytes.TrimPrefix(l.text, []byte("\ufeff"))
		}
		if l.tooLong || strings.TrimSpace(string(l.text)) != "" {
			s.calls++
		} else {
			continue
		}
		number := json.RawMessage(strconv.Itoa(s.calls))
		p, err := parse(l)
		if p.ID == nil || string(p.ID) == "null" {
			p.ID = number
		}
		switch {
		case err != nil:
			flush()
			s.say(p.ID, tools.Reply{Class: tools.Input, Text: "ERROR [input]: " + err.Error()})
		case strings.HasPrefix(*p.Tool, "@"):
			flush()
			s.say(p.ID, s.list(*p.Tool))
		default:
			key := string(number) // unlike the caller's, never twice the same
			ids[key] = p.ID
			requests = append(requests, tools.Request{ID: key, Tool: *p.Tool, Args: p.Args})
		}
	}
	flush()
}

// parse reads one call. p holds the id where that could be read, also with an error.
func parse(l line) (p proposal, err error) {
	if l.tooLong {
		return p, fmt.Errorf("the line has more than %d bytes: split the call", maxLineBytes)
	}
	if !utf8.Valid(l.text) {
		return p, errors.New("the line is not UTF-8 text")
	}
	const example = `write an object such as {"id":1,"tool":"grep","args":{"pattern":"TODO"}}`
	if string(bytes.TrimSpace(l.text)) == "null" {
		return p, errors.New("the line is a JSON null: " + example)
	}
	if err := json.Unmarshal(l.text, &p); err != nil {
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind) && kind.Field == "":
			return p, fmt.Errorf("the line is a JSON %s: %s", kind.Value, example)
		case errors.As(err, &kind):
			return p, fmt.Errorf("field `%s` is a JSON %s, not a %s", kind.Field, kind.Value, kind.Type)
		}
		return p, fmt.Errorf("the line is no JSON object: %v", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(l.text, &fields); err != nil {
		return p, fmt.Errorf("the line is no JSON object: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains([]string{"id", "tool", "args"}, name) {
			return p, fmt.Errorf("unknown field %q: there are id, tool and args", budget.Preview(name, 80))
		}
	}
	if p.Tool == nil || *p.Tool == "" {
		return p, errors.New("missing string field `tool`")
	}
	return p, nil
}

// list is what the session sees, as JSON in the text.
func (s *callSession) list(what string) tools.Reply {
	r := tools.Reply{Tool: what, OK: true}
	var v any
	switch what {
	case "@tools":
		t, err := tableOf(s.set.Tools())
		if err != nil {
			return tools.Reply{Tool: what, Class: tools.Permanent, Text: "ERROR [permanent]: " + err.Error()}
		}
		v = t.Tools
	case "@skills":
		v = skillRows(s.skills)
	default:
		return tools.Reply{Tool: what, Class: tools.Input, Text: fmt.Sprintf("ERROR [input]: unknown list %q: there are @tools and @skills", budget.Preview(what, 80))}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return tools.Reply{Tool: what, Class: tools.Permanent, Text: "ERROR [permanent]: " + err.Error()}
	}
	r.Text = string(b)
	return r
}

// say prints one answer. A reader that has gone ends the session.
func (s *callSession) say(id json.RawMessage, r tools.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.out.Line(answer{id, r}); err != nil {
		s.cancel(fmt.Errorf("write answer: %w", err))
	}
}

// openFolder opens the folder that a session works on. Where this user has a cache, what a session that was killed left half done is undone first. A
// cache below the folder is left alone: who works there could change what it says.
func openFolder(ctx context.Context, dir, scratch string) (*workspace.Tree, error) {
	place, err := app.CacheDir()
	if err != nil || below(place, dir) {
		return workspace.OpenDir(dir, scratch)
	}
	cache, err := workspace.OpenCache(place)
	if err != nil {
		return workspace.OpenDir(dir, scratch)
	}
	return cache.Folder(ctx, dir, scratch)
}

// below says that a folder, which need not exist yet, is in another.
func below(folder, dir string) bool {
	at := folder
	real, err := filepath.EvalSymlinks(at)
	for ; err != nil && at != filepath.Dir(at); real, err = filepath.EvalSymlinks(at) {
		at = filepath.Dir(at)
	}
	rel, err := filepath.Rel(dir, real)
	return err != nil || filepath.IsLocal(rel)
}
