package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Choice is what a profile, a plan, a job or `--caps` says of the caps: a preset ("" is default) and single numbers
// over it. Its JSON and YAML form is one flat object: {"preset":"compact","grep_matches":100}.
type Choice struct {
	Preset  string
	Numbers map[string]int // by json name of Caps
}

// IsZero tells whether c says nothing.
func (c Choice) IsZero() bool { return c.Preset == "" && len(c.Numbers) == 0 }

// ParseChoice reads "preset=compact,grep_matches=100". It is checked whole, as by Caps.
func ParseChoice(s string) (Choice, error) {
	var c Choice
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found || key == "" || value == "" {
			return Choice{}, fmt.Errorf("caps %q: write name=number, or preset=compact, with commas between them", part)
		}
		if err := c.set(key, value); err != nil {
			return Choice{}, err
		}
	}
	if _, err := c.Caps(); err != nil {
		return Choice{}, err
	}
	return c, nil
}

// set takes one entry of a written choice; saying a thing twice is an error.
func (c *Choice) set(key, value string) error {
	if key == "preset" {
		if c.Preset != "" {
			return errors.New("caps: preset is given twice")
		}
		c.Preset = value
		return nil
	}
	if _, twice := c.Numbers[key]; twice {
		return fmt.Errorf("caps: %s is given twice", key)
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		if r, known := row(key); known {
			return fmt.Errorf("caps: %s is %q; it must be a whole number from %s", key, value, r.span(r.Max))
		}
		return unknown(key)
	}
	if c.Numbers == nil {
		c.Numbers = make(map[string]int)
	}
	c.Numbers[key] = n
	return nil
}

// Caps applies the choice; an unknown name or an out-of-range number is an error that names it, its range and its value.
// A cap that may not be above another one, and is not chosen itself, follows that one down.
func (c Choice) Caps() (Caps, error) {
	var caps Caps
	switch c.Preset {
	case "", "default":
		caps = Default()
	case "compact":
		caps = Compact()
	default:
		return Caps{}, fmt.Errorf("caps: preset %q is unknown; there are default and compact", c.Preset)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Numbers)) {
		r, known := row(name)
		if !known {
			return Caps{}, unknown(name)
		}
		n := c.Numbers[name]
		if n < r.Min || n > r.Max {
			return Caps{}, r.outside(n, r.Max)
		}
		*caps.at(r.field) = n
	}
	for _, r := range table() {
		if r.above < 0 {
			continue
		}
		n, top := caps.at(r.field), *caps.at(r.above)
		if *n <= top {
			continue
		}
		if _, chosen := c.Numbers[r.Name]; chosen {
			return Caps{}, r.outside(*n, top)
		}
		*n = top
	}
	return caps, nil
}

// Over lays c over below: c's preset wins when set, numbers of c win one by one.
func (c Choice) Over(below Choice) Choice {
	out := Choice{Preset: below.Preset}
	if c.Preset != "" {
		out.Preset = c.Preset
	}
	if len(below.Numbers)+len(c.Numbers) > 0 {
		out.Numbers = make(map[string]int, len(below.Numbers)+len(c.Numbers))
		maps.Copy(out.Numbers, below.Numbers)
		maps.Copy(out.Numbers, c.Numbers)
	}
	return out
}

// MarshalJSON writes the flat form, the preset first and the numbers by name.
func (c Choice) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	comma := func(key string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		quoted, _ := json.Marshal(key) // a string always encodes
		b = append(append(b, quoted...), ':')
	}
	if c.Preset != "" {
		comma("preset")
		quoted, _ := json.Marshal(c.Preset)
		b = append(b, quoted...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Numbers)) {
		comma(name)
		b = strconv.AppendInt(b, int64(c.Numbers[name]), 10)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads the flat form. Names and ranges are left to Caps, so that a record which another version wrote
// can still be shown.
func (c *Choice) UnmarshalJSON(b []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return fmt.Errorf("caps: want an object such as {\"preset\":\"compact\",\"grep_matches\":100}: %w", err)
	}
	var out Choice
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := bytes.TrimSpace(fields[key])
		if key == "preset" {
			if err := json.Unmarshal(value, &out.Preset); err != nil {
				return fmt.Errorf("caps: preset is %s; it must be a string, default or compact", value)
			}
			continue
		}
		if err := out.set(key, string(value)); err != nil {
			return err
		}
	}
	*c = out
	return nil
}

// UnmarshalYAML reads the flat form out of a file that a person wrote: names and ranges are checked at once, and the
// error says the line.
func (c *Choice) UnmarshalYAML(node *yaml.Node) error {
	var fields map[string]yaml.Node
	if err := node.Decode(&fields); err != nil {
		return fmt.Errorf("line %d: caps: want a mapping such as {preset: compact, grep_matches: 100}", node.Line)
	}
	var out Choice
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := fields[key]
		if value.Kind == yaml.AliasNode {
			value = *value.Alias
		}
		one := Choice{}
		err := fmt.Errorf("caps: %s must be a single value", key)
		if value.Kind == yaml.ScalarNode {
			err = one.set(key, value.Value)
		}
		if err == nil {
			_, err = one.Caps()
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", value.Line, err)
		}
		out = one.Over(out)
	}
	if _, err := out.Caps(); err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*c = out
	return nil
}

func row(name string) (Cap, bool) {
	for _, r := range table() {
		if r.Name == name {
			return r, true
		}
	}
	return Cap{}, false
}

func (r Cap) span(top int) string {
	if r.NotAbove != "" {
		return fmt.Sprintf("%d to %s (%d)", r.Min, r.NotAbove, top)
	}
	return fmt.Sprintf("%d to %d", r.Min, top)
}

func (r Cap) outside(n, top int) error {
	return fmt.Errorf("caps: %s is %d; it must be from %s (%s)", r.Name, n, r.span(top), r.Doc)
}

func unknown(name string) error {
	names := make([]string, 0, len(table()))
	for _, r := range table() {
		names = append(names, r.Name)
	}
	return fmt.Errorf("caps: %q is unknown; there are preset and %s", name, strings.Join(names, ", "))
}
