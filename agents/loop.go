package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"muster/agents/llm"
	"muster/board"
	"muster/tools"
)

const (
	uselessTurns  = 3 // turns of no use in a row before the job fails
	modelAttempts = 4 // of one request
	listedKids    = 20
)

// loop is a model at work on one job.
type loop struct {
	lease      *board.Lease
	cause      func(context.Context) error // why the job must stop, or nil
	checkpoint func(context.Context) error // stores the files after a turn that may have changed them
	model      llm.Model
	set        *tools.Set
	known      catalog
	agent      llm.Agent
	system     string
	maxTurns   int
	talk       *conversation
}

// run asks the model and does what it asks for until it answers. What to do next follows from the conversation alone, so that
// a holder who takes over never repeats a turn. Its error is the cause of ctx, a lost lease, or a board that cannot be written;
// any other end is a result.
func (l *loop) run(ctx context.Context) (board.Result, error) {
	for {
		if err := l.settle(ctx); err != nil {
			return board.Result{}, err
		}
		if l.talk.stuck != "" {
			return l.failed("stuck: the same call of %s gave the same result too often in a row", l.talk.stuck), nil
		}
		if l.talk.answered() {
			if res, err := l.judge(ctx); res != nil || err != nil {
				return deref(res), err
			}
		}
		if l.talk.wasted >= uselessTurns {
			return l.failed("the model gave nothing usable %d times in a row; the last time %s", l.talk.wasted, uselessness(l.talk.last.Problem)), nil
		}
		if l.talk.turns >= l.maxTurns && !l.talk.said["limit"] {
			err := l.tell(ctx, "limit", "This is your last turn: "+l.limit()+". Tools are gone. Hand back what you have: what is done, what you found, what is left.")
			if err != nil {
				return board.Result{}, err
			}
		}
		if res, err := l.ask(ctx); res != nil || err != nil {
			return deref(res), err
		}
	}
}

func deref(r *board.Result) board.Result {
	if r == nil {
		return board.Result{}
	}
	return *r
}

func (l *loop) limit() string {
	return fmt.Sprintf("the limit of %d model turns is reached", l.maxTurns)
}

// judge looks at a turn without calls: it ends the job, or the model is told why not.
func (l *loop) judge(ctx context.Context) (*board.Result, error) {
	last := l.talk.last
	switch {
	case last.Stop == llm.StopRefusal:
		res := l.failed("the model refused: %s", first(last.Text, "it gave no reason"))
		return &res, nil
	case l.talk.said["limit"]:
		return &board.Result{State: board.Partial, Text: l.talk.lastText, Error: l.limit()}, nil
	case l.talk.wasted >= uselessTurns:
		return nil, nil
	case last.Problem == "length":
		return nil, l.tell(ctx, last.Problem, "Your answer was cut at the output limit, so none of its calls ran and none of its text counts. Take a smaller step: one call, with less content (write a long file in parts), or a shorter answer.")
	case last.Problem == "empty":
		return nil, l.tell(ctx, last.Problem, "Your answer was empty. Call a tool, or answer with the result.")
	}
	if again, err := l.children(ctx); again || err != nil {
		return nil, err
	}
	return &board.Result{State: board.Done, Text: last.Text}, nil
}

// uselessness tells the causes of a useless turn apart.
func uselessness(problem string) string {
	switch problem {
	case "length":
		return "its answer was cut at its output limit"
	case "empty":
		return "its answer was empty"
	default:
		return "the arguments of its calls were not valid JSON"
	}
}

func (l *loop) failed(format string, a ...any) board.Result {
	return board.Result{State: board.Failed, Text: l.talk.lastText, Error: fmt.Sprintf(format, a...)}
}

func (l *loop) defs() []llm.ToolDef {
	var defs []llm.ToolDef
	for _, t := range l.set.Tools() {
		defs = append(defs, llm.ToolDef{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return defs
}

// ask gets one turn from the model and writes it to the log. It returns the end of the job where the model cannot be asked.
func (l *loop) ask(ctx context.Context) (*board.Result, error) {
	last := l.talk.said["limit"]
	var defs []llm.ToolDef
	if !last {
		defs = l.defs()
	}
	resp, err := l.generate(ctx, defs)
	var le *llm.Error
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &le) && last:
		return &board.Result{State: board.Partial, Text: l.talk.lastText, Error: l.limit() + "; then the model could not be asked: " + le.Text}, nil
	case errors.As(err, &le):
		res := l.failed("the model could not be asked (%s): %s", le.Kind, le.Text)
		res.Retry = le.Kind != llm.Permanent
		return &res, nil
	case err != nil:
		return nil, err
	}
	t := Turn{Turn: l.talk.turns + 1, Text: resp.Text, Calls: resp.Calls, Stop: resp.Stop, Usage: resp.Usage}
	switch {
	case last || resp.Stop == llm.StopRefusal:
		t.Calls, t.Cut = nil, resp.Calls
	case resp.Stop == llm.StopLength:
		t.Problem, t.Calls, t.Cut = "length", nil, resp.Calls
	case len(resp.Calls) == 0 && strings.TrimSpace(resp.Text) == "":
		t.Problem = "empty"
	case allBroken(resp.Calls):
		t.Problem = "badjson"
	}
	l.talk.unique(t.Calls)
	if err := l.lease.Append(ctx, EventTurn, t); err != nil {
		return nil, err
	}
	l.talk.turn(t)
	l.lease.Update(func(e *board.Entry) {
		e.Usage.InputTokens += t.Usage.Input
		e.Usage.OutputTokens += t.Usage.Output
		e.Usage.Turns++
	})
	return nil, nil
}

func allBroken(calls []llm.ToolCall) bool {
	for _, c := range calls {
		if c.Broken == "" {
			return false
		}
	}
	return len(calls) > 0
}

// generate asks until the model answers or repeating is of no use. Each failure goes to the log.
func (l *loop) generate(ctx context.Context, defs []llm.ToolDef) (llm.Response, error) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval = 250 * time.Millisecond
	for attempt := 1; ; attempt++ {
		resp, err := l.model.Generate(ctx, llm.Request{System: l.system, Messages: l.talk.messages, Tools: defs, Agent: l.agent, Attempt: attempt})
		if err == nil || ctx.Err() != nil {
			return resp, err
		}
		var le *llm.Error
		if !errors.As(err, &le) {
			le = &llm.Error{Kind: llm.Permanent, Text: err.Error()}
		}
		if err := l.lease.Append(ctx, EventModelError, ModelError{l.talk.turns + 1, attempt, le.Kind, le.Text}); err != nil {
			return resp, err
		}
		if le.Kind == llm.Permanent || attempt == modelAttempts {
			return resp, le
		}
		if err := pause(ctx, wait.NextBackOff()); err != nil {
			return resp, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// settle answers the open calls of the last turn. After a hand-over some have their receipt already; one that was started
// and has none runs again only where that changes nothing.
func (l *loop) settle(ctx context.Context) error {
	var todo []tools.Request
	touched := false
	for _, c := range l.talk.open {
		if _, ok := l.talk.replies[c.ID]; ok || (l.talk.started[c.ID] && !l.known.repeatable(c.Tool)) {
			continue
		}
		r := tools.Request{ID: c.ID, Tool: c.Tool, Args: c.Args}
		if c.Broken != "" {
			r.Args = []byte(c.Broken) // the set says what is wrong with them
		}
		todo = append(todo, r)
		touched = touched || l.known.touches(c.Tool)
	}
	for _, reply := range l.set.InvokeAll(ctx, todo, nil) {
		if reply.Fault != nil {
			return reply.Fault
		}
		l.talk.answer(reply)
	}
	if err := l.cause(ctx); err != nil {
		return err
	}
	if touched {
		l.talk.touching = true
		if err := l.checkpoint(ctx); err != nil {
			return err
		}
	}
	l.talk.close()
	return nil
}

// tell says something to the model, in the log first.
func (l *loop) tell(ctx context.Context, why, text string) error {
	s := Said{Why: why, Text: text}
	if err := l.lease.Append(ctx, EventMessage, s); err != nil {
		return err
	}
	l.talk.say(s)
	return nil
}

// children reminds an agent that would end of the children that still live, once.
func (l *loop) children(ctx context.Context) (again bool, err error) {
	if l.talk.said["children"] {
		return false, nil
	}
	all, err := l.lease.Children(ctx)
	if err != nil {
		return false, err
	}
	var rows []string
	for _, c := range all {
		if !c.State.Terminal() && !c.Detach {
			rows = append(rows, fmt.Sprintf("- %s (%s): %s", c.ID, c.State, c.Title))
		}
	}
	if len(rows) == 0 {
		return false, nil
	}
	n := len(rows)
	if n > listedKids {
		rows = append(rows[:listedKids], fmt.Sprintf("- and %d more", n-listedKids))
	}
	return true, l.tell(ctx, "children", fmt.Sprintf(
		"%d of your children still live and are killed when you end:\n%s\nWait for them (agent_list with wait_secs), collect them or kill them; or answer again to end now.", n, strings.Join(rows, "\n")))
}
