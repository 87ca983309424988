//go:build linux

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attack is one thing that no command may be able to do. Every one of them is harmless where it works: it reads what the test
// planted, puts back what it changed, writes what was there already, or is refused by the kernel for a reason that only somebody
// with the right to do it gets to hear.
type attack struct {
	name string
	do   func(v victim) finding

	// script is run by sh instead of do, with $WS, $TMP and $SHM set, and $HOLD, the seconds to hold on to what is to be seen from outside; it
	// works when it prints "worked".
	script  string
	program []byte // in machine code of amd64; $WS/program for the script
	limits  Limits // of an attack on resources

	alone  bool // it may end the command that tries it: it gets one to itself
	mayDie bool // ending its process is a way to block it

	// Without a sandbox it works, for whoever has the capability that it needs.
	needs need
	never string // why it works nowhere, all the same
	maybe string // why it does not work everywhere
}

// need is a capability, or 0 where none is needed.
type need int

// as makes a need of a capability.
func as(capability int) need { return need(capability + 1) }

// finding is what an attack found.
type finding struct {
	Name, Outcome, Text string
}

// The outcomes of an attack.
const (
	worked  = "worked"
	blocked = "blocked"
	absent  = "absent"  // what it reaches for is not there: blocked in a sandbox; outside of one, this machine lacks it
	untried = "untried" // this machine lacks what it needs; the text says what
	died    = "died"    // its process ended without a word
)

func works(format string, a ...any) finding {
	return finding{Outcome: worked, Text: fmt.Sprintf(format, a...)}
}

func stopped(format string, a ...any) finding {
	return finding{Outcome: blocked, Text: fmt.Sprintf(format, a...)}
}

func missing(format string, a ...any) finding {
	return finding{Outcome: absent, Text: fmt.Sprintf(format, a...)}
}

func lacking(format string, a ...any) finding {
	return finding{Outcome: untried, Text: fmt.Sprintf(format, a...)}
}

// unless is the finding on a call that gives an error unless it works. Where the kernel has no such thing, nothing was tried.
func unless(err error, what string) finding {
	var no syscall.Errno
	switch {
	case err == nil:
		return works("%s", what)
	case errors.As(err, &no) && slices.Contains([]syscall.Errno{unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.EOPNOTSUPP}, no):
		return lacking("%s: %v", what, err)
	case errors.Is(err, unix.ENOSYS):
		return missing("%s: %v", what, err)
	}
	return stopped("%s: %v", what, err)
}

// permitted is the finding on a call that cannot succeed: want is what the kernel answers to those who may.
func permitted(err error, what string, want ...syscall.Errno) finding {
	var no syscall.Errno
	if err == nil || errors.As(err, &no) && slices.Contains(want, no) {
		return works("%s may be called: %v", what, err)
	}
	if errors.Is(err, unix.ENOSYS) {
		return missing("%s: %v", what, err)
	}
	return stopped("%s: %v", what, err)
}

// first is the first finding of several ways that says worked, else the last that says more than that something is absent.
func first(ways ...func() finding) (last finding) {
	last.Outcome = absent
	for _, way := range ways {
		f := way()
		if f.Outcome == worked {
			return f
		}
		if f.Outcome != absent || last.Outcome == absent {
			last = f
		}
	}
	return last
}

// attacks is the list of all.
func attacks() []attack {
	return slices.Concat(fileAttacks(), mixedFileAttacks(), setIDAttacks(), secretAttacks(), processAttacks(), netAttacks(), otherAttacks(), kernelAttacks(), namespaceAttacks(), adminAttacks(), accountAttacks(), resourceAttacks())
}

func findAttack(name string) (attack, bool) {
	all := attacks()
	at := slices.IndexFunc(all, func(a attack) bool { return a.name == name })
	if at < 0 {
		return attack{}, false
	}
	return all[at], true
}

// victim is what attacks are aimed at: a worker with a key in its environment and in its memory, an ordinary program of the same
// user, and what both hold. It says where everything is, and holds no secret itself.
type victim struct {
	Worker, Bystander target
	Exe               string // the test program as commands find it
	Home              string // of the user; with .ssh, and a secret that others may not read
	Workspace         string
	HostTmp, HostShm  string // files with a secret in the shared folders
	TCP, TCP6         int    // ports of the worker
	UDP, UDP6         int
	Sock, OpenSock    string // of the worker; OpenSock is open to everybody, as that of a container engine may be
	Abstract          string
	Shm               int // SysV segment
	NetNS, PIDNS      string
	Handle            []byte // of the secret file, as name_to_handle_at gives it
	HandleType        int32
	Disk              string // block device, "" for none
	DiskNumber        int
	SetUID            string // set-uid root copy of the test program, "" for none
	TTY               string // terminal that controls the worker
	Other             other
	Parent            int // of the command, as it sees it
}

// target is a process to attack.
type target struct {
	PID            int
	Addr           uint64 // of the key in its memory
	FileFD, PipeFD int    // descriptors with a secret
}

// other is a command of another agent.
type other struct {
	Dir      string // its workspace
	PID      int    // as the host sees it
	Port     int
	Abstract string
}

// role is what this test program is when it is run again.
const role = "SANDBOX_TEST_ROLE"

// play runs the role that the environment names, and never returns then. TestMain calls it after Main.
func play() {
	var code int
	switch r := os.Getenv(role); r {
	case "":
		return
	case "worker":
		code = playWorker()
	case "bystander":
		code = playBystander()
	case "attacker":
		code = playAttacker(strings.Fields(os.Getenv("ATTACKS")))
	case "server":
		code = playServer()
	case "client":
		code = playClient()
	case "uid":
		fmt.Println(os.Geteuid())
	case "nothing":
	default:
		fmt.Println("unknown role", r)
		code = 1
	}
	syscall.Exit(code) // at once: os.Exit waits a second under the race detector
}

// playAttacker tries attacks and prints their verdicts. More than one is tried in a process each, so that none leaves a trace for
// the next.
func playAttacker(names []string) int {
	var v victim
	if err := json.Unmarshal([]byte(os.Getenv("VICTIM")), &v); err != nil {
		fmt.Println(err)
		return 1
	}
	if v.Parent == 0 {
		v.Parent = os.Getppid()
	}
	if len(names) == 1 {
		a, ok := findAttack(names[0])
		if !ok {
			fmt.Println("no attack", names[0])
			return 1
		}
		found := a.do(v)
		found.Name = a.name
		return say(found)
	}
	inner, err := json.Marshal(v)
	if err != nil {
		return 1
	}
	for _, name := range names {
		cmd := exec.Command(v.Exe)
		cmd.Env = append(os.Environ(), "ATTACKS="+name, "VICTIM="+string(inner))
		said := &strings.Builder{}
		cmd.Stdout, cmd.Stderr = said, said
		cmd.WaitDelay = time.Second
		if err := cmd.Start(); err != nil {
			say(finding{name, died, err.Error()})
			continue
		}
		late := time.AfterFunc(attackBound, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		if !late.Stop() {
			err = errors.New("hangs")
		}
		say(hear(name, said.String(), err))
	}
	return 0
}

// attackBound is far more than any attack takes.
const attackBound = 30 * time.Second

func say(v finding) int {
	line, err := json.Marshal(v)
	if err != nil {
		return 1
	}
	fmt.Println(string(line))
	return 0
}

// hear finds the finding in what an attack printed, or tells how it ended without one.
func hear(name, said string, end error) finding {
	for _, v := range verdicts(said) {
		if v.Name == name {
			return v
		}
	}
	var ee *exec.ExitError
	if errors.As(end, &ee) {
		if ws, ok := ee.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == unix.SIGSYS {
			return finding{name, blocked, "killed by the system call filter"}
		}
	}
	return finding{name, died, fmt.Sprintf("%v: %.1000s", end, said)}
}

// verdicts are those in the lines of an output.
func verdicts(said string) (all []finding) {
	for line := range strings.SplitSeq(said, "\n") {
		var v finding
		if json.Unmarshal([]byte(line), &v) == nil && v.Name != "" {
			all = append(all, v)
		}
	}
	return all
}

// A secret is a word with one of these marks before sixteen hexadecimal digits. No victim and no test program holds a whole one but
// where it is planted.
const (
	keyMark   = "muster-test-key-"
	otherMark = "muster-test-other-"
)

var secretForm = regexp.MustCompile(`muster-test-(key|other)-[0-9a-f]{16}`)

// secretIn is the finding on what an attack could read.
func secretIn(b []byte, err error, what string) finding {
	switch found := secretForm.Find(b); {
	case err != nil:
		return stopped("%s: %v", what, err)
	case found == nil:
		return stopped("%s: %d bytes without a secret", what, len(b))
	default:
		return works("%s: %s", what, found)
	}
}
