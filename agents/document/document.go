package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds what the aliases of a document may expand to.
const maxNodes = 200_000

// Doc is a document that was read: it knows where things stand.
type Doc struct {
	Name string
	root *yaml.Node
}

// Read parses data of at most max bytes strictly into v, a pointer to a struct. The error joins everything found, each
// as "name:line: reason".
func Read(name string, data []byte, max int, v any) (*Doc, error) {
	return read(name, data, max, v, true)
}

// ReadLoose is Read for documents that were written for other programs too: a field that v lacks is passed over. Everything else is as strict.
func ReadLoose(name string, data []byte, max int, v any) (*Doc, error) {
	return read(name, data, max, v, false)
}

func read(name string, data []byte, max int, v any, known bool) (*Doc, error) {
	if len(data) > max {
		return nil, fmt.Errorf("%s: over %d bytes, the most that is allowed", name, max)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s: not valid UTF-8", name)
	}
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) > 0 && t[0] == '{' {
		data = jsonAsYAML(data)
	}
	var root yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&root); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:1: the file is empty", name)
	} else if err != nil {
		return nil, place(name, err, v)
	}
	d := &Doc{Name: name, root: root.Content[0]}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return nil, d.errorAt(second.Line, "a second document: a file holds one")
	} else if !errors.Is(err, io.EOF) {
		return nil, place(name, err, v)
	}
	if d.root.Kind != yaml.MappingNode {
		return nil, d.errorAt(d.root.Line, "the top must be a mapping of fields")
	}
	e := expansion{sizes: map[*yaml.Node]int{}}
	if _, err := e.size(d.root); err != nil {
		return nil, d.errorAt(e.line, "%v", err)
	}
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(known)
	if err := strict.Decode(v); err != nil {
		return nil, place(name, err, v)
	}
	return d, nil
}

// Errorf makes an error at the place of path: keys (string) and indexes (int) from the top. Where the path ends early,
// the last node found counts.
func (d *Doc) Errorf(path []any, format string, a ...any) error {
	return d.errorAt(d.Line(path...), format, a...)
}

func (d *Doc) errorAt(line int, format string, a ...any) error {
	return fmt.Errorf("%s:%d: %s", d.Name, max(line, 1), fmt.Sprintf(format, a...))
}

// Line is the line of the value at path.
func (d *Doc) Line(path ...any) int {
	n := d.root
	line := n.Line
	for _, p := range path {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next, at := child(n, p)
		if next == nil {
			return line
		}
		n, line = next, at
	}
	return line
}

// child returns the value at one key or index, and the line where it begins (that of its key).
func child(n *yaml.Node, p any) (*yaml.Node, int) {
	switch p := p.(type) {
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == p {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	case int:
		if n.Kind == yaml.SequenceNode && p < len(n.Content) {
			return n.Content[p], n.Content[p].Line
		}
	}
	return nil, 0
}

// expansion counts the nodes of a document with its aliases expanded, each anchor once.
type expansion struct {
	sizes map[*yaml.Node]int // -1 while it is being counted
	line  int                // of the offence
}

func (e *expansion) size(n *yaml.Node) (int, error) {
	if s, ok := e.sizes[n]; ok {
		if s < 0 {
			e.line = n.Line
			return 0, errors.New("an anchor that contains itself")
		}
		return s, nil
	}
	e.sizes[n] = -1
	total := 1
	kids := n.Content
	if n.Kind == yaml.AliasNode {
		kids = []*yaml.Node{n.Alias}
	}
	for _, k := range kids {
		s, err := e.size(k)
		if err != nil {
			return 0, err
		}
		if total += s; total > maxNodes {
			e.line = k.Line
			return 0, fmt.Errorf("aliases expand to more than %d values", maxNodes)
		}
	}
	e.sizes[n] = total
	return total, nil
}

var (
	atLine    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:yaml: )?line (\d+): (?:\[\d+:\d+\] )?`) })
	noField   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^field (.*) not found in type (.*)$`) })
	wrongType = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?s)^cannot unmarshal !!(\\S+)(?: `(.*)`)? into (.*)$")
	})
	twice = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^mapping key (".*") already defined at line (\d+)$`) })
)

// place turns an error of the parser into ours: file, line, and words of the user instead of those of Go.
func place(name string, err error, v any) error {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		te = &yaml.TypeError{Errors: []string{err.Error()}}
	}
	var all []error
	for _, text := range te.Errors {
		line := "1"
		if m := atLine().FindStringSubmatch(text); m != nil {
			line, text = m[1], text[len(m[0]):]
			if n, err := strconv.Atoi(line); err == nil && strings.HasPrefix(text, "did not find expected ") {
				line = strconv.Itoa(n + 1) // of what breaks its grammar, the parser counts lines from 0
			}
		}
		text = strings.TrimPrefix(text, "yaml: ")
		if m := noField().FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("unknown field %q", m[1])
			if near := nearest(m[1], m[2], v); near != "" {
				text += fmt.Sprintf("; did you mean %s?", near)
			}
		} else if m := wrongType().FindStringSubmatch(text); m != nil {
			text = "want " + wanted(m[3]) + ", have " + found(m[1], m[2])
		} else if m := twice().FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("field %s given twice (first on line %s)", m[1], m[2])
		}
		all = append(all, fmt.Errorf("%s:%s: %s", name, line, text))
	}
	return errors.Join(all...)
}

func wanted(goType string) string {
	t := strings.TrimLeft(goType, "*")
	switch {
	case t == "string":
		return "a text"
	case strings.HasPrefix(t, "int") || strings.HasPrefix(t, "uint"):
		return "a whole number"
	case t == "bool":
		return "true or false"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	default:
		return "a mapping of fields"
	}
}

func found(tag, value string) string {
	switch tag {
	case "seq":
		return "a list"
	case "map":
		return "a mapping"
	default:
		return strconv.Quote(value)
	}
}

var jsonEscape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)`)
})

// jsonAsYAML rewrites what YAML does not take of JSON. A raw tab cannot stand inside a JSON string, so each is a blank
// between tokens. Lines stay where they are.
func jsonAsYAML(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	return jsonEscape().ReplaceAllFunc(data, func(m []byte) []byte {
		if string(m) == `\/` {
			return m[1:]
		}
		if len(m) != 12 {
			return m
		}
		hi, err1 := strconv.ParseUint(string(m[2:6]), 16, 16)
		lo, err2 := strconv.ParseUint(string(m[8:12]), 16, 16)
		if err1 != nil || err2 != nil {
			return m
		}
		return utf8.AppendRune(nil, utf16.DecodeRune(rune(hi), rune(lo)))
	})
}
