package agents_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"muster/agents"
	"muster/board"
	"muster/board/boardtest"
	"muster/board/policy"
	"muster/tools/sandbox"
)

// confined serves with a policy of its host's.
func (h *house) confined(mode string, allows policy.Sandbox) {
	h.t.Helper()
	r := &agents.Runner{Cache: h.cache, Policy: sandbox.Policy{Mode: mode}, Allows: allows, Log: zerolog.New(zerolog.NewTestWriter(h.t))}
	boardtest.Serve(h.t, h.b, board.Worker{Slots: 1}, r.Run)
}

func TestAJobThatAsksForMoreThanItsHostAllowsFails(t *testing.T) {
	h := newHouse(t)
	h.confined("auto", policy.Sandbox{Min: "limits", Limits: policy.Limits{Memory: 1 << 30}})
	for want, asks := range map[string]policy.Sandbox{
		"network proxy: this host allows none":     {Network: "proxy", Domains: []string{"example.com"}},
		"limit memory 2GiB: this host allows 1GiB": {Limits: policy.Limits{Memory: 2 << 30}},
	} {
		res := h.run(board.Job{Title: "greedy", Sandbox: asks, Steps: []board.Step{command("echo ran")}})
		if res.State != board.Failed || !strings.Contains(res.Error, want) || strings.Contains(res.Text, "ran") {
			t.Errorf("%+v: %s %q %q, want %s", asks, res.State, res.Error, res.Text, want)
		}
	}
}

// facts are how a result says its commands were confined.
func facts(t *testing.T, res board.Result) board.Sandbox {
	t.Helper()
	var f struct{ Sandbox board.Sandbox }
	if err := json.Unmarshal(res.Facts, &f); err != nil {
		t.Fatalf("facts %s: %v", res.Facts, err)
	}
	return f.Sandbox
}

func TestResultsTellHowCommandsWereConfined(t *testing.T) {
	h := newHouse(t)
	h.confined("auto", policy.Sandbox{Min: "limits"})
	report, err := sandbox.Check(sandbox.Policy{Mode: "auto", Min: "limits"})
	if err != nil {
		t.Fatal(err)
	}
	res := h.run(board.Job{Title: "one", Sandbox: policy.Sandbox{Network: "none"}, Steps: []board.Step{command("echo ran")}})
	has(t, res.Text, "ran")
	want := board.Sandbox{Rung: report.Rung, Kill: report.Kill, Memory: report.Memory, Network: report.Network, Open: report.Open}
	if diff := cmp.Diff(want, facts(t, res)); diff != "" {
		t.Error(diff)
	}
}

// Off is stamped on what ran so, and a job that asks for any rung at all does not run there.
func TestOffIsStampedAndNotForEveryJob(t *testing.T) {
	h := newHouse(t)
	h.confined("off", policy.Sandbox{})
	res := h.run(board.Job{Title: "easy", Steps: []board.Step{command("echo ran")}})
	has(t, res.Text, "ran")
	if got := facts(t, res); got.Rung != policy.Off || got.Network != "open" {
		t.Errorf("facts %+v", got)
	}
	e := h.submit(board.Job{Title: "careful", Sandbox: policy.Sandbox{Min: "limits"}, Steps: []board.Step{command("echo ran")}})[0]
	boardtest.Until(t, "it is handed back", func() bool { return len(h.events(e.ID, "handed_back")) > 0 })
	if all := h.events(e.ID, "tool_started"); len(all) > 0 {
		t.Errorf("it ran: %s", h.log(e.ID))
	}
	now, err := h.b.Get(h.ctx(), e.ID)
	if err != nil || now.Attempt != 0 {
		t.Errorf("attempt %d, %v", now.Attempt, err)
	}
}
