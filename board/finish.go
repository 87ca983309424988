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
	done := make(chan struct{})
	var keeping sync.WaitGroup
	keeping.Go(func() { l.keep(done) })
	release := context.AfterFunc(l.s.stop, func() { l.cancel(ErrStopping) })
	res, err := l.call()
	l.conclude(res, err)
	release()
	close(done)
	keeping.Wait()
	l.end()
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
func (l *Lease) conclude(res Result, err error) {
	cause := context.Cause(l.ctx)
	worked := err == nil && (res.State == Done || res.State == Partial)
	switch {
	case errors.Is(cause, ErrLeaseLost):
		l.log.Warn().Msg("fenced: the handler ended without its lease, its result is dropped")
	case l.dying():
		l.finishKilled(res)
	case errors.Is(cause, ErrStopping) && !worked:
		l.handBack()
	case errors.Is(cause, ErrDeadline) && !worked:
		l.finish(Result{State: Failed, Text: res.Text, Error: "deadline passed", Usage: res.Usage}, nil)
	case err != nil:
		l.retry(err.Error(), res)
	case res.State == Failed && res.Retry:
		l.retry(res.Error, res)
	case !returnable(res.State):
		l.finish(Result{State: Failed, Text: res.Text, Error: fmt.Sprintf("the handler returned the state %q, which is none that a job ends in", res.State)}, nil)
	default:
		l.finish(res, nil)
	}
}

// returnable reports whether a handler may end its job in state s; the board alone says killed and lost.
func returnable(s State) bool { return s.Terminal() && s != Killed && s != Lost }

func killedResult(reason string) Result { return Result{State: Killed, Error: "killed: " + reason} }

func lostResult(e Entry) Result {
	return Result{State: Lost, Error: fmt.Sprintf("%d of %d attempts used up: %s", e.Attempt, e.MaxTries, strings.Join(e.Reasons, "; "))}
}

// finishKilled looks once more for processes, since the handler may have started one while it was told.
func (l *Lease) finishKilled(res Result) {
	<-l.killed
	l.endProcesses()
	l.mu.Lock()
	proof := *l.proof
	l.mu.Unlock()
	killed := killedResult(proof.Reason)
	killed.Text, killed.Usage, killed.Patch, killed.Stat, killed.Files = res.Text, res.Usage, res.Patch, res.Stat, res.Files
	l.finish(killed, &proof)
}

// finish ends the job: result event, children, terminal entry, acknowledgement. Where the result cannot be stored, the attempt failed.
func (l *Lease) finish(res Result, proof *killProof) {
	ctx := l.s.life
	if proof != nil {
		if _, err := l.append(ctx, kindKilled, proof); err != nil {
			l.failed("log the kill", err)
			return
		}
	}
	seq, err := l.append(ctx, kindResult, res.stored())
	if err != nil {
		if l.failed("store the result", err) && res.State != Lost && res.State != Killed {
			l.retry(fmt.Sprintf("store the result: %v", err), Result{})
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
	l.close(l.s.life, res, ev.Seq)
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

// handBack gives the job to another worker at once; no attempt is spent.
func (l *Lease) handBack() {
	ctx := l.s.life
	_, err := l.append(ctx, kindHanded, note{Worker: l.s.id, Attempt: l.Entry().Attempt, Reason: ErrStopping.Error()})
	if err == nil {
		err = l.write(ctx, func(e *Entry) {
			e.State, e.Worker, e.Queued = Queued, "", now()
			e.Attempt--
		})
	}
	if err != nil {
		l.failed("hand the job back", err)
		return
	}
	l.s.nak(l.msg, 0)
}

// retry queues the job again after a failed attempt, or ends it as lost after the last.
func (l *Lease) retry(reason string, res Result) {
	ctx, e := l.s.life, l.Entry()
	if e.Attempt >= e.MaxTries {
		e.addReason(reason)
		lost := lostResult(e)
		lost.Text, lost.Usage = res.Text, res.Usage
		if err := l.write(ctx, func(e *Entry) { e.addReason(reason) }); err != nil {
			l.failed("record a failed attempt", err)
			return
		}
		l.finish(lost, nil)
		return
	}
	delay := l.b.backoff(e.Attempt)
	_, err := l.append(ctx, kindRetry, note{Worker: l.s.id, Attempt: e.Attempt, Reason: reason, Delay: delay})
	if err == nil {
		err = l.write(ctx, func(e *Entry) {
			e.State, e.Worker, e.Queued = Queued, "", now()
			e.addReason(reason)
		})
	}
	if err != nil {
		l.failed("queue the job again", err)
		return
	}
	l.s.nak(l.msg, delay)
}

// backoff is the delay after the how manieth failed attempt: a thirtieth of the lease (1 s by default), doubled each time up to 64 times
// as much, and up to a quarter more, so that jobs that failed together do not come back together.
func (b *Board) backoff(attempt int) time.Duration {
	d := b.ackWait / 30 << min(max(attempt-1, 0), 6)
	return d + rand.N(d/4+1)
}
