package tools

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDelegationHoldsItsPromises runs the delegation tools on children with awkward titles and results: cap, plain text, and notices whose numbers are those
// of the facts. (The other tools have the same in TestEveryToolHoldsItsPromises.)
func TestDelegationHoldsItsPromises(t *testing.T) {
	s := agentSet(t)
	var ids []string
	for i := range 12 {
		var body strings.Builder
		for k := range 40 * i {
			body.WriteString(awkward[(k*7+i)%len(awkward)])
		}
		r := next(t, s, "subagent", "task", "say:"+strings.ToValidUTF8(body.String(), "?"), "background", true,
			"title", strings.ToValidUTF8(strings.Join(awkward[i:], ""), "?"))
		if !r.OK {
			t.Fatal(r.Text)
		}
		ids = append(ids, r.Facts.JobID)
	}
	if r := next(t, s, "agent_list", "wait_secs", 60, "until", "all"); !strings.Contains(r.Text, "12 done") {
		t.Fatal(r.Text)
	}
	rapid.Check(t, func(rt *rapid.T) {
		s.cfg.Caps.OutputChars = rapid.IntRange(1000, 4000).Draw(rt, "output_chars")
		name := rapid.SampledFrom([]string{"agent_list", "agent_collect", "agent_kill"}).Draw(rt, "tool")
		pairs := []any{"offset", rapid.SampledFrom([]int64{-1, 0, 1, 5, 12, 13, 1000, 1 << 60}).Draw(rt, "offset")}
		if name == "agent_list" {
			pairs = append(pairs, "limit", rapid.SampledFrom([]int64{1, 3, 12, 20, 1000}).Draw(rt, "limit"))
		} else {
			pairs = append(pairs, "id", rapid.SampledFrom(ids).Draw(rt, "id"))
		}
		if name == "agent_kill" {
			pairs = pairs[2:]
		}
		args := pairsJSON(rt, pairs)
		r := s.Invoke(t.Context(), Request{Tool: name, Args: args})
		checkText(rt, r, s.cfg.Caps.OutputChars)
		checkNotices(rt, r, args)
		if said := strings.Contains(r.Text, "[… showing"); r.OK && said != (len(r.Facts.Cuts) > 0) {
			rt.Errorf("%s %s: notice %v, cuts %+v\n%s", name, args, said, r.Facts.Cuts, r.Text)
		}
		for _, c := range r.Facts.Cuts {
			if c.What == "the output" {
				rt.Errorf("%s %s: the exit clamp had to cut\n%s", name, args, r.Text)
			}
		}
	})
}
