package sandbox

import (
	"errors"
	"net"
	"time"
)

// Policy says what the commands of a job may do. The zero value confines as well as the machine allows, with no network.
type Policy struct {
	Mode     string   // "auto" (also for ""): the best rung at or above Min; "required": the same, for whoever must not start without; "off": no confinement
	Min      string   // the weakest rung to accept; empty: "landlock" with auto, "full" with required
	Network  string   // "none" (also for ""): loopback at most; "proxy": what Proxy answers; "open": the host's
	Writable []string // folders, absolute; the workspace and its scratch folder
	Readable []string // files and folders beside the system's own, absolute; those that do not exist are left out; within a Writable folder they stay read-only
	Limits   Limits

	// Proxy serves, with Network "proxy", one connection that a command made to Box.ProxyAddress, and closes it. It may go on when the box
	// is closed: whoever gives it ends it.
	Proxy func(net.Conn)
}

// Limits bound each command with everything it starts. Zero takes the default of DefaultLimits, a negative number is no limit.
type Limits struct {
	Processes   int   // processes and threads that live at once
	MemoryBytes int64 // of each process, and of all together
	CPUSecs     int   // of each process
	FileBytes   int64 // size of a file; never more than the disk has to spare
	OpenFiles   int   // of each process; without a limit as many as the system lets it have
	TmpBytes    int64 // size of the private /tmp, and of /dev/shm
	DiskBytes   int64 // growth of what is writable; of the disk a tenth, at most 512 MiB, is kept in reserve whatever this says
	DiskFiles   int64 // the same in files
}

// ErrUnavailable is wrapped where the policy asks for more than this machine can give. Nothing was started. The text says what
// is missing and how to get it.
var ErrUnavailable = errors.New("sandbox not available")

// rung is how far commands can be confined here; its text is Report.Rung.
type rung string

// The ladder, the best first.
const (
	full        rung = "full"
	fullSameUID rung = "full-same-uid"
	fullNoProc  rung = "full-no-proc"
	landlocked  rung = "landlock"
	filtered    rung = "seccomp"
	limited     rung = "limits"
	bare        rung = "off"
)

var ladder = []rung{full, fullSameUID, fullNoProc, landlocked, filtered, limited, bare}

// Rungs lists the rungs that Policy.Min may name, the best first.
func Rungs() []string {
	var names []string
	for _, r := range ladder[:len(ladder)-1] {
		names = append(names, string(r))
	}
	return names
}

// Bounds of the parts of an end that could hang.
const (
	handshakeBound = 30 * time.Second       // for each answer of a helper process
	wakeBeat       = 50 * time.Millisecond  // between two SIGCONT to a helper that is waited for
	drainBound     = 2 * time.Second        // reading on after the tree is gone: only a process outside of it can hold a pipe then
	leaveBound     = 250 * time.Millisecond // what a command left behind may finish by itself
	sweepBound     = 10 * time.Second       // stopping and killing descendants one by one
	pidnsResort    = 3 * time.Second        // a killed init that does not answer is killed itself
	sweepResort    = sweepBound + 5*time.Second
	giveUpBound    = 10 * time.Second // after that: the kernel does not let go of a process (a hung disk)
)

// Exit is how a command ended. Its whole tree is gone then, unless Survivors says otherwise.
type Exit struct {
	Code      int           // -1 when ended by a signal
	Signal    string        // "SIGKILL", …, "" for none
	Killed    bool          // ended by Kill, by a limit, or by the end of its init
	Limit     string        // the limit that ended it, for people: "memory: 4.1 GiB of 4.0 GiB"; "" for none
	Left      int           // other processes of the tree that were alive at its end, and were ended
	Survivors int           // processes that could not be ended
	Method    string        // how the tree is ended, as Report.Kill
	Duration  time.Duration // of the command itself
}

// Report is how commands are confined, as the self-test found it.
type Report struct {
	Rung    string   // see the ladder in doc.go: "full", …, "landlock", …, "off"
	Kill    string   // how a tree is ended: "pidns", "subreaper", "pgroup"
	Memory  string   // what holds the limit of memory: "watchdog", "rlimit", "none"
	Network string   // "none", "proxy", "open"
	Open    []string // what the self-test could still do: read, write, chmod, stat (outside), signal, environ (of the worker), connect, processes
	Lacking []Lack   // better rungs and why they are not to be had, the best first
}

// Lack is a rung that this machine does not give.
type Lack struct {
	Rung string
	Why  string // the step that failed and its error
	Get  string // how to get it, "" where nobody knows
}

// Process is a started command with everything it starts.
type Process struct {
	tree    tree
	streams *streams
	after   func()        // after the end of the command, before done
	done    chan struct{} // closed when exit and err are final
	exit    Exit
	err     error
}

// attend sees the command to its end.
func (p *Process) attend() {
	defer close(p.done)
	p.exit, p.err = p.tree.wait()
	if err := p.streams.finish(drainBound); p.err == nil {
		p.err = err
	}
	p.after()
}

// Wait waits for the end of the command and of all it started, and for both streams to be drained. The error is of the
// running itself (a writer that failed, an init that was killed, a process that the kernel does not end), never of the command's status.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Done is closed when Wait would return at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the whole tree now; Wait still returns the exit. Idempotent, and harmless after the end.
func (p *Process) Kill() { p.tree.kill() }
