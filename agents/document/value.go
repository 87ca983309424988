package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Value is a value of any shape within a document: arguments of a tool call, say. It is kept as JSON, in the order in
// which it was written.
type Value struct {
	JSON json.RawMessage
	Line int // where it stands; 0 when it was not given
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (v *Value) UnmarshalYAML(n *yaml.Node) error {
	var b bytes.Buffer
	if err := writeJSON(&b, n); err != nil {
		return err
	}
	v.JSON, v.Line = b.Bytes(), n.Line
	return nil
}

// Wrong is an error of an UnmarshalYAML: it is reported with its line like any other.
func Wrong(line int, format string, a ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, a...))}}
}

func writeJSON(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.AliasNode:
		return writeJSON(b, n.Alias)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, c); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.MappingNode:
		return writeObject(b, n)
	default:
		return writeScalar(b, n)
	}
}

func writeObject(b *bytes.Buffer, n *yaml.Node) error {
	seen := map[string]bool{}
	b.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.Kind != yaml.ScalarNode:
			return Wrong(k.Line, "a key must be a text")
		case k.Tag == "!!merge":
			return Wrong(k.Line, "merge keys (<<) cannot be used here")
		case seen[k.Value]:
			return Wrong(k.Line, "field %q given twice", k.Value)
		}
		seen[k.Value] = true
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, k.Value)
		b.WriteByte(':')
		if err := writeJSON(b, n.Content[i+1]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeScalar(b *bytes.Buffer, n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		var v bool
		if err := n.Decode(&v); err != nil {
			return err
		}
		b.WriteString(strconv.FormatBool(v))
	case "!!int":
		var v int64
		if err := n.Decode(&v); err != nil {
			return Wrong(n.Line, "number %q is out of range", n.Value)
		}
		b.WriteString(strconv.FormatInt(v, 10))
	case "!!float":
		var v float64
		if err := n.Decode(&v); err != nil {
			return err
		}
		out, err := json.Marshal(v)
		if err != nil {
			return Wrong(n.Line, "%q is no number that JSON can hold", n.Value)
		}
		b.Write(out)
	case "!!str", "!!timestamp":
		writeString(b, n.Value)
	default:
		return Wrong(n.Line, "tag %s cannot be used here", n.Tag)
	}
	return nil
}

func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		b.WriteString(`""`) // a string always encodes
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
}
