package board

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"muster/board/secrets"
	"muster/budget"
)

const (
	updateDelay = 250 * time.Millisecond // of Lease.Update until it is written
	toolChars   = 100                    // of Entry.LastTool
	lastChance  = time.Second            // for the write of a holder that was asleep: the server decides whether it still holds
)

// Lease is a holder's claim on one job: every write through it carries its epoch and is refused once another holds the job.
type Lease struct {
	b       *Board
	s       *server
	job     Job
	epoch   uint64
	msg     *nats.Msg // the pointer, to be acknowledged
	secrets *secrets.Redactor
	log     zerolog.Logger
	ctx     context.Context // the handler's
	cancel  context.CancelCauseFunc

	mu        sync.Mutex
	entry     Entry     // as stored, with newer progress laid over
	confirmed time.Time // start of the newest write that the server took
	hooks     []func() (ended, survivors int)
	proof     *killProof    // set once the kill flag was seen
	killed    chan struct{} // closed when the processes were ended and the handler told
	waits     int           // branches of the handler that are in WaitChildren
	slot      bool          // whether it holds one

	writeMu  sync.Mutex // one write of the entry at a time
	logMu    sync.Mutex // one append at a time
	seq      uint64     // last of the job's log that this holder knows
	appends  int
	ended    bool // the result is in the log
	submitMu sync.Mutex
	askMu    sync.Mutex // one question is numbered at a time
	viewMu   sync.Mutex
	view     *view

	lose sync.Once
	gone chan struct{} // closed when the lease is lost

	wake   chan struct{} // an Update waits to be written
	nudged chan struct{} // somebody says that the entry was changed
}

func (l *Lease) Job() Job      { return l.job }
func (l *Lease) Board() *Board { return l.b }

// Entry returns a copy of the entry as this holder last wrote or read it.
func (l *Lease) Entry() Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entry
}

// Append adds an event to the job's log; data is encoded as JSON. ErrLeaseLost when fenced. It does not stop with ctx: what happened is
// recorded also when the handler was cancelled.
func (l *Lease) Append(ctx context.Context, kind string, data any) error {
	if !tokenForm().MatchString(kind) {
		return fmt.Errorf("append to the log of job %s: kind %q: use up to 64 letters, digits, _ or -", l.job.ID, kind)
	}
	_, err := l.append(context.WithoutCancel(ctx), kind, data)
	return err
}

// append returns the sequence of the event.
func (l *Lease) append(ctx context.Context, kind string, data any) (uint64, error) {
	e := l.Entry()
	msg, err := l.b.encodeEvent(ctx, e, kind, l.epoch, data, l.secrets)
	if err != nil {
		return 0, err
	}
	subject, all := l.b.names.event(e.Run, e.ID, kind), l.b.names.logOf(e.Run, e.ID)
	l.logMu.Lock()
	defer l.logMu.Unlock()
	if l.ended {
		return 0, fmt.Errorf("append %s to the log of job %s: it has its result: %w", kind, e.ID, ErrLeaseLost)
	}
	l.appends++
	id := fmt.Sprintf("%s.%d.%d", e.ID, l.epoch, l.appends)
	for stored := false; !stored; {
		start := time.Now()
		ack, err := l.b.publish(ctx, subject, msg, jetstream.WithMsgID(id), jetstream.WithExpectLastSequenceForSubject(l.seq, all))
		switch {
		case err == nil:
			l.seq, stored = ack.Sequence, true
			l.confirm(start)
		case !refused(err):
			return 0, fmt.Errorf("append %s to the log of job %s: %w", kind, e.ID, err)
		default:
			if stored, err = l.catchUp(ctx, id); err != nil {
				return 0, err
			}
		}
	}
	l.ended = kind == kindResult
	return l.seq, nil
}

// catchUp finds out why an append was refused: it did arrive the first time (true), somebody added a note, or the lease is lost. The
// log is read before the entry: a newer holder claims before it appends, so an entry that is still ours makes the sequence safe.
func (l *Lease) catchUp(ctx context.Context, id string) (bool, error) {
	last, err := l.b.lastEvent(ctx, l.Entry())
	if err != nil {
		return false, err
	}
	cur, err := l.b.entryLeader(ctx, l.Entry().key())
	if err != nil {
		return false, err
	}
	if !l.mine(cur) {
		return false, l.fence("log", cur)
	}
	l.seq = last.seq
	return last.msgID == id, nil
}

func (l *Lease) mine(e Entry) bool {
	return e.Epoch == l.epoch && e.Worker == l.s.id && e.State.held()
}

// fence notes that the server refused a write since the job is another's.
func (l *Lease) fence(op string, cur Entry) error {
	l.log.Warn().Str("op", op).Str("state", string(cur.State)).Uint64("newer_epoch", cur.Epoch).Str("holder", cur.Worker).
		Msg("fenced: write refused, the job is another's now")
	l.cancel(ErrLeaseLost)
	l.lose.Do(func() { close(l.gone) })
	return fmt.Errorf("job %s at epoch %d: %w", l.job.ID, l.epoch, ErrLeaseLost)
}

func (l *Lease) confirm(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.After(l.confirmed) {
		l.confirmed = at
	}
}

// Update changes the entry (fn may touch Usage, Todo…, LastTool only) by compare-and-set. Cheap to call often: it is coalesced, and
// written at the next beat or after 250 ms.
func (l *Lease) Update(fn func(*Entry)) {
	l.mu.Lock()
	e := l.entry
	fn(&e)
	l.entry.progress(e)
	l.mu.Unlock()
	signal(l.wake)
}

// progress takes over what only the holder writes.
func (e *Entry) progress(from Entry) {
	e.Usage, e.TodoDone, e.TodoTotal, e.LastTool = from.Usage, from.TodoDone, from.TodoTotal, budget.Preview(from.LastTool, toolChars)
}

// signal wakes the one who waits on c; one signal is enough for many.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// write stores the entry with progress and fn's change at the holder's own revision. A kill flag that came in between is merged and
// obeyed; another holder's claim ends the lease. After the job was ended or queued again through this lease nothing more is written.
func (l *Lease) write(ctx context.Context, fn func(*Entry)) error {
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	for {
		old := l.Entry()
		if !old.State.held() {
			return fmt.Errorf("job %s was ended or given back by this holder: %w", old.ID, ErrLeaseLost)
		}
		next := old
		next.Heard = now()
		fn(&next)
		start := time.Now()
		stored, err := l.b.swap(ctx, old, next.without(l.secrets))
		if err == nil {
			l.keepEntry(stored)
			l.confirm(start)
			return nil
		}
		if !errors.Is(err, errConflict) {
			return err
		}
		cur, err := l.b.entryLeader(ctx, old.key())
		if err != nil {
			return err
		}
		if !l.mine(cur) {
			return l.fence("board", cur)
		}
		l.keepEntry(cur)
		if cur.Killing != "" {
			l.kill(cur.Killing)
		}
	}
}

// keepEntry makes e the entry, with the progress that was made since it was sent.
func (l *Lease) keepEntry(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.progress(l.entry)
	l.entry = e
}

func unchanged(*Entry) {}

// keep holds the job until ctx ends: it beats, and writes what Update left.
func (l *Lease) keep(ctx context.Context) {
	beat := time.NewTicker(l.b.ackWait / 3)
	defer beat.Stop()
	var flush <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			if flush == nil {
				flush = time.After(updateDelay)
			}
			continue
		case <-flush:
		case <-l.nudged:
		case <-beat.C:
		}
		flush = nil
		if again := l.beat(ctx); again > 0 {
			flush = time.After(again)
		}
	}
}

// beat writes the entry, which proves that the job is still ours, and then asks the queue for another lease. A write that did not work
// is tried again after the returned time, and when none has worked for as long as the lease lasts the job is given up.
func (l *Lease) beat(ctx context.Context) (again time.Duration) {
	l.mu.Lock()
	end := l.confirmed.Add(l.b.ackWait)
	l.mu.Unlock()
	try := end
	if soon := time.Now().Add(lastChance); soon.After(end) {
		try = soon
	}
	wctx, cancel := context.WithDeadline(ctx, try)
	defer cancel()
	err := l.write(wctx, unchanged)
	switch left := time.Until(end); {
	case errors.Is(err, ErrLeaseLost), l.lost():
		return 0 // the queue may have the job back
	case err == nil:
		if err := l.b.nc.Publish(l.msg.Reply, []byte("+WPI")); err != nil {
			l.log.Debug().Err(err).Msg("in progress")
		}
		return 0
	case ctx.Err() != nil:
		return 0 // the job has ended meanwhile
	case left > 0:
		l.log.Warn().Err(err).Msg("beat")
		return min(updateDelay, left)
	default:
		l.log.Warn().Err(err).Str("op", "beat").Msg("lease lost: no confirmed write for as long as it lasts")
		l.cancel(ErrLeaseLost)
		l.lose.Do(func() { close(l.gone) })
		return 0
	}
}

// lost reports whether the lease is, also when the handler was cancelled for another cause before.
func (l *Lease) lost() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// OnKill registers what ends the job's processes when it is killed and reports how many it ended and how many survived. It is called
// when the kill is noticed, before the handler's ctx ends, and once more after the handler has returned.
func (l *Lease) OnKill(fn func() (ended, survivors int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hooks = append(l.hooks, fn)
}

// hookTime is how long the handler is not told of its kill while the hooks end its processes.
const hookTime = 3 * time.Second

// kill ends the handler, once: its processes first, so that they can be counted.
func (l *Lease) kill(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proof != nil {
		return
	}
	l.proof = &killProof{Reason: reason, Worker: l.s.id}
	go func() {
		defer close(l.killed)
		slow := time.AfterFunc(hookTime, func() { l.cancel(ErrKilled) })
		defer slow.Stop()
		l.endProcesses()
		l.cancel(ErrKilled)
	}()
}

// endProcesses runs the hooks and adds up what they did.
func (l *Lease) endProcesses() {
	l.mu.Lock()
	hooks := l.hooks
	l.mu.Unlock()
	ended, survivors := 0, 0
	for _, fn := range hooks {
		e, s := fn()
		ended, survivors = ended+e, survivors+s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proof.Ended += ended
	l.proof.Survivors = survivors
}

// dying reports whether the kill flag was seen.
func (l *Lease) dying() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proof != nil
}

// pause gives the slot back for the first branch of the handler that waits.
func (l *Lease) pause(ctx context.Context) error {
	l.mu.Lock()
	l.waits++
	first := l.waits == 1
	l.mu.Unlock()
	if !first {
		return nil
	}
	if err := l.turn(ctx, Waiting); err != nil {
		l.mu.Lock()
		l.waits--
		l.mu.Unlock()
		return err
	}
	l.giveSlot()
	return nil
}

// resume takes a slot again for the last branch that waited.
func (l *Lease) resume(ctx context.Context) error {
	l.mu.Lock()
	l.waits--
	last := l.waits == 0
	l.mu.Unlock()
	if !last {
		return nil
	}
	if err := l.s.slots.resume(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.slot = true
	l.mu.Unlock()
	return l.turn(ctx, Running)
}

// unwait ends a wait whose context ended: the handler goes on, unless it was told to end.
func (l *Lease) unwait() error {
	if l.ctx.Err() == nil {
		return l.resume(l.ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits--
	return nil
}

func (l *Lease) giveSlot() {
	l.mu.Lock()
	had := l.slot
	l.slot = false
	l.mu.Unlock()
	if had {
		l.s.slots.give()
	}
}

func (l *Lease) turn(ctx context.Context, to State) error {
	from := l.Entry().State
	if err := l.write(ctx, func(e *Entry) { e.State = to }); err != nil {
		return err
	}
	_, err := l.append(ctx, kindState, note{From: from, To: to})
	return err
}
