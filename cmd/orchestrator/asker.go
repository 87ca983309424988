package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"muster/board"
	"muster/board/approval"
	"muster/cmd/internal/app"
)

// defaultAskFor is how long a question waits where somebody can be expected to see it.
const defaultAskFor = 24 * time.Hour

// attended says whether a person can be asked in place: one who sees the board on f and can type.
func attended(f *os.File, quiet bool) bool {
	return !quiet && app.Interactive(f) && app.Interactive(os.Stdin) && foreground()
}

// foreground says whether what is typed at the terminal comes to this process: one in the background that reads is stopped by the system.
func foreground() bool {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// asker puts the questions of jobs to the person at this terminal, one at a time, while the live board stands still.
type asker struct {
	s     *session
	v     *view
	lines chan string // what is typed; closed at its end
	read  sync.Once   // begins to read, with the first question

	mu      sync.Mutex
	waiting map[string]string // by job: what its entry says it waits for
	changed chan struct{}
}

// ask begins to ask; call notice with each entry, and stop in the end.
func (s *session) ask(ctx context.Context, v *view) (a *asker, stop func()) {
	a = &asker{s: s, v: v, lines: make(chan string), waiting: map[string]string{}, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() { a.run(ctx) })
	return a, func() { cancel(); asking.Wait() }
}

// typed passes on the lines that are typed while something is asked. A read that never returns is left to the end of the process.
func (a *asker) typed(ctx context.Context) {
	defer close(a.lines)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		select {
		case a.lines <- in.Text():
		case <-ctx.Done():
			return
		default: // nothing is asked: what is typed ahead answers nothing
		}
	}
}

// forget drops what was typed before anything was asked.
func forget() {
	var b [4 << 10]byte
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(os.Stdin.Fd()), Events: unix.POLLIN}}, 0)
		if n < 1 || err != nil {
			return
		}
		if n, err := unix.Read(int(os.Stdin.Fd()), b[:]); n < 1 || err != nil {
			return
		}
	}
}

// notice is told of each change of an entry.
func (a *asker) notice(e board.Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := ""
	if e.State == board.Waiting && e.Killing == "" {
		now = e.Waits
	}
	if now == a.waiting[e.ID] {
		return nil
	}
	if a.waiting[e.ID] = now; now == "" {
		delete(a.waiting, e.ID)
	}
	select {
	case a.changed <- struct{}{}:
	default:
	}
	return nil
}

func (a *asker) jobs() (ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.waiting {
		ids = append(ids, id)
	}
	return ids
}

func (a *asker) run(ctx context.Context) {
	for {
		for _, id := range a.jobs() {
			open, err := a.open(ctx, id)
			for _, q := range open {
				if err == nil {
					err = a.put(ctx, q)
				}
			}
			a.v.release()
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, io.EOF):
				app.Note(a.v.w, "nobody answers here any more; elsewhere: %s", a.s.command("approvals"))
				return
			case err != nil:
				a.s.log.Warn().Err(err).Str("job", id).Msg("ask in place")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
		}
	}
}

// open are the questions of a job that wait for an answer.
func (a *asker) open(ctx context.Context, job string) ([]approval.Approval, error) {
	all, err := a.s.Board.Approvals(ctx, "", job)
	if err != nil {
		return nil, err
	}
	return a.s.Board.Waiting(ctx, all)
}

const howToAnswer = "y yes, n no (n REASON), a always for this run (a RULE, or a alone for this very call) > "

// put asks until the question is answered, here or elsewhere. io.EOF: nothing can be typed any more.
func (a *asker) put(ctx context.Context, q approval.Approval) error {
	if !foreground() {
		return io.EOF
	}
	a.read.Do(func() {
		forget()
		go a.typed(ctx)
	})
	a.v.hold(fmt.Sprintf("%s asks (question %d, job %s):\n%s\n%s", app.Field(q.Title, 60), q.N, short(q.Job), app.Body(questionText(q)), howToAnswer))
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-a.changed:
			open, err := a.open(ctx, q.Job)
			if err != nil {
				return err
			}
			still := false
			for _, o := range open {
				still = still || o.N == q.N
			}
			if !still {
				a.v.say("\nanswered elsewhere, or over\n")
				a.again()
				return nil
			}
		case text, ok := <-a.lines:
			if !ok {
				return io.EOF
			}
			ans, err := answerOf(text, q)
			if err == nil {
				_, err = a.s.answer(ctx, q, ans)
			}
			switch {
			case err == nil:
				a.again()
				return nil
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, approval.ErrAnswered):
				a.v.say(app.Field(err.Error(), 300) + "\n")
				a.again()
				return nil
			}
			a.v.say(app.Field(err.Error(), 300) + "\n" + howToAnswer)
		}
	}
}

// again has all that waits looked through once more.
func (a *asker) again() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// answerOf reads what a person typed.
func answerOf(text string, q approval.Approval) (approval.Answer, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(word) {
	case "y", "yes":
		if rest == "" {
			return approval.Answer{Approve: true}, nil
		}
	case "n", "no":
		return approval.Answer{Reason: rest}, nil
	case "a", "always":
		if rest == "" {
			command := commandOf(q)
			if q.Tool != "run_command" || command == "" || strings.ContainsAny(command, "*\n") || spelled(command) != command {
				return approval.Answer{}, errors.New("write a rule, such as a run_command(go test *)")
			}
			rest = "run_command(" + command + ")"
		}
		return approval.Answer{Approve: true, Always: []string{rest}}, nil
	}
	return approval.Answer{}, fmt.Errorf("%q is no answer", app.Field(text, 60))
}
