package tools

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// flooded is a set that was made to say more than fits, with its last reply.
type flooded struct {
	last  Reply
	cap   int
	least int // characters that make it a flood
}

// floodsByTool is, for every tool, a real call whose answer is over every cap.
func floodsByTool(t *testing.T) map[string]func(t *testing.T) flooded {
	const limit = 3000
	small := func(t *testing.T) *Set {
		return newSet(t, func(c *Config) {
			c.Caps.OutputChars = limit
			c.Caps.CommandChars = 8000
		})
	}
	one := func(tool string, prepare func(t *testing.T, s *Set), pairs ...any) func(t *testing.T) flooded {
		return func(t *testing.T) flooded {
			s := small(t)
			if prepare != nil {
				prepare(t, s)
			}
			return flooded{call(t, s, tool, pairs...), limit, limit / 3}
		}
	}
	files := func(t *testing.T, s *Set) {
		for i := range 400 {
			put(t, s, fmt.Sprintf("some/longer/folder/name/%03d-中文.txt", i), "needle in a line of its own\n")
		}
	}
	lines := func(t *testing.T, s *Set) {
		put(t, s, "a.txt", strings.Repeat("the same line again\n", 1500))
	}
	return map[string]func(t *testing.T) flooded{
		"read_file": one("read_file", lines, "path", "a.txt"),
		"write_file": func(t *testing.T) flooded {
			s := small(t)
			name := filepath.Join(strings.Repeat(strings.Repeat("d", 200)+"/", 15), "f")
			return flooded{call(t, s, "write_file", "path", name, "content", strings.Repeat("x\n", 100_000)), limit, 10}
		},
		"edit_file":   one("edit_file", lines, "path", "a.txt", "old_string", "same", "new_string", "other", "replace_all", true),
		"apply_patch": one("apply_patch", files, "diff", patchFlood(400)),
		"list_dir":    one("list_dir", files, "path", "some/longer/folder/name"),
		"grep":        one("grep", files, "pattern", "needle"),
		"glob":        one("glob", files, "pattern", "**/*.txt"),
		"todo_write": func(t *testing.T) flooded {
			return flooded{call(t, small(t), "todo_write", "items", todoFlood(50, 60)), limit, 10}
		},
		"todo_read": func(t *testing.T) flooded {
			s := small(t)
			if r := call(t, s, "todo_write", "items", todoFlood(40, 60)); !r.OK {
				t.Fatal(r.Text)
			}
			return flooded{call(t, s, "todo_read"), limit, limit / 2}
		},
		"run_command": one("run_command", nil, "command", "seq 1 100000; seq 1 100000 >&2"),
		"task_output": func(t *testing.T) flooded {
			s := small(t)
			r := call(t, s, "run_command", "command", "seq 1 100000; seq 1 100000 >&2", "background", true)
			return flooded{call(t, s, "task_output", "id", r.Facts.TaskID, "wait_secs", 20), limit, limit / 3}
		},
		"task_list": func(t *testing.T) flooded {
			s := small(t)
			for range 8 {
				call(t, s, "run_command", "command", "true "+strings.Repeat("argument ", 200), "background", true)
			}
			return flooded{call(t, s, "task_list"), limit, 200}
		},
		"task_kill": func(t *testing.T) flooded {
			s := small(t)
			r := call(t, s, "run_command", "command", "sleep 100 # "+strings.Repeat("argument ", 1000), "background", true)
			return flooded{call(t, s, "task_kill", "id", r.Facts.TaskID), limit, 10}
		},
		"web_fetch":     webFlood("web_fetch"),
		"web_search":    webFlood("web_search", "query", "x"),
		"memory_save":   memoryFlood("memory_save"),
		"memory_search": memoryFlood("memory_search"),
		"skill":         skillFlood,
		"git_status":    gitFlood("git_status"),
		"git_diff":      gitFlood("git_diff", "ref", "HEAD"),
		"git_log":       gitFlood("git_log"),
		"git_commit":    gitFlood("git_commit", "message", strings.Repeat("word ", 5000), "paths", []string{"."}),
		"subagent":      agentFlood("subagent"),
		"agent_list":    agentFlood("agent_list"),
		"agent_collect": agentFlood("agent_collect"),
		"agent_kill":    agentFlood("agent_kill"),
	}
}

// gitFlood calls a git tool on a repository with more of everything than fits.
func gitFlood(tool string, pairs ...any) func(t *testing.T) flooded {
	return func(t *testing.T) flooded {
		s := gitSet(t, `mkdir -p some/longer/folder; for i in $(seq 100 300); do echo $i > some/longer/folder/$i-中文.txt; done; git add .
			for i in $(seq 30); do git commit -q --allow-empty -m "commit $i $(printf 'word %.0s' $(seq 100))"; done
			for i in $(seq 100 300); do echo x >> some/longer/folder/$i-中文.txt; done; git add some/longer/folder/1*`,
			func(c *Config) { c.Caps.OutputChars = 3000 })
		return flooded{call(t, s, tool, pairs...), 3000, 1000}
	}
}

// todoFlood is a list of n items of chars characters.
func todoFlood(n, chars int) []todoItem {
	items := make([]todoItem, n)
	for i := range items {
		items[i] = todoItem{Content: strings.Repeat("中", chars), Status: "pending"}
	}
	return items
}

// patchFlood is a patch of n files that fits none of them.
func patchFlood(n int) string {
	var b strings.Builder
	for i := range n {
		name := fmt.Sprintf("some/longer/folder/name/%03d-中文.txt", i)
		fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n@@ -1,2 +1,2 @@ func\n-needle in a LINE of its own\n+x\n needle\n", name, name)
	}
	return b.String()
}
