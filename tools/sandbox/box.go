package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// Box confines the commands of one job: they share its loopback, its /tmp and its uid, and end with it.
type Box struct {
	policy  Policy
	report  Report
	space   space
	inlet   net.Listener // of the proxy; nil without
	inletBy sync.WaitGroup

	mu     sync.Mutex
	live   map[*Process]bool
	closed bool
}

// Open makes a box. The error wraps ErrUnavailable where the machine is below what p asks for.
func Open(p Policy) (*Box, error) {
	report, err := Check(p)
	if err != nil {
		return nil, err
	}
	b := &Box{policy: p, report: report, live: map[*Process]bool{}}
	if b.inlet, err = b.space.open(p, rung(report.Rung)); err != nil {
		return nil, fmt.Errorf("make a sandbox (%s): %w", report.Rung, err)
	}
	if b.inlet != nil {
		b.inletBy.Go(b.accept)
	}
	return b, nil
}

// Check says how commands under p would be confined, or fails as Open would.
func Check(p Policy) (Report, error) {
	least, err := p.least()
	if err != nil {
		return Report{}, err
	}
	if p.Mode == "off" {
		return Report{Rung: string(bare), Kill: killBare, Memory: "none", Network: "open", Open: []string{"everything"}}, nil
	}
	r := Probe()
	r.Network = networkAt(rung(r.Rung), p.Network)
	have := slices.Index(ladder, rung(r.Rung))
	switch {
	case have > slices.Index(ladder, least):
		return r, fmt.Errorf("%w: %q is wanted, this machine gives %q%s", ErrUnavailable, least, r.Rung, lackings(r.Lacking, least))
	case p.Network == "proxy" && r.Network != "proxy":
		return r, fmt.Errorf("%w: network \"proxy\" needs a network of its own for each job, and this machine gives %q%s", ErrUnavailable, r.Rung, lackings(r.Lacking, fullNoProc))
	}
	return r, nil
}

// lackings tells why the rungs down to least are not to be had.
func lackings(list []Lack, least rung) string {
	var b strings.Builder
	for _, l := range list {
		if slices.Index(ladder, rung(l.Rung)) > slices.Index(ladder, least) {
			continue
		}
		fmt.Fprintf(&b, "; %s: %s", l.Rung, l.Why)
		if l.Get != "" {
			fmt.Fprintf(&b, " (%s)", l.Get)
		}
	}
	return b.String()
}

// least is the weakest rung that p accepts. The error is of a policy that no machine could follow.
func (p Policy) least() (rung, error) {
	if p.Network != "" && !slices.Contains([]string{"none", "proxy", "open"}, p.Network) {
		return "", fmt.Errorf("policy network %q: known are \"none\", \"proxy\" and \"open\"", p.Network)
	}
	if p.Network == "proxy" && p.Proxy == nil {
		return "", errors.New("policy network \"proxy\": nobody serves it")
	}
	least, known := map[string]rung{"": landlocked, "auto": landlocked, "required": full, "off": bare}[p.Mode]
	if !known {
		return "", fmt.Errorf("policy %q: known are \"auto\", \"required\" and \"off\"", p.Mode)
	}
	if p.Min == "" || p.Mode == "off" {
		return least, nil
	}
	if !slices.Contains(Rungs(), p.Min) {
		return "", fmt.Errorf("policy minimum %q: known are %s", p.Min, strings.Join(Rungs(), ", "))
	}
	return rung(p.Min), nil
}

// accept hands what commands say to the proxy's address to the policy's Proxy. Those that it serves are not waited for: one may still hear a
// server when nobody of the box is left, and the box must end at once.
func (b *Box) accept() {
	for {
		c, err := b.inlet.Accept()
		if err != nil {
			return
		}
		go b.policy.Proxy(c)
	}
}

// Report says how the box confines.
func (b *Box) Report() Report { return b.report }

// ProxyAddress is where a command finds its way out, with Network "proxy"; else it is empty.
func (b *Box) ProxyAddress() string {
	if b.inlet == nil {
		return ""
	}
	return proxyAddress
}

// Start starts cmd: Path, Args, Env, Dir, Stdin, Stdout and Stderr are used. Env is the whole environment: nil is an empty one. A nil
// Stdin is empty; a reader other than an *os.File must end by itself. The writers are called from one goroutine each until Wait returns, from
// a single one where both are the same. An error means that cmd never ran. A started Process must be waited for.
func (b *Box) Start(cmd *exec.Cmd) (*Process, error) { return b.start(cmd, false, func() {}) }

func (b *Box) start(cmd *exec.Cmd, self bool, after func()) (*Process, error) {
	if cmd.Err != nil {
		return nil, notStarted(cmd, cmd.Err)
	}
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return nil, notStarted(cmd, errors.New("its box is closed"))
	}
	st, err := openStreams(cmd.Stdin, cmd.Stdout, cmd.Stderr)
	if err != nil {
		return nil, notStarted(cmd, err)
	}
	p := &Process{streams: st, done: make(chan struct{})}
	p.after = func() { b.forget(p); after() }
	err = p.tree.start(&b.space, cmd, st, self)
	st.handedOver()
	if err != nil {
		st.abandon()
		return nil, notStarted(cmd, err)
	}
	b.mu.Lock()
	b.live[p] = true
	closed = b.closed
	b.mu.Unlock()
	st.copy()
	go p.attend()
	if closed { // meanwhile
		p.Kill()
	}
	return p, nil
}

func (b *Box) forget(p *Process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, p)
}

func notStarted(cmd *exec.Cmd, err error) error {
	return fmt.Errorf("start %q: %w; it never ran", cmd.Path, err)
}

// Close ends everything that runs in the box and waits for it. Idempotent.
func (b *Box) Close() (ended, survivors int) {
	b.mu.Lock()
	b.closed = true
	var all []*Process
	for p := range b.live {
		all = append(all, p)
	}
	b.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
	for _, p := range all {
		e, _ := p.Wait()
		ended += 1 + e.Left
		survivors += e.Survivors
	}
	survivors += b.space.close()
	if b.inlet != nil {
		_ = b.inlet.Close()
		b.inletBy.Wait()
	}
	return ended, survivors
}

// Start is Open, Box.Start, and Box.Close after the command's end.
func Start(cmd *exec.Cmd, p Policy) (*Process, error) {
	b, err := Open(p)
	if err != nil {
		return nil, notStarted(cmd, err)
	}
	proc, err := b.start(cmd, false, func() { b.Close() })
	if err != nil {
		b.Close()
	}
	return proc, err
}
