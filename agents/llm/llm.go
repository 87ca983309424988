package llm

import (
	"context"
	"encoding/json"
	"unicode/utf8"
)

// Model answers a conversation. A failure is an *Error where its kind is known.
type Model interface {
	Generate(ctx context.Context, r Request) (Response, error)
}

// Request is a conversation so far and the tools the model may call.
type Request struct {
	System   string
	Messages []Message
	Tools    []ToolDef
	Agent    Agent // who asks (scripts match on it)
	Attempt  int   // which attempt of this very request it is, from 1
}

// Agent tells a script which agent it plays.
type Agent struct {
	Job, Name, Title, Profile string
	Depth                     int // 0 for a run's root
}

// ToolDef is a tool as a model sees it.
type ToolDef struct {
	Name, Description string
	Schema            json.RawMessage
}

// Message is one turn. Role: user, assistant, tool.
type Message struct {
	Role    string     `json:"role"`
	Text    string     `json:"text,omitempty"`
	Calls   []ToolCall `json:"calls,omitempty"`   // of an assistant
	CallID  string     `json:"call_id,omitempty"` // of a tool's answer
	Tool    string     `json:"tool,omitempty"`
	IsError bool       `json:"is_error,omitempty"`
}

// ToolCall is a call the model asks for. Args is always a JSON object; Broken is what the model wrote where that was
// none: such a call must not run.
type ToolCall struct {
	ID     string          `json:"id"`
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args"`
	Broken string          `json:"broken,omitempty"`
}

// Why a turn stopped.
const (
	StopEnd     = "end"
	StopToolUse = "tool_use"
	StopLength  = "length"  // cut at the output limit: its calls may be cut too and must not run
	StopRefusal = "refusal" // the model will not go on
)

// Response is one model turn.
type Response struct {
	Text  string
	Calls []ToolCall
	Stop  string // StopEnd, StopToolUse, StopLength, StopRefusal
	Usage Usage
}

// Usage in tokens.
type Usage struct {
	Input  int64 `json:"input" yaml:"input"`
	Output int64 `json:"output" yaml:"output"`
}

// ErrorKind says what can be done about a failed request.
type ErrorKind string

const (
	Transient ErrorKind = "transient" // overloaded, unreachable: the same request may succeed later
	Dropped   ErrorKind = "dropped"   // the answer ended before it was complete; nothing of it is used
	Permanent ErrorKind = "permanent" // a wrong key, an unknown model, a request nobody answers
)

// Error is a failed request; Text is one line without secrets.
type Error struct {
	Kind ErrorKind
	Text string
}

func (e *Error) Error() string { return e.Text }

// Tokens estimates the tokens of a text where no provider counts them: four characters each.
func Tokens(s string) int64 { return int64(utf8.RuneCountInString(s)+3) / 4 }
