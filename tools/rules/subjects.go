package rules

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"muster/budget"
)

// kind is what the brackets of a rule for a tool hold.
type kind int

const (
	byName kind = iota // nothing
	byCommand
	byPath
	byHost
)

// act is what a tool does to the files that it is given.
type act int

const (
	reads   act = iota // it shows what is in them
	edits              // it changes them
	lists              // it shows their names
	commits            // it records them
)

// reach is which files a call on a folder gets at.
type reach int

const (
	single  reach = iota // the folder itself
	leaves               // all that is below, without what rules deny: the tool asks Filter
	takeAll              // all that is below
)

// tool is what rules know of a tool. The first of its acts is the one that rules which name the tool are about.
type tool struct {
	name  string
	kind  kind
	acts  []act
	reach reach
}

// toolTable is every tool that a rule may name, those of MCP servers aside.
func toolTable() []tool {
	table := []tool{
		{"read_file", byPath, []act{reads}, single},
		{"write_file", byPath, []act{edits}, single},
		{"edit_file", byPath, []act{edits, reads}, single}, // its errors and its diff show what is in the file
		{"apply_patch", byPath, []act{edits, reads}, single},
		{"list_dir", byPath, []act{lists}, single},
		{"grep", byPath, []act{reads}, leaves},
		{"glob", byPath, []act{lists}, leaves},
		{"git_status", byPath, []act{lists}, takeAll},
		{"git_diff", byPath, []act{reads}, takeAll},
		{"git_log", byPath, []act{lists}, takeAll},
		{"git_commit", byPath, []act{commits}, takeAll},
		{name: "run_command", kind: byCommand},
		{name: "web_fetch", kind: byHost},
	}
	for _, name := range []string{
		"task_output", "task_list", "task_kill", "web_search", "todo_write", "todo_read", "memory_save", "memory_search", "skill",
		"subagent", "agent_list", "agent_collect", "agent_kill", "mcp_list_resources", "mcp_read_resource", "mcp_list_prompts", "mcp_get_prompt",
	} {
		table = append(table, tool{name: name})
	}
	return table
}

// findTool is what is known of a tool; of one that is not in the table, that it has a name.
func findTool(name string) tool {
	table := toolTable()
	if i := slices.IndexFunc(table, func(t tool) bool { return t.name == name }); i >= 0 {
		return table[i]
	}
	return tool{name: name}
}

// Known says whether rules may name a tool.
func Known(name string) bool {
	return strings.HasPrefix(name, "mcp__") || slices.ContainsFunc(toolTable(), func(t tool) bool { return t.name == name })
}

// The words that stand for several tools.
const (
	readClass = "read"
	editClass = "edit"
)

// kindOf checks the name that a rule begins with.
func kindOf(name string) (kind, error) {
	server, isMCP := strings.CutPrefix(name, "mcp__")
	switch {
	case name == readClass || name == editClass:
		return byPath, nil
	case isMCP && !strings.Contains(server, "__") && !strings.Contains(server, "*"):
		return byName, fmt.Errorf("it names a server and no tool of it; for all of them write %s__*", name)
	case isMCP && server != "":
		return byName, nil
	case strings.Contains(name, "*"):
		return byName, fmt.Errorf("a * may stand in the names of MCP tools only, such as mcp__github__*")
	case !Known(name):
		return byName, fmt.Errorf("there is no tool %q; did you mean %s?", name, nearestTool(name))
	}
	return findTool(name).kind, nil
}

// nearestTool is the known name that a mistaken one is closest to.
func nearestTool(name string) string {
	names := []string{readClass, editClass}
	for _, t := range toolTable() {
		names = append(names, t.name)
	}
	return budget.Nearest(name, names, 1)[0]
}

// covers says whether a rule of a list is about a tool. One that allows is about the tools it names. One that denies or asks about a path is about every
// tool that does to the path what the named one does: who may not write a file may not patch it either.
func (r rule) covers(t tool, list string) bool {
	if strings.HasPrefix(r.tool, "mcp__") {
		return glob(strings.ReplaceAll(r.tool, "*", star), t.name)
	}
	does := func(a act) bool { return slices.Contains(t.acts, a) }
	protects := list != "allow" && r.path != ""
	switch r.tool {
	case t.name:
		return true
	case editClass:
		return does(edits)
	case readClass:
		return (does(reads) || does(lists)) && (protects || !does(edits))
	}
	return protects && does(findTool(r.tool).acts[0])
}

// Call is a call of a tool, as far as rules look at it.
type Call struct {
	Tool    string
	Command string   // of run_command
	Workdir string   // where the command starts, "" for the root
	Env     []string // names of variables that the job sets for its commands
	POSIX   bool     // the shell that runs the command may be another than bash
	Paths   []string
	URL     string // of web_fetch

	// Resolve finds where a path leads. Without it paths are judged by their text alone.
	Resolve func(path string) (Place, error)
}

// Place is where a path leads.
type Place struct {
	Clean   string // as it was given, folded, relative to the root with /
	Real    string // with all symlinks followed; the rest of what does not exist yet stays
	Folder  bool   // it is one
	Scratch bool   // it is in the agent's own scratch folder, which patterns are not about
}

// CallOf takes what rules look at from the arguments of a call.
func CallOf(name string, args json.RawMessage) (Call, error) {
	var a struct {
		Command string   `json:"command"`
		Workdir string   `json:"workdir"`
		Path    string   `json:"path"`
		Paths   []string `json:"paths"`
		Pattern string   `json:"pattern"`
		URL     string   `json:"url"`
	}
	c := Call{Tool: name}
	t := findTool(name)
	if t.kind == byName || len(args) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return c, fmt.Errorf("arguments of %s: %w", name, err)
	}
	switch t.kind {
	case byCommand:
		c.Command, c.Workdir = a.Command, a.Workdir
	case byHost:
		c.URL = a.URL
	case byPath:
		c.Paths = a.Paths
		if name == "glob" {
			a.Path = globStart(a.Path, a.Pattern)
		}
		if a.Path != "" {
			c.Paths = append(c.Paths, a.Path)
		}
		if len(c.Paths) == 0 && name != "apply_patch" { // whose paths are in its text
			c.Paths = []string{"."}
		}
	}
	return c, nil
}

// globStart is the folder that a glob looks into: the beginning of its pattern may name one below path.
func globStart(from, pattern string) string {
	base, _ := doublestar.SplitPattern(pattern)
	switch {
	case base == "." || strings.Contains(base, `\`):
		return from
	case path.IsAbs(base):
		return base
	}
	return path.Join(from, base)
}
