package board

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// run calls the handler and concludes the job by what it returned and by why it was cancelled.
func (l *Lease) run() {
	kept, release := context.WithCancel(l.s.life)
	var keeping sync.WaitGroup
	keeping.Go(func() { l.keep(kept) })
	told := context.AfterFunc(l.s.stop, func() { l.cancel(ErrStopping) })
	res, err := l.call()
	ctx, written := l.s.concluding()
	l.conclude(ctx, res, err)
	written()
	told()
	release()
	keeping.Wait()
	l.end()
}

// stopTime is how long a worker that stops goes on trying to write how its jobs ended.
const stopTime = 3 * time.Second

// concluding makes the context of the writes that end a job.
func (s *server) concluding() (_ context.Context, written func()) {
	ctx, cancel := context.WithCancel(s.life)
	release := context.AfterFunc(s.stop, func() {
		pause(ctx, stopTime)
		cancel()
	})
	return ctx, func() { release(); cancel() }
}

// end lets go of what the lease holds in this process.
func (l *Lease) end() {
	l.cancel(nil)
	l.releaseView()
}

// call runs the handler; a panic is an error like another.
func (l *Lease) call() (res Result, err error) {
	ctx := l.ctx
	if d := l.Entry().Deadline; !d.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, d, ErrDeadline)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			l.log.Error().Str("stack", string(debug.Stack())).Msgf("handler panicked: %v", p)
			res, err = Result{}, fmt.Errorf("handler panicked: %v", p)
		}
		if errors.Is(context.Cause(ctx), ErrDeadline) {
			l.cancel(ErrDeadline)
		}
	}()
	return l.s.h(ctx, l)
}

// conclude chooses the outcome.
func (l *Lease) conclude(ctx context.Context, res Result, err error) {
	cause := context.Cause(l.ctx)
	worked := err == nil && (res.State == Done || res.State == Partial)
	switch {
	case errors.Is(cause, ErrLeaseLost):
		l.log.Warn().Msg("fenced: the handler ended without its lease, its result is dropped")
	case l.dying():
		l.finishKilled(ctx, res)
	case errors.Is(err, ErrUnfit):
		l.log.Error().Err(err).Msg("this worker can do no job now")
		l.s.rest.unfit()
		l.handBack(ctx, err.Error())
	case errors.Is(cause, ErrStopping) && !worked:
		l.handBack(ctx, ErrStopping.Error())
	case errors.Is(cause, ErrDeadline) && !worked:
		l.finish(ctx, Result{State: Failed, Text: res.Text, Error: "deadline passed", Usage: res.Usage}, nil)
	case err != nil:
		l.retry(ctx, err.Error(), res)
	case res.State == Failed && res.Retry:
		l.retry(ctx, res.Error, res)
	case !returnable(res.State):
		l.finish(ctx, Result{State: Failed, Text: res.Text, Error: fmt.Sprintf("the handler returned the state %q, which is none that a job ends in", res.State)}, nil)
	default:
		l.s.rest.fit()
		l.finish(ctx, res, nil)
	}
}

// returnable reports whether a handler may end its job in state s; the board alone says killed and lost.
func returnable(s State) bool { return s.Terminal() && s != Killed && s != Lost }

func killedResult(reason string) Result {
	if !strings.HasPrefix(reason, "killed") {
		reason = "killed: " + reason
	}
	return Result{State: Killed, Error: reason}
}

func lostResult(e Entry) Result {
	return Result{State: Lost, Error: fmt.Sprintf("%d of %d attempts used up: %s", e.Attempt, e.MaxTries, strings.Join(e.Reasons, "; "))}
}

// finishKilled looks once more for processes, since the handler may have started one while it was told.
func (l *Lease) finishKilled(ctx context.Context, res Result) {
	<-l.killed
	l.endProcesses()
	l.mu.Lock()
	proof := *l.proof
	l.mu.Unlock()
	killed := killedResult(proof.Reason)
	killed.Text, killed.Usage, killed.Patch, killed.Stat, killed.Files = res.Text, res.Usage, res.Patch, res.Stat, res.Files
	l.finish(ctx, killed, &proof)
}

// storeTime is how long a holder tries to store a result on a server that does not take it; the lease goes on meanwhile.
const storeTime = 10 * time.Minute

// storeResult appends the result, again and again while the lease holds: the work is done, and must not be done again for a full store
// or a server that is away.
func (l *Lease) storeResult(ctx context.Context, res Result) (uint64, error) {
	data, wait := res.stored(), l.b.retry
	for end := time.Now().Add(storeTime); ; wait = min(2*wait, 10*time.Second) {
		seq, err := l.append(ctx, kindResult, data)
		if err == nil || errors.Is(err, ErrLeaseLost) || ctx.Err() != nil || time.Now().After(end) {
			return seq, err
		}
		l.log.Warn().Err(err).Msg("the result is not stored yet")
		waiting, stop := context.WithTimeout(ctx, wait)
		select {
		case <-waiting.Done():
		case <-l.gone:
		}
		stop()
		if l.lost() {
			return 0, fmt.Errorf("store the result of job %s: %w", l.job.ID, ErrLeaseLost)
		}
	}
}

// finish ends the job: result event, children, terminal entry, acknowledgement.
func (l *Lease) finish(ctx context.Context, res Result, proof *killProof) {
	res = res.without(l.secrets)
	if proof != nil {
		if _, err := l.append(ctx, kindKilled, proof); err != nil {
			l.failed("log the kill", err)
			return
		}
	}
	seq, err := l.storeResult(ctx, res)
	if err != nil {
		if l.failed("store the result", err) && ctx.Err() == nil {
			l.handBack(ctx, fmt.Sprintf("its result could not be stored: %v", err))
		}
		return
	}
	l.close(ctx, res, seq)
}

// close writes the terminal entry that names the result, after the children that would outlive their parent.
func (l *Lease) close(ctx context.Context, res Result, seq uint64) {
	if res.State != Killed { // a kill goes to the descendants by itself
		if err := l.endChildren(ctx, res.State); err != nil {
			l.log.Warn().Err(err).Msg("end the children") // the steward does
		}
	}
	if err := l.write(ctx, func(e *Entry) { e.end(res, seq) }); err != nil {
		l.failed("end the job", err)
		return
	}
	l.s.ack(l.msg)
}

// adopt ends the job with the result that an earlier holder stored before it died.
func (l *Lease) adopt(ev Event) {
	defer l.end()
	res, err := decodeResult(ev.Data)
	if err != nil {
		l.failed("read the result of the earlier holder", err)
		return
	}
	l.ended = true
	ctx, written := l.s.concluding()
	defer written()
	l.close(ctx, res, ev.Seq)
}

// failed logs why a write of the lease's end did not work. True: the lease is not lost, something else is wrong.
func (l *Lease) failed(what string, err error) bool {
	if errors.Is(err, ErrLeaseLost) {
		return false // it is logged
	}
	l.log.Error().Err(err).Msg(what)
	return l.s.life.Err() == nil
}

// endChildren kills the children that live and were not detached.
func (l *Lease) endChildren(ctx context.Context, state State) error {
	l.viewMu.Lock()
	none := l.view == nil && l.epoch == 1
	l.viewMu.Unlock()
	if none {
		return nil
	}
	all, err := l.b.List(ctx, Filter{Run: l.job.Run, Parent: l.job.ID})
	if err != nil {
		return err
	}
	var live []Entry
	for _, c := range all {
		if !c.State.Terminal() && !c.Detach {
			live = append(live, c)
		}
	}
	if len(live) == 0 {
		return nil
	}
	_, err = l.b.killTrees(ctx, live, fmt.Sprintf("its parent %s ended %s", l.job.ID, state))
	return err
}

// handBack gives the job to another worker at once; no attempt is spent. It goes by a new pointer, not by putting back the one that was
// delivered: the queue forgets what was put back when its server ends, and would deliver it only after the lease.
func (l *Lease) handBack(ctx context.Context, reason string) {
	_, err := l.append(ctx, kindHanded, note{Worker: l.s.id, Attempt: l.Entry().Attempt, Reason: reason})
	if err == nil {
		err = l.write(ctx, func(e *Entry) {
			e.queue()
			e.Worker = ""
			e.Attempt--
		})
	}
	if err == nil {
		err = l.b.point(ctx, l.Entry())
	}
	if err != nil {
		l.failed("hand the job back", err) // the steward points to it where the entry was written
		return
	}
	l.s.ack(l.msg)
}

// retry queues the job again after a failed attempt, or ends it as lost after the last.
func (l *Lease) retry(ctx context.Context, reason string, res Result) {
	reason = l.secrets.String(reason)
	e := l.Entry()
	if e.Attempt >= e.MaxTries {
		e.addReason(reason)
		lost := lostResult(e)
		lost.Text, lost.Usage = res.Text, res.Usage
		if err := l.write(ctx, func(e *Entry) { e.addReason(reason) }); err != nil {
			l.failed("record a failed attempt", err)
			return
		}
		l.finish(ctx, lost, nil)
		return
	}
	delay := l.b.backoff(e.Attempt)
	_, err := l.append(ctx, kindRetry, note{Worker: l.s.id, Attempt: e.Attempt, Reason: reason, Delay: delay})
	if err == nil {
		err = l.write(ctx, func(e *Entry) {
			e.queue()
			e.Worker, e.Delay = "", delay
			e.addReason(reason)
		})
	}
	if err != nil {
		l.failed("queue the job again", err)
		return
	}
	l.s.ack(l.msg)
	l.s.pointLater(l.Entry())
}

// backoff is the delay after the how manieth failed attempt: Config.Retry, four times as much each time up to 64 times, and up to a
// quarter more, so that jobs that failed together do not come back together.
func (b *Board) backoff(attempt int) time.Duration {
	d := b.retry << (2 * min(max(attempt-1, 0), 3))
	return d + rand.N(d/4+1)
}
