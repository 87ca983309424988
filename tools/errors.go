package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"muster/board"
	"muster/tools/workspace"
)

// ErrorClass is one of five; each says what can be done next.
type ErrorClass string

const (
	Transient  ErrorClass = "transient"  // may be retried
	Permanent  ErrorClass = "permanent"  // take another way
	Permission ErrorClass = "permission" // needs an approval, or stop
	Input      ErrorClass = "input"      // correct the arguments
	Conflict   ErrorClass = "conflict"   // the world changed: read again, or ask
)

// Error is a failure that the model sees as "ERROR [class]: text"; text says what can be done next.
type Error struct {
	Class ErrorClass
	Text  string
}

func (e *Error) Error() string { return e.Text }

// fail makes an Error.
func fail(class ErrorClass, format string, a ...any) error {
	return &Error{Class: class, Text: fmt.Sprintf(format, a...)}
}

// explain finds the class of any error that a handler returned, and adds the next step where the error has none of its own.
func explain(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	text := err.Error()
	switch {
	case errors.Is(err, workspace.ErrOutside):
		return &Error{Permission, text + "; only the workspace is yours"}
	case errors.Is(err, workspace.ErrReadOnly):
		return &Error{Permission, text + "; finish without changing it"}
	case errors.Is(err, workspace.ErrNotRegular), errors.Is(err, workspace.ErrBadPath):
		return &Error{Input, text}
	case errors.Is(err, workspace.ErrStale), errors.Is(err, fs.ErrExist):
		return &Error{Conflict, text + "; read_file it again first"}
	case errors.Is(err, workspace.ErrChanged):
		return &Error{Transient, text + "; try once more"}
	case errors.Is(err, board.ErrNotFound), errors.Is(err, board.ErrAmbiguous):
		return &Error{Input, text + "; agent_list shows the ids of your children"}
	case errors.Is(err, board.ErrNotFinished):
		return &Error{Input, text + "; wait for it with agent_list and wait_secs"}
	case errors.Is(err, board.ErrLimit):
		return &Error{Permanent, text}
	case errors.Is(err, board.ErrLeaseLost), errors.Is(err, board.ErrKilled):
		return &Error{Permanent, text + "; stop here"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Transient, text + "; ask for less at once"}
	case errors.Is(err, context.Canceled):
		return &Error{Transient, "the call was cancelled"}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Input, text + "; list_dir and glob show what exists"}
	case errors.Is(err, fs.ErrPermission):
		return &Error{Permission, text}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{Transient, text + "; remove what is not needed, then try again"}
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EINVAL),
		errors.Is(err, syscall.ELOOP):
		return &Error{Input, text}
	}
	return &Error{Permanent, text}
}
