package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"muster/board"
	"muster/budget"
	"muster/tools/workspace"
)

// Class is what a tool does to the world; modes are stated over classes.
type Class string

const (
	Read     Class = "read"
	Write    Class = "write"
	Execute  Class = "execute"
	Network  Class = "network"
	State    Class = "state"
	Delegate Class = "delegate"
)

// Tool is one thing an agent may do: a value in one file and a word in one list (builtins).
type Tool struct {
	Name        string
	Class       Class
	Description string
	Schema      json.RawMessage // JSON schema of the arguments, from the argument struct; filled in by New for its caps
	run         func(ctx context.Context, c *Call, args json.RawMessage) (Output, error)

	shape *jsonschema.Schema // Schema, parsed
	caps  []capRef           // numbers of shape that a cap decides
	hints map[string]string  // what to say beside "field is empty", by field
}

// Output is what a tool hands back: a text for the model and facts for the record.
type Output struct {
	Text   string
	Facts  Facts
	Bad    bool   // the text is of a failure that is no Error
	Same   string // what must be equal for two results to count as the same (doom loop); empty: Text
	Waited bool   // for something that is under way: the same call again is no loop

	// Untrusted is where Text, or the error beside it, comes from when that is outside; it is fenced then (see fence.go). Before and After
	// are words of the tool's own around it.
	Untrusted, Before, After string
}

// Facts are the receipt of a call.
type Facts struct {
	Files    []board.FileStat `json:"files,omitempty"`
	ExitCode *int             `json:"exit_code,omitempty"`
	Signal   string           `json:"signal,omitempty"`
	TimedOut bool             `json:"timed_out,omitempty"`
	Denied   bool             `json:"denied,omitempty"`   // by a person, or since nobody is there: the text is an instruction
	Approved string           `json:"approved,omitempty"` // by whom, where one had to be asked
	TaskID   string           `json:"task_id,omitempty"`
	JobID    string           `json:"job_id,omitempty"`
	Seen     int64            `json:"bytes_seen,omitempty"`
	Kept     int64            `json:"bytes_kept,omitempty"`
	Left     int              `json:"left_processes,omitempty"`
	Cuts     []budget.Cut     `json:"cuts,omitempty"`
	Millis   int64            `json:"duration_ms"`
}

// Request is a proposed call.
type Request struct {
	ID   string // idempotency key: the provider's or a number
	Tool string
	Args json.RawMessage
}

// Reply is the answer to a Request: text for the model, facts for the record. It is the data of the event "tool_finished".
type Reply struct {
	ID    string     `json:"id"`
	Tool  string     `json:"tool"`
	OK    bool       `json:"ok"`
	Class ErrorClass `json:"class,omitempty"` // of the error
	Text  string     `json:"text"`
	Facts Facts      `json:"facts"`
	Stuck bool       `json:"stuck,omitempty"` // the same call gave the same result too often in a row: the job must end
	Fault error      `json:"-"`               // the journal refused the call or its receipt: the agent must stop and write nothing more
}

// Kinds of the events that Invoke journals.
const (
	EventStarted  = "tool_started"  // data: Started
	EventFinished = "tool_finished" // data: Reply
)

// Started is the data of the event "tool_started": a call whose effect is unknown until its receipt follows.
type Started struct {
	ID   string          `json:"id"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"` // as validated, defaults filled in
}

// Call is the powers of a handler.
type Call struct {
	ID   string
	Tree *workspace.Tree
	Caps budget.Caps
	Room int // characters the text may take: OutputChars less what Invoke itself has to say
	set  *Set
}

// define makes a Tool of a handler whose argument struct A gives the schema. Tags of A's fields:
//
//	json        the name; omitempty means optional
//	jsonschema  the description: meaning, unit, default, range
//	default     filled in when the field is missing or null
//	min, max    numbers are clamped to them (the reply says so); on a slice, more than max is refused
//	enum        "a,b": the only values
//	empty       a required string must not be empty: "ok" allows it, any other text is the hint of the refusal
//
// default, min and max may name a cap by its JSON name (`default:"read_lines"`): the number is then the agent's.
// An optional string that is given empty counts as not given.
func define[A any](name string, class Class, description string, run func(ctx context.Context, c *Call, a A) (Output, error)) Tool {
	shape, caps, hints := shapeOf[A](name)
	return Tool{
		Name: name, Class: class, Description: description,
		shape: shape, caps: caps, hints: hints,
		run: func(ctx context.Context, c *Call, raw json.RawMessage) (Output, error) {
			var a A
			if err := json.Unmarshal(raw, &a); err != nil {
				return Output{}, fail(Input, "arguments of %s: %v", name, err)
			}
			return run(ctx, c, a)
		},
	}
}

// plural is "1 line", "2 lines".
func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	switch last := len(unit) - 1; unit[last] {
	case 'y':
		return fmt.Sprintf("%d %sies", n, unit[:last])
	case 'h', 's':
		return fmt.Sprintf("%d %ses", n, unit)
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
