package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// ends waits for a program that shall end by itself, and returns its exit code.
func ends(t *testing.T, c *exec.Cmd, out *syncBuffer) int {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // the exit code tells
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = c.Process.Kill()
		<-ended
		t.Fatalf("it did not end: %s", out)
	}
	return c.ProcessState.ExitCode()
}

func TestOneSignalEndsTheReadingOfInput(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		args   []string
		signal syscall.Signal
		code   int
	}{
		{"plan nobody writes", []string{"run", "--plan", fifo}, syscall.SIGINT, 130},
		{"prompt file nobody writes", []string{"submit", "--prompt-file", fifo}, syscall.SIGTERM, 143},
		{"standard input that stays open", []string{"run", "-"}, syscall.SIGHUP, 129},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := program(t, append(tt.args, "--model", "script:none")...)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			defer r.Close()
			c.Stdin = r
			out := start(t, c)
			calm := 0
			if !poll(20*time.Second, func() bool {
				if calm++; !asleep(c.Process.Pid) {
					calm = 0
				}
				// Only root sees in which call a program waits that lets nobody look inside; for others a second of sleep tells it.
				return waits(c.Process.Pid) || os.Geteuid() != 0 && calm > 10
			}) {
				t.Fatal("it never waits for its input")
			}
			if err := c.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			if got := ends(t, c, out); got != tt.code || !strings.Contains(out.String(), "stopped by SIG") || strings.Contains(out.String(), "prompt") {
				t.Errorf("exit code %d, want %d: %q", got, tt.code, out)
			}
		})
	}
}

// waits says whether a thread of a process is blocked in the kernel on a pipe or in the opening of one.
func waits(pid int) bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil {
		return false
	}
	for _, n := range tasks {
		b, err := os.ReadFile(n)
		number, rest, _ := strings.Cut(string(b), " ")
		stdin := number == strconv.Itoa(syscall.SYS_READ) && strings.HasPrefix(rest, "0x0 ")
		if err == nil && (stdin || number == strconv.Itoa(syscall.SYS_OPENAT)) {
			return true
		}
	}
	return false
}

// asleep says whether every thread of a process sleeps.
func asleep(pid int) bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(tasks) == 0 {
		return false
	}
	for _, n := range tasks {
		b, err := os.ReadFile(n)
		_, state, _ := strings.Cut(string(b), ") ")
		if err != nil || !strings.HasPrefix(state, "S") {
			return false
		}
	}
	return true
}

func TestPlanMayBeAFIFO(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "alpha\n"})
	fifo := filepath.Join(t.TempDir(), "plan")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := program(t, "run", "--plan", fifo, "--dir", dir)
	out := start(t, c)
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "jobs:\n  - id: look\n    steps: [{tool: list_dir}]\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ends(t, c, out); got != 0 || !strings.Contains(out.String(), "a.txt") {
		t.Errorf("exit code %d: %s", got, out)
	}
}

// A terminal that is closed sends SIGHUP, and the shell in it sends another: what runs is handed back all the same.
func TestClosedTerminalHandsBack(t *testing.T) {
	dir := folder(t, map[string]string{"plan.yaml": "jobs:\n  - id: slow\n    steps: [{tool: run_command, args: {command: sleep 600, timeout_secs: 600}}]\n"})
	data := filepath.Join(t.TempDir(), "data")
	c := program(t, "run", "--plan", filepath.Join(dir, "plan.yaml"), "--dir", dir, "--data", data)
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	screen := &syncBuffer{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(screen, f)
	}()
	if !poll(30*time.Second, func() bool { return strings.Contains(screen.String(), "1 running") }) {
		t.Fatalf("nothing runs: %s", screen)
	}
	if err := f.Close(); err != nil { // hangs up
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := ends(t, c, screen); got != 129 {
		t.Errorf("exit code %d", got)
	}
	<-read
	out, err := program(t, "list", "--data", data, "--json").Output()
	if err != nil || !strings.Contains(string(out), `"state": "queued"`) || strings.Contains(string(out), `"reasons"`) {
		t.Errorf("on the board: %v %s", err, out)
	}
}

func TestIgnoredHangupStaysIgnored(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	c := program(t, "serve", "--slots", "0", "--data", data)
	exe := c.Path
	c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, exe}, c.Args[1:]...)
	out := start(t, c)
	if !poll(20*time.Second, func() bool { return strings.Contains(out.String(), "board on") }) {
		t.Fatalf("it did not start: %s", out)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if b, err := program(t, "list", "--data", data).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, b)
	}
	if err := c.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("it has gone: %v", err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := ends(t, c, out); got != 0 {
		t.Errorf("exit code %d: %s", got, out)
	}
}

// --connect-wait bounds the whole of connecting, whatever does not answer.
func TestConnectWaitBoundsConnecting(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	owner := program(t, "serve", "--slots", "0", "--data", data)
	up := start(t, owner)
	if !poll(20*time.Second, func() bool { return strings.Contains(up.String(), "board on ") }) {
		t.Fatalf("the server did not start: %s", up)
	}
	_, rest, _ := strings.Cut(up.String(), "board on ")
	address, _, _ := strings.Cut(rest, " ")
	if err := owner.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer owner.Process.Signal(syscall.SIGCONT)
	for _, where := range [][]string{
		{"--data", data},
		{"--connect", address, "--nkey", filepath.Join(data, "user.nk")},
	} {
		c := program(t, append([]string{"list", "--connect-wait", "1s"}, where...)...)
		begun := time.Now()
		out := start(t, c)
		if got := ends(t, c, out); got != 5 || time.Since(begun) > 8*time.Second || !strings.Contains(out.String(), "gave up after 1s") {
			t.Errorf("%v: exit code %d after %s: %s", where, got, time.Since(begun), out)
		}
	}
}
