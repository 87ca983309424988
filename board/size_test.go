package board_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"muster/board"
	"muster/board/boardtest"
	"muster/budget"
)

// orch-02: results around and far over the server's message limit beside a small one; all are collected whole, byte for byte.
func TestResultsOfAnySize(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{Slots: 6}, func(_ context.Context, l *board.Lease) (board.Result, error) {
		return board.Result{State: board.Done, Text: textOf(l.Job().Title)}, nil
	})
	var jobs []board.Job
	for _, n := range []int{10, 1_040_000, 1_048_576, 1_048_577, 3_000_000, 50_000_000} {
		for _, kind := range []string{"text", "bytes", "世界👩‍👩‍👧"} {
			if n < 5_000_000 || kind == "text" {
				jobs = append(jobs, board.Job{Title: fmt.Sprintf("%s %d", kind, n)})
			}
		}
	}
	for _, e := range wait(t, b, ids(submit(t, b, jobs...))...) {
		res, err := b.Collect(boardtest.Context(t), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := textOf(e.Title)
		if res.Text != want {
			t.Errorf("%s: the result has %d bytes and is another", e.Title, len(res.Text))
		}
		check(t, e.Title+": size", e.ResultLen, int64(len(want)))
		check(t, e.Title+": state", e.State, board.Done)
		if n := budget.Chars(e.Preview); n > 500 || n == 0 {
			t.Errorf("%s: preview of %d characters", e.Title, n)
		}
		if data, err := json.Marshal(e); err != nil || len(e.Preview) > 2000 || bytes.Contains(data, []byte(`\ufffd`)) && !strings.HasPrefix(e.Title, "bytes") {
			t.Errorf("%s: preview of %d bytes: %s, %v", e.Title, len(e.Preview), data, err)
		}
	}
}

// textOf makes a text of a title such as "bytes 1000", the same each time.
func textOf(title string) string {
	var kind string
	var n int
	if _, err := fmt.Sscan(title, &kind, &n); err != nil {
		panic(err)
	}
	if kind != "bytes" {
		return strings.Repeat(kind+" <&> ", n/len(kind+" <&> ")+1)
	}
	random := rand.NewChaCha8([32]byte{byte(n)})
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint64())
	}
	return string(data)
}

// orch-32: a prompt of 20 MB is delivered whole.
func TestLargePrompt(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{}, func(_ context.Context, l *board.Lease) (board.Result, error) {
		return board.Result{State: board.Done, Text: fmt.Sprint(l.Job().Prompt == textOf("prompt 20000000"))}, nil
	})
	for _, prompt := range []string{textOf("prompt 900000"), textOf("prompt 20000000")} {
		e := wait(t, b, submit(t, b, board.Job{Title: "large", Prompt: prompt})[0].ID)[0]
		check(t, "delivered whole", e.Preview, fmt.Sprint(len(prompt) > 1_000_000))
	}
}

// What people write never makes an entry larger than it may be.
func TestEntriesStaySmall(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	wide := strings.Repeat("👩‍👩‍👧<世", 2000)
	boardtest.Serve(t, b, board.Worker{}, func(context.Context, *board.Lease) (board.Result, error) {
		return board.Result{}, fmt.Errorf("%s", wide)
	})
	var after []board.Job
	job := board.Job{Title: wide, Name: wide[:96], Profile: wide[:96], Attempts: 6}
	for range 300 {
		after = append(after, board.Job{Title: "first", Pool: "nobody"})
	}
	e := wait(t, b, submit(t, b, job)[0].ID)[0]
	check(t, "state", e.State, board.Lost)
	job.After = ids(submit(t, b, after...))
	for _, e := range append(submit(t, b, job), e) {
		data, err := json.Marshal(e)
		if err != nil || len(data) > 4<<10+1000 { // encoding/json escapes < with six bytes, the board does not
			t.Errorf("entry of %d bytes, %v", len(data), err)
		}
	}
	size, err := board.EntryBytes(t, b, e)
	if err != nil || size >= 4<<10 {
		t.Errorf("stored entry of %d bytes, %v", size, err)
	}
}

func TestArtifacts(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	ctx := boardtest.Context(t)
	content := textOf("bytes 3000000")
	var wg sync.WaitGroup
	found := make([]board.Artifact, 8)
	for i := range found { // at once, half of them without a seek
		wg.Go(func() {
			var r io.Reader = strings.NewReader(content)
			if i%2 == 0 {
				r = io.MultiReader(r)
			}
			a, err := b.Put(ctx, r)
			if err != nil {
				t.Error(err)
			}
			found[i] = a
		})
	}
	wg.Wait()
	for _, a := range found {
		check(t, "name", a, found[0])
		var got bytes.Buffer
		if err := b.Fetch(ctx, a, &got); err != nil || got.String() != content {
			t.Errorf("fetch: %d bytes, %v", got.Len(), err)
		}
	}
	check(t, "size", found[0].Size, int64(len(content)))
	check(t, "stored names", board.ArtifactNames(t, b), 1)
	if err := b.Fetch(ctx, board.Artifact{SHA256: strings.Repeat("0", 64)}, io.Discard); err == nil {
		t.Error("fetched what was never put")
	}
	wrong := found[0]
	wrong.Size++
	if err := b.Fetch(ctx, wrong, io.Discard); err == nil {
		t.Error("fetched content of another size")
	}
	if a, err := b.Put(ctx, strings.NewReader("")); err != nil || b.Fetch(ctx, a, io.Discard) != nil {
		t.Errorf("empty content: %+v, %v", a, err)
	}
}
