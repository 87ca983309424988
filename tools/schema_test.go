package tools

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/budget"
)

// every fits all built-in tools to the default caps and to profiles as a worker has them.
func every(t testing.TB) []Tool {
	t.Helper()
	profiles := []Profile{{"general", "does anything"}, {"explore", "only reads"}, {"plan", "writes a plan"}}
	var all []Tool
	for _, tool := range builtins() {
		fitted, err := withProfiles(tool, profiles).fit(budget.Default())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fitted)
	}
	return all
}

// TestSchemas holds every definition to the golden file: what a model sees changes only on purpose (go test -update).
func TestSchemas(t *testing.T) {
	var b bytes.Buffer
	for _, tool := range every(t) {
		b.WriteString(tool.Name + " (" + string(tool.Class) + ")\n" + tool.Description + "\n")
		if err := json.Indent(&b, tool.Schema, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n\n")
	}
	golden := filepath.Join("testdata", "schemas.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("schemas differ from %s (accept with -update):\n%s", golden, diff)
	}
}

// TestDefinitionsAreSmall prints what each definition costs: all of a full agent's may take 12,000 bytes.
func TestDefinitionsAreSmall(t *testing.T) {
	total := 0
	for _, tool := range every(t) {
		raw, err := json.Marshal(struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"input_schema"`
		}{tool.Name, tool.Description, tool.Schema})
		if err != nil {
			t.Fatal(err)
		}
		total += len(raw)
		t.Logf("%-14s %5d bytes, about %d tokens", tool.Name, len(raw), len(raw)/4)
	}
	t.Logf("%-14s %5d bytes", "all", total)
	if total > 12000 {
		t.Errorf("%d definitions take %d bytes, at most 12000 are allowed", len(builtins()), total)
	}
}

func TestSchemasAreFit(t *testing.T) {
	for _, tool := range every(t) {
		s := string(tool.Schema)
		if strings.Contains(s, "null") || strings.Contains(s, "additionalProperties") || tool.shape.AdditionalProperties == nil || !strings.HasPrefix(s, `{"type":"object","properties":{`) {
			t.Errorf("%s: schema %s", tool.Name, s)
		}
		for name, p := range tool.shape.Properties {
			if p.Description == "" {
				t.Errorf("%s: parameter %s has no description", tool.Name, name)
			}
		}
	}
}

func TestCapsDecideTheSchema(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Caps = budget.Compact() })
	read, _ := s.find("read_file")
	if most := read.shape.Properties["limit"].Maximum; most == nil || *most != float64(budget.Compact().ReadLines) {
		t.Errorf("limit of read_file in preset compact: maximum %v", most)
	}
}

func TestDescriptionsHoldTheirPhrases(t *testing.T) {
	phrases := map[string][]string{
		"grep":          {"iteral unless"},
		"run_command":   {"on-interactive", "background", "task_output"},
		"todo_write":    {"replaces the whole list"},
		"edit_file":     {"exactly, indentation included"},
		"apply_patch":   {"hunks with matching context", "edit_file"},
		"read_file":     {"with line numbers", "offset", "limit"},
		"write_file":    {"edit_file"},
		"glob":          {"grep"},
		"subagent":      {"agent_list"},
		"agent_list":    {"agent_collect"},
		"task_output":   {"run_command"},
		"agent_kill":    {"task_kill"},
		"agent_collect": {"agent_list"},
		"memory_save":   {"one self-contained sentence", "todo_write"},
		"memory_search": {"memory_save"},
		"web_search":    {"web_fetch"},
		"git_status":    {"git_diff"},
		"git_diff":      {"git_status"},
		"git_log":       {"git_diff"},
		"git_commit":    {"may ask", "no hooks"},
	}
	for _, tool := range every(t) {
		for _, want := range phrases[tool.Name] {
			if !strings.Contains(tool.Description, want) {
				t.Errorf("%s does not say %q: %s", tool.Name, want, tool.Description)
			}
		}
	}
}
