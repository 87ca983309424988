package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// biggest is the largest integer that a JSON number holds exactly; greater ones saturate here, so that sums of two arguments cannot overflow.
const biggest = 1 << 53

// checker validates the arguments of one call against a tool's schema, in this order: JSON object, unknown fields, required fields, types, empty values,
// ranges. It hands back the arguments with defaults filled in and numbers clamped.
type checker struct {
	tool  string
	hints map[string]string
	notes []string // what was clamped
}

// arguments validates raw for t. notes say what was clamped.
func arguments(t Tool, raw json.RawMessage) (args json.RawMessage, notes []string, err error) {
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		raw = json.RawMessage("{}")
	}
	if err := wellFormed(raw); err != nil {
		return nil, nil, err
	}
	c := &checker{tool: t.Name, hints: t.hints}
	args, err = c.object("", t.shape, raw)
	return args, c.notes, err
}

// wellFormed refuses what is no JSON object, naming the position, and text that decoding would change in silence.
func wellFormed(raw json.RawMessage) error {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return fail(Input, "arguments are not valid UTF-8 at byte %d; send them again as UTF-8 JSON", i)
		}
		i += n
	}
	var first json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(raw))
	err := dec.Decode(&first)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fail(Input, "arguments are not valid JSON at byte %d of %d: %v; send one JSON object", syntax.Offset, len(raw), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fail(Input, "arguments are not valid JSON at byte %d of %d: they end too early; send one whole JSON object", len(raw), len(raw))
	case err != nil:
		return fail(Input, "arguments are not valid JSON: %v; send one JSON object", err)
	}
	at := dec.InputOffset()
	if rest := bytes.TrimSpace(raw[at:]); len(rest) > 0 {
		return fail(Input, "arguments are not valid JSON at byte %d of %d: more text follows the object; send one JSON object", at, len(raw))
	}
	if k := kindOf(first); k != "object" {
		return fail(Input, "arguments must be a JSON object, got %s", k)
	}
	if at := loneSurrogate(raw); at >= 0 {
		return fail(Input, "arguments hold half a surrogate pair at byte %d, which is no character; send both halves or the character itself", at)
	}
	return nil
}

// loneSurrogate finds a \uD800–\uDFFF escape without its partner, which decoding would replace by U+FFFD.
func loneSurrogate(raw []byte) int {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if u, ok := escaped(raw[i:]); ok && u >= 0xD800 && u <= 0xDFFF {
			low, ok := escaped(raw[i+6:])
			if u > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
				return i
			}
			i += 6
		}
		i++ // the escaped character is no backslash of its own
	}
	return -1
}

func escaped(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	return rune(n), err == nil
}

// kindOf names the JSON kind of a value for messages.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// order lists the fields of s as the schema shows them.
func order(s *jsonschema.Schema) []string {
	names := slices.Clone(s.PropertyOrder)
	if len(names) != len(s.Properties) {
		names = names[:0]
		for n := range s.Properties {
			names = append(names, n)
		}
		slices.Sort(names)
	}
	return names
}

// object checks one object; at is the path before its fields, such as "items[2].".
func (c *checker) object(at string, s *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fail(Input, "field `%s` is no JSON object: %v", strings.TrimSuffix(at, "."), err)
	}
	names := order(s)
	if err := c.known(at, s, names, fields); err != nil {
		return nil, err
	}
	for name, v := range fields {
		if kindOf(v) == "null" || string(v) == `""` && optionalString(s, name) {
			delete(fields, name)
		}
	}
	for _, name := range names {
		if _, ok := fields[name]; !ok && slices.Contains(s.Required, name) {
			return nil, fail(Input, "missing %s field `%s%s`", typeName(s.Properties[name]), at, name)
		}
	}
	for _, name := range names {
		if v, ok := fields[name]; ok {
			typed, err := c.typed(at+name, s.Properties[name], slices.Contains(s.Required, name), v)
			if err != nil {
				return nil, err
			}
			fields[name] = typed
		} else if d := s.Properties[name].Default; d != nil {
			fields[name] = d
		}
	}
	for _, name := range names {
		if err := c.filled(at+name, s.Properties[name], fields[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if v, ok := fields[name]; ok {
			ranged, err := c.ranged(at+name, s.Properties[name], v)
			if err != nil {
				return nil, err
			}
			fields[name] = ranged
		}
	}
	return json.Marshal(fields)
}

// optionalString says that an empty string for name means "not given".
func optionalString(s *jsonschema.Schema, name string) bool {
	p := s.Properties[name]
	return p != nil && p.Type == "string" && !slices.Contains(s.Required, name)
}

func typeName(p *jsonschema.Schema) string {
	if p == nil || p.Type == "" {
		return "a"
	}
	return p.Type
}

// known refuses fields that the schema has not, unless it is open (a schema of somebody else).
func (c *checker) known(at string, s *jsonschema.Schema, names []string, fields map[string]json.RawMessage) error {
	if s.AdditionalProperties == nil || s.AdditionalProperties.Not == nil {
		return nil
	}
	var unknown []string
	for name := range fields {
		if s.Properties[name] == nil {
			unknown = append(unknown, strconv.Quote(shorten(name, 80)))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	where := c.tool
	if at != "" {
		where += " in " + strings.TrimSuffix(at, ".")
	}
	if len(names) == 0 {
		return fail(Input, "unknown field %s; %s takes no arguments", strings.Join(unknown, ", "), where)
	}
	return fail(Input, "unknown field %s; %s takes: %s", strings.Join(unknown, ", "), where, strings.Join(names, ", "))
}

func wrongType(at string, p *jsonschema.Schema, required bool, v json.RawMessage) error {
	got := kindOf(v)
	if got == "string" || got == "number" || got == "boolean" {
		got += " " + shorten(string(v), 60)
	}
	if required {
		return fail(Input, "missing %s field `%s`: got %s", p.Type, at, got)
	}
	return fail(Input, "field `%s` must be %s %s, got %s", at, article(p.Type), p.Type, got)
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

// typed brings a value to the type of its schema: numbers and booleans may come as strings, integers as floats without a fraction.
func (c *checker) typed(at string, p *jsonschema.Schema, required bool, v json.RawMessage) (json.RawMessage, error) {
	kind := kindOf(v)
	switch p.Type {
	case "integer", "number":
		n, ok := number(v, p.Type == "integer")
		if !ok {
			return nil, wrongType(at, p, required, v)
		}
		return n, nil
	case "boolean":
		if s := string(v); s == `"true"` || s == `"false"` {
			return json.RawMessage(strings.Trim(s, `"`)), nil
		}
	case "array":
		if kind == "array" {
			return c.array(at, p, v)
		}
	case "object":
		if kind == "object" && p.Properties != nil {
			return c.object(at+".", p, v)
		}
	case "":
		return v, nil // a schema that leaves the type open
	}
	if kind != p.Type {
		return nil, wrongType(at, p, required, v)
	}
	return v, nil
}

func (c *checker) array(at string, p *jsonschema.Schema, v json.RawMessage) (json.RawMessage, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(v, &items); err != nil {
		return nil, fail(Input, "field `%s`: %v", at, err)
	}
	if p.MaxItems != nil && len(items) > *p.MaxItems {
		return nil, fail(Input, "field `%s` has %d items, %d are allowed; nothing was done, send fewer", at, len(items), *p.MaxItems)
	}
	if p.Items == nil {
		return v, nil
	}
	for i, item := range items {
		place := fmt.Sprintf("%s[%d]", at, i)
		typed, err := c.typed(place, p.Items, false, item)
		if err != nil {
			return nil, err
		}
		items[i] = typed
	}
	return json.Marshal(items)
}

// number reads a JSON number, or a string that holds one. Integers saturate at ±2^53.
func number(v json.RawMessage, whole bool) (json.RawMessage, bool) {
	s := string(v)
	if kindOf(v) == "string" {
		var inner string
		if json.Unmarshal(v, &inner) != nil {
			return nil, false
		}
		s = strings.TrimSpace(inner)
		if !json.Valid([]byte(s)) { // "NaN", "0x10", "1_000" are no numbers here
			return nil, false
		}
	}
	if kindOf(json.RawMessage(s)) != "number" {
		return nil, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, false
	}
	if !whole {
		f = min(max(f, -math.MaxFloat64), math.MaxFloat64)
		return json.RawMessage(strconv.FormatFloat(f, 'g', -1, 64)), true
	}
	if f >= biggest || f <= -biggest {
		return json.RawMessage(strconv.FormatInt(int64(math.Copysign(biggest, f)), 10)), true
	}
	if f != math.Trunc(f) {
		return nil, false
	}
	return json.RawMessage(strconv.FormatInt(int64(f), 10)), true
}

// filled refuses an empty required string and a value that is none of an enumeration.
func (c *checker) filled(at string, p *jsonschema.Schema, v json.RawMessage) error {
	if v == nil {
		return nil
	}
	if p.MinLength != nil && *p.MinLength > 0 && string(v) == `""` {
		if hint := c.hints[at]; hint != "" {
			return fail(Input, "field `%s` is empty; %s", at, hint)
		}
		return fail(Input, "field `%s` is empty", at)
	}
	if len(p.Enum) == 0 {
		return nil
	}
	var got any
	if err := json.Unmarshal(v, &got); err != nil || slices.Contains(p.Enum, got) {
		return nil
	}
	known := make([]string, len(p.Enum))
	for i, e := range p.Enum {
		known[i] = fmt.Sprint(e)
	}
	return fail(Input, "field `%s` is %s; it must be one of: %s", at, shorten(string(v), 60), strings.Join(known, ", "))
}

// ranged clamps a number to its range, and notes it.
func (c *checker) ranged(at string, p *jsonschema.Schema, v json.RawMessage) (json.RawMessage, error) {
	if p.Minimum == nil && p.Maximum == nil || kindOf(v) != "number" {
		return v, nil
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return nil, fail(Input, "field `%s`: %v", at, err)
	}
	to := n
	if p.Minimum != nil {
		to = max(to, *p.Minimum)
	}
	if p.Maximum != nil {
		to = min(to, *p.Maximum)
	}
	if to == n {
		return v, nil
	}
	used := strconv.FormatFloat(to, 'f', -1, 64)
	c.notes = append(c.notes, fmt.Sprintf("[%s %s is out of range; %s was used]", at, v, used))
	return json.RawMessage(used), nil
}

// shorten keeps a quoted piece of the model's own text small in a message.
func shorten(s string, chars int) string {
	if utf8.RuneCountInString(s) <= chars {
		return s
	}
	return string([]rune(s)[:chars]) + "…"
}
