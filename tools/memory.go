package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/board"
	"muster/board/memory"
	"muster/budget"
)

// Memory is where an agent without a Lease finds the memories of its project. An agent with one uses the board and the project of its job.
type Memory struct {
	Author memory.Author
	Open   func(ctx context.Context) (b *board.Board, project string, err error) // called with each use
}

// memory is the agent's own or that of its job; nil where it has none.
func (c Config) memory() *Memory {
	if c.Lease == nil {
		return c.Memory
	}
	job := c.Lease.Job()
	return &Memory{
		Author: memory.Author{Job: job.ID, Title: budget.Preview(job.Title, c.Caps.PreviewChars), Profile: job.Profile},
		Open: func(context.Context) (*board.Board, string, error) {
			return c.Lease.Board(), cmp.Or(job.Project, "run "+job.Run), nil // jobs of no project share memories within their run
		},
	}
}

type saveArgs struct {
	Text string   `json:"text" jsonschema:"one fact, understood alone"`
	Tags []string `json:"tags,omitempty" jsonschema:"topics"`
}

func memorySave() Tool {
	return define("memory_save", State,
		"Saves one self-contained sentence for this project's agents. Own steps: todo_write.",
		runMemorySave)
}

func runMemorySave(ctx context.Context, c *Call, a saveArgs) (Output, error) {
	mem := c.set.cfg.memory()
	plain := memory.New(a.Text, a.Tags, mem.Author)
	tags := make([]string, 0, len(plain.Tags))
	for _, t := range plain.Tags {
		tags = append(tags, c.set.secrets.String(t))
	}
	m := memory.New(c.set.secrets.String(plain.Text), tags, mem.Author)
	switch n := m.Chars(); {
	case m.Text == "":
		return Output{}, fail(Input, "`text` holds nothing that can be seen; give one sentence")
	case n > c.Caps.MemoryChars:
		return Output{}, fail(Input, "text and tags have %d characters, a memory takes at most %d; nothing was saved: "+
			"save one concise sentence for each fact, and leave long texts in files", n, c.Caps.MemoryChars)
	}
	b, project, err := mem.Open(ctx)
	if err != nil {
		return Output{}, fmt.Errorf("open the board of memories: %w", err)
	}
	s, err := b.Remember(ctx, project, m, memory.Limits{Items: c.Caps.MemoryItems, Bytes: int64(c.Caps.MemoryBytes)})
	if errors.Is(err, memory.ErrFull) {
		return Output{}, fail(Permanent, "%v; nothing was saved: put what matters into your answer, and say that a person can make room with `orchestrator memory forget`", err)
	}
	if err != nil {
		return Output{}, err
	}
	out := Output{}
	switch {
	case s.Known && len(s.Added) > 0:
		out.Before = fmt.Sprintf("already known %s: only the new tags were added (%s)", savedBy(s.Memory), strings.Join(s.Added, ", "))
	case s.Known:
		out.Before = fmt.Sprintf("already known %s: nothing was changed", savedBy(s.Memory))
	default:
		out.Before = "saved for all agents of the project, which has " + plural(int64(s.Total), "memory")
	}
	if m.Text != plain.Text || strings.Join(m.Tags, "\n") != strings.Join(plain.Tags, "\n") {
		out.Before += "\na secret in it was left out: agents never need its value"
	}
	if len(s.Like) == 0 {
		return Output{Text: out.Before}, nil
	}
	out.Before += "\nlike it, and kept beside it:"
	return c.memoryRows(out, s.Like, int64(len(s.Like)), "memory_search shows more"), nil
}

// memorySource is where memories come from, for the fence: agents say in them what they took from anywhere.
const memorySource = "memories of agents"

type recallArgs struct {
	Query string `json:"query,omitempty" jsonschema:"words; none: newest"`
	Limit int    `json:"limit,omitempty" default:"memory_hits" min:"1" max:"memory_hits" jsonschema:"rows"`
}

func memorySearch() Tool {
	return define("memory_search", Read,
		"Finds what agents saved with memory_save.",
		runMemorySearch)
}

func runMemorySearch(ctx context.Context, c *Call, a recallArgs) (Output, error) {
	if n := budget.Chars(a.Query); n > c.Caps.MemoryChars {
		return Output{}, fail(Input, "`query` has %d characters, at most %d are looked for; give the words that matter", n, c.Caps.MemoryChars)
	}
	mem := c.set.cfg.memory()
	b, project, err := mem.Open(ctx)
	if err != nil {
		return Output{}, fmt.Errorf("open the board of memories: %w", err)
	}
	all, err := b.Memories(ctx, project)
	if err != nil {
		return Output{}, err
	}
	hits, total, err := memory.Search(ctx, all, a.Query, a.Limit)
	switch {
	case err != nil:
		return Output{}, err
	case len(all) == 0:
		return Output{Text: "the project has no memories yet; memory_save makes one"}, nil
	case total == 0:
		return Output{Text: fmt.Sprintf("none of %s holds a word of the query; try other words, or none for the newest", plural(int64(len(all)), "memory"))}, nil
	}
	return c.memoryPage(hits, int64(total), strings.TrimSpace(a.Query) == ""), nil
}

// memoryPage shows as many hits as fit.
func (c *Call) memoryPage(hits []memory.Memory, total int64, newest bool) Output {
	out, rest := Output{Before: plural(total, "memory") + ", the best match first"}, "use words that fewer hold"
	if newest {
		out.Before, rest = plural(total, "memory")+", the newest first", "give a query"
	}
	if len(hits) < c.Caps.MemoryHits {
		rest += fmt.Sprintf(", or a limit of up to %d", c.Caps.MemoryHits)
	}
	return c.memoryRows(out, hits, total, rest)
}

// memoryRows puts memories, one a line, into an output that has its Before, fenced: as many as fit. What gets the rest of total is rest.
func (c *Call) memoryRows(out Output, ms []memory.Memory, total int64, rest string) Output {
	out.Untrusted = c.outside(memorySource)
	room := c.Room - budget.Chars(out.Before) - 1
	rows, cuts := make([]string, len(ms)), make([][]budget.Cut, len(ms))
	for i, m := range ms {
		rows[i], cuts[i] = memoryRow(i+1, m, room/2) // so that the first is shown whatever its length
	}
	for n := rowsThatFit(rows, room); ; n-- {
		out.Text, out.After = strings.Join(rows[:n], "\n"), ""
		out.Facts.Cuts = slices.Concat(cuts[:n]...)
		if int64(n) < total {
			cut := budget.Cut{Unit: "memories", Shown: int64(n), Total: total}
			out.After, out.Facts.Cuts = cut.Notice(rest), append(out.Facts.Cuts, cut)
		}
		if n == 0 || budget.Chars(out.Text)+budget.Chars(out.After)+1 <= room {
			return out
		}
	}
}

// memoryRow is one line of at most room characters, and what was cut of the memory.
func memoryRow(number int, m memory.Memory, room int) (string, []budget.Cut) {
	head, foot := fmt.Sprintf("%d. ", number), " ("+savedBy(m)+")"
	text := m.Text
	if len(m.Tags) > 0 {
		text += " [" + strings.Join(m.Tags, ", ") + "]"
	}
	if n := budget.Chars(text); n > room-budget.Chars(head+foot) {
		cut := budget.Cut{What: fmt.Sprintf("memory %d", number), Unit: "characters", Total: int64(n)}
		kept := max(1, room-budget.Chars(head+foot)-budget.Chars(cutMark(n, n)))
		cut.Shown = int64(kept)
		return head + headChars(text, kept) + cutMark(kept, n) + foot, []budget.Cut{cut}
	}
	return head + text + foot, nil
}

func cutMark(kept, of int) string { return fmt.Sprintf("… (%d of %d chars)", kept, of) }

// savedBy is when a memory was saved, and by whom.
func savedBy(m memory.Memory) string {
	text := "since " + m.Saved.UTC().Format("2006-01-02 15:04")
	switch {
	case m.By.Job != "":
		text += fmt.Sprintf(", from agent %s %q", shortID(m.By.Job), budget.Preview(m.By.Title, 60))
	case m.By.Title != "":
		text += ", from " + budget.Preview(m.By.Title, 60)
	}
	return text
}
