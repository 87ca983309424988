package tools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"muster/board"
	"muster/budget"
)

// sideBySide bounds how many calls that only read run at once.
const sideBySide = 8

// receiptTime is how long the journal has for a receipt after the job itself was cancelled.
const receiptTime = 10 * time.Second

// Invoke is the one way through: look up, check, validate, approve, journal, run with deadline, clamp, journal.
func (s *Set) Invoke(ctx context.Context, r Request) Reply {
	begun := time.Now()
	if r.ID == "" { // two calls must never share a key
		r.ID = uuid.NewString()
	}
	p, err := s.admit(r)
	var denied *Output
	if err == nil && p.why != "" {
		denied, err = s.ask(ctx, r, &p)
		var fault *faultError
		if errors.As(err, &fault) && ctx.Err() == nil {
			reply := s.reply(r, nil, fail(Permanent, "the call was not started, since nobody could be asked about it: %v", fault.err), nil, again{}, begun)
			reply.Fault = fault.err
			return reply
		}
	}
	if (denied != nil || err != nil) && ctx.Err() == nil {
		return s.receipt(ctx, s.reply(r, denied, err, p.notes, s.repeated(r.Tool, r.Args, denied, err), begun))
	}
	t, args, notes := p.tool, p.args, p.notes
	if ctx.Err() != nil {
		return s.reply(r, nil, fail(Transient, "the call was not started: %v", context.Cause(ctx)), nil, again{}, begun)
	}
	if s.cfg.Journal != nil {
		if err := s.cfg.Journal(ctx, EventStarted, Started{r.ID, t.Name, s.secrets.JSON(args)}); err != nil {
			reply := s.reply(r, nil, fail(Permanent, "the call was not started, since it could not be recorded: %v", err), nil, again{}, begun)
			reply.Fault = err
			return reply
		}
	}
	if s.cfg.Lease != nil {
		s.cfg.Lease.Update(func(e *board.Entry) {
			e.LastTool = t.Name
			e.Usage.ToolCalls++
		})
	}
	c := &Call{ID: r.ID, Tree: s.cfg.Tree, Caps: s.cfg.Caps, Room: s.cfg.Caps.OutputChars - noteChars(notes), set: s}
	out, err := s.guarded(ctx, t, c, args)
	out.Facts.Approved = p.approved
	var twice again
	if out.Waited && err == nil {
		s.loop.reset()
	} else {
		twice = s.repeated(t.Name, args, &out, err)
	}
	return s.receipt(ctx, s.reply(r, &out, err, notes, twice, begun))
}

// proposal is a call that may run, or that a person must be asked about.
type proposal struct {
	tool     Tool
	args     json.RawMessage
	notes    []string
	why      string // a person must be asked, and this is what asks
	approved string // who said yes
}

// admit is everything before a call may run that needs nobody else: look up, check, validate, judge.
func (s *Set) admit(r Request) (p proposal, err error) {
	t, ok := s.find(r.Tool)
	if !ok {
		if err := cmp.Or(s.unconfigured(r.Tool), s.undelegated(r.Tool)); err != nil {
			return p, err
		}
		return p, fail(Input, "unknown tool %q; the nearest are: %s", shorten(r.Tool, 80), s.nearest(r.Tool))
	}
	v, err := s.allowed(t)
	if err != nil {
		return p, err
	}
	if p.args, p.notes, err = arguments(t, r.Args); err != nil {
		return proposal{}, err
	}
	p.tool = t
	v, reason, err := s.approve(t, p.args, v)
	if err != nil {
		return proposal{}, err
	}
	if v == asked {
		p.why = reason
	}
	return p, nil
}

func (s *Set) find(name string) (Tool, bool) {
	for _, t := range s.tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// guarded runs the handler under its deadline; a panic becomes an error. Commands and delegation keep their own, longer times.
func (s *Set) guarded(ctx context.Context, t Tool, c *Call, args json.RawMessage) (out Output, err error) {
	if t.Class != Execute && t.Class != Delegate {
		limit := time.Duration(s.cfg.Caps.TimeoutSecs+s.cfg.Caps.WalkSecs) * time.Second
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			out.Facts.Cuts = nil
			err = fail(Permanent, "%s broke: %v; take another way\n%s", t.Name, p, origin(debug.Stack()))
		}
	}()
	return t.run(ctx, c, args)
}

// origin is the place of a panic: the first frame of ours after the runtime's.
func origin(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+3 < len(lines) {
			return strings.TrimSpace(lines[i+2])
		}
	}
	return ""
}

func noteChars(notes []string) int {
	n := 0
	for _, note := range notes {
		n += budget.Chars(note) + 1
	}
	return n
}

// reply is the exit: text and error alike become plain text without secrets of at most OutputChars characters, fenced where it comes from
// outside.
func (s *Set) reply(r Request, out *Output, err error, notes []string, twice again, begun time.Time) Reply {
	reply := Reply{ID: r.ID, Tool: s.secrets.String(r.Tool), OK: err == nil, Stuck: twice.stuck}
	var o Output
	if out != nil {
		o = *out
		reply.Facts = s.hush(o.Facts)
		reply.OK = reply.OK && !o.Bad
	}
	if err != nil {
		e := explain(err)
		reply.Class = e.Class
		said := fmt.Sprintf("ERROR [%s]:", e.Class)
		if o.Untrusted != "" { // an error quotes what it is about
			o.Before = joined(said, o.Before)
			o.Text = joined(e.Text, o.Text)
		} else { // what was done before it failed
			o.Text = joined(said+" "+e.Text, o.Text)
		}
	}
	reply.Text = s.exit(o, notes, &reply.Facts, s.cfg.Caps.OutputChars-budget.Chars(twice.hint))
	if twice.hint != "" {
		reply.Text = strings.TrimSuffix(reply.Text, "\n") + twice.hint
	}
	reply.Facts.Millis = time.Since(begun).Milliseconds()
	return reply
}

// joined puts texts that are not empty on lines of their own.
func joined(texts ...string) string {
	all := texts[:0:0]
	for i, t := range texts {
		if i < len(texts)-1 {
			t = strings.TrimSuffix(t, "\n")
		}
		if t != "" {
			all = append(all, t)
		}
	}
	return strings.Join(all, "\n")
}

// exit makes one text of an output and notes, in at most room characters.
func (s *Set) exit(o Output, notes []string, facts *Facts, room int) string {
	if o.Untrusted == "" {
		return s.clamp(joined(append([]string{o.Before, o.Text, o.After}, notes...)...), facts, room)
	}
	before, _ := defused(s.clean(o.Before))
	body, hidden := defused(s.clean(o.Text))
	after, _ := defused(s.clean(joined(append([]string{o.After}, notes...)...)))
	if hidden > 0 {
		after = joined(hiddenNote(hidden), after)
	}
	if body == "" {
		return s.clamp(joined(before, after), facts, room)
	}
	own := budget.Chars(before) + budget.Chars(after) + 2
	if most := room / 2; own > most { // words of ours are few
		before = s.clamp(before, facts, most/2)
		after = s.clamp(after, facts, most/2)
		own = most + 2
	}
	source := s.secrets.String(o.Untrusted)
	body = s.clamp(body, facts, room-own-fenceChars(source)+budget.Chars(hiddenNote(1<<30))+1)
	return joined(before, fenced(source, body), after)
}

// clean is plain text without secrets. What Plain leaves out may have stood within one.
func (s *Set) clean(text string) string { return s.secrets.String(budget.Plain(text)) }

func (s *Set) clamp(text string, facts *Facts, room int) string {
	text, cut := budget.Clip(s.clean(text), room, 80, "the output", "ask for less at once")
	if cut != nil {
		facts.Cuts = append(facts.Cuts, *cut)
	}
	return text
}

// receipt journals the reply. It is tried even when the job was cancelled: what was done should be on record.
func (s *Set) receipt(ctx context.Context, reply Reply) Reply {
	if s.cfg.Journal == nil {
		return reply
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiptTime)
	defer cancel()
	if err := s.cfg.Journal(ctx, EventFinished, reply); err != nil {
		reply.Fault = err
	}
	return reply
}

// repeats counts how often in a row the same call gave the same result.
type repeats struct {
	mu    sync.Mutex
	last  [sha256.Size]byte
	count int
}

func (p *repeats) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count = 0
}

func (p *repeats) add(tool string, args json.RawMessage, result string) int {
	key := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", tool, args, result))
	p.mu.Lock()
	defer p.mu.Unlock()
	if key != p.last {
		p.last, p.count = key, 0
	}
	p.count++
	return p.count
}

// again is what is said of a call that gave the same result as those before.
type again struct {
	hint  string
	stuck bool
}

// repeated counts the call: at RepeatHint in a row it gets a hint, at RepeatStop it ends the job.
func (s *Set) repeated(tool string, args json.RawMessage, out *Output, err error) again {
	same := ""
	if out != nil {
		same = cmp.Or(out.Same, joined(out.Before, out.Text, out.After))
	}
	if err != nil && (out == nil || out.Same == "") {
		same = err.Error() + "\x00" + same
	}
	n := s.loop.add(tool, args, same)
	if n >= s.cfg.Caps.RepeatStop {
		return again{fmt.Sprintf("\n[the same call gave the same result %d times in a row (repeat_stop); the job ends as stuck]", n), true}
	}
	if n < s.cfg.Caps.RepeatHint {
		return again{}
	}
	return again{fmt.Sprintf("\n[the same call gave the same result %d times in a row; do something else: at %d the job ends]", n, s.cfg.Caps.RepeatStop), false}
}

// errFaulted is why the rest of a turn is not run after the journal refused a call.
var errFaulted = errors.New("an earlier call of this turn could not be recorded")

// InvokeAll runs the calls of one turn: consecutive read-only ones side by side, the rest in order; answers in the order of the calls.
// each, when not nil, gets every reply as it ends, one at a time.
func (s *Set) InvokeAll(ctx context.Context, rs []Request, each func(Reply)) []Reply {
	replies := make([]Reply, len(rs))
	var mu sync.Mutex
	var fault error
	one := func(i int) {
		mu.Lock()
		broken := fault
		mu.Unlock()
		if broken != nil {
			replies[i] = s.reply(rs[i], nil, fail(Permanent, "the call was not started: %v", errFaulted), nil, again{}, time.Now())
			replies[i].Fault = broken
		} else {
			replies[i] = s.Invoke(ctx, rs[i])
		}
		mu.Lock()
		defer mu.Unlock()
		if replies[i].Fault != nil {
			fault = replies[i].Fault
		}
		if each != nil {
			each(replies[i])
		}
	}
	for i := 0; i < len(rs); {
		end := i + 1
		for s.readsOnly(rs[i]) && end < len(rs) && s.readsOnly(rs[end]) {
			end++
		}
		var g errgroup.Group
		g.SetLimit(sideBySide)
		for j := i; j < end; j++ {
			g.Go(func() error { one(j); return nil })
		}
		_ = g.Wait() // one never fails: a failure is a reply
		i = end
	}
	return replies
}

// readsOnly says that a call only reads, so that it may run beside others that only read.
func (s *Set) readsOnly(r Request) bool {
	t, ok := s.find(r.Tool)
	return ok && t.Class == Read
}
