package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/budget"
)

// inOrder fails unless text has each of parts after the one before.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("no %q (in this order: %q) in\n%s", p, parts, text)
		}
		rest = after
	}
}

func TestCommandResults(t *testing.T) {
	s := newSet(t)
	for _, c := range []struct {
		command string
		ok      bool
		code    int
		signal  string
		parts   []string
	}{
		{"true", true, 0, "", []string{"exit: 0 · 0.", "stdout: (empty)", "stderr: (empty)"}},
		{"echo hi; echo there", true, 0, "", []string{"exit: 0 · ", "stdout: 2 lines, 9 bytes\nhi\nthere\nstderr: (empty)"}},
		{"printf x; printf y >&2; exit 3", false, 3, "", []string{"exit: 3 · ", "stdout: 1 line, 1 byte\nx\nstderr: 1 line, 1 byte\ny"}},
		{"echo before; kill -KILL $$", false, 0, "SIGKILL", []string{"exit: killed by SIGKILL · ", "before"}},
		{"kill -SEGV $$", false, 0, "SIGSEGV", []string{"exit: ended by SIGSEGV · "}},
		{"printf '10%%\\r50%%\\r100%%\\n\\033[31mred\\033[0m\\n\\377'", true, 0, "", []string{"\n100%\nred\n\uFFFD\n"}},
		{"sleep 300 & sleep 300 & echo up", true, 0, "", []string{"exit: 0", "left behind: 2 processes, now ended; ", "background", "up"}},
		{"no-such-program-here", false, 127, "", []string{"exit: 127", "not found"}},
		{"-x", false, 127, "", []string{"exit: 127"}},
		{"cat; test -t 0 || test -t 1 || echo alone", true, 0, "", []string{"alone"}},
		{"read -rp 'Password: ' x; echo status $?", true, 0, "", []string{"status 1"}},
		{"(setsid sh -c 'sleep 300 & exec sleep 300' &); exec 3>&1; echo up", true, 0, "", []string{"exit: 0", "left behind: ", "now ended; ", "up"}},
	} {
		t.Run(c.command, func(t *testing.T) {
			r := call(t, s, "run_command", "command", c.command)
			inOrder(t, r.Text, c.parts...)
			if r.OK != c.ok || r.Class != "" || r.Facts.Signal != c.signal || len(r.Facts.Cuts) != 0 {
				t.Errorf("got %+v", r)
			}
			if (r.Facts.ExitCode == nil) != (c.signal != "") || r.Facts.ExitCode != nil && *r.Facts.ExitCode != c.code {
				t.Errorf("exit code %v", r.Facts.ExitCode)
			}
		})
	}
}

func TestCommandTimesOut(t *testing.T) {
	s := newSet(t)
	begun := time.Now()
	r := call(t, s, "run_command", "command", "trap '' TERM; echo early; setsid -f sleep 300; while :; do sleep 300; done", "timeout_secs", 1)
	inOrder(t, r.Text, "exit: killed (timed out after 1 s) · ", "early", "stderr: (empty)")
	if r.OK || !r.Facts.TimedOut || r.Facts.Signal != "SIGKILL" || r.Facts.ExitCode != nil || strings.Contains(r.Text, "left behind") {
		t.Errorf("got %+v", r)
	}
	if d := time.Since(begun); d > patience {
		t.Errorf("took %v", d)
	}
}

func TestCommandIsCancelled(t *testing.T) {
	s := newSet(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	flag := filepath.Join(s.cfg.Tree.Dir, "up")
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(flag); err == nil {
				cancel(errors.New("the job was killed"))
				return
			}
		}
	}()
	r := s.Invoke(ctx, Request{ID: "1", Tool: "run_command", Args: obj(t, "command", "echo partial; sleep 0.1; touch up; sleep 300")})
	inOrder(t, r.Text, "exit: killed (cancelled: the job was killed)", "partial")
	if r.OK || r.Facts.TimedOut {
		t.Errorf("got %+v", r)
	}
}

func TestCommandWorkdir(t *testing.T) {
	s := newSet(t)
	put(t, s, "sub/deep/here.txt", "x")
	if err := os.Symlink("sub/deep", filepath.Join(s.cfg.Tree.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(s.cfg.Tree.Dir, "out")); err != nil {
		t.Fatal(err)
	}
	for dir, class := range map[string]ErrorClass{
		".": "", "sub/deep": "", "link": "", s.cfg.Tree.Dir + "/sub": "", s.cfg.Tree.Scratch: "",
		"..": Permission, "/": Permission, "out": Permission, "sub/../..": Permission,
		"sub/deep/here.txt": Input, "no/where": Input,
	} {
		r := call(t, s, "run_command", "command", "pwd", "workdir", dir)
		if r.Class != class || r.OK != (class == "") {
			t.Errorf("workdir %q: %s", dir, r.Text)
		}
	}
	if r := call(t, s, "run_command", "command", "ls", "workdir", "link"); !strings.Contains(r.Text, "here.txt") {
		t.Errorf("got %s", r.Text)
	}
}

func TestCommandEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("COMMAND_TEST_SECRET", "hidden")
	t.Setenv("BASH_ENV", "/etc/hidden")
	t.Setenv("LC_TIME", "C")
	s := newSet(t, func(c *Config) { c.Env = map[string]string{"GIVEN": "yes", "CI": "no"} })
	r := call(t, s, "run_command", "command", "env; test -w $HOME && test -w $TMPDIR && echo both are there")
	inOrder(t, r.Text, "both are there")
	known := regexp.MustCompile(`^(PATH|LANG|LC_[A-Z]+|TZ|USER|LOGNAME|HOME|TMPDIR|TERM|NO_COLOR|CI|PAGER|GIT_PAGER|GIT_TERMINAL_PROMPT|GIVEN|PWD|OLDPWD|SHLVL|_)=`)
	values := map[string]string{}
	for _, line := range strings.Split(r.Text, "\n") {
		name, v, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		if !known.MatchString(line) {
			t.Errorf("%s is in a command's environment", line)
		}
		values[name] = v
	}
	for name, want := range map[string]string{
		"GIVEN": "yes", "CI": "no", "LC_TIME": "C", "TERM": "dumb", "PAGER": "cat", "PATH": os.Getenv("PATH"),
		"HOME": filepath.Join(s.cfg.Tree.Scratch, "home"), "TMPDIR": filepath.Join(s.cfg.Tree.Scratch, "tmp"),
	} {
		if values[name] != want {
			t.Errorf("%s = %q, want %q", name, values[name], want)
		}
	}
}

func TestCommandThatCannotStart(t *testing.T) {
	s := newSet(t)
	for command, class := range map[string]ErrorClass{"": Input, "echo \x00": Input, "# " + strings.Repeat("x", 3<<20): Input} {
		if r := call(t, s, "run_command", "command", command); r.OK || r.Class != class {
			t.Errorf("%.20q: %s", command, r.Text)
		}
	}
}

var cutNotice = regexp.MustCompile(`\[… showing (\d+) of (\d+) bytes of (std\w+), (\d+) left out; (\d+) lines? not shown whole; (?:all of it is|its first \d+ and last \d+ bytes are) in (\S+) for read_file and grep\]`)

func amount(t interface{ Fatal(...any) }, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCutCommandOutputIsKept(t *testing.T) {
	s := newSet(t)
	r := call(t, s, "run_command", "command", "seq 100000 199999 | head -c 200000; echo the end")
	m := cutNotice.FindStringSubmatch(r.Text)
	if m == nil || budget.Chars(r.Text) > 9000 || budget.Chars(r.Text) < 7000 {
		t.Fatalf("%d characters:\n%s", budget.Chars(r.Text), r.Text)
	}
	inOrder(t, r.Text, "exit: 0", "100000\n100001", m[0], "the end")
	if shown, total := amount(t, m[1]), amount(t, m[2]); total != 200008 || shown+amount(t, m[4]) != total || shown > 8000 {
		t.Errorf("notice %s", m[0])
	}
	if len(r.Facts.Cuts) != 1 || r.Facts.Cuts[0].Total != 200008 || r.Facts.Seen != 200008 || r.Facts.Kept != 200008 {
		t.Errorf("facts %+v", r.Facts)
	}
	if got := call(t, s, "read_file", "path", m[6], "offset", 20_000, "limit", 2); !strings.Contains(got.Text, "119999") {
		t.Errorf("the whole output cannot be read: %s", got.Text)
	}
}

// TestCutIsExact feeds any stream through a capture of any size and holds what is shown against the truth.
func TestCutIsExact(t *testing.T) {
	tree := newTree(t)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"x", "line\n", "中", "😀\n", "\n", "\x1b[31mred\x1b[0m", "10%\r20%\r", "\xff", "\x00", strings.Repeat("y", 700)})
		raw := strings.Repeat(strings.Join(rapid.SliceOfN(word, 1, 60).Draw(t, "words"), ""), rapid.IntRange(1, 60).Draw(t, "times"))
		caps := budget.Default()
		caps.CommandChars = rapid.IntRange(500, 3000).Draw(t, "chars")
		caps.CommandHead = rapid.IntRange(0, 90).Draw(t, "head")
		capture := budget.NewCapture(rapid.IntRange(4<<10, 32<<10).Draw(t, "bytes"), caps.CommandHead)
		_, _ = capture.Write([]byte(raw))
		set := &Set{}
		c := &Call{Tree: tree, Caps: caps, Room: caps.OutputChars, set: set}
		st := newStream("stdout", capture)
		st.limit = caps.CommandChars
		text, cut := c.show(st)
		_, body, _ := strings.Cut(text, "\n")
		if n := budget.Chars(body); n > caps.CommandChars {
			t.Fatalf("%d characters of %d", n, caps.CommandChars)
		}
		m := cutNotice.FindStringSubmatch(text)
		if (m == nil) != (cut == nil) {
			t.Fatalf("cut %+v with notice %q in %q", cut, m, text)
		}
		whole := strings.TrimRight(budget.Plain(raw), "\n")
		if cut == nil {
			if body != whole {
				t.Fatalf("nothing was cut, but %q is shown for %q", body, whole)
			}
			return
		}
		if budget.Chars(whole) <= caps.CommandChars && capture.Snapshot().Dropped == 0 {
			t.Fatal("cut although it fits")
		}
		shown, total, left := amount(t, m[1]), amount(t, m[2]), amount(t, m[4])
		if total != int64(len(raw)) || shown+left != total || cut.Shown != shown || cut.Total != total {
			t.Fatalf("%s of %d bytes", m[0], len(raw))
		}
		head, tail, _ := strings.Cut(body, m[0])
		checkEnds(t, raw, head, tail, shown, amount(t, m[5]))
		_ = os.Remove(m[6])
	})
}

// checkEnds looks for the head and tail of raw that give the texts shown, of shown bytes together, with cutLines lines outside.
func checkEnds(t *rapid.T, raw, head, tail string, shown, cutLines int64) {
	head, tail = strings.TrimRight(head, "\n"), strings.Trim(tail, "\n")
	for h := 0; h <= int(shown); h++ {
		from := len(raw) - (int(shown) - h)
		if strings.TrimRight(budget.Plain(raw[:h]), "\n") != head || strings.Trim(budget.Plain(raw[from:]), "\n") != tail {
			continue
		}
		lines := strings.Count(raw, "\n")
		if !strings.HasSuffix(raw, "\n") {
			lines++
		}
		whole := strings.Count(raw[:h], "\n") + strings.Count(raw[from:], "\n")
		if from < len(raw) && !strings.HasSuffix(raw, "\n") {
			whole++
		}
		if from > 0 && from < len(raw) && raw[from-1] != '\n' {
			whole--
		}
		if int64(lines-whole) == cutLines {
			return
		}
	}
	t.Fatalf("no start and end of the stream, %d bytes together with %d lines outside, are what is shown:\n%q\n…\n%q", shown, cutLines, head, tail)
}

func TestBothStreamsShareTheRoom(t *testing.T) {
	s := newSet(t, func(c *Config) { c.Caps.CommandChars = 100_000 })
	r := call(t, s, "run_command", "command", "seq 100000; seq 200000 >&2")
	if n := budget.Chars(r.Text); n > 20_000 || n < 18_000 || len(r.Facts.Cuts) != 2 {
		t.Errorf("%d characters, cuts %+v", n, r.Facts.Cuts)
	}
	inOrder(t, r.Text, "stdout: 100000 lines", "left out", "\n100000\nstderr: 200000 lines", "left out", "\n200000")
	r = call(t, s, "run_command", "command", "seq 100000; echo short >&2")
	if n := budget.Chars(r.Text); n > 20_000 || n < 18_000 || len(r.Facts.Cuts) != 1 {
		t.Errorf("%d characters, cuts %+v", n, r.Facts.Cuts)
	}
	inOrder(t, r.Text, "left out", "\n100000\nstderr: 1 line, 6 bytes\nshort")
}

func TestOldOutputFilesGo(t *testing.T) {
	s := newSet(t)
	c := &Call{Tree: s.cfg.Tree, set: s}
	for i := range spillsKept + 5 {
		if _, err := s.tasks.spill(c, "stdout", []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(s.cfg.Tree.Scratch, "command-*"))
	if err != nil || len(files) != spillsKept {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// resident is the memory of this process in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	fields := strings.Fields(string(b))
	return amount(t, fields[1]) * int64(os.Getpagesize())
}

// Check 7 of the tool contract, by volume: what a noisy command prints in minutes, 10 GB, passes through a bounded memory, in the foreground and in
// the background.
func TestNoise(t *testing.T) {
	command := fmt.Sprintf("head -c %d /dev/zero; echo; echo end", noiseBytes)
	t.Run("five_minutes_of_noise_holds_memory", func(t *testing.T) {
		s := newSet(t)
		call(t, s, "run_command", "command", "echo warm")
		var r Reply
		holdsMemory(t, func() { r = call(t, s, "run_command", "command", command, "timeout_secs", 120) })
		if !r.OK || r.Facts.Seen != noiseBytes+5 || r.Facts.Kept > 256<<10 || budget.Chars(r.Text) > 20_000 {
			t.Errorf("%d characters, %+v", budget.Chars(r.Text), r.Facts)
		}
		inOrder(t, r.Text, "exit: 0", fmt.Sprintf("of %d bytes of stdout", noiseBytes+5), "end")
	})
	t.Run("noise_of_a_task_holds_memory", func(t *testing.T) {
		s := newSet(t)
		call(t, s, "run_command", "command", "echo warm")
		var texts []string
		var last Reply
		holdsMemory(t, func() { texts, last = toTheEnd(t, s, background(t, s, command)) })
		if last.Facts.ExitCode == nil || *last.Facts.ExitCode != 0 || last.Facts.Seen != noiseBytes+5 || last.Facts.Kept > 512<<10 {
			t.Errorf("got %+v", last.Facts)
		}
		inOrder(t, texts[len(texts)-1], "end")
		for _, text := range texts {
			if n := budget.Chars(text); n > 20_000 {
				t.Errorf("a page of %d characters", n)
			}
		}
	})
}

// holdsMemory fails where run makes this process grow by more than 64 MiB meanwhile.
func holdsMemory(t *testing.T, run func()) {
	t.Helper()
	runtime.GC()
	before, peak := resident(t), int64(0)
	begun := time.Now()
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				peak = max(peak, resident(t))
			case <-stop:
				return
			}
		}
	})
	run()
	close(stop)
	watch.Wait()
	d := time.Since(begun)
	t.Logf("%.1f s, %.2f GB/s, memory grew by %.1f MB", d.Seconds(), noiseBytes/1e9/d.Seconds(), float64(peak-before)/1e6)
	if peak-before > 64<<20 {
		t.Errorf("memory grew by %d bytes", peak-before)
	}
}
