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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"muster/board"
)

var control = regexp.MustCompile(`\x1b\[(\d+)F\x1b\[J`)

// screenOf is what stands on a terminal of enough rows after text: lines, and those that a redraw takes away.
func screenOf(text string) []string {
	var lines []string
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for text != "" {
		at := control.FindStringSubmatchIndex(text)
		end := len(text)
		if at != nil {
			end = at[0]
		}
		if part := text[:end]; part != "" {
			lines = append(lines, strings.Split(strings.TrimSuffix(part, "\n"), "\n")...)
		}
		if at == nil {
			break
		}
		n, err := strconv.Atoi(text[at[2]:at[3]])
		if err != nil || n > len(lines) {
			return append(lines, "a redraw of more than there is")
		}
		lines, text = lines[:len(lines)-n], text[at[1]:]
	}
	return lines
}

func entry(i int, s board.State) board.Entry {
	return board.Entry{ID: fmt.Sprintf("0000000000%06d", i), Title: fmt.Sprintf("job %d", i), State: s, Created: time.Now(), Updated: time.Now()}
}

func TestLogLinesStandAboveTheTable(t *testing.T) {
	var out bytes.Buffer
	v := &view{w: &out, size: func() (int, int) { return 80, 24 }, entries: map[string]board.Entry{}}
	v.print([]byte("before\n"))
	v.apply(entry(1, board.Running))
	v.draw(false)
	v.print([]byte("first\n"))
	v.draw(false)
	v.apply(entry(2, board.Queued))
	v.print([]byte("second\n"))
	v.draw(true)
	got := screenOf(out.String())
	if len(got) != 7 || strings.Join(got[:3], " ") != "before first second" || !strings.HasPrefix(got[3], "ID ") || got[6] != "1 queued, 1 running" && got[6] != "1 running, 1 queued" {
		t.Errorf("on the screen stands %q", got)
	}
}

func TestTableFitsLowTerminals(t *testing.T) {
	var all []board.Entry
	for i := range 50 {
		all = append(all, entry(i, board.Done))
	}
	all[30].State, all[40].State = board.Running, board.Waiting
	for rows := 1; rows < 12; rows++ {
		lines := tableLines(all, time.Now(), 80, rows)
		if len(lines) > max(rows-1, 1) || !strings.Contains(strings.Join(lines, "\n"), "job 30") {
			t.Errorf("on %d rows: %q", rows, lines)
		}
	}
}

func TestLastTableShowsAllOrTheirNumber(t *testing.T) {
	for _, n := range []int{0, 1, lastJobs, lastJobs + 1} {
		var out bytes.Buffer
		v := &view{w: &out, size: func() (int, int) { return 80, 6 }, entries: map[string]board.Entry{}}
		for i := range n {
			v.apply(entry(i, board.Done))
		}
		v.draw(false)
		v.draw(true)
		got := screenOf(out.String())
		want := n + 2
		if n > lastJobs {
			want = 1
		}
		if len(got) != want || got[len(got)-1] != counts(v.sorted()) {
			t.Errorf("%d jobs: %d lines: %q", n, len(got), got)
		}
	}
}

// A terminal that knows no size is taken for a usual one, and what is logged meanwhile stands above the table.
func TestLogOnATerminalOfNoSize(t *testing.T) {
	dir := folder(t, map[string]string{"plan.yaml": `
jobs:
  - id: one
    steps: [{tool: run_command, args: {command: "until test -e ` + "$GO" + `; do sleep 0.1; done", timeout_secs: 60}}]
    env: {GO: GOFILE}
`})
	gate, config := t.TempDir(), t.TempDir()
	data, goFile, plan := filepath.Join(dir, "data"), filepath.Join(gate, "go"), filepath.Join(dir, "plan.yaml")
	text, err := os.ReadFile(plan)
	if err == nil {
		err = weakest(config, gate)
	}
	if err == nil {
		err = os.WriteFile(plan, bytes.ReplaceAll(text, []byte("GOFILE"), []byte(goFile)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	serve := func() (*exec.Cmd, string) {
		t.Helper()
		c := program(t, "serve", "--slots", "0", "--data", data)
		up := start(t, c)
		if !poll(20*time.Second, func() bool { return strings.Contains(up.String(), "more workers") }) {
			t.Fatalf("the server did not start: %s", up)
		}
		_, rest, _ := strings.Cut(up.String(), "board on ")
		address, _, _ := strings.Cut(rest, " ")
		return c, address
	}
	owner, address := serve()
	c := program(t, "run", "--plan", plan, "--dir", dir, "--connect", address, "--nkey", filepath.Join(data, "user.nk"), "--workers", "1", "--log-level", "info", "--config", filepath.Join(config, "config.yaml"))
	f, err := pty.StartWithSize(c, &pty.Winsize{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	screen, read := &syncBuffer{}, make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(screen, f) // ends with EIO when the last holder of the terminal has gone
	}()
	shows := func(what string) {
		t.Helper()
		if !poll(30*time.Second, func() bool { return strings.Contains(screen.String(), what) }) {
			t.Fatalf("%q is not on the screen: %q", what, screen)
		}
	}
	shows("1 running")
	if err := errors.Join(owner.Process.Kill(), ignore(owner.Wait())); err != nil {
		t.Fatal(err)
	}
	shows("lost the server")
	serve()
	shows("reconnected")
	if err := os.WriteFile(goFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code := ends(t, c, screen)
	<-read
	if err := f.Close(); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
	heads, logged := 0, 0
	got := screenOf(screen.String())
	for _, l := range got {
		if strings.HasPrefix(l, "ID ") {
			heads++
		}
		if strings.Contains(l, "lost the server") || strings.Contains(l, "reconnected") {
			logged++
		}
	}
	if heads != 1 || logged != 2 || !control.MatchString(screen.String()) {
		t.Errorf("%d tables and %d log lines are left: %q", heads, logged, got)
	}
}

// ignore is for the error of a process that was ended on purpose.
func ignore(error) error { return nil }
