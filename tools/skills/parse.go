package skills

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"muster/agents/document"
	"muster/budget"
)

// The bounds of the format.
const (
	nameChars        = 64
	descriptionChars = 1024
)

// Problem is what is wrong with a skill.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // 0: of the whole file
	Text    string `json:"text"`
	Skipped bool   `json:"skipped"` // the skill is not there for agents
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	}
	return p.File + ": " + p.Text
}

// header is what is read of a head; both are texts, whatever YAML makes of them.
type header struct {
	Name        document.Value `yaml:"name"`
	Description document.Value `yaml:"description"`
}

// parsed is a SKILL.md by its head.
type parsed struct {
	name, description string
	problems          []Problem // without their file
}

// parse reads the beginning of a SKILL.md whose folder is named folder; whole says that it is all of it. Where the last problem is Skipped there is no
// skill.
func parse(data []byte, folder string, whole bool) (p parsed) {
	say := func(line int, format string, a ...any) {
		p.problems = append(p.problems, Problem{Line: line, Text: fmt.Sprintf(format, a...)})
	}
	skip := func(line int, format string, a ...any) parsed {
		say(line, format, a...)
		p.problems[len(p.problems)-1].Skipped = true
		return p
	}
	fields, _, _, ok := document.Head(string(data))
	switch {
	case strings.HasPrefix(string(data), "\xff\xfe"), strings.HasPrefix(string(data), "\xfe\xff"):
		return skip(1, "it is UTF-16: save it as UTF-8")
	case !ok && whole:
		return skip(1, "it has no head: begin it with a line of ---, then name and description, then a line of ---")
	case !ok:
		return skip(1, "its head does not end within %d bytes", len(data))
	case strings.TrimSpace(fields) == "":
		return skip(1, "its head is empty: it needs a description")
	}
	var h header
	doc, err := document.ReadLoose("", []byte(fields), len(fields), &h)
	if err != nil {
		first := err
		h = header{}
		if doc, err = document.ReadLoose("", []byte(quoteColons(fields)), 2*len(fields), &h); err != nil {
			line, text := place(first)
			return skip(line, "its head is no YAML: %s", text)
		}
		line, _ := place(first)
		say(line, "a value with a colon in it must stand in quotes")
	}
	p.description = oneLine(text(h.Description))
	switch {
	case h.Description.Line > 0 && strings.IndexAny(string(h.Description.JSON), "[{") == 0:
		return skip(h.Description.Line, "its description is no text")
	case p.description == "":
		return skip(max(1, h.Description.Line), "it has no description")
	}
	if n := budget.Chars(p.description); n > descriptionChars {
		say(h.Description.Line, "its description has %d characters, at most %d are used", n, descriptionChars)
		p.description = budget.Preview(p.description, descriptionChars)
	}
	line := max(1, doc.Line("name"))
	given := oneLine(text(h.Name))
	switch {
	case given == "":
		p.name = slug(folder)
		say(line, "it has no name: it is called %s by its folder", p.name)
	case !valid(given):
		if p.name = slug(folder); !valid(folder) {
			p.name = slug(given)
		}
		say(line, "its name %q must have small letters, digits and single hyphens between them, at most %d: it is called %s", budget.Preview(given, 80), nameChars, p.name)
	default:
		if p.name = given; given != folder {
			say(line, "its name %s is not that of its folder, %q", given, budget.Preview(folder, 80))
		}
	}
	return p
}

// text is a value as a text: what stands there, of a number or truth value too.
func text(v document.Value) string {
	raw := string(v.JSON)
	var s string
	switch {
	case raw == "null":
		return ""
	case json.Unmarshal(v.JSON, &s) == nil:
		return s
	}
	return raw
}

func oneLine(s string) string { return budget.Preview(s, len(s)+1) }

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) })

func valid(name string) bool { return len(name) <= nameChars && nameForm().MatchString(name) }

// slug makes a valid name of any.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	if name = strings.Trim(name[:min(len(name), nameChars)], "-"); name == "" {
		return "skill"
	}
	return name
}

// colonValue is a plain value that YAML may take for a mapping.
var colonValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^([A-Za-z][A-Za-z0-9_-]*):[ \t]+([^\s"'\[\]{}|>&*!#%@` + "`" + `,].*:.*)$`)
})

// quoteColons writes plain values with a colon in them as texts: many programs take them for such.
func quoteColons(fields string) string { return colonValue().ReplaceAllString(fields, "$1: >-\n  $2") }

var atLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^:(\d+): `) })

// place takes the line out of the first error of a document without a name.
func place(err error) (line int, text string) {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) && len(many.Unwrap()) > 0 {
		err = many.Unwrap()[0]
	}
	text = err.Error()
	if m := atLine().FindStringSubmatch(text); m != nil {
		if _, err := fmt.Sscanf(m[1], "%d", &line); err == nil {
			text = text[len(m[0]):]
		}
	}
	return max(1, line), strings.TrimPrefix(text, ": ")
}
