package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// program is a command of this test binary under the name that main knows it by, with a home of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	name := filepath.Join(home, "orchestrator")
	if err := os.Symlink(exe, name); err != nil {
		t.Fatal(err)
	}
	if err := weakest(filepath.Join(home, "config", "muster"), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+home+"/config", "XDG_DATA_HOME="+home+"/data", "XDG_CACHE_HOME="+home+"/cache", "TERM=xterm", "NO_COLOR=1", "MUSTER_LEASE=2s", "MUSTER_BEAT=500ms")
	return c
}

// folder makes a folder of files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLiveBoardOnATerminal(t *testing.T) {
	dir := folder(t, map[string]string{"plan.yaml": `
jobs:
  - id: evil
    title: "a\e]0;owned\a\e[2J\u202etitle"
    steps: [{tool: run_command, args: {command: "sleep 0.5; printf 'x\\033]52;c;AAAA\\007y'"}}]
  - id: gather
    title: the last
    after: [evil]
    steps: [{tool: list_dir}]
`})
	c := program(t, "run", "--plan", filepath.Join(dir, "plan.yaml"), "--dir", dir)
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 12, Cols: 70})
	if err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	_, _ = io.Copy(&screen, f) // ends with EIO when the last holder of the terminal has gone
	if err := errors.Join(c.Wait(), f.Close()); err != nil {
		t.Fatalf("%v\n%q", err, screen.String())
	}
	text := screen.String()
	if !regexp.MustCompile(`\x1b\[\d+F\x1b\[J`).MatchString(text) {
		t.Errorf("nothing is redrawn: %q", text)
	}
	for _, want := range []string{"1 running", "1 blocked", "2 done in", "atitle", "plan.yaml"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the screen: %q", want, text)
		}
	}
	own := regexp.MustCompile(`\x1b\[(\d+F|J)`)
	if rest := own.ReplaceAllString(text, ""); strings.ContainsAny(rest, "\x1b\a\u202e") {
		t.Errorf("something else than a redraw reached the terminal: %q", rest[max(0, strings.IndexAny(rest, "\x1b\a\u202e")-200):])
	}
	for l := range strings.Lines(own.ReplaceAllString(text, "")) {
		if strings.HasPrefix(l, "ID ") && len([]rune(strings.TrimRight(l, "\r\n"))) > 70 {
			t.Errorf("a row is wider than the terminal: %q", l)
		}
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	dir := t.TempDir()
	owner := program(t, "serve", "--slots", "0", "--data", filepath.Join(dir, "data"))
	up := start(t, owner)
	if !poll(20*time.Second, func() bool { return strings.Contains(up.String(), "board on") }) {
		t.Fatalf("the first process did not start: %s", up)
	}
	other := program(t, "serve", "--data", filepath.Join(dir, "data"), "--log-level", "off")
	out := start(t, other)
	if !poll(20*time.Second, func() bool { return strings.Contains(out.String(), "board on") }) {
		t.Fatalf("the second process did not attach: %s", out)
	}
	// With a server that does not answer, a stop takes its time.
	send := func(c *exec.Cmd, s syscall.Signal) {
		t.Helper()
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	send(owner, syscall.SIGSTOP)
	defer send(owner, syscall.SIGCONT)
	if !poll(20*time.Second, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", owner.Process.Pid))
		return err == nil && strings.Contains(string(b), ") T ")
	}) {
		t.Fatal("the first process does not stand still")
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	send(other, syscall.SIGINT)
	select {
	case err := <-ended:
		t.Fatalf("the first signal ended it already: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	begun := time.Now()
	send(other, syscall.SIGINT)
	<-ended
	if got := other.ProcessState.ExitCode(); got != 130 || time.Since(begun) > time.Second {
		t.Errorf("%s after %s: %s", other.ProcessState, time.Since(begun), out)
	}
}

// start starts a program that ends with the test, and collects what it says.
func start(t *testing.T, c *exec.Cmd) *syncBuffer {
	t.Helper()
	out := &syncBuffer{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return out
}

// Each short command may be the one that runs the server, and takes it away again: who works on the board meanwhile must not notice.
func TestRunBesideShortCommands(t *testing.T) {
	dir := folder(t, map[string]string{"plan.yaml": `
jobs:
  - id: one
    steps: [{tool: run_command, args: {command: "sleep 0.3; echo one"}}]
  - id: two
    after: [one]
    steps: [{tool: list_dir}]
`})
	data := filepath.Join(t.TempDir(), "data")
	if out, err := program(t, "submit", "--data", data, "--dir", dir, "--plan", filepath.Join(dir, "plan.yaml")).CombinedOutput(); err != nil {
		t.Fatalf("submit: %v\n%s", err, out) // makes the board
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if out, err := program(t, "list", "--data", data).CombinedOutput(); err != nil {
				t.Errorf("list: %v\n%s", err, out)
				return
			}
		}
	}()
	for range 3 {
		out, err := program(t, "run", "--data", data, "--dir", dir, "--plan", filepath.Join(dir, "plan.yaml")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "plan.yaml") {
			t.Errorf("run: %v\n%s", err, out)
		}
	}
	close(stop)
	<-done
}

// On a terminal whoever runs a task is asked in place. What is typed before there is a question answers none.
func TestQuestionOnATerminal(t *testing.T) {
	dir := folder(t, map[string]string{"turns.yaml": `
turns:
  - when: {turn: 1}
    calls: [{tool: run_command, args: {command: "printf 'x\e]0;owned\a'; echo one"}}]
  - when: {turn: 2, last: "one"}
    calls: [{tool: run_command, args: {command: "echo two"}}]
  - when: {turn: 3, last: "refused it: not now"}
    calls: [{tool: run_command, args: {command: "echo three"}}]
  - when: {turn: 4, last: "three"}
    calls: [{tool: run_command, args: {command: "echo three"}}]
  - when: {turn: 5, last: "three"}
    text: all done
`})
	c := program(t, "run", "--mode", "default", "--model", "script:"+filepath.Join(dir, "turns.yaml"), "--dir", dir, "do it")
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, "y\n"); err != nil {
		t.Fatal(err)
	}
	var screen syncBuffer
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&screen, f)
	}()
	for i, typed := range []string{"perhaps\n", "y\n", "n not now\n", "a\n"} {
		if !poll(30*time.Second, func() bool { return strings.Count(screen.String(), howToAnswer) > i }) {
			t.Fatalf("nothing is asked before %q: %q", typed, screen.String())
		}
		if _, err := io.WriteString(f, typed); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%q", err, screen.String())
	}
	<-copied
	text := screen.String()
	for _, want := range []string{"do it asks (question 1, job ", "run_command, in mode default", `printf 'x\x1b]0;owned\a'; echo one`, `"perhaps" is no answer`, "all done"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the screen: %q", want, text)
		}
	}
	if n := strings.Count(text, " asks (question "); n != 3 {
		t.Errorf("%d questions on the screen: %q", n, text)
	}
	if strings.Contains(text, "\x1b]0;") {
		t.Errorf("the command reached the terminal as it is: %q", text)
	}
}
