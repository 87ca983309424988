//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asWorker makes this test program a worker that starts a command and waits: a test kills it.
const asWorker = "SANDBOX_TEST_WORKER"

func TestMain(m *testing.M) {
	Main()
	play()
	if r := os.Getenv(asWorker); r != "" {
		os.Exit(beWorker(rung(r)))
	}
	os.Exit(m.Run())
}

// path is a command's PATH in these tests.
var pathEnv = "PATH=" + os.Getenv("PATH")

// offered finds what this machine has, once.
var offered = sync.OnceValues(func() (rs []rung, lacking []string) {
	for _, r := range ladder {
		if r == fullSameUID && os.Geteuid() != 0 {
			continue // full is that
		}
		if _, err := selfTest(layersOf(r, "none")); err != nil {
			lacking = append(lacking, fmt.Sprintf("rung %s is not to be had here: %v", r, err))
			continue
		}
		rs = append(rs, r)
	}
	return rs, lacking
})

// rungs runs f on every rung that this machine has.
func rungs(t *testing.T, f func(t *testing.T, r rung)) {
	t.Helper()
	rs, lacking := offered()
	for _, why := range lacking {
		t.Log(why)
	}
	if len(rs) == 0 {
		t.Fatal("no rung works here")
	}
	for _, r := range rs {
		t.Run(string(r), func(t *testing.T) { f(t, r) })
	}
}

// trees runs f on a rung of each way to end a tree: with a pid namespace, with Landlock around the init, with nothing.
func trees(t *testing.T, f func(t *testing.T, r rung)) {
	t.Helper()
	rs, _ := offered()
	for _, r := range []rung{rs[0], landlocked, bare} {
		if slices.Contains(rs, r) {
			t.Run(string(r), func(t *testing.T) { f(t, r) })
		}
	}
}

// start starts cmd in a box of its own on rung r, with its folder writable.
func start(cmd *exec.Cmd, env []string, r rung, writable ...string) (*Process, error) {
	p := Policy{Writable: writable}
	if fi, err := os.Stat(cmd.Dir); cmd.Dir != "" && err == nil && fi.IsDir() {
		p.Writable = append(p.Writable, cmd.Dir)
	} else if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	b := &Box{policy: p, live: map[*Process]bool{}}
	if _, err := b.space.open(p, r); err != nil {
		return nil, err
	}
	cmd.Env = env
	proc, err := b.start(cmd, false, func() { b.Close() })
	if err != nil {
		b.Close()
	}
	return proc, err
}

// run is one finished command.
type run struct {
	Exit
	stdout, stderr string
}

// shell runs a script to its end.
func shell(t *testing.T, r rung, script string) run {
	t.Helper()
	return shellIn(t, r, t.TempDir(), script)
}

// shellIn runs a script to its end in a folder.
func shellIn(t *testing.T, r rung, dir, script string) run {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	p, err := start(cmd, []string{pathEnv}, r)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	late := time.AfterFunc(30*time.Second, p.Kill)
	defer late.Stop()
	e, err := p.Wait()
	if err != nil {
		t.Fatalf("wait: %v (%+v)", err, e)
	}
	return run{Exit: e, stdout: stdout.String(), stderr: stderr.String()}
}

// eventually polls until ok, for at most ten seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

// alive counts the host's processes that have mark among their arguments; a mark is unique to a test.
func alive(t *testing.T, mark string) int {
	t.Helper()
	n := 0
	for _, p := range processes() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if err == nil && strings.Contains(string(line), mark) && p.state != 'Z' && p.pid != os.Getpid() {
			n++
		}
	}
	return n
}

// beWorker starts, on rung r, a command with a daemon that left the session, says so, and waits for ever.
func beWorker(r rung) int {
	cmd := exec.Command("bash", "-c", os.Getenv("SANDBOX_TEST_SCRIPT"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	p, err := start(cmd, []string{pathEnv}, r)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, _ = p.Wait()
	return 0
}

// asNobody runs this test program again as an ordinary user, with the tests that pattern names.
func asNobody(t *testing.T, pattern string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this run is an ordinary user's already")
	}
	dir, err := os.MkdirTemp("", "sandbox-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const nobody = 65534
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(selfExe, "-test.run", pattern, "-test.v", "-test.timeout", "120s")
	cmd.Dir = dir
	cmd.Env = []string{pathEnv, "TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as an ordinary user: %v\n%s", err, out)
	}
	return string(out)
}
