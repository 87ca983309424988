package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	testscript.Main(m, map[string]func(){"orchestrator": main})
}

// TestScripts runs the programs through their command lines: a script a file, its reason on top.
//
// In the folder gate, which commands of agents can read, a script puts what they wait for.
//
//	code N COMMAND…           exits with N
//	poor N COMMAND…           exits with N where no namespaces are to be had, so that the best rungs are not
//	until PATTERN COMMAND…    is run again until its output matches, for 20 s
//	never PATTERN FILE        no line of a file (which may be missing) matches
//	field VAR FILE PATTERN    puts the first group of the first match into a variable, waiting up to 20 s for it
//	gone PATTERN              no process of this machine has a command line that matches, after 3 s at most
//	expand FILE               puts the path of the script's folder in place of $WORK
//	big FILE N                writes N bytes of numbered lines
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, "home", "data"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "home", "cache"))
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"-xdg") // beside the folders that scripts work on
			env.Setenv("MUSTER_LEASE", "2s")
			env.Setenv("MUSTER_BEAT", "500ms")
			env.Setenv("TERM", "dumb")
			gate := filepath.Join(env.WorkDir, "gate")
			return errors.Join(os.Mkdir(gate, 0o755), weakest(filepath.Join(env.WorkDir+"-xdg", "muster"), gate))
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "long":
				return !testing.Short(), nil
			case "proxy": // commands can have a network of their own here
				_, err := sandbox.Check(sandbox.Policy{Min: "full-no-proc", Network: "proxy", Proxy: func(c net.Conn) { c.Close() }})
				return err == nil, nil
			}
			return false, errors.New("unknown condition")
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": cmdCode, "poor": cmdPoor, "until": cmdUntil, "never": cmdNever, "field": cmdField, "gone": cmdGone, "big": cmdBig, "expand": cmdExpand, "worker-binary": cmdWorker,
		},
	})
}

// weakest configures that any rung will do, since what a test tells is not of the machine that it runs on, and that commands see a folder:
// the one thing outside their workspace by which a test can tell them to go on.
func weakest(dir, gate string) error {
	text := fmt.Sprintf("sandbox: {mode: auto, min: limits, readable: [%q]}\n", gate)
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600))
}

func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// poverty runs its arguments in a user namespace in which no other can be made, without the rights to make any other kind.
const poverty = `echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs "$0" "$@"`

func cmdPoor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: poor N COMMAND…")
	}
	program, err := exec.LookPath("unshare")
	ts.Check(err)
	if exec.Command(program, "-Ur", "true").Run() != nil { // then the machine is poor enough as it is, but for root
		cmdCode(ts, neg, append([]string{args[0], "setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"}, args[1:]...))
		return
	}
	cmdCode(ts, neg, append([]string{args[0], program, "-Ur", "sh", "-c", poverty}, args[1:]...))
}

// poll asks cond every 100 ms until it holds, for at most limit.
func poll(limit time.Duration, cond func() bool) bool {
	tick, end := time.NewTicker(100*time.Millisecond), time.After(limit)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
	return true
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND…")
	}
	re := regexp.MustCompile("(?s)" + args[0])
	ok := poll(20*time.Second, func() bool {
		if ts.Exec(args[1], args[2:]...) != nil {
			return false
		}
		return re.MatchString(ts.ReadFile("stdout"))
	})
	if !ok {
		ts.Fatalf("never printed %s", args[0])
	}
}

func cmdNever(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: never PATTERN FILE")
	}
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	if err == nil && regexp.MustCompile(args[0]).Match(b) {
		ts.Fatalf("%s matches %s", args[1], args[0])
	}
}

func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: field VAR FILE PATTERN")
	}
	re := regexp.MustCompile(args[2])
	var found []string
	poll(20*time.Second, func() bool {
		text := ""
		if args[1] == "stdout" || args[1] == "stderr" {
			text = ts.ReadFile(args[1])
		} else if b, err := os.ReadFile(ts.MkAbs(args[1])); err == nil {
			text = string(b)
		}
		found = re.FindStringSubmatch(text)
		return len(found) > 1
	})
	if len(found) < 2 {
		ts.Fatalf("%s does not match %s", args[1], args[2])
	}
	ts.Setenv(args[0], found[1])
}

func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: gone PATTERN")
	}
	re := regexp.MustCompile(args[0])
	last := ""
	alive := func() bool {
		names, err := filepath.Glob("/proc/[0-9]*/cmdline")
		ts.Check(err)
		for _, n := range names {
			b, err := os.ReadFile(n)
			line := strings.ReplaceAll(string(b), "\x00", " ")
			if err == nil && re.MatchString(line) && !strings.Contains(n, strconv.Itoa(os.Getpid())) {
				last = line
				return true
			}
		}
		return false
	}
	if neg {
		if !poll(20*time.Second, alive) {
			ts.Fatalf("no process matches %s", args[0])
		}
		return
	}
	if !poll(3*time.Second, func() bool { return !alive() }) {
		ts.Fatalf("still there: %s", last)
	}
}

func cmdBig(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: big FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString("line " + strconv.Itoa(i) + " of a long result\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()[:n]), 0o600))
}

func cmdExpand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expand FILE")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "$WORK", ts.Getenv("WORK"))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// worker is the real second program, built once.
var worker = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "muster-worker-*")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "worker")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "build", "-o", name, "muster/cmd/worker").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return name, nil
})

// cmdWorker puts the path of the worker program into $WORKER.
func cmdWorker(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: worker-binary")
	}
	name, err := worker()
	ts.Check(err)
	ts.Setenv("WORKER", name)
}

// syncBuffer is a buffer that one writes and another reads.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
