//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProbe(t *testing.T) {
	r := Probe()
	t.Logf("%+v", r)
	if !slices.Contains(ladder, rung(r.Rung)) || r.Kill == "" || r.Memory == "" || r.Network == "" {
		t.Errorf("got %+v", r)
	}
	if r.Rung == string(full) && len(r.Open) > 0 {
		t.Errorf("the full sandbox leaves open: %q", r.Open)
	}
	for _, l := range r.Lacking {
		if l.Why == "" || slices.Index(ladder, rung(l.Rung)) >= slices.Index(ladder, rung(r.Rung)) {
			t.Errorf("lacking %+v", l)
		}
	}
}

func TestExits(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		for _, c := range []struct {
			script, signal, stdout, stderr string
			code                           int
		}{
			{script: "exit 0"},
			{script: "exit 7", code: 7},
			{script: "exit 255", code: 255},
			{script: "echo out; echo err >&2", stdout: "out\n", stderr: "err\n"},
			{script: "echo before; kill -KILL $$", code: -1, signal: "SIGKILL", stdout: "before\n"},
			{script: "kill -TERM $$", code: -1, signal: "SIGTERM"},
			{script: "kill -SEGV $$", code: -1, signal: "SIGSEGV"},
			{script: "kill -40 $$", code: -1, signal: "signal 40"},
			{script: "exec >&- 2>&-; sleep 0.3; exit 4", code: 4},
			{script: "cat; test -t 0 || echo no terminal", stdout: "no terminal\n"},
			{script: "umask", stdout: "0022\n"},
		} {
			t.Run(c.script, func(t *testing.T) {
				got := shell(t, r, c.script)
				if got.Code != c.code || got.Signal != c.signal || got.stdout != c.stdout || got.stderr != c.stderr {
					t.Errorf("got %+v", got)
				}
				if got.Left != 0 || got.Survivors != 0 || got.Killed || got.Method != killOf(layersOf(r, "none")) || got.Duration <= 0 {
					t.Errorf("got %+v", got.Exit)
				}
			})
		}
	})
}

func TestEnvironmentIsExact(t *testing.T) {
	t.Setenv("SANDBOX_TEST_SECRET", "hidden")
	rungs(t, func(t *testing.T, r rung) {
		for _, env := range [][]string{nil, {"A=1", "B=x y\nz"}} {
			var out strings.Builder
			cmd := exec.Command("env")
			cmd.Env, cmd.Stdout = []string{"C=not this one"}, &out
			p, err := start(cmd, env, r)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			for _, v := range env {
				want += v + "\n"
			}
			if _, err := p.Wait(); err != nil || out.String() != want {
				t.Errorf("environment %q is %q, %v", env, out.String(), err)
			}
		}
	})
}

func TestCommandFindsDefaults(t *testing.T) {
	leak, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	fd, err := syscall.Dup(int(leak.Fd())) // not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	rungs(t, func(t *testing.T, r rung) {
		got := shell(t, r, `exec 2>/dev/null; grep -E 'Sig(Blk|Ign|Cgt)|CapEff|CapAmb' /proc/self/status; echo fds /proc/self/fd/*; ps -o tty= -p $$; ulimit -n`)
		for _, line := range strings.Split(got.stdout, "\n") {
			switch name, v, _ := strings.Cut(line, ":\t"); name {
			case "SigBlk", "SigIgn", "CapAmb":
				if strings.Trim(v, "0") != "" {
					t.Errorf("%s", line)
				}
			case "CapEff":
				if os.Geteuid() != 0 && strings.Trim(v, "0") != "" {
					t.Errorf("an ordinary user's command has capabilities: %s", line)
				}
			}
		}
		for _, f := range strings.Fields(got.stdout) {
			if n := strings.TrimPrefix(f, "/proc/self/fd/"); n != f && n != "0" && n != "1" && n != "2" && n != "3" && n != "255" && n != "*" {
				t.Errorf("descriptor %s is open in a command: %s", n, got.stdout)
			}
		}
		own := fmt.Sprint(DefaultLimits().OpenFiles)
		if !layersOf(r, "none").has(layerLimits) {
			out, err := exec.Command("bash", "-c", "ulimit -n").Output()
			if err != nil {
				t.Fatal(err)
			}
			own = strings.TrimSpace(string(out))
		}
		if !strings.HasSuffix(got.stdout, "\n"+own+"\n") {
			t.Errorf("the limit of open files is not %q: %q", own, got.stdout)
		}
	})
}

func TestNeverStarted(t *testing.T) {
	dir := t.TempDir()
	gone, text := filepath.Join(dir, "gone"), filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	rungs(t, func(t *testing.T, r rung) {
		for name, c := range map[string]struct {
			cmd  *exec.Cmd
			want string
			is   error
		}{
			"unknown name":  {exec.Command("no-such-program-here"), "executable file not found", exec.ErrNotFound},
			"no such file":  {&exec.Cmd{Path: gone, Args: []string{gone}}, "no such file", syscall.ENOENT},
			"not a program": {&exec.Cmd{Path: text, Args: []string{text}}, "permission denied", syscall.EACCES},
			"no folder":     {&exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: gone}, "enter the folder", syscall.ENOENT},
			"file as dir":   {&exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: text}, "enter the folder", syscall.ENOTDIR},
			"too long":      {exec.Command("/bin/true", strings.Repeat("x", 5<<20)), "argument list too long", syscall.E2BIG},
		} {
			t.Run(name, func(t *testing.T) {
				p, err := start(c.cmd, nil, r, dir)
				if err == nil {
					p.Kill()
					_, _ = p.Wait()
					t.Fatal("started")
				}
				if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "never ran") || !errors.Is(err, c.is) {
					t.Errorf("got %v", err)
				}
			})
		}
	})
}

func TestPolicy(t *testing.T) {
	for _, p := range []Policy{{Mode: "none"}, {Network: "proxied"}, {Network: "proxy"}, {Min: "off"}, {Min: "best"}} {
		if _, err := Start(&exec.Cmd{Path: "/bin/true", Dir: "/"}, p); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	have := slices.Index(ladder, rung(Probe().Rung))
	for i, name := range Rungs() {
		for _, mode := range []string{"", "auto", "required"} {
			p, err := Start(&exec.Cmd{Path: "/bin/true", Dir: "/"}, Policy{Mode: mode, Min: name})
			if i < have {
				if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), name) {
					t.Errorf("%q at least %s: %v", mode, name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, err := p.Wait(); err != nil || e.Code != 0 || e.Method != Probe().Kill {
				t.Errorf("%q at least %s: %+v, %v", mode, name, e, err)
			}
		}
	}
	p, err := Start(&exec.Cmd{Path: "/bin/true", Dir: "/"}, Policy{Mode: "off"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := p.Wait(); err != nil || e.Code != 0 || e.Method != killBare {
		t.Errorf("off: %+v, %v", e, err)
	}
}

// failingWriter stands for a consumer that gives up.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestFailingWriterDoesNotBlockTheCommand(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		cmd := exec.Command("bash", "-c", "head -c 1000000 /dev/zero; exit 3")
		cmd.Stdout = failingWriter{}
		p, err := start(cmd, []string{pathEnv}, r)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Wait()
		if e.Code != 3 || err == nil || !strings.Contains(err.Error(), "full") {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

// counter counts what is written to it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

func TestGigabyteIsDrained(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		var out, errs counter
		cmd := exec.Command("bash", "-c", "head -c 1000000000 /dev/zero & head -c 300000 /dev/zero >&2; wait")
		cmd.Stdout, cmd.Stderr = &out, &errs
		p, err := start(cmd, []string{pathEnv}, r)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(); err != nil || e.Code != 0 {
			t.Errorf("got %+v, %v", e, err)
		}
		if out.n != 1000000000 || errs.n != 300000 {
			t.Errorf("drained %d and %d bytes", out.n, errs.n)
		}
	})
}

func TestBothStreamsIntoOneWriter(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		var both strings.Builder
		cmd := exec.Command("bash", "-c", "echo a; echo b >&2; echo c")
		cmd.Stdout, cmd.Stderr = &both, &both
		p, err := start(cmd, []string{pathEnv}, r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(); err != nil || both.String() != "a\nb\nc\n" {
			t.Errorf("got %q, %v", both.String(), err)
		}
	})
}

func TestProcessNumbersAreHigh(t *testing.T) {
	if rs, _ := offered(); !slices.Contains(rs, full) {
		t.Skip("no pid namespace here")
	}
	got := shell(t, full, "echo $$")
	pid := strings.TrimSpace(got.stdout)
	t.Logf("process number %s", pid)
	if _, err := os.Stat("/proc/" + pid); !errors.Is(err, os.ErrNotExist) || pid == "" {
		t.Errorf("process number %q inside names a process outside", pid)
	}
	limit, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		t.Fatal(err)
	}
	if len(pid) < 5 {
		t.Errorf("process number %s is low (the host's limit is %s)", pid, limit)
	}
}

func TestQuickEndIsQuick(t *testing.T) {
	rungs(t, func(t *testing.T, r rung) {
		begun := time.Now()
		got := shell(t, r, "sleep 300 & echo started")
		if d := time.Since(begun); d > patience || got.Left != 1 || got.stdout != "started\n" {
			t.Errorf("after %v: %+v", d, got)
		}
	})
}
