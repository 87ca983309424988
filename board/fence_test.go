package board_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"muster/board"
	"muster/board/boardtest"
)

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// oneResult fails unless the log has exactly one result, and returns its text.
func oneResult(t *testing.T, b *board.Board, id string) string {
	t.Helper()
	n := 0
	for _, k := range kinds(t, b, id) {
		if strings.HasPrefix(k, "result/") {
			n++
		}
	}
	check(t, "results in the log", n, 1)
	res, err := b.Collect(boardtest.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	return res.Text
}

// A worker process is stopped past its lease, another does the job, and then it is woken: the server refuses both its kinds of write.
func TestStoppedProcessIsFenced(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: ackWait})
	p := startWorker(t, s)
	e := submit(t, b, board.Job{Title: "fenced", Prompt: "from the second"})[0]
	started(t, b, e.ID)
	p.signal(t, syscall.SIGSTOP)
	boardtest.Serve(t, b, board.Worker{Name: "second"}, echo)
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "epoch", e.Epoch, 2)
	p.signal(t, syscall.SIGCONT)
	boardtest.Until(t, "the woken holder has tried to write", func() bool { return strings.Contains(p.out.String(), "append:") })
	p.signal(t, syscall.SIGINT)
	out := p.wait()
	for _, want := range []string{
		"cause: lease lost", "append: job " + e.ID + " at epoch 1: lease lost",
		`"op":"board"`, `"op":"log"`, "fenced: write refused", `"epoch":1`, `"newer_epoch":2`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the fenced process said nothing of %q:\n%s", want, out)
		}
	}
	check(t, "text", oneResult(t, b, e.ID), "from the second")
	if after, err := b.Get(boardtest.Context(t), e.ID); err != nil || after.Revision != e.Revision {
		t.Errorf("the entry was changed after its end: %+v, %v", after, err)
	}
}

func TestKilledProcessIsReplaced(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: ackWait})
	p := startWorker(t, s)
	e := submit(t, b, board.Job{Title: "survives", Prompt: "done by the second"})[0]
	started(t, b, e.ID)
	boardtest.Serve(t, b, board.Worker{Name: "second"}, echo)
	p.signal(t, syscall.SIGKILL)
	p.wait()
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "epoch", e.Epoch, 2)
	check(t, "attempt", e.Attempt, 2)
	if len(e.Reasons) != 1 || !strings.Contains(e.Reasons[0], "fell silent") {
		t.Errorf("reasons %q", e.Reasons)
	}
	check(t, "text", oneResult(t, b, e.ID), "done by the second")
}

// The same fencing inside one process, where the order is under the test's hand: a second board takes over from the first.
func TestFencingOfBothWrites(t *testing.T) {
	s := boardtest.Server(t)
	var log lockedBuffer
	first := boardtest.Connect(t, s.Conn(), board.Config{Log: zerolog.New(&log)})
	holds, taken, lost := make(chan *board.Lease, 1), make(chan struct{}), make(chan error, 2)
	stopFirst := boardtest.Serve(t, first, board.Worker{Name: "first"}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if l.Entry().Epoch > 1 {
			return echo(ctx, l)
		}
		holds <- l
		<-taken
		lost <- l.Append(ctx, "late", "x")
		l.Update(func(e *board.Entry) { e.LastTool = "late" })
		<-ctx.Done()
		lost <- context.Cause(ctx)
		boardtest.Until(t, "the update is refused", func() bool { return strings.Contains(log.String(), `"op":"board"`) })
		return board.Result{State: board.Done, Text: "late"}, nil
	})
	e := submit(t, first, board.Job{Title: "fenced", Prompt: "second"})[0]
	<-holds
	board.TakeOver(t, first, e.ID) // as a second holder's claim would
	close(taken)
	if err := <-lost; !errors.Is(err, board.ErrLeaseLost) {
		t.Errorf("append: %v", err)
	}
	if cause := <-lost; !errors.Is(cause, board.ErrLeaseLost) {
		t.Errorf("cause: %v", cause)
	}
	e = wait(t, first, e.ID)[0]
	check(t, "state", e.State, board.Done)
	stopFirst()
	for _, op := range []string{`"op":"log"`, `"op":"board"`} {
		if !strings.Contains(log.String(), op) {
			t.Errorf("no refusal with %s in the log:\n%s", op, log.String())
		}
	}
	check(t, "text", oneResult(t, first, e.ID), "second")
	if e.LastTool == "late" {
		t.Error("a fenced holder's update is on the board")
	}
}

func TestTwoWorkersNeverShareAJob(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{})
	var mu sync.Mutex
	runs := map[string]int{}
	count := func(ctx context.Context, l *board.Lease) (board.Result, error) {
		mu.Lock()
		runs[l.Job().ID]++
		mu.Unlock()
		return echo(ctx, l)
	}
	for _, name := range []string{"a", "b", "c"} {
		boardtest.Serve(t, boardtest.Connect(t, s.Conn(), board.Config{}), board.Worker{Name: name, Slots: 4}, count)
	}
	es := submit(t, b, make([]board.Job, 300)...)
	for _, e := range wait(t, b, ids(es)...) {
		if e.State != board.Done || e.Epoch != 1 || runs[e.ID] != 1 {
			t.Fatalf("job %s: %s at epoch %d after %d runs", e.ID, e.State, e.Epoch, runs[e.ID])
		}
	}
}

func TestStopHandsBackAtOnce(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease})
	running := make(chan struct{}, 1)
	stop := boardtest.Serve(t, b, board.Worker{Name: "first"}, func(ctx context.Context, _ *board.Lease) (board.Result, error) {
		running <- struct{}{}
		<-ctx.Done()
		return board.Result{}, context.Cause(ctx)
	})
	e := submit(t, b, board.Job{Title: "handed back"})[0]
	<-running
	boardtest.Serve(t, boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease}), board.Worker{Name: "second"}, echo)
	stop()
	e = wait(t, b, e.ID)[0]
	check(t, "epoch", e.Epoch, 2)
	check(t, "attempt", e.Attempt, 1)
	want := []string{"spec/0", "claimed/1", "handed_back/1", "claimed/2", "result/2"}
	if got := kinds(t, b, e.ID); !slices.Equal(got, want) {
		t.Errorf("log %v, want %v", got, want)
	}
}

func TestStopTakesAFinishedResult(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	running := make(chan struct{})
	stop := boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, _ *board.Lease) (board.Result, error) {
		close(running)
		<-ctx.Done()
		return board.Result{State: board.Partial, Text: "so far"}, nil
	})
	e := submit(t, b, board.Job{Title: "partial"})[0]
	<-running
	stop()
	e, err := b.Get(boardtest.Context(t), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "state", e.State, board.Partial)
}

func logger(b *lockedBuffer) zerolog.Logger { return zerolog.New(b) }
