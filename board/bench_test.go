package board_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
)

// BenchmarkEndToEnd is the whole protocol, log, entry, pointer, claim, result, end and confirmed acknowledgement, for jobs of 1 KB that do
// nothing, on 16 slots beside the server in this process.
func BenchmarkEndToEnd(b *testing.B) {
	bd := boardtest.New(b, board.Config{AckWait: longLease})
	boardtest.Serve(b, bd, board.Worker{Slots: 16}, func(context.Context, *board.Lease) (board.Result, error) {
		return board.Result{State: board.Done, Text: "ok"}, nil
	})
	jobs := make([]board.Job, b.N)
	for i := range jobs {
		jobs[i] = board.Job{Title: "no-op", Prompt: strings.Repeat("x", 1000), Run: "bench"}
	}
	b.ResetTimer()
	es, err := bd.Submit(context.Background(), jobs...)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := bd.Wait(context.Background(), ids(es)...); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkDispatch is one idle job after another: from the start of its submission to the start of its handler.
func BenchmarkDispatch(b *testing.B) {
	bd := boardtest.New(b, board.Config{AckWait: longLease})
	began := make(chan time.Time)
	boardtest.Serve(b, bd, board.Worker{Slots: 4}, func(context.Context, *board.Lease) (board.Result, error) {
		began <- time.Now()
		return board.Result{State: board.Done}, nil
	})
	var total, worst time.Duration
	for b.Loop() {
		es, err := bd.Submit(context.Background(), board.Job{Title: "no-op"})
		if err != nil {
			b.Fatal(err)
		}
		took := (<-began).Sub(es[0].Queued)
		total, worst = total+took, max(worst, took)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/dispatch")
	b.ReportMetric(float64(worst.Microseconds()), "µs/worst")
}
