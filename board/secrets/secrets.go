package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	minValue  = 8        // characters; see New
	maxValue  = 64 << 10 // bytes
	nameChars = 100
)

// Redactor takes secrets out of texts. A nil one leaves every text as it is. Safe for use by many goroutines.
type Redactor struct {
	values map[string]string // by name
	names  []string          // of values, then of shapes
	matcher
}

// New makes a Redactor of values by their names. A value is refused that has under 8 characters, and so is a name with brackets, quotes or
// control characters, since it stands in texts of every kind. Without any value the shapes of well-known keys are found all the same.
func New(values map[string]string) (*Redactor, error) {
	r := &Redactor{values: map[string]string{}}
	known := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := strings.Trim(values[name], "\r\n")
		if err := check(name, v); err != nil {
			return nil, err
		}
		if known[v] {
			continue // the first name is as good
		}
		known[v] = true
		r.values[name] = v
		r.names = append(r.names, name)
		r.add(len(r.names)-1, v)
	}
	r.shapeBase = len(r.names)
	for _, s := range shapes {
		r.names = append(r.names, s.name)
	}
	r.seal()
	return r, nil
}

func check(name, value string) error {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./: ", c)
	}
	switch {
	case name == "" || len(name) > nameChars || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) }):
		return fmt.Errorf("secret %q: use up to %d letters, digits, blanks and _ - . / : for its name", name, nameChars)
	case utf8.RuneCountInString(value)-strings.Count(value, "\n")-strings.Count(value, "\r") < minValue:
		return fmt.Errorf("secret %s: its value has under %d characters, and would take half of every text with it", name, minValue)
	case len(value) > maxValue:
		return fmt.Errorf("secret %s: its value has %d bytes, at most %d are looked for", name, len(value), maxValue)
	case strings.Contains(value, opening):
		return fmt.Errorf("secret %s: its value holds the words that stand in its place", name)
	}
	return nil
}

// With is r with more values; of two under one name the new one counts. r stays as it is, and may be nil.
func (r *Redactor) With(values map[string]string) (*Redactor, error) {
	if r != nil && len(values) == 0 {
		return r, nil
	}
	all := map[string]string{}
	if r != nil {
		maps.Copy(all, r.values)
	}
	maps.Copy(all, values)
	return New(all)
}

// String is s without secrets.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	spans, _ := r.find(s, 0)
	return r.replace(s, spans)
}

// opening begins the words that stand in place of a secret.
const opening = "[redacted "

func (r *Redactor) mark(name int) string { return opening + r.names[name] + "]" }

func (r *Redactor) replace(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	at := 0
	for _, sp := range spans {
		b.WriteString(s[at:sp.from])
		b.WriteString(r.mark(sp.name))
		at = sp.to
	}
	b.WriteString(s[at:])
	return b.String()
}

// JSON is one JSON value without secrets, and valid: they are looked for in its strings, keys included. What is no JSON is taken as a text.
func (r *Redactor) JSON(data []byte) []byte {
	if r == nil {
		return data
	}
	if bytes.IndexByte(data, '\\') < 0 {
		if spans, _ := r.find(string(data), 0); len(spans) == 0 {
			return data
		}
	}
	var out []byte // nil while nothing differs
	copied := 0
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		end := stringEnd(data, i)
		if end < 0 {
			return []byte(r.String(string(data)))
		}
		if clean, ok := r.quoted(data[i:end]); !ok {
			return []byte(r.String(string(data)))
		} else if clean != nil {
			out = append(append(out, data[copied:i]...), clean...)
			copied = end
		}
		i = end - 1
	}
	if out == nil {
		return data
	}
	return append(out, data[copied:]...)
}

// stringEnd is where the JSON string that begins at i ends, -1 where it does not.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// quoted is one JSON string without secrets, nil where it has none; false where it is no JSON.
func (r *Redactor) quoted(q []byte) ([]byte, bool) {
	text := string(q[1 : len(q)-1])
	if bytes.IndexByte(q, '\\') >= 0 {
		if json.Unmarshal(q, &text) != nil {
			return nil, false
		}
	}
	spans, _ := r.find(text, 0)
	if len(spans) == 0 {
		return nil, true
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(r.replace(text, spans)) != nil {
		return nil, false // never, of a string
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), true
}
