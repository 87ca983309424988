package board_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/board"
	"muster/board/boardtest"
	"muster/board/policy"
)

// A job that asks for more than a worker's machine has waits for another worker, says why, and spends neither attempt nor epoch meanwhile; the
// worker goes on with everything else.
func TestJobWaitsForAFitWorker(t *testing.T) {
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease})
	fits := func(rung string) func(board.Job) error {
		return func(j board.Job) error {
			if !policy.Reaches(rung, j.Sandbox.Min) {
				return fmt.Errorf("it asks for sandbox %s, here is %s", j.Sandbox.Min, rung)
			}
			return nil
		}
	}
	boardtest.Serve(t, b, board.Worker{Name: "poor", Sandbox: board.Sandbox{Rung: "landlock"}, Fits: fits("landlock")}, echo)
	strict := submit(t, b, board.Job{Title: "strict", Sandbox: policy.Sandbox{Min: "full"}, Attempts: 1})[0]
	boardtest.Until(t, "the board says why it waits", func() bool {
		e, err := b.Get(boardtest.Context(t), strict.ID)
		return err == nil && e.Waits == "it asks for sandbox full, here is landlock" && e.State == board.Queued && e.Epoch == 0 && e.Attempt == 0
	})
	easy := wait(t, b, submit(t, b, board.Job{Title: "easy"}, board.Job{Title: "fits", Sandbox: policy.Sandbox{Min: "seccomp"}})[0].ID)
	check(t, "sandbox of the easy one", easy[0].Sandbox, "landlock")
	check(t, "waits of the easy one", easy[0].Waits, "")

	rich := boardtest.Connect(t, s.Conn(), board.Config{AckWait: longLease})
	boardtest.Serve(t, rich, board.Worker{Name: "rich", Sandbox: board.Sandbox{Rung: "full"}, Fits: fits("full")}, echo)
	e := wait(t, b, strict.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "epoch", e.Epoch, 1)
	check(t, "attempt", e.Attempt, 1)
	check(t, "sandbox", e.Sandbox, "full")
	check(t, "waits", e.Waits, "")
	told := slices.DeleteFunc(kinds(t, b, strict.ID), func(k string) bool { return !strings.HasPrefix(k, "waits/") })
	check(t, "times that the log says so", len(told), 1)
}

// What an unfit worker leaves alone it still ends when it is killed.
func TestKillOfAJobThatWaitsForAWorker(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{Fits: func(board.Job) error { return fmt.Errorf("not here") }}, echo)
	e := submit(t, b, board.Job{Title: "strict"})[0]
	boardtest.Until(t, "it waits", func() bool {
		now, err := b.Get(boardtest.Context(t), e.ID)
		return err == nil && now.Waits == "not here"
	})
	kill(t, b, e.ID)
	check(t, "state", wait(t, b, e.ID)[0].State, board.Killed)
}

func TestChildHasItsParentsSandboxAndRules(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	want := policy.Sandbox{Min: "landlock", Network: "none", Limits: policy.Limits{Memory: 1 << 30}}
	rules := policy.Rules{Deny: []string{"run_command(rm *)"}}
	boardtest.Serve(t, b, board.Worker{Slots: 2}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if l.Job().Parent == "" {
			if _, err := l.Submit(ctx, "1", board.Job{Title: "child", Sandbox: policy.Sandbox{Network: "proxy"}}); err != nil {
				return board.Result{}, err
			}
			_, err := l.WaitChildren(ctx, -1, func(all []board.Entry) bool { return all[0].State.Terminal() })
			return board.Result{State: board.Done}, err
		}
		got, err := json.Marshal(l.Job().Sandbox)
		return board.Result{State: board.Done, Text: string(got) + strings.Join(l.Job().Rules.Deny, "")}, err
	})
	e := submit(t, b, board.Job{Title: "parent", Sandbox: want, Rules: rules})[0]
	wait(t, b, e.ID)
	all, err := b.List(boardtest.Context(t), board.Filter{Run: e.Run, Parent: e.ID})
	if err != nil || len(all) != 1 {
		t.Fatalf("children: %v, %v", all, err)
	}
	check(t, "sandbox and rules", oneResult(t, b, all[0].ID), `{"min":"landlock","network":"none","limits":{"memory":1073741824}}run_command(rm *)`)
}

func TestSubmitRefusesAWiderSandbox(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	for what, s := range map[string]policy.Sandbox{
		"no job can ask for off":  {Min: policy.Off},
		"no job can ask for open": {Network: "open"},
		"unknown rung":            {Min: "fullest"},
		"take a limit away":       {Limits: policy.Limits{Processes: -1}},
	} {
		if _, err := b.Submit(boardtest.Context(t), board.Job{Title: "x", Sandbox: s}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	_, err := b.Submit(boardtest.Context(t), board.Job{Title: "x", Rules: policy.Rules{Allow: make([]string, 2_000)}})
	if err == nil || !strings.Contains(err.Error(), "rules: 2000 of them") {
		t.Errorf("too many rules: %v", err)
	}
}

func TestSandboxOfAnOldWorkerIsRead(t *testing.T) {
	for in, want := range map[string]board.Sandbox{
		`"pidns"`: {Kill: "pidns"},
		`""`:      {},
		`{"rung":"full","kill":"pidns","memory":"rlimit","network":"none","open":["stat"]}`: {"full", "pidns", "rlimit", "none", []string{"stat"}},
		`{"rung":"full","later":1}`: {Rung: "full"},
	} {
		var w board.WorkerInfo
		if err := json.Unmarshal([]byte(`{"id":"w","sandbox":`+in+`}`), &w); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if diff := cmp.Diff(want, w.Sandbox); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}
