package agents

import (
	"context"
	"encoding/json"
	"fmt"

	"muster/agents/llm"
	"muster/board"
	"muster/tools"
)

// Kinds of the events that the loop writes, beside those of package tools.
const (
	EventTurn       = "model_turn"  // data: Turn
	EventMessage    = "message"     // data: Said
	EventModelError = "model_error" // data: ModelError
)

// Turn is one answer of the model, in the log before anything it asks for is done.
type Turn struct {
	Turn    int            `json:"turn"` // from 1
	Text    string         `json:"text,omitempty"`
	Calls   []llm.ToolCall `json:"calls,omitempty"`
	Cut     []llm.ToolCall `json:"cut_calls,omitempty"` // calls of a turn that was cut: they never ran and are not in the conversation
	Stop    string         `json:"stop"`
	Problem string         `json:"problem,omitempty"` // why the turn was of no use: length, empty, badjson
	Usage   llm.Usage      `json:"usage"`
}

// Said is what the loop told the model.
type Said struct {
	Why  string `json:"why"` // children, limit, resumed, or a turn's problem
	Text string `json:"text"`
}

// ModelError is a request that failed.
type ModelError struct {
	Turn    int           `json:"turn"`
	Attempt int           `json:"attempt"`
	Kind    llm.ErrorKind `json:"kind"`
	Text    string        `json:"text"`
}

// Words for the model about a call without receipt.
const interrupted = "ERROR [transient]: interrupted: its effect is unknown, check before you repeat it"

// conversation is what was said so far, and what of the last turn is still open.
type conversation struct {
	messages []llm.Message
	turns    int
	wasted   int    // turns of no use in a row
	last     Turn   // the newest
	lastText string // the newest text of the model that is not empty
	said     map[string]bool
	ids      map[string]bool // of all calls
	stuck    string          // the tool whose calls go round in circles
	saved    Checkpoint      // the newest

	open     []llm.ToolCall // calls of the last turn, not yet in messages
	started  map[string]bool
	replies  map[string]tools.Reply
	touching bool // a call that may change files or start processes has run
}

func newConversation(prompt string) *conversation {
	return &conversation{
		messages: []llm.Message{{Role: "user", Text: prompt}},
		said:     map[string]bool{},
		ids:      map[string]bool{},
		started:  map[string]bool{},
		replies:  map[string]tools.Reply{},
	}
}

// rebuild reads the conversation of a job from its log.
func rebuild(ctx context.Context, b *board.Board, job board.Job, known catalog) (*conversation, error) {
	c := newConversation(job.Prompt)
	err := b.Events(ctx, job.ID, false, func(e board.Event) error {
		switch e.Kind {
		case EventTurn:
			return read(e, c.turn)
		case EventMessage:
			return read(e, c.say)
		case tools.EventStarted:
			return read(e, func(s tools.Started) {
				c.started[s.ID] = true
				c.touching = c.touching || known.touches(s.Tool)
			})
		case tools.EventFinished:
			return read(e, c.answer)
		case EventCheckpoint:
			return read(e, func(p Checkpoint) { c.saved = p })
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the log of job %s: %w", job.ID, err)
	}
	return c, nil
}

func read[T any](e board.Event, fn func(T)) error {
	var v T
	if err := json.Unmarshal(e.Data, &v); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
	}
	fn(v)
	return nil
}

// turn adds an answer of the model.
func (c *conversation) turn(t Turn) {
	c.close()
	c.turns++
	if t.Text != "" {
		c.lastText = t.Text
	}
	c.last = t
	c.wasted++
	if t.Problem == "" {
		c.wasted = 0
	}
	for _, call := range t.Calls {
		c.ids[call.ID] = true
	}
	text := t.Text
	if text == "" && len(t.Calls) == 0 {
		text = "(no text)" // providers refuse an empty message
	}
	calls := make([]llm.ToolCall, len(t.Calls))
	for i, call := range t.Calls {
		call.Broken = ""
		calls[i] = call
	}
	c.messages = append(c.messages, llm.Message{Role: "assistant", Text: text, Calls: calls})
	c.open = t.Calls
}

// answered says that the newest thing is a turn without calls.
func (c *conversation) answered() bool {
	return c.messages[len(c.messages)-1].Role == "assistant" && len(c.open) == 0
}

// say adds a message of the loop.
func (c *conversation) say(s Said) {
	c.close()
	c.said[s.Why] = true
	c.messages = append(c.messages, llm.Message{Role: "user", Text: s.Text})
}

// answer adds the reply to a call.
func (c *conversation) answer(r tools.Reply) {
	c.replies[r.ID] = r
	if r.Stuck {
		c.stuck = r.Tool
	}
}

// close pairs every open call with its answer, in the order of the calls.
func (c *conversation) close() {
	for _, call := range c.open {
		m := llm.Message{Role: "tool", CallID: call.ID, Tool: call.Tool, Text: interrupted, IsError: true}
		if r, ok := c.replies[call.ID]; ok {
			m.Text, m.IsError = r.Text, !r.OK
		}
		c.messages = append(c.messages, m)
	}
	c.open = nil
}

// unique makes the ids of a turn's calls differ from all before: a provider may number them anew in each turn.
func (c *conversation) unique(calls []llm.ToolCall) {
	seen := map[string]bool{}
	for i := range calls {
		id := calls[i].ID
		if id == "" || c.ids[id] || seen[id] {
			id = fmt.Sprintf("t%d.%d.%s", c.turns+1, i+1, id)
		}
		seen[id] = true
		calls[i].ID = id
	}
}
