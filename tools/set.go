package tools

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"muster/board"
	"muster/board/approval"
	"muster/board/secrets"
	"muster/budget"
	"muster/tools/rules"
	"muster/tools/sandbox"
	"muster/tools/skills"
	"muster/tools/web"
	"muster/tools/workspace"
)

// builtins is the one list of the tools in this package, in the order in which agents see them. A new tool is a word here.
func builtins() []Tool {
	return []Tool{
		readFile(), writeFile(), editFile(), applyPatch(), listDir(), grep(), glob(),
		runCommand(), taskOutput(), taskList(), taskKill(),
		webFetch(), webSearch(),
		todoWrite(), todoRead(),
		gitStatus(), gitDiff(), gitLog(), gitCommit(),
		memorySave(), memorySearch(), skill(),
		subagent(), agentList(), agentCollect(), agentKill(),
	}
}

// Config is what one agent's set of tools works on.
type Config struct {
	Tree     *workspace.Tree
	Caps     budget.Caps
	Mode     string   // default (also for ""), accept-edits, plan, debug, goal
	Allow    []string // tool names; empty: all
	Deny     []string
	Rules    []*rules.Set      // by argument, of the host, the profile, the job: each narrows
	Policy   sandbox.Policy    // of its commands; New adds the tree and its scratch folder to what is writable
	Env      map[string]string // for commands, beside the allow-list
	Prune    []string          // folders that grep and glob do not enter, by name; nil: those of workspace.Pruned
	Lease    *board.Lease      // nil: no delegation tools
	Profiles []Profile         // what subagent may start; empty: no delegation tools
	Memory   *Memory           // where memories are without a Lease; nil: no memory tools then
	Skills   []skills.Skill    // none: no skill tool
	Web      *web.Client       // nil: one with its defaults, which searches nothing; without a search there is no web_search

	// Journal records "tool_started" and "tool_finished" (the runner sets it to Lease.Append). An error of it ends the call. Nil: nothing is journaled.
	Journal func(ctx context.Context, kind string, data any) error

	// Ask puts a call to a person and waits for the answer (the runner sets it to Lease.Ask). approval.ErrNobody, or nil: nobody is there, and what a
	// mode or a rule asks about is denied at once.
	Ask func(ctx context.Context, q approval.Question) (approval.Approval, error)

	// Secrets is taken out of every text, fact and journaled argument; with a Lease its own is instead. What looks like a well-known key, or
	// stands in Env under a name like one, is a secret also without it.
	Secrets *secrets.Redactor
}

// Profile is a row of what an agent may delegate to.
type Profile struct{ Name, Description string }

// Set is the tools of one agent and their state (read hashes, todo list, background tasks). Its methods may be called from several goroutines.
type Set struct {
	cfg   Config
	mode  mode
	tools []Tool // all that exist for this agent, also those that mode or lists forbid
	reads reads  // read_file.go: content hashes of what this agent has read
	todo  todos  // todo.go
	tasks tasks  // command.go: background tasks
	loop  repeats
	git   gitState // git.go: views and indexes

	brought brought // skill.go
	pages   pages   // web_fetch.go: the last ones

	secrets *secrets.Redactor
	bare    func() error // why no command may be started; asked once
	folders []string     // where programs are looked for

	mu      sync.Mutex
	box     *sandbox.Box          // of its commands, from the first on
	boxes   map[*sandbox.Box]bool // that one, and those of commits under way
	own     string                // folder that only this process writes, and boxes may read; "" before the first box
	ended   bool                  // Close was called: there is no box any more
	noSpawn bool                  // the allowance of children is used up
	told    map[string]bool       // children that the agent knows to have ended
}

// New assembles the set: the built-in tools, then those for delegation where there is somebody to delegate to.
func New(cfg Config) (*Set, error) {
	if cfg.Mode == "" {
		cfg.Mode = "default"
	}
	m, ok := modes()[cfg.Mode]
	if !ok {
		return nil, fmt.Errorf("mode %q: there are %s", cfg.Mode, strings.Join(Modes(), ", "))
	}
	if cfg.Tree == nil {
		return nil, fmt.Errorf("tools: no tree to work on")
	}
	s := &Set{cfg: cfg, mode: m, folders: programFolders()}
	s.bare = sync.OnceValue(func() error { _, err := sandbox.Check(cfg.Policy); return err })
	var err error
	if s.secrets, err = cfg.hidden(); err != nil {
		return nil, err
	}
	if s.cfg.Web == nil {
		if s.cfg.Web, err = web.New(web.Options{}); err != nil {
			return nil, err
		}
	}
	for _, t := range builtins() {
		if !cfg.has(t) {
			continue
		}
		fitted, err := withProfiles(t, cfg.Profiles).fit(cfg.Caps)
		if err != nil {
			return nil, err
		}
		s.tools = append(s.tools, fitted)
	}
	return s, nil
}

// has says whether there is a tool for an agent: one that must fail is not.
func (c Config) has(t Tool) bool {
	switch {
	case t.Class == Delegate && (c.Lease == nil || len(c.Profiles) == 0):
		return false
	case t.Name == "subagent":
		return len(c.Lease.Job().Path) < c.Caps.Depth
	case t.Name == "skill":
		return len(c.Skills) > 0
	case t.Name == "web_search":
		return c.Web.Searches() != ""
	case strings.HasPrefix(t.Name, "memory_"):
		return c.memory() != nil
	}
	return true
}

// Close ends every background task, waits for it and ends the box; it reports processes ended and survivors.
func (s *Set) Close() (ended, survivors int) {
	ended, survivors = s.tasks.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for box := range s.boxes {
		more, still := box.Close()
		ended, survivors = ended+more, survivors+still
	}
	s.box, s.boxes = nil, nil
	if s.own != "" {
		_ = os.RemoveAll(s.own)
	}
	return ended, survivors
}

// Tools lists what the agent sees.
func (s *Set) Tools() []Tool {
	s.mu.Lock()
	noSpawn := s.noSpawn
	s.mu.Unlock()
	var seen []Tool
	for _, t := range s.tools {
		if _, err := s.allowed(t); err != nil || t.Name == "subagent" && noSpawn {
			continue
		}
		seen = append(seen, t)
	}
	return seen
}
