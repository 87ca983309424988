package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/tools/sandbox"
)

// Where commands cannot be confined as they must be, an agent is offered none, and a call says why; the rest works.
func TestCommandsAreNotOfferedWhereNothingConfinesThem(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Policy = sandbox.Policy{Network: "proxy"} }) // what no machine has where nobody serves it
	for _, tool := range s.Tools() {
		if tool.Class == Execute || strings.HasPrefix(tool.Name, "task_") {
			t.Errorf("%s is offered", tool.Name)
		}
	}
	for _, background := range []bool{false, true} {
		r := call(t, s, "run_command", "command", "touch ran", "background", background)
		if r.OK || r.Class != Permission || !strings.Contains(r.Text, "run_command is not offered, since commands cannot be confined here: ") {
			t.Errorf("got %s", r.Text)
		}
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Tree.Dir, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a refused command ran")
	}
	if r := call(t, s, "list_dir"); !r.OK {
		t.Errorf("list_dir: %s", r.Text)
	}
}
