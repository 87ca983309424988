package llm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"muster/agents/document"
)

// conversation is what a script looks at: all of it comes from the request.
type conversation struct {
	req       Request
	turn      int    // that is asked for, from 1
	prompt    string // the first message
	last      string // everything since the model's last turn
	lastTools []string
	lastError bool
}

func converse(r Request) conversation {
	c := conversation{req: r, turn: 1}
	var last []string
	for i, m := range r.Messages {
		if i == 0 {
			c.prompt = m.Text
		}
		if m.Role == "assistant" {
			c.turn++
			last, c.lastTools, c.lastError = nil, nil, false
			continue
		}
		last = append(last, m.Text)
		if m.Role == "tool" {
			c.lastTools = append(c.lastTools, m.Tool)
		}
		c.lastError = c.lastError || m.IsError
	}
	c.last = strings.Join(last, "\n")
	return c
}

func (c conversation) who() string {
	a := c.req.Agent
	for _, s := range []string{a.Title, a.Name} {
		if s != "" {
			return strconv.Quote(s)
		}
	}
	return strconv.Quote(a.Job)
}

func (w *when) holds(c conversation) bool {
	a := c.req.Agent
	return w.Name.holds(a.Name, true) && w.Title.holds(a.Title, true) && w.Profile.holds(a.Profile, true) &&
		(w.Depth == nil || *w.Depth == a.Depth) && (w.Turn == nil || *w.Turn == c.turn) &&
		(w.FromTurn == nil || c.turn >= *w.FromTurn) && (w.Attempt == nil || *w.Attempt == max(c.req.Attempt, 1)) &&
		w.Prompt.holds(c.prompt, false) && w.Last.holds(c.last, false) && w.anyTool(c.lastTools) &&
		(w.LastError == nil || *w.LastError == c.lastError)
}

func (w *when) anyTool(names []string) bool {
	if w.LastTool == nil {
		return true
	}
	for _, n := range names {
		if w.LastTool.holds(n, true) {
			return true
		}
	}
	return false
}

// capture is a value found in the conversation: the newest message that matches gives it.
type capture struct {
	re   *regexp.Regexp
	call string // only in answers to the call with this id
	tool string // only in answers of this tool
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *capture) UnmarshalYAML(n *yaml.Node) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	fields := map[string]string{}
	switch n.Kind {
	case yaml.ScalarNode:
		fields["re"] = n.Value
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, val := n.Content[i], n.Content[i+1]
			if (key.Value != "re" && key.Value != "call" && key.Value != "tool") || val.Kind != yaml.ScalarNode {
				return document.Wrong(key.Line, "unknown field %q: a capture has the texts re, call and tool", key.Value)
			}
			fields[key.Value] = val.Value
		}
	default:
		return document.Wrong(n.Line, "a capture is a regular expression, or a mapping of re, call and tool")
	}
	re, err := regexp.Compile(fields["re"])
	if err != nil {
		return document.Wrong(n.Line, "%v", err)
	}
	if fields["re"] == "" {
		return document.Wrong(n.Line, "a capture needs re, a regular expression")
	}
	c.re, c.call, c.tool = re, fields["call"], fields["tool"]
	return nil
}

// find returns the first group of the newest match, or the whole match where there is no group.
func (c capture) find(ms []Message) (string, bool) {
	for i := len(ms) - 1; i >= 0; i-- {
		m := ms[i]
		if m.Role == "assistant" || (c.tool != "" && m.Tool != c.tool) ||
			(c.call != "" && !strings.HasSuffix(m.CallID, "."+c.call)) {
			continue
		}
		if g := c.re.FindStringSubmatch(m.Text); g != nil {
			return g[min(1, len(g)-1)], true
		}
	}
	return "", false
}

var (
	valueName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_]+$`) })
	valueRef    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$?\$\{([^{}]*)\}`) })
	alwaysThere = []string{"last", "prompt", "turn", "name", "title", "job"}
)

// template is a text with ${name} in it: literals and names by turns, a literal first.
type template []string

func (s *script) compile(text string) (template, error) {
	var t template
	var literal strings.Builder
	at := 0
	for _, m := range valueRef().FindAllStringSubmatchIndex(text, -1) {
		literal.WriteString(text[at:m[0]])
		at = m[1]
		name := text[m[2]:m[3]]
		if strings.HasPrefix(text[m[0]:], "$$") {
			literal.WriteString(text[m[0]+1 : m[1]])
			continue
		}
		if _, ok := s.captures[name]; !ok && !slices.Contains(alwaysThere, name) {
			return nil, fmt.Errorf("unknown value ${%s}: add it to capture, or write $${%s} for the plain text", name, name)
		}
		t = append(t, literal.String(), name)
		literal.Reset()
	}
	literal.WriteString(text[at:])
	return append(t, literal.String()), nil
}

// render fills a template; quote turns each value into what stands inside a JSON string.
func (s *script) render(t template, c conversation, quote bool) (string, error) {
	var b strings.Builder
	for i, part := range t {
		if i%2 == 1 {
			v, err := s.value(part, c)
			if err != nil {
				return "", err
			}
			if part = v; quote {
				part = inJSON(v)
			}
		}
		b.WriteString(part)
	}
	return b.String(), nil
}

func (s *script) value(name string, c conversation) (string, error) {
	switch name {
	case "last":
		return c.last, nil
	case "prompt":
		return c.prompt, nil
	case "turn":
		return strconv.Itoa(c.turn), nil
	case "name":
		return c.req.Agent.Name, nil
	case "title":
		return c.req.Agent.Title, nil
	case "job":
		return c.req.Agent.Job, nil
	}
	v, ok := s.captures[name].find(c.req.Messages)
	if !ok {
		return "", fmt.Errorf("capture %s: nothing in the conversation of agent %s matches %q", name, c.who(), s.captures[name].re)
	}
	return v, nil
}

func inJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(b[1 : len(b)-1])
}

// fill makes the response of a turn.
func (s *script) fill(t *turn, c conversation) (Response, error) {
	text, err := s.render(t.text, c, false)
	if err != nil {
		return Response{}, err
	}
	if n := max(t.Repeat, 1); n > 1 {
		if n > maxAnswer/max(len(text), 1) {
			return Response{}, fmt.Errorf("the repeated text would have more than %d bytes", maxAnswer)
		}
		text = strings.Repeat(text, n)
	}
	r := Response{Text: text, Stop: t.Stop}
	for i := range t.Calls {
		tc, err := s.fillCall(&t.Calls[i], c, i)
		if err != nil {
			return Response{}, err
		}
		r.Calls = append(r.Calls, tc)
	}
	if r.Stop == "" {
		r.Stop = StopEnd
		if len(r.Calls) > 0 {
			r.Stop = StopToolUse
		}
	}
	r.Usage = estimate(c.req, r)
	if t.Usage != nil {
		r.Usage = *t.Usage
	}
	return r, nil
}

// fillCall makes one call. Its id holds the turn, so that it is unique in the conversation and the same whenever the turn is
// asked for again.
func (s *script) fillCall(k *call, c conversation, i int) (ToolCall, error) {
	label := k.ID
	if label == "" {
		label = strconv.Itoa(i + 1)
	}
	args, err := s.render(k.args, c, true)
	if err != nil {
		return ToolCall{}, err
	}
	return Arguments(ToolCall{ID: fmt.Sprintf("t%d.%s", c.turn, label), Tool: k.Tool}, args), nil
}

// Arguments puts the arguments as a model wrote them into a call: as Args where they are a JSON object, else as Broken.
func Arguments(c ToolCall, written string) ToolCall {
	c.Args = json.RawMessage(written)
	var obj map[string]json.RawMessage
	if err := json.Unmarshal(c.Args, &obj); err != nil || obj == nil {
		c.Args, c.Broken = json.RawMessage("{}"), written
	}
	return c
}

func estimate(r Request, out Response) Usage {
	u := Usage{Input: Tokens(r.System), Output: Tokens(out.Text)}
	for _, m := range r.Messages {
		u.Input += Tokens(m.Text)
		for _, c := range m.Calls {
			u.Input += Tokens(string(c.Args))
		}
	}
	for _, c := range out.Calls {
		u.Output += Tokens(c.Tool + string(c.Args) + c.Broken)
	}
	return u
}
