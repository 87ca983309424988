package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
	"muster/board/approval"
	"muster/board/boardtest"
	"muster/board/secrets"
)

var ask = approval.Question{Call: "c1", Tool: "run_command", Args: json.RawMessage(`{"command":"make"}`), Why: "in mode default"}

// asks is a handler that asks one question and says what was answered.
func asks(ctx context.Context, l *board.Lease) (board.Result, error) {
	if l.Job().AskFor == 0 {
		return echo(ctx, l)
	}
	a, err := l.Ask(ctx, ask)
	if err != nil {
		return board.Result{}, err
	}
	return board.Result{State: board.Done, Text: fmt.Sprintf("%s by %s: %s", a.Verdict, a.By, a.Reason)}, nil
}

// asked waits for the open questions of a run.
func asked(t testing.TB, b *board.Board, run string, n int) (open []approval.Approval) {
	t.Helper()
	boardtest.Until(t, fmt.Sprintf("%d questions stand", n), func() bool {
		all, err := b.Approvals(boardtest.Context(t), run, "")
		if err == nil {
			open, err = b.Waiting(boardtest.Context(t), all)
		}
		if err != nil {
			t.Fatal(err)
		}
		return len(open) == n
	})
	return open
}

func TestQuestionIsAnsweredOnce(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{}, asks)
	e := submit(t, b, board.Job{Title: "asks", AskFor: time.Hour})[0]
	a := asked(t, b, e.Run, 1)[0]
	if a.Job != e.ID || a.N != 1 || a.Tool != "run_command" || string(a.Args) != `{"command":"make"}` || a.Why != "in mode default" || a.Title != "asks" {
		t.Errorf("question %+v", a)
	}
	boardtest.Until(t, "it waits", func() bool {
		now, err := b.Get(boardtest.Context(t), e.ID)
		return err == nil && now.State == board.Waiting && now.Waits == "approval 1: run_command"
	})
	// Its slot, the only one, is free meanwhile.
	check(t, "another job", wait(t, b, submit(t, b, board.Job{Title: "other"})[0].ID)[0].State, board.Done)

	var won atomic.Int32
	var answering sync.WaitGroup
	for i := range 8 {
		answering.Go(func() {
			found, err := b.Find(boardtest.Context(t), e.ID, 0)
			if err == nil {
				_, err = b.Answer(boardtest.Context(t), found, approval.Answer{Approve: i%2 == 0, By: fmt.Sprint("person ", i), Reason: "because"})
			}
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, approval.ErrAnswered) && !errors.Is(err, approval.ErrNoQuestion) {
				t.Error(err)
			}
		})
	}
	answering.Wait()
	check(t, "answers", won.Load(), 1)
	ended := wait(t, b, e.ID)[0]
	check(t, "waits", ended.Waits, "")
	all, err := b.Approvals(boardtest.Context(t), "", e.ID)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	check(t, "result", ended.Preview, fmt.Sprintf("%s by %s: because", all[0].Verdict, all[0].By))
	if ks := kinds(t, b, e.ID); !slices.Contains(ks, "approval_asked/1") || !slices.Contains(ks, "approval_answered/1") {
		t.Errorf("log %v", ks)
	}
	if _, err := b.Find(boardtest.Context(t), e.ID, 1); !errors.Is(err, approval.ErrAnswered) {
		t.Errorf("answered question: %v", err)
	}
	if _, err := b.Answer(boardtest.Context(t), a, approval.Answer{Approve: true, By: "late"}); !errors.Is(err, approval.ErrAnswered) || !strings.Contains(err.Error(), all[0].By) {
		t.Errorf("late answer: %v", err)
	}
}

func TestQuestionsThatNobodyAnswers(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{Slots: 3}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if l.Job().Title == "alone" {
			_, err := l.Ask(ctx, ask)
			return board.Result{State: board.Done, Text: fmt.Sprint(errors.Is(err, approval.ErrNobody))}, nil
		}
		return asks(ctx, l)
	})
	es := submit(t, b, board.Job{Title: "late", AskFor: 300 * time.Millisecond}, board.Job{Title: "alone"}, board.Job{Title: "killed", AskFor: time.Hour})
	ended := wait(t, b, es[0].ID, es[1].ID)
	check(t, "late", ended[0].Preview, "denied by muster: nobody answered in time")
	check(t, "alone", ended[1].Preview, "true")

	a := asked(t, b, es[2].Run, 1)[0]
	if lines := kill(t, b, es[2].ID); lines[0].Outcome != "killed" {
		t.Errorf("kill: %+v", lines)
	}
	asked(t, b, es[2].Run, 0)
	if _, err := b.Find(boardtest.Context(t), es[2].ID, a.N); !errors.Is(err, approval.ErrNoQuestion) {
		t.Errorf("question of a killed job: %v", err)
	}
}

// The answer to a call is for that call, with those arguments, whoever holds the job.
func TestAnswerBelongsToACall(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{})
	other := boardtest.Connect(t, s.Conn(), board.Config{})
	var holders atomic.Int32
	handler := func(ctx context.Context, l *board.Lease) (board.Result, error) {
		holders.Add(1)
		a, err := l.Ask(ctx, ask)
		if err != nil {
			return board.Result{}, err
		}
		changed := ask
		changed.Args = json.RawMessage(`{"command":"make clean"}`)
		second, err := l.Ask(ctx, changed)
		if err != nil {
			return board.Result{}, err
		}
		return board.Result{State: board.Done, Text: fmt.Sprintf("%s, %s", a.Verdict, second.Verdict)}, nil
	}
	stop := boardtest.Serve(t, b, board.Worker{}, handler)
	e := submit(t, b, board.Job{Title: "asks", AskFor: time.Hour})[0]
	a := asked(t, b, e.Run, 1)[0]
	stop() // the first holder hands back
	if _, err := other.Answer(boardtest.Context(t), a, approval.Answer{Approve: true, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	boardtest.Serve(t, other, board.Worker{}, handler)
	next := asked(t, b, e.Run, 1)[0]
	if next.N != 2 || string(next.Args) != `{"command":"make clean"}` {
		t.Errorf("it asks %+v", next)
	}
	if _, err := b.Answer(boardtest.Context(t), next, approval.Answer{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	check(t, "result", wait(t, b, e.ID)[0].Preview, "approved, denied")
	check(t, "holders", holders.Load(), 2)
}

func TestAlwaysIsKeptForTheRun(t *testing.T) {
	redactor, err := secrets.New(map[string]string{"HOST": "correct-horse-battery"})
	if err != nil {
		t.Fatal(err)
	}
	b := boardtest.New(t, board.Config{Secrets: redactor})
	boardtest.Serve(t, b, board.Worker{Slots: 2}, asks)
	es := submit(t, b, board.Job{Title: "one", AskFor: time.Hour}, board.Job{Title: "two", AskFor: time.Hour})
	a := asked(t, b, es[0].Run, 1)[0]
	for _, wrong := range []approval.Answer{
		{Always: []string{"run_command(make)"}},
		{Approve: true, Always: []string{strings.Repeat("x", 2001)}},
		{Approve: true, Always: []string{"run_command(echo correct-horse-battery)"}},
		{Approve: true, Always: make([]string, 21)},
	} {
		if _, err := b.Answer(boardtest.Context(t), a, wrong); err == nil || strings.Contains(err.Error(), "horse") {
			t.Errorf("%.40q: %v", wrong.Always, err)
		}
	}
	if _, err := b.Answer(boardtest.Context(t), a, approval.Answer{Approve: true, By: "ada", Always: []string{"run_command(make)"}, Reason: "it is correct-horse-battery"}); err != nil {
		t.Fatal(err)
	}
	if text := wait(t, b, es[0].ID)[0].Preview; !strings.HasPrefix(text, "approved by ada: it is ") || strings.Contains(text, "horse") {
		t.Errorf("result %q", text)
	}
	rules, err := b.AlwaysOf(boardtest.Context(t), es[0].Run)
	if err != nil || len(rules) != 1 || rules[0].Rule != "run_command(make)" || rules[0].By != "ada" || rules[0].Job != es[0].ID {
		t.Errorf("rules %+v, %v", rules, err)
	}
	if rules, err := b.AlwaysOf(boardtest.Context(t), es[1].Run); err != nil || len(rules) != 0 {
		t.Errorf("rules of another run %+v, %v", rules, err)
	}
	if all, err := b.Approvals(boardtest.Context(t), es[0].Run, ""); err != nil || len(all) != 1 || !slices.Equal(all[0].Always, []string{"run_command(make)"}) {
		t.Errorf("questions %+v, %v", all, err)
	}
}
