package llm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/agents/document"
	"muster/budget"
)

const (
	maxScript = 4 << 20  // bytes of a script file
	maxAnswer = 64 << 20 // bytes of a repeated text
	maxDelay  = 10 * time.Minute
)

// script is a parsed script file. It never changes after it was parsed.
type script struct {
	doc      *document.Doc
	captures map[string]capture
	turns    []turn
}

type scriptFile struct {
	About   string             `yaml:"about"`
	Capture map[string]capture `yaml:"capture"`
	Turns   []turn             `yaml:"turns"`
}

// turn is one answer and when it is given.
type turn struct {
	When    when     `yaml:"when"`
	Text    string   `yaml:"text"`
	Repeat  int      `yaml:"repeat"`
	Calls   []call   `yaml:"calls"`
	Stop    string   `yaml:"stop"`
	Error   *failure `yaml:"error"`
	DelayMS int      `yaml:"delay_ms"`
	Usage   *Usage   `yaml:"usage"`

	line int
	text template
}

type call struct {
	ID      string         `yaml:"id"`
	Tool    string         `yaml:"tool"`
	Args    document.Value `yaml:"args"`
	RawArgs *string        `yaml:"raw_args"`

	args template // of the JSON of Args, or of RawArgs
}

type failure struct {
	Kind ErrorKind `yaml:"kind"`
	Text string    `yaml:"text"`
}

// when is what must hold for a turn to answer.
type when struct {
	Name      *condition `yaml:"name"`
	Title     *condition `yaml:"title"`
	Profile   *condition `yaml:"profile"`
	Depth     *int       `yaml:"depth"`
	Turn      *int       `yaml:"turn"`
	FromTurn  *int       `yaml:"from_turn"`
	Attempt   *int       `yaml:"attempt"`
	Prompt    *condition `yaml:"prompt"`
	Last      *condition `yaml:"last"`
	LastTool  *condition `yaml:"last_tool"`
	LastError *bool      `yaml:"last_error"`
}

// condition is what a text must satisfy: everything of it that is set.
type condition struct {
	plain        *string // equal or contained, by the field
	is, has, not *string
	re           *regexp.Regexp
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *condition) UnmarshalYAML(n *yaml.Node) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode {
		c.plain = &n.Value
		return nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return document.Wrong(n.Line, "a condition is a text, or a mapping of is, has, re and not")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if val.Kind != yaml.ScalarNode {
			return document.Wrong(val.Line, "%s must be a text", key.Value)
		}
		switch key.Value {
		case "is":
			c.is = &val.Value
		case "has":
			c.has = &val.Value
		case "not":
			c.not = &val.Value
		case "re":
			re, err := regexp.Compile(val.Value)
			if err != nil {
				return document.Wrong(val.Line, "%v", err)
			}
			c.re = re
		default:
			return document.Wrong(key.Line, "unknown field %q: a condition has is, has, re and not", key.Value)
		}
	}
	return nil
}

func (c *condition) holds(s string, plainIsEqual bool) bool {
	switch {
	case c == nil:
		return true
	case c.plain != nil && plainIsEqual:
		return s == *c.plain
	case c.plain != nil:
		return strings.Contains(s, *c.plain)
	}
	return (c.is == nil || s == *c.is) && (c.has == nil || strings.Contains(s, *c.has)) &&
		(c.not == nil || !strings.Contains(s, *c.not)) && (c.re == nil || c.re.MatchString(s))
}

// ParseScript reads a script; an error names file and line.
func ParseScript(name string, data []byte) (Model, error) {
	var f scriptFile
	doc, err := document.Read(name, data, maxScript, &f)
	if err != nil {
		return nil, err
	}
	s := &script{doc: doc, captures: f.Capture, turns: f.Turns}
	var wrong []error
	for name := range f.Capture {
		if slices.Contains(alwaysThere, name) || !valueName().MatchString(name) {
			wrong = append(wrong, doc.Errorf([]any{"capture", name}, "a value cannot be called %q: letters, digits and _, and none of %s", name, strings.Join(alwaysThere, ", ")))
		}
	}
	if len(f.Turns) == 0 {
		wrong = append(wrong, doc.Errorf([]any{"turns"}, "a script needs turns"))
	}
	for i := range s.turns {
		wrong = append(wrong, s.check(i)...)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return s, nil
}

// check validates one turn and compiles its templates.
func (s *script) check(i int) (wrong []error) {
	t := &s.turns[i]
	at := []any{"turns", i}
	t.line = s.doc.Line(at...)
	say := func(format string, a ...any) { wrong = append(wrong, s.doc.Errorf(at, format, a...)) }
	var err error
	if t.text, err = s.compile(t.Text); err != nil {
		say("text: %v", err)
	}
	if t.Error == nil && t.Text == "" && len(t.Calls) == 0 && t.Stop == "" {
		say("a turn answers with text, calls, an error, or nothing with a stop")
	}
	if t.Error != nil {
		if len(t.Calls) > 0 || t.Text != "" || t.Stop != "" {
			say("a turn with an error has no text, calls or stop")
		}
		if !slices.Contains([]ErrorKind{Transient, Dropped, Permanent}, t.Error.Kind) {
			say("error: kind must be transient, dropped or permanent, not %q", t.Error.Kind)
		}
	}
	if !slices.Contains([]string{"", StopEnd, StopToolUse, StopLength, StopRefusal}, t.Stop) {
		say("stop must be end, tool_use, length or refusal, not %q", t.Stop)
	}
	if t.DelayMS < 0 || time.Duration(t.DelayMS)*time.Millisecond > maxDelay {
		say("delay_ms must be 0 to %d", maxDelay.Milliseconds())
	}
	if t.Repeat < 0 || t.Repeat > maxAnswer/max(len(t.Text), 1) {
		say("repeat: the text would have more than %d bytes", maxAnswer)
	}
	if t.Usage != nil && (t.Usage.Input < 0 || t.Usage.Output < 0) {
		say("usage cannot be negative")
	}
	ids := map[string]bool{}
	for k := range t.Calls {
		wrong = append(wrong, s.checkCall(append(at, "calls", k), &t.Calls[k], ids)...)
	}
	return wrong
}

func (s *script) checkCall(at []any, c *call, ids map[string]bool) (wrong []error) {
	say := func(format string, a ...any) { wrong = append(wrong, s.doc.Errorf(at, format, a...)) }
	if c.Tool == "" {
		say("a call needs a tool")
	}
	if c.ID != "" && (ids[c.ID] || !valueName().MatchString(c.ID)) {
		say("id %q must be letters, digits and _, once a turn", c.ID)
	}
	ids[c.ID] = true
	raw := string(c.Args.JSON)
	switch {
	case c.RawArgs != nil && c.Args.Line > 0:
		say("a call has args or raw_args")
	case c.RawArgs != nil:
		raw = *c.RawArgs
	case raw == "" || raw == "null":
		raw = "{}"
	case raw[0] != '{':
		say("args must be a mapping")
	}
	var err error
	if c.args, err = s.compile(raw); err != nil {
		say("args: %v", err)
	}
	return wrong
}

// Generate implements Model.
func (s *script) Generate(ctx context.Context, r Request) (Response, error) {
	c := converse(r)
	for i := range s.turns {
		if t := &s.turns[i]; t.When.holds(c) {
			return s.answer(ctx, t, c)
		}
	}
	return Response{}, &Error{Permanent, fmt.Sprintf(
		"%s: no turn answers agent %s (profile %q, depth %d) at its turn %d; the last message is %q",
		s.doc.Name, c.who(), r.Agent.Profile, r.Agent.Depth, c.turn, budget.Preview(c.last, 200))}
}

func (s *script) answer(ctx context.Context, t *turn, c conversation) (Response, error) {
	if t.DelayMS > 0 {
		timer := time.NewTimer(time.Duration(t.DelayMS) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return Response{}, context.Cause(ctx)
		case <-timer.C:
		}
	}
	if err := ctx.Err(); err != nil {
		return Response{}, context.Cause(ctx)
	}
	if t.Error != nil {
		return Response{}, &Error{t.Error.Kind, t.Error.Text}
	}
	resp, err := s.fill(t, c)
	if err != nil {
		return Response{}, &Error{Permanent, fmt.Sprintf("%s:%d: %v", s.doc.Name, t.line, err)}
	}
	return resp, nil
}
