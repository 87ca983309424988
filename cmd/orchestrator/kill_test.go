package main

import (
	"bytes"
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/internal/app"
)

func TestKillIsSureOnlyWithProof(t *testing.T) {
	for _, tt := range []struct {
		name string
		line board.KillLine
		sure bool
		says string
	}{
		{"proved", board.KillLine{Outcome: "killed", Ended: 2}, true, "killed"},
		{"ended before", board.KillLine{Outcome: "was already done"}, true, "was already done"},
		{"no answer", board.KillLine{Outcome: "unknown", Detail: "no answer"}, false, "no answer"},
		{"an earlier holder", board.KillLine{Outcome: "killed", Unproved: []string{"w1", "w2"}}, false, "not seen to end: earlier holders w1, w2"},
		{"an earlier holder of one that had ended", board.KillLine{Outcome: "was already killed", Detail: "by request", Unproved: []string{"w1"}}, false, "by request; not seen to end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := []board.KillLine{{Outcome: "killed"}, tt.line}
			var b bytes.Buffer
			if got := app.Report(t.Context(), &b, "p", unsure(lines)); (got == 0) != tt.sure || !tt.sure && !strings.Contains(b.String(), "of 1 job ") {
				t.Errorf("code %d: %s", got, b.String())
			}
			b.Reset()
			if err := printKills(app.Out{W: &b}, lines); err != nil || !strings.Contains(b.String(), tt.says) {
				t.Errorf("prints %q, %v", b.String(), err)
			}
		})
	}
}
