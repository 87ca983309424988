package tools

import (
	"context"
	"errors"
	"fmt"

	"muster/board"
	"muster/board/approval"
)

// faultError is why a question could be neither asked nor answered, when that is not the model's to know.
type faultError struct{ err error }

func (e *faultError) Error() string { return e.err.Error() }
func (e *faultError) Unwrap() error { return e.err }

// ask puts a call to a person. denied is the result of one that nobody approves: an instruction, not a failure. What an approved call would do is
// judged once more: while a person thinks, files change.
func (s *Set) ask(ctx context.Context, r Request, p *proposal) (denied *Output, err error) {
	a, err := approval.Approval{}, approval.ErrNobody
	if s.cfg.Ask != nil {
		a, err = s.cfg.Ask(ctx, approval.Question{Call: r.ID, Tool: p.tool.Name, Args: p.args, Why: p.why})
	}
	switch {
	case errors.Is(err, approval.ErrNobody):
		return &Output{Text: fmt.Sprintf("denied: %s needs an approval %s, and nobody is there to give it; do not retry it; "+
			"finish without it, or say in your answer what you would have run and why", p.tool.Name, p.why), Facts: Facts{Denied: true}}, nil
	case errors.Is(err, board.ErrLimit):
		return nil, fail(Input, "%v", err)
	case err != nil:
		return nil, &faultError{err}
	case a.Verdict != approval.Approved:
		return &Output{Text: fmt.Sprintf("denied: %s needs an approval %s, and %s refused it%s; do not retry it; finish without it",
			p.tool.Name, p.why, a.By, because(a.Reason)), Facts: Facts{Denied: true}}, nil
	}
	v, err := s.allowed(p.tool)
	if err == nil {
		_, _, err = s.approve(p.tool, p.args, v)
	}
	p.approved = a.By + because(a.Reason)
	return nil, err
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
