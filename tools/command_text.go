package tools

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"muster/budget"
	"muster/tools/sandbox"
)

// ending is how a command ended.
type ending struct {
	sandbox.Exit
	err      error  // of the runner
	why      string // it was killed, if it was
	timedOut bool
}

// state is the ending in a few words: "0", "3", "killed (timed out after 2 s)", "killed (limit of memory: 4.1 GiB used, 4.0 GiB allowed)",
// "ended by SIGSEGV".
func (e ending) state() string {
	switch {
	case e.Limit != "" && e.Killed:
		return "killed (limit of " + e.Limit + ")"
	case e.Limit != "":
		return "ended by " + e.Signal + " (limit of " + e.Limit + ")"
	case e.Killed && e.why != "":
		return "killed (" + e.why + ")"
	case e.Signal == "SIGKILL":
		return "killed by SIGKILL"
	case e.Signal != "":
		return "ended by " + e.Signal
	default:
		return fmt.Sprint(e.Code)
	}
}

// notes are the lines about what else there is to know of an ending.
func (e ending) notes() []string {
	var lines []string
	if e.Left > 0 && !e.Killed {
		lines = append(lines, fmt.Sprintf("left behind: %s, now ended; to keep one running, start it with background", processes(e.Left)))
	}
	if e.Survivors > 0 {
		lines = append(lines, fmt.Sprintf("still running: %s that could not be ended", processes(e.Survivors)))
	}
	if e.err != nil {
		lines = append(lines, fmt.Sprintf("note: %v", e.err))
	}
	return lines
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

func (e ending) facts() Facts {
	f := Facts{Signal: e.Signal, TimedOut: e.timedOut && e.Killed, Left: e.Left}
	if e.Signal == "" {
		code := e.Code
		f.ExitCode = &code
	}
	return f
}

// finished is the result of a foreground command.
func (c *Call) finished(r *running, e ending) Output {
	facts := e.facts()
	lines := append([]string{fmt.Sprintf("exit: %s · %s", e.state(), seconds(e.Duration))}, e.notes()...)
	streams := []*stream{newStream("stdout", r.stdout), newStream("stderr", r.stderr)}
	room := c.Room - budget.Chars(strings.Join(lines, "\n")) - 1
	c.share(streams, room)
	same := e.state()
	for _, s := range streams {
		text, cut := c.show(s)
		lines = append(lines, text)
		facts.Seen += s.snap.Seen
		facts.Kept += int64(len(s.snap.Head) + len(s.snap.Tail))
		if cut != nil {
			facts.Cuts = append(facts.Cuts, *cut)
		}
		same += fmt.Sprintf("\n%s %d %s%s", s.name, s.snap.Seen, s.snap.Head, s.snap.Tail)
	}
	return Output{Text: strings.Join(lines, "\n"), Facts: facts, Same: same, Bad: e.Code != 0 || e.Signal != ""}
}

// seconds is a duration in seconds with one digit, or two where it is short.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// stream is one of a command's outputs on its way into a result.
type stream struct {
	name  string
	snap  budget.Snapshot
	plain string // all of it as text, where nothing was dropped
	limit int    // characters it may take
}

func newStream(name string, capture *budget.Capture) *stream {
	s := &stream{name: name, snap: capture.Snapshot()}
	if s.snap.Dropped == 0 {
		s.plain = strings.TrimRight(budget.Plain(string(s.snap.Head)), "\n")
	}
	return s
}

// want is how many characters the text of the stream takes uncut, and at least as many as limit where that is unknown.
func (s *stream) want(limit int) int {
	if s.snap.Dropped > 0 {
		return limit
	}
	return min(limit, budget.Chars(s.plain))
}

// streamOverhead is set aside for a stream's heading.
const streamOverhead = 80

// share divides room among streams: each may take CommandChars, and where there is less, what one does not need is the other's.
func (c *Call) share(streams []*stream, room int) {
	room -= streamOverhead * len(streams)
	half := max(0, room/2)
	for i, s := range streams {
		other := streams[1-i].want(c.Caps.CommandChars)
		s.limit = min(c.Caps.CommandChars, max(half, room-other))
	}
}

// show is a stream with its heading, cut to its limit. What is cut is kept in a file that the notice names.
func (c *Call) show(s *stream) (string, *budget.Cut) {
	if s.snap.Seen == 0 {
		return s.name + ": (empty)", nil
	}
	heading := fmt.Sprintf("%s: %s, %s", s.name, plural(s.snap.SeenLines, "line"), plural(s.snap.Seen, "byte"))
	if s.snap.Dropped == 0 && budget.Chars(s.plain) <= s.limit {
		return heading + "\n" + s.plain, nil
	}
	where := c.keep(s)
	cut := budget.Cut{What: s.name, Unit: "bytes", Shown: s.snap.Seen, Total: 2 * s.snap.Seen} // the widest that the numbers get
	room := s.limit - budget.Chars(cut.Notice(rest(s.snap.SeenLines, where))) - 2
	head, tail, whole := s.ends(room, c.Caps.CommandHead)
	cut.Shown, cut.Total = int64(len(head)+len(tail)), s.snap.Seen
	parts := []string{heading}
	if text := strings.TrimRight(budget.Plain(string(head)), "\n"); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, cut.Notice(rest(s.snap.SeenLines-whole, where)))
	if text := strings.TrimRight(budget.Plain(string(tail)), "\n"); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n"), &cut
}

func rest(lines int64, where string) string {
	return fmt.Sprintf("%s not shown whole; %s", plural(lines, "line"), where)
}

// ends picks how much of the raw start and end of a stream is shown in room characters, and counts the whole lines in both. The
// share that the head does not use is the tail's.
func (s *stream) ends(room, headPercent int) (head, tail []byte, whole int64) {
	first, last := s.snap.Head, s.snap.Tail
	head = first[:headCut(first, max(0, room*headPercent/100))]
	used := budget.Chars(budget.Plain(string(head)))
	lineStart := false // at the first byte of last
	before := 0        // bytes of last that are not shown, so that it is known what stands before the tail
	if s.snap.Dropped == 0 {
		last = first[len(head):]
		lineStart = len(head) == 0 || head[len(head)-1] == '\n'
	} else {
		_, before = utf8.DecodeRune(last)
	}
	at := before + tailCut(last[before:], max(0, room-used))
	tail = last[at:]
	whole = int64(bytes.Count(head, []byte{'\n'})) + countLines(tail)
	if at > 0 {
		lineStart = last[at-1] == '\n'
	}
	if len(tail) > 0 && !lineStart {
		whole--
	}
	return head, tail, whole
}

// headCut is where a start of b ends that takes at most room characters as text: whole lines, and a part of the next where
// that would be most of the room.
func headCut(b []byte, room int) int {
	half := room / 2
	at := 0
	for at < len(b) {
		end := len(b)
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		n := textChars(b[at:end], room)
		if n > room {
			break
		}
		room -= n
		at = end
	}
	if at == len(b) || room < half {
		return at
	}
	end := at + min(room, len(b)-at) // text never takes more characters than bytes
	for end > at && end < len(b) && !utf8.RuneStart(b[end]) {
		end--
	}
	return end
}

// tailCut is where an end of b begins that takes at most room characters as text: whole lines, and a part of the one before
// where that would be most of the room.
func tailCut(b []byte, room int) int {
	half := room / 2
	at := len(b)
	for at > 0 {
		begin := bytes.LastIndexByte(b[:at-1], '\n') + 1
		n := textChars(b[begin:at], room)
		if n > room {
			break
		}
		room -= n
		at = begin
	}
	if at == 0 || room < half {
		return at
	}
	begin := at - min(room, at)
	for begin < at && !utf8.RuneStart(b[begin]) {
		begin++
	}
	return begin
}

// textChars is how many characters a line takes as text, or more than room where that needs no look.
func textChars(line []byte, room int) int {
	const mostOfLine = 64 << 10 // a longer line is shown in part, whatever it would become
	if len(line) > max(mostOfLine, room) {
		return room + 1
	}
	return budget.Chars(budget.Plain(string(line)))
}

// keep writes what is held of a stream into the scratch folder and says how to read it.
func (c *Call) keep(s *stream) string {
	text := s.plain
	what := "all of it is in"
	if s.snap.Dropped > 0 {
		what = fmt.Sprintf("its first %d and last %d bytes are in", len(s.snap.Head), len(s.snap.Tail))
		gap := budget.Cut{What: s.name, Unit: "bytes", Shown: s.snap.Seen - s.snap.Dropped, Total: s.snap.Seen}
		text = fmt.Sprintf("%s\n%s\n%s", budget.Plain(string(s.snap.Head)), gap.Notice("more than this was not kept"), budget.Plain(string(s.snap.Tail)))
	}
	path, err := c.set.tasks.spill(c, s.name, []byte(text))
	if err != nil {
		return "the rest is lost, since no file could be written; have the command print less"
	}
	return fmt.Sprintf("%s %s for read_file and grep", what, path)
}

// spillsKept bounds how many files of cut output an agent's scratch folder holds; the oldest goes first.
const spillsKept = 50

// spill writes a file of cut output under a name that was not used before.
func (t *tasks) spill(c *Call, stream string, text []byte) (string, error) {
	t.mu.Lock()
	t.spilled++
	name := fmt.Sprintf("command-%d-%s.txt", t.spilled, stream)
	t.mu.Unlock()
	path, err := c.Tree.Spill(name, text)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spills = append(t.spills, path)
	for len(t.spills) > spillsKept {
		_ = os.Remove(t.spills[0])
		t.spills = slices.Delete(t.spills, 0, 1)
	}
	return path, nil
}
