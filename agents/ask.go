package agents

import (
	"context"
	"encoding/json"

	"muster/board/approval"
	"muster/tools"
	"muster/tools/rules"
	"muster/tools/workspace"
)

// ask puts a call to a person, unless one has allowed its like for the rest of the run.
func (a *attempt) ask(ctx context.Context, q approval.Question) (approval.Approval, error) {
	if a.job.AskFor <= 0 {
		return approval.Approval{}, approval.ErrNobody
	}
	given, err := a.lease.Board().AlwaysOf(ctx, a.job.Run)
	if err != nil {
		return approval.Approval{}, err
	}
	if rule, ok := Covered(a.tree, given, a.env, q.Tool, q.Args); ok {
		return approval.Approval{Verdict: approval.Approved, By: rule.By, Reason: "always " + rule.Rule, Always: []string{rule.Rule}}, nil
	}
	return a.lease.Ask(ctx, q)
}

// Covered says whether rules that people gave a run allow a call, and names the newest that it takes.
func Covered(tree *workspace.Tree, given []approval.Always, env map[string]string, tool string, args json.RawMessage) (approval.Always, bool) {
	var lists rules.Lists
	for _, g := range given {
		wider := rules.Lists{Allow: append(lists.Allow[:len(lists.Allow):len(lists.Allow)], g.Rule)}
		set, err := rules.Parse(wider)
		if err != nil {
			continue // one that an earlier rule covers
		}
		lists = wider
		if d, err := tools.Judge(tree, []*rules.Set{set}, env, tool, args); err == nil && d.Verdict == rules.Allow {
			return g, true
		}
	}
	return approval.Always{}, false
}
