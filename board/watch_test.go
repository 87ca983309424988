package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/board/boardtest"
	"muster/board/embedded"
)

func TestFollowTheLog(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	e := submit(t, b, board.Job{Title: "followed"})[0]
	seen, followed := make(chan string, 100), make(chan error, 1)
	go func() {
		followed <- b.Events(boardtest.Context(t), e.ID, true, func(e board.Event) error {
			seen <- e.Kind + " " + string(e.Data)
			return nil
		})
	}()
	if first := <-seen; !strings.HasPrefix(first, "spec ") {
		t.Errorf("first event %q", first)
	}
	long := strings.Repeat("long ", 200_000)
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		for _, data := range []any{map[string]int{"n": 1}, long, nil} {
			if err := l.Append(ctx, "turn", data); err != nil {
				return board.Result{}, err
			}
		}
		if err := l.Append(ctx, "a.b", nil); err == nil {
			t.Error("appended an event of a kind that is no token")
		}
		return board.Result{State: board.Done, Text: "end"}, nil
	})
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	close(seen)
	var got []string
	for s := range seen {
		got = append(got, s)
	}
	if len(got) != 5 || got[1] != `turn {"n":1}` || got[2] != `turn "`+long+`"` || got[3] != "turn " || !strings.HasPrefix(got[4], "result ") {
		for _, s := range got {
			t.Errorf("event %.60q", s)
		}
	}
}

func TestUpdateIsMergedWithAFlag(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	running := make(chan *board.Lease)
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		running <- l
		<-ctx.Done()
		return board.Result{}, context.Cause(ctx)
	})
	e := submit(t, b, board.Job{Title: "busy"})[0]
	l := <-running
	update := func(n int) {
		l.Update(func(e *board.Entry) {
			e.TodoDone, e.TodoTotal, e.LastTool, e.Usage.Turns = n, 9, "grep\x1b[31m", int64(n)
			e.Title, e.State = "not yours", board.Done
		})
	}
	for n := range 100 {
		update(n)
	}
	boardtest.Until(t, "the update is on the board", func() bool {
		e, err := b.Get(boardtest.Context(t), e.ID)
		return err == nil && e.TodoDone == 99 && e.LastTool == "grep" && e.Title == "busy" && e.State == board.Running
	})
	go update(100)
	kill(t, b, e.ID)
	e = wait(t, b, e.ID)[0]
	check(t, "state", e.State, board.Killed)
	check(t, "progress", e.TodoDone, 100)
}

func TestListWatchAndWorkers(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	release := make(chan struct{})
	stop := boardtest.Serve(t, b, board.Worker{Name: "host one", Slots: 2, Version: "v7", Sandbox: board.Sandbox{Rung: "landlock", Open: []string{"stat"}}}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		<-release
		return echo(ctx, l)
	})
	es := submit(t, b, board.Job{Title: "a", Run: "r1"}, board.Job{Title: "b", Run: "r2"}, board.Job{Title: "c", Run: "r1"})
	boardtest.Until(t, "two jobs run", func() bool {
		ws, err := b.Workers(boardtest.Context(t))
		return err == nil && len(ws) == 1 && len(ws[0].Running) == 2 && ws[0].Version == "v7" && ws[0].Slots == 2 && strings.HasPrefix(ws[0].ID, "host")
	})
	all, err := b.List(boardtest.Context(t), board.Filter{Run: "r1"})
	if err != nil || !slices.Equal(ids(all), []string{es[0].ID, es[2].ID}) {
		t.Errorf("list of a run: %v, %v", ids(all), err)
	}
	synced, enough := false, errors.New("enough")
	var ended []string
	err = b.Watch(boardtest.Context(t), board.Filter{States: []board.State{board.Done}}, func() {
		synced = true
		close(release)
	}, func(e board.Entry) error {
		if !synced {
			t.Errorf("%s is done already", e.Title)
		}
		if ended = append(ended, e.ID); len(ended) == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !synced {
		t.Errorf("watch: %v after %d", err, len(ended))
	}
	stop()
	if ws, err := b.Workers(boardtest.Context(t)); err != nil || len(ws) != 0 {
		t.Errorf("workers after the end: %v, %v", ws, err)
	}
}

// Several branches of one handler wait at once: the slot comes back with the last.
func TestParallelWaits(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	boardtest.Serve(t, b, board.Worker{}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if len(l.Job().Path) > 0 {
			return echo(ctx, l)
		}
		errs := make(chan error)
		for _, call := range []string{"a", "b", "c"} {
			c, err := l.Submit(ctx, call, board.Job{Title: call})
			if err != nil {
				return board.Result{}, err
			}
			go func() {
				_, err := l.WaitChildren(ctx, -1, func(all []board.Entry) bool {
					i := slices.IndexFunc(all, func(e board.Entry) bool { return e.ID == c.ID })
					return all[i].State.Terminal()
				})
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs, <-errs); err != nil {
			return board.Result{}, err
		}
		begin := time.Now()
		children, err := l.WaitChildren(ctx, 20*time.Millisecond, func([]board.Entry) bool { return false })
		if took := time.Since(begin); err != nil || took < 20*time.Millisecond || len(children) != 3 {
			t.Errorf("waited %s for %d children: %v", took, len(children), err)
		}
		return board.Result{State: board.Done, Text: string(l.Entry().State)}, nil
	})
	e := wait(t, b, submit(t, b, board.Job{Title: "root"})[0].ID)[0]
	check(t, "state in the end", e.Preview, "running")
}

// The process with the server ends: another takes it over, and a job that ran all the while is still its holder's.
func TestServerIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	attach := func() *embedded.Server {
		s, err := embedded.Attach(boardtest.Context(t), embedded.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := attach(), attach()
	defer second.Close()
	b := boardtest.Connect(t, second.Conn(), board.Config{AckWait: 10 * time.Second})
	running, release := make(chan struct{}), make(chan struct{})
	stop := boardtest.Serve(t, b, board.Worker{Slots: 2}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if l.Job().Title == "long" {
			close(running)
			<-release
		}
		return echo(ctx, l)
	})
	long := submit(t, b, board.Job{Title: "long", Prompt: "kept"})[0]
	<-running
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	short := submit(t, b, board.Job{Title: "short", Prompt: "new"})[0]
	check(t, "job after the takeover", wait(t, b, short.ID)[0].State, board.Done)
	close(release)
	e := wait(t, b, long.ID)[0]
	check(t, "state", e.State, board.Done)
	check(t, "epoch", e.Epoch, 1)
	check(t, "server is ours", second.Owner(), true)
	stop()
}

// The server goes away for good: the holder ends its job by itself before another could begin it.
func TestHolderWithoutServerGivesUp(t *testing.T) {
	s, err := embedded.Attach(boardtest.Context(t), embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b := boardtest.Connect(t, s.Conn(), board.Config{AckWait: time.Second})
	running, cause := make(chan struct{}), make(chan error, 1)
	stop := boardtest.Serve(t, b, board.Worker{Grace: 10 * time.Second}, func(ctx context.Context, _ *board.Lease) (board.Result, error) {
		close(running)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return board.Result{State: board.Done}, nil
	})
	submit(t, b, board.Job{Title: "cut off"})
	<-running
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-cause; !errors.Is(err, board.ErrLeaseLost) {
		t.Errorf("cause %v", err)
	}
	stop()
}

// Fields that a newer version wrote are no error to this one.
func TestUnknownFields(t *testing.T) {
	var e board.Entry
	if err := json.Unmarshal([]byte(`{"id":"x","state":"queued","from_the_future":{"a":1}}`), &e); err != nil || e.State != board.Queued {
		t.Errorf("%+v, %v", e, err)
	}
}
