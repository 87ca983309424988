package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Policy says how a command is confined. The zero value is "auto" with an open network and an empty environment.
type Policy struct {
	Mode     string   // "auto" (default): the best rung the machine allows; "required": the full sandbox or nothing; "off": no namespaces
	Network  string   // "open" (default); "none" is refused until the full sandbox
	Writable []string // folders
	Env      []string // the command's whole environment, KEY=VALUE
}

// ErrUnavailable is wrapped by Start where the policy asks for more than this build or machine can give. Nothing was started.
var ErrUnavailable = errors.New("sandbox not available")

// rung is a way to end a process tree; its text is what Exit.Method and Report.Kill say.
type rung string

const (
	pidns     rung = "pidns"
	subreaper rung = "subreaper"
	pgroup    rung = "pgroup"
)

// Bounds of the parts of an end that could hang.
const (
	handshakeBound = 30 * time.Second       // from the start of the init to "started"
	wakeBeat       = 50 * time.Millisecond  // between two SIGCONT to an init that is waited for
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
	Killed    bool          // ended by Kill, or by the end of its init
	Left      int           // other processes of the tree that were alive at its end, and were ended
	Survivors int           // processes that could not be ended
	Method    string        // how the tree is ended: "pidns", "subreaper", "pgroup"
	Duration  time.Duration // of the command itself
}

// Report is what this machine allows.
type Report struct {
	Kill string   // "pidns", "subreaper", "pgroup"
	Open []string // what the self-test could still do: read, write (outside), signal, environ (of the worker), connect
	Why  string   // why nothing better
}

// Process is a started command with everything it starts.
type Process struct {
	tree    tree
	streams *streams
	done    chan struct{} // closed when exit and err are final
	exit    Exit
	err     error
}

// Start starts cmd: Path, Args, Dir, Stdout and Stderr are used; stdin is empty; the environment comes from p. The writers are
// called from one goroutine each until Wait returns, from a single one where both are the same. An error means that cmd never
// ran. A started Process must be waited for.
func Start(cmd *exec.Cmd, p Policy) (*Process, error) {
	r, err := p.rung()
	if err != nil {
		return nil, err
	}
	return start(cmd, p.Env, r)
}

func (p Policy) rung() (rung, error) {
	switch p.Network {
	case "", "open":
	case "none":
		return "", fmt.Errorf("policy network %q: %w: this build does not confine the network; use \"open\"", p.Network, ErrUnavailable)
	default:
		return "", fmt.Errorf("policy network %q: known are \"open\" and \"none\"", p.Network)
	}
	switch p.Mode {
	case "", "auto":
		return rung(Probe().Kill), nil
	case "off":
		return bare, nil
	case "required":
		return "", fmt.Errorf("policy \"required\": %w: this build ends process trees (%s here) but confines neither files, system calls nor network; use \"auto\" or \"off\"",
			ErrUnavailable, Probe().Kill)
	default:
		return "", fmt.Errorf("policy %q: known are \"auto\", \"required\" and \"off\"", p.Mode)
	}
}

func start(cmd *exec.Cmd, env []string, r rung) (*Process, error) {
	if cmd.Err != nil {
		return nil, notStarted(cmd, cmd.Err)
	}
	st, err := openStreams(cmd.Stdout, cmd.Stderr)
	if err != nil {
		return nil, notStarted(cmd, err)
	}
	p := &Process{streams: st, done: make(chan struct{})}
	err = p.tree.start(cmd, env, r, st)
	st.handedOver()
	if err != nil {
		st.abandon()
		return nil, notStarted(cmd, err)
	}
	st.copy()
	go p.attend()
	return p, nil
}

func notStarted(cmd *exec.Cmd, err error) error {
	return fmt.Errorf("start %q: %w; it never ran", cmd.Path, err)
}

// attend sees the command to its end.
func (p *Process) attend() {
	defer close(p.done)
	p.exit, p.err = p.tree.wait()
	if err := p.streams.finish(drainBound); p.err == nil {
		p.err = err
	}
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
