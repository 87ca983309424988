//go:build linux

package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// mark is a number of seconds that no other sleep on this machine has.
func mark() string { return fmt.Sprintf("%d.%09d", 300+rand.IntN(100), rand.IntN(1_000_000_000)) }

// begin starts a script and waits for its first line of output.
func begin(t *testing.T, r rung, script string) *Process {
	t.Helper()
	pr, pw := io.Pipe()
	cmd := exec.Command("bash", "-c", script)
	cmd.Stdout = pw
	p, err := start(cmd, []string{pathEnv}, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); _, _ = p.Wait() })
	if _, err := bufio.NewReader(pr).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, pr) }()
	t.Cleanup(func() { _ = pw.Close() })
	return p
}

func TestWhatACommandLeavesIsEnded(t *testing.T) {
	trees(t, func(t *testing.T, r rung) {
		for name, c := range map[string]struct {
			script string // %s is a sleep's seconds
			left   int
		}{
			"background":       {"sleep %s & echo x", 1},
			"stdout closed":    {"sleep %s </dev/null >/dev/null & echo x", 1},
			"nohup":            {"nohup sleep %s >/dev/null 2>&1 & echo x", 1},
			"setsid":           {"setsid sleep %s & echo x", 1},
			"setsid -f":        {"setsid -f sleep %s; echo x", 1},
			"double fork":      {"mkfifo f; (setsid bash -c 'sleep %s & sleep %s & echo up >f' &); read <f; echo x", 2},
			"disowned":         {"sleep %s & disown; echo x", 1},
			"own group":        {"set -m; sleep %s & echo x", 1},
			"ignores TERM":     {"mkfifo f; bash -c 'trap \"\" TERM HUP INT; sleep %s & echo up >f; wait' & read <f; echo x", 2},
			"stopped":          {"sleep %s & kill -STOP $!; echo x", 1},
			"ends by itself":   {"(: %s) & echo x", 0},
			"many":             {"for i in 1 2 3 4 5 6 7 8 9 10; do sleep %s & done; echo x", 10},
			"killed by itself": {"sleep %s & echo x; kill -KILL $$", 1},
		} {
			t.Run(name, func(t *testing.T) {
				m := mark()
				begun := time.Now()
				got := shell(t, r, strings.ReplaceAll(c.script, "%s", m))
				if got.stdout != "x\n" || got.Left != c.left || got.Survivors != 0 {
					t.Errorf("got %+v", got)
				}
				if d := time.Since(begun); d > patience {
					t.Errorf("took %v", d)
				}
				if n := alive(t, m); n != 0 {
					t.Errorf("%d processes survive", n)
				}
			})
		}
	})
}

func TestPipelineTailMayFinish(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		if r == fullNoProc {
			t.Skip("without /proc there is no /dev/fd")
		}
		got := shell(t, r, "echo kept > >(sleep 0.02; cat)")
		if got.stdout != "kept\n" || got.Left != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestKillEndsTheTree(t *testing.T) {
	trees(t, func(t *testing.T, r rung) {
		for name, script := range map[string]string{
			"plain":                    "echo x; sleep %s",
			"ignores TERM":             "trap '' TERM INT HUP; echo x; while :; do sleep %s; done",
			"daemons":                  "setsid -f sleep %s; setsid -f sleep %s; echo x; sleep %s",
			"stops init":               "sleep %s & kill -STOP $PPID 2>/dev/null; echo x; wait",
			"stops it again and again": "sleep %s & echo x; while :; do kill -STOP $PPID 2>/dev/null; done",
			"stops itself":             "sleep %s & echo x; kill -STOP $$",
		} {
			t.Run(name, func(t *testing.T) {
				m := mark()
				p := begin(t, r, strings.ReplaceAll(script, "%s", m))
				begun := time.Now()
				var all sync.WaitGroup
				for range 5 {
					all.Go(p.Kill)
				}
				e, err := p.Wait()
				all.Wait()
				p.Kill()
				if err != nil || e.Signal != "SIGKILL" || e.Code != -1 || !e.Killed || e.Survivors != 0 {
					t.Errorf("got %+v, %v", e, err)
				}
				if d := time.Since(begun); d > patience {
					t.Errorf("took %v", d)
				}
				if n := alive(t, m); n != 0 {
					t.Errorf("%d processes survive", n)
				}
			})
		}
	})
}

func TestEndBeforeKillIsNoKill(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		p, err := start(exec.Command("bash", "-c", "exit 5"), []string{pathEnv}, r)
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		p.Kill()
		if e, err := p.Wait(); err != nil || e.Code != 5 || e.Killed {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

func TestKillOutrunsAForkStorm(t *testing.T) {
	trees(t, func(t *testing.T, r rung) {
		m := mark()
		// 40 loops that start processes as fast as they can, each of a process number seen once: at most some 200 at a time.
		p := begin(t, r, `for i in $(seq 40); do (while :; do (sleep 0.01; : `+m+`) & (:) ; wait; done) & done; echo x; wait`)
		begun := time.Now()
		p.Kill()
		e, err := p.Wait()
		t.Logf("%d ended in %v", e.Left, time.Since(begun))
		if err != nil || !e.Killed || e.Survivors != 0 || e.Left < 40 {
			t.Errorf("got %+v, %v", e, err)
		}
		if d := time.Since(begun); d > patience {
			t.Errorf("took %v", d)
		}
		if n := alive(t, m); n != 0 {
			t.Errorf("%d processes survive", n)
		}
	})
}

func TestInitIsKilledFromInside(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		m := mark()
		var out strings.Builder
		cmd := exec.Command("bash", "-c", "sleep "+m+" & setsid -f sleep "+m+"; kill -KILL $PPID; kill -TERM $PPID; sleep 0.2; echo alive; exit 3")
		cmd.Stdout = &out
		p, err := start(cmd, []string{pathEnv}, r)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Wait()
		switch r {
		case full, fullSameUID, fullNoProc, landlocked: // process 1, or one outside of its domain, is out of its reach
			if err != nil || e.Code != 3 || e.Left != 2 || out.String() != "alive\n" {
				t.Errorf("got %+v, %v, %q", e, err, out.String())
			}
		default:
			if err == nil || !strings.Contains(err.Error(), "ended early") || !e.Killed || e.Survivors != 0 {
				t.Errorf("got %+v, %v", e, err)
			}
		}
		if n := alive(t, m); n != 0 {
			t.Errorf("%d processes survive", n)
		}
	})
}

func TestWorkerKilledLeavesNothing(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		m := mark()
		pr, pw, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer pr.Close()
		worker := exec.Command(selfExe)
		worker.Stdout = pw
		worker.Env = []string{pathEnv, asWorker + "=" + string(r), "SANDBOX_TEST_SCRIPT=trap '' TERM; setsid -f sleep " + m + "; echo up; sleep " + m}
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		_ = pw.Close()
		line, err := bufio.NewReader(pr).ReadString('\n')
		if err != nil || line != "up\n" {
			t.Errorf("worker said %q, %v", line, err)
		}
		eventually(t, "the daemon has begun", func() bool { return alive(t, m) >= 2 })
		_ = worker.Process.Signal(syscall.SIGKILL)
		_ = worker.Wait()
		eventually(t, "the tree of a killed worker is gone", func() bool { return alive(t, m) == 0 })
	})
}

// openFDs counts the descriptors of this process.
func openFDs(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestStartStopStress(t *testing.T) {
	_ = Probe()
	trees(t, func(t *testing.T, r rung) {
		shell(t, r, ":") // what is opened once is open now
		before, old := openFDs(t), goleak.IgnoreCurrent()
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				for i := range 12 {
					p, err := start(exec.Command("bash", "-c", "sleep 5 & echo x; wait"), []string{pathEnv}, r)
					if err != nil {
						t.Errorf("start: %v", err)
						return
					}
					for range i % 3 {
						go p.Kill()
					}
					if worker%2 == 0 {
						time.AfterFunc(time.Duration(i)*time.Millisecond, p.Kill)
					} else {
						p.Kill()
					}
					if e, err := p.Wait(); err != nil || !e.Killed || e.Survivors != 0 {
						t.Errorf("wait: %+v, %v", e, err)
					}
				}
			})
		}
		all.Wait()
		if _, err := start(exec.Command("no-such-program"), nil, r); err == nil {
			t.Error("started nothing")
		}
		if _, err := start(&exec.Cmd{Path: "/no/such"}, nil, r); err == nil {
			t.Error("started nothing")
		}
		goleak.VerifyNone(t, old)
		eventually(t, "no descriptor leaks", func() bool { return openFDs(t) <= before })
	})
}

func TestAsOrdinaryUser(t *testing.T) {
	out := asNobody(t, "TestProbe|TestExits|TestEnvironment|TestCommandFinds|TestNeverStarted|TestPolicy|TestProcessNumbers|TestWhatACommand|TestKill|TestInitIs|TestWorkerKilled|TestForkStormUnderALimit")
	if !strings.Contains(out, "--- PASS: TestKillEndsTheTree") || !strings.Contains(out, "--- PASS: TestWorkerKilledLeavesNothing") {
		t.Errorf("not all ran:\n%s", out)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, "rung") || strings.Contains(line, "Kill:") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

func TestForkStormUnderALimit(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the kernel does not limit root; TestAsOrdinaryUser runs this one")
	}
	trees(t, func(t *testing.T, r rung) {
		m := mark()
		p := begin(t, r, `echo x; ulimit -u 200; bomb() { : `+m+`; bomb | bomb & }; bomb 2>/dev/null; sleep `+m)
		eventually(t, "the storm is at its height", func() bool { return alive(t, m) > 20 })
		p.Kill()
		if e, err := p.Wait(); err != nil || e.Survivors != 0 {
			t.Errorf("got %+v, %v", e, err)
		}
		if n := alive(t, m); n != 0 {
			t.Errorf("%d processes survive", n)
		}
	})
}

// patience is far less than what the commands of these tests would sleep, and far more than a busy machine takes.
const patience = time.Minute
