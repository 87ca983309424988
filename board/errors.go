package board

import "errors"

var (
	// ErrNotFound: no such job. Nothing was changed.
	ErrNotFound = errors.New("no such job")
	// ErrNotFinished: the job has no result yet.
	ErrNotFinished = errors.New("job has not finished")
	// ErrAmbiguous: an abbreviated id names several jobs.
	ErrAmbiguous = errors.New("id names several jobs")
	// ErrLeaseLost: another holder has the job; the caller must end its processes and write nothing.
	ErrLeaseLost = errors.New("lease lost")
	// ErrKilled is the cause of a handler's cancellation when its job was killed; Lease.Submit answers it when the parent is.
	ErrKilled = errors.New("killed")
	// ErrStopping is the cause when the worker stops; the job is handed back.
	ErrStopping = errors.New("worker stopping")
	// ErrDeadline is the cause when the job's deadline passed.
	ErrDeadline = errors.New("deadline passed")
	// ErrUnfit: a handler's error that wraps it says that the fault is this worker's own (a full disk, a missing program): the job is handed
	// back with no attempt spent, and the worker claims nothing for a while.
	ErrUnfit = errors.New("this worker cannot do any job now")
	// ErrLimit: a child was refused (depth, total); nothing was submitted.
	ErrLimit = errors.New("limit reached")
)

// errConflict: the entry or the log moved on since it was read; nothing was written.
var errConflict = errors.New("changed by another")

// errKeep is returned by the function of change that wants nothing written.
var errKeep = errors.New("nothing to change")
