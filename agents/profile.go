package agents

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"muster/agents/document"
	"muster/budget"
	"muster/tools"
)

// Profile is a kind of agent: what it may use, and what it is told.
type Profile struct {
	Name        string
	Description string        // for who delegates
	Mode        string        // "" leaves it to the job
	Model       string        // "" leaves it to the job
	Classes     []tools.Class // the tools of these classes only; empty: all
	Tools       []string      // these tools only; empty: all
	Caps        budget.Choice // under those of the job
	MaxTurns    int           // model turns before it must hand back what it has
	Prompt      string        // the body of its file
}

// DefaultProfile is that of a job that names none.
const DefaultProfile = "general"

const (
	maxProfile = 64 << 10 // bytes of a profile file
	mostTurns  = 1_000    // range of max_turns
)

//go:embed profiles/*.md
var profileFiles embed.FS

// catalog is the class of every tool, by name.
type catalog map[string]tools.Class

func newCatalog() catalog {
	c := catalog{}
	for _, t := range tools.Builtins() {
		c[t.Name] = t.Class
	}
	return c
}

// touches says that a call of the tool may change files or start processes.
func (c catalog) touches(tool string) bool {
	return c[tool] == tools.Write || c[tool] == tools.Execute
}

// repeatable says that a call of the tool may be made twice: it only reads, or what it starts is found again by the call's id.
func (c catalog) repeatable(tool string) bool {
	return c[tool] == tools.Read || c[tool] == tools.Delegate
}

// Profiles returns the built-in profiles, sorted by name.
func Profiles() ([]Profile, error) { return readProfiles(newCatalog()) }

func readProfiles(known catalog) ([]Profile, error) {
	files, err := profileFiles.ReadDir("profiles")
	if err != nil {
		return nil, fmt.Errorf("read profiles: %w", err)
	}
	var all []Profile
	for _, f := range files {
		data, err := profileFiles.ReadFile(path.Join("profiles", f.Name()))
		if err != nil {
			return nil, fmt.Errorf("read profile: %w", err)
		}
		p, err := parseProfile(f.Name(), data, known)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// profileNamed returns the profile of a name ("" is the default); an unknown one is an error that lists the names.
func profileNamed(name string, all []Profile) (Profile, error) {
	if name == "" {
		name = DefaultProfile
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("unknown profile %q: there are %s", name, strings.Join(names, ", "))
}

// head is the YAML at the top of a profile file.
type head struct {
	Name        string         `yaml:"name"`
	Description string         `yaml:"description"`
	Mode        string         `yaml:"mode"`
	Model       string         `yaml:"model"`
	Classes     []string       `yaml:"classes"`
	Tools       []string       `yaml:"tools"`
	Caps        document.Value `yaml:"caps"`
	MaxTurns    int            `yaml:"max_turns"`
}

func classes() []tools.Class {
	return []tools.Class{tools.Read, tools.Write, tools.Execute, tools.Network, tools.State, tools.Delegate}
}

var profileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`) })

// parseProfile reads a profile: a YAML head between lines of "---", then the prompt.
func parseProfile(name string, data []byte, known catalog) (Profile, error) {
	fields, body, _, ok := document.Head(string(data))
	if !ok {
		return Profile{}, fmt.Errorf("%s:1: a profile begins with a head of fields between two lines of ---", name)
	}
	var h head
	doc, err := document.Read(name, []byte(fields), maxProfile, &h)
	if err != nil {
		return Profile{}, err
	}
	p := Profile{Name: h.Name, Description: h.Description, Mode: h.Mode, Model: h.Model, Tools: h.Tools, MaxTurns: h.MaxTurns, Prompt: strings.TrimSpace(body)}
	var wrong []error
	say := func(field, format string, a ...any) { wrong = append(wrong, doc.Errorf([]any{field}, format, a...)) }
	if !profileName().MatchString(p.Name) {
		say("name", "name %q: small letters, digits and -, at most 64", p.Name)
	}
	if p.Description == "" || p.Prompt == "" {
		say("description", "a profile needs a description and a text after its head")
	}
	if p.Mode != "" && !slices.Contains(tools.Modes(), p.Mode) {
		say("mode", "unknown mode %q: there are %s", p.Mode, strings.Join(tools.Modes(), ", "))
	}
	if p.MaxTurns < 1 || p.MaxTurns > mostTurns {
		say("max_turns", "max_turns must be 1 to %d", mostTurns)
	}
	for _, c := range h.Classes {
		if !slices.Contains(classes(), tools.Class(c)) {
			say("classes", "unknown class %q: there are %v", c, classes())
		}
		p.Classes = append(p.Classes, tools.Class(c))
	}
	for _, n := range h.Tools {
		if _, ok := known[n]; !ok {
			say("tools", "unknown tool %q", n)
		}
	}
	if h.Caps.Line > 0 {
		if p.Caps, err = readCaps(h.Caps.JSON); err != nil {
			say("caps", "%v", err)
		}
	}
	return p, errors.Join(wrong...)
}

// readCaps reads and checks a choice of caps.
func readCaps(raw json.RawMessage) (budget.Choice, error) {
	var c budget.Choice
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, err
	}
	_, err := c.Caps()
	return c, err
}

// allow lists the tools of the profile by name; empty: all.
func (p Profile) allow(known catalog) []string {
	if len(p.Classes) == 0 {
		return p.Tools
	}
	var names []string
	for name, class := range known {
		if slices.Contains(p.Classes, class) && (len(p.Tools) == 0 || slices.Contains(p.Tools, name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changesFiles says that an agent of this profile and mode can change files of its tree.
func (p Profile) changesFiles(mode string, known catalog) bool {
	allow := p.allow(known)
	for name := range known {
		if mode != "plan" && known.touches(name) && (len(allow) == 0 || slices.Contains(allow, name)) {
			return true
		}
	}
	return false
}
