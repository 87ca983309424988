package tools

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"muster/board"
	"muster/budget"
	"muster/tools/sandbox"
	"muster/tools/workspace"
)

// builtins is the one list of the tools in this package, in the order in which agents see them. A new tool is a word here.
func builtins() []Tool {
	return []Tool{
		readFile(), writeFile(), editFile(), listDir(), grep(), glob(),
		runCommand(), taskOutput(), taskList(), taskKill(),
		todoWrite(), todoRead(),
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
	Policy   sandbox.Policy
	Env      map[string]string // for commands, beside the allow-list
	Lease    *board.Lease      // nil: no delegation tools
	Profiles []Profile         // what subagent may start; empty: no delegation tools

	// Journal records "tool_started" and "tool_finished" (the runner sets it to Lease.Append). An error of it ends the call. Nil: nothing is journaled.
	Journal func(ctx context.Context, kind string, data any) error
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

	mu      sync.Mutex
	noSpawn bool            // the allowance of children is used up
	told    map[string]bool // children that the agent knows to have ended
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
	s := &Set{cfg: cfg, mode: m}
	for _, t := range builtins() {
		if t.Class == Delegate && (cfg.Lease == nil || len(cfg.Profiles) == 0) {
			continue
		}
		if t.Name == "subagent" && len(cfg.Lease.Job().Path) >= cfg.Caps.Depth {
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

// Close ends every background task and waits for it; it reports processes ended and survivors.
func (s *Set) Close() (ended, survivors int) { return s.tasks.close() }

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
