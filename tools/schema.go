package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"muster/budget"
)

// capRef is a number of a schema that a cap decides.
type capRef struct{ field, keyword, cap string }

// shapeOf makes the schema of an argument struct and folds our own tags into it. A wrong tag is a bug of the program and panics; the test that
// assembles every tool finds it.
func shapeOf[A any](name string) (*jsonschema.Schema, []capRef, map[string]string) {
	s, err := jsonschema.For[A](nil)
	if err != nil {
		panic(fmt.Sprintf("schema of %s: %v", name, err))
	}
	var caps []capRef
	hints := map[string]string{}
	fold(reflect.TypeFor[A](), s, func(r capRef) { caps = append(caps, r) }, hints)
	return s, caps, hints
}

// fold puts the tags of t's fields into s, and drops the null that the schema of a slice or pointer would allow.
func fold(t reflect.Type, s *jsonschema.Schema, ref func(capRef), hints map[string]string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	required := map[string]bool{}
	for _, n := range s.Required {
		required[n] = true
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			continue
		}
		if len(p.Types) == 2 && p.Types[0] == "null" {
			p.Type, p.Types = p.Types[1], nil
		}
		// The type already gives the width of our integers; the bounds that the library adds for unsigned ones are noise.
		p.Minimum, p.Maximum = nil, nil
		foldTags(name, f.Tag, p, required[name], ref, hints)
		inner := p
		if p.Items != nil {
			inner = p.Items
		}
		fold(f.Type, inner, ref, hints)
	}
}

func foldTags(name string, tag reflect.StructTag, p *jsonschema.Schema, required bool, ref func(capRef), hints map[string]string) {
	for _, keyword := range []string{"default", "min", "max"} {
		v, ok := tag.Lookup(keyword)
		if !ok {
			continue
		}
		if p.Type != "string" && strings.Trim(v, "-0123456789.") != "" && v != "true" && v != "false" {
			ref(capRef{name, keyword, v})
			continue
		}
		setKeyword(p, keyword, v)
	}
	if e := tag.Get("enum"); e != "" {
		for v := range strings.SplitSeq(e, ",") {
			p.Enum = append(p.Enum, v)
		}
	}
	hint := tag.Get("empty")
	if p.Type == "string" && required && hint != "ok" && len(p.Enum) == 0 {
		one := 1
		p.MinLength = &one
		if hint != "" {
			hints[name] = hint
		}
	}
}

func setKeyword(p *jsonschema.Schema, keyword, v string) {
	if keyword == "default" {
		if p.Type == "string" {
			v = strconv.Quote(v)
		}
		p.Default = json.RawMessage(v)
		return
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		panic(fmt.Sprintf("tag %s:%q: %v", keyword, v, err))
	}
	switch {
	case p.Type == "array":
		most := int(n)
		p.MaxItems = &most
	case keyword == "min":
		p.Minimum = &n
	default:
		p.Maximum = &n
	}
}

// fit returns the tool with the numbers of caps in its schema.
func (t Tool) fit(caps budget.Caps) (Tool, error) {
	if t.shape == nil {
		var s jsonschema.Schema
		if err := json.Unmarshal(t.Schema, &s); err != nil {
			return t, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		t.shape = &s
		return t, nil
	}
	s := t.shape.CloneSchemas()
	v := reflect.ValueOf(caps)
	for _, r := range t.caps {
		n, ok := capByName(v, r.cap)
		if !ok {
			return t, fmt.Errorf("schema of %s: field %s names no cap: %q", t.Name, r.field, r.cap)
		}
		setKeyword(s.Properties[r.field], r.keyword, strconv.FormatInt(n, 10))
	}
	raw, err := compactSchema(s)
	if err != nil {
		return t, fmt.Errorf("schema of %s: %w", t.Name, err)
	}
	t.shape, t.Schema = s, raw
	return t, nil
}

func capByName(caps reflect.Value, name string) (int64, bool) {
	for i := range caps.NumField() {
		if caps.Type().Field(i).Tag.Get("json") == name {
			return caps.Field(i).Int(), true
		}
	}
	return 0, false
}

// compactSchema encodes s on one line. Providers refuse an object without properties, so an empty one is written out. That there are no other fields is
// left out: it says nothing to a model that the list of fields does not, it is checked all the same, and it would take a word of every twenty.
func compactSchema(s *jsonschema.Schema) (json.RawMessage, error) {
	if len(s.Properties) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	s = s.CloneSchemas()
	s.AdditionalProperties = nil
	for _, p := range s.Properties {
		if p.Items != nil {
			p.Items.AdditionalProperties = nil
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b.Bytes()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
