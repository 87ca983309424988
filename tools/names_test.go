package tools

import (
	"errors"
	"strings"
	"testing"
)

func TestNarrow(t *testing.T) {
	for _, c := range [][3]string{
		{"", "", ""}, {"goal", "", "goal"}, {"", "plan", "plan"},
		{"goal", "plan", "plan"}, {"plan", "goal", "plan"}, {"goal", "goal", "goal"},
		{"default", "goal", "default"}, {"goal", "accept-edits", "accept-edits"},
		{"default", "debug", "plan"}, {"debug", "goal", "debug"}, {"default", "default", "default"},
	} {
		if got := Narrow(c[0], c[1]); got != c[2] {
			t.Errorf("Narrow(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestCheckSaysWhatInvokeWould(t *testing.T) {
	for _, c := range []struct{ tool, args, want string }{
		{"read_file", `{"path": "a"}`, ""},
		{"read_file", `{}`, "missing string field `path`"},
		{"raed_file", `{}`, "the nearest are: read_file"},
		{"agent_kill", `{"id": "x"}`, ""},
		{"read_file", `[`, "not valid JSON"},
	} {
		err := Check(c.tool, []byte(c.args))
		var te *Error
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %s: %v", c.tool, c.args, err)
		case c.want != "" && (!errors.As(err, &te) || te.Class != Input || !strings.Contains(te.Text, c.want)):
			t.Errorf("%s %s: got %v, want %s", c.tool, c.args, err, c.want)
		}
	}
	if len(Builtins()) < 16 {
		t.Errorf("%d tools", len(Builtins()))
	}
}
