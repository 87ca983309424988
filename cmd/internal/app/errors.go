package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"muster/board"
)

// Exit codes; package doc lists what they mean.
const (
	exitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	exitPartial     = 3
	exitKilled      = 4
	ExitConnect     = 5
	exitInterrupted = 130
)

// Fault is an error for a person: what went wrong, what to do about it, and the exit code.
type Fault struct {
	Code int
	Err  error  // nil: nothing to say, everything was said
	Hint string // one sentence, or empty
}

func (f *Fault) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit %d", f.Code)
	}
	return f.Err.Error()
}

func (f *Fault) Unwrap() error { return f.Err }

// Usage is a mistake in the command line: nothing was done.
func Usage(format string, a ...any) error {
	return &Fault{Code: ExitUsage, Err: fmt.Errorf(format, a...)}
}

// stateCode is the exit code for how a job ended.
func stateCode(s board.State) int {
	switch s {
	case board.Done:
		return exitDone
	case board.Partial:
		return exitPartial
	case board.Killed:
		return exitKilled
	default:
		return ExitFailed
	}
}

// Ended is nil when every entry is done; else a silent Fault with the code of the gravest state: failed before killed before partial.
func Ended(entries []board.Entry) error {
	worst := exitDone
	rank := map[int]int{exitDone: 0, exitPartial: 1, exitKilled: 2, ExitFailed: 3}
	for _, e := range entries {
		if c := stateCode(e.State); rank[c] > rank[worst] {
			worst = c
		}
	}
	if worst == exitDone {
		return nil
	}
	return &Fault{Code: worst}
}

// Interrupt is the cause of a context that a signal cancelled.
type Interrupt struct{ Signal os.Signal }

func (i *Interrupt) Error() string {
	if s, ok := i.Signal.(syscall.Signal); ok {
		return "stopped by " + unix.SignalName(s)
	}
	return "stopped by " + i.Signal.String()
}

func (i *Interrupt) code() int {
	if s, ok := i.Signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitInterrupted
}

// Interrupted is what signal cancelled ctx, nil when none did.
func Interrupted(ctx context.Context) *Interrupt {
	var i *Interrupt
	if errors.As(context.Cause(ctx), &i) {
		return i
	}
	return nil
}

// Report writes what a person must know about err to w and returns the exit code. It is the one place that does.
func Report(ctx context.Context, w io.Writer, program string, err error) int {
	code, hint := judge(err)
	if i := Interrupted(ctx); i != nil && err != nil && (code == ExitFailed || errors.Is(err, context.Canceled)) {
		// What a signal broke off is no fault of its own.
		return i.code()
	}
	var f *Fault
	if err == nil || errors.Is(err, syscall.EPIPE) || errors.As(err, &f) && f.Err == nil {
		return code
	}
	// A line that an error quotes is set in, so that it is not taken for one of the program's.
	text := Body(Hidden().String(err.Error()))
	fmt.Fprintf(w, "%s: %s\n", program, strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  "))
	if hint != "" {
		fmt.Fprintf(w, "%s\n", Body(Hidden().String(hint)))
	}
	return code
}

func judge(err error) (code int, hint string) {
	var f *Fault
	var i *Interrupt
	switch {
	case err == nil:
		return exitDone, ""
	case errors.As(err, &f):
		return f.Code, f.Hint
	case errors.As(err, &i):
		return i.code(), ""
	case errors.Is(err, syscall.EPIPE):
		return 128 + int(syscall.SIGPIPE), ""
	case errors.Is(err, board.ErrNotFound):
		return ExitFailed, "`orchestrator list` shows the ids on this board; --data, --dir or --connect name another board"
	case errors.Is(err, board.ErrAmbiguous):
		return ExitFailed, "give more characters of the id, or the whole"
	case errors.Is(err, board.ErrNotFinished):
		return ExitFailed, "wait for it with `orchestrator collect --wait ID`, or look at it with `orchestrator show ID`"
	case errors.Is(err, context.DeadlineExceeded):
		return ExitFailed, "the board did not answer in time; is its server under load, or gone?"
	}
	return ExitFailed, ""
}

// usageError makes a Fault of what the flag parser says.
func usageError(command string, err error) error {
	var f *Fault
	if errors.As(err, &f) {
		return err
	}
	return &Fault{Code: ExitUsage, Err: errors.New(strings.TrimPrefix(err.Error(), "flag: ")), Hint: "`" + command + " --help` shows how to use it"}
}
