package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"muster/budget"
)

type taskArgs struct {
	ID string `json:"id" jsonschema:"task id"`
}

type taskOutputArgs struct {
	ID       string `json:"id" jsonschema:"task id"`
	WaitSecs int    `json:"wait_secs,omitempty" default:"0" min:"0" max:"timeout_secs" jsonschema:"seconds to wait for output or the end"`
}

type noArgs struct{}

func taskOutput() Tool {
	return define("task_output", State, // it moves on to what is next: two at once would share out the pages
		"Reads what a background task of run_command wrote since the last call, with its state and exit code. What does not fit stays for the next call.",
		runTaskOutput)
}

func runTaskOutput(ctx context.Context, c *Call, a taskOutputArgs) (Output, error) {
	t, err := c.set.tasks.find(a.ID)
	if err != nil {
		return Output{}, err
	}
	_, ended := t.state()
	t.await(ctx, time.Duration(a.WaitSecs)*time.Second)
	state, e := t.state() // before the streams: what an ended task wrote is all there
	out := Output{Facts: Facts{TaskID: t.id}, Waited: a.WaitSecs > 0 && ended == nil}
	var notes []string
	if e != nil {
		out.Facts = e.facts()
		out.Facts.TaskID = t.id
		notes = e.notes()
	}
	lines := append([]string{fmt.Sprintf("%s · %s · %s", t.id, state, seconds(t.age(e)))}, notes...)
	room := c.Room - budget.Chars(strings.Join(lines, "\n")) - 1
	sections, cuts, same := t.read(c.Caps.CommandChars, room)
	for i, s := range t.streams() {
		snap := s.Snapshot()
		out.Facts.Seen += snap.Seen
		out.Facts.Kept += int64(len(snap.Head) + len(snap.Tail))
		lines = append(lines, sections[i])
	}
	out.Facts.Cuts = cuts
	out.Text = strings.Join(lines, "\n")
	out.Same = t.id + state + same
	return out, nil
}

// read takes the next unseen part of both streams, each of at most limit characters and together of at most room.
func (t *task) read(limit, room int) (sections [2]string, cuts []budget.Cut, same string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := [2]string{"stdout", "stderr"}
	const overhead = 320 // heading and notice of a stream
	for i, s := range t.streams() {
		most := min(limit, room-overhead)
		if i == 0 { // leave the other half where the other stream needs it
			waiting, _, _ := t.stderr.Next(t.seen[1], min(limit, max(1, room)))
			most = min(most, max(room/2, room-2*overhead-len(waiting))-overhead)
		}
		text, cut := t.take(i, names[i], s, max(1, most))
		sections[i] = text
		same += text
		if cut != nil {
			cuts = append(cuts, *cut)
		}
		room -= budget.Chars(text) + 1
	}
	return sections, cuts, same
}

// take is the next part of one stream. Text never takes more characters than bytes, so bytes bound it.
func (t *task) take(i int, name string, s *budget.Capture, most int) (string, *budget.Cut) {
	data, next, lost := s.Next(t.seen[i], most)
	t.seen[i] = next
	if len(data) == 0 && lost == 0 {
		if next == 0 {
			return name + ": (empty)", nil
		}
		return name + ": (nothing new)", nil
	}
	waiting := s.Snapshot().Seen - next
	text := strings.TrimRight(budget.Plain(string(data)), "\n")
	heading := fmt.Sprintf("%s: %s", name, plural(int64(len(data)), "new byte"))
	if lost == 0 && waiting == 0 {
		return heading + "\n" + text, nil
	}
	cut := &budget.Cut{What: "new " + name, Unit: "bytes", Shown: int64(len(data)), Total: lost + int64(len(data)) + waiting}
	var why []string
	if lost > 0 {
		why = append(why, fmt.Sprintf("%s before this were dropped unread", plural(lost, "byte")))
	}
	if waiting > 0 {
		why = append(why, fmt.Sprintf("%s wait for the next task_output", plural(waiting, "more byte")))
	}
	return heading + "\n" + text + "\n" + cut.Notice(strings.Join(why, ", ")), cut
}

func taskList() Tool {
	return define("task_list", Read,
		"Lists your background tasks: id, state, age, bytes, command.",
		runTaskList)
}

func runTaskList(_ context.Context, c *Call, _ noArgs) (Output, error) {
	all := c.set.tasks.list()
	if len(all) == 0 {
		return Output{Text: "no background tasks; run_command with background starts one"}, nil
	}
	var rows []string
	same := ""
	for _, t := range all {
		state, e := t.state()
		bytes := t.stdout.Snapshot().Seen + t.stderr.Snapshot().Seen
		rows = append(rows, fmt.Sprintf("%s · %s · %s · %s · %s", t.id, state, seconds(t.age(e)), humanize.IBytes(uint64(bytes)), oneLine(t.line, 100)))
		same += fmt.Sprintf("%s %s %d\n", t.id, state, bytes)
	}
	out := Output{Same: same}
	if n := rowsThatFit(rows, c.Room); n < len(rows) {
		const noticeRoom = 200
		n = rowsThatFit(rows, c.Room-noticeRoom)
		cut := budget.Cut{What: "tasks", Unit: "rows", Shown: int64(n), Total: int64(len(rows))}
		rows = append([]string{cut.Notice("the newest are shown; task_output knows the others by id")}, rows[len(rows)-n:]...)
		out.Facts.Cuts = append(out.Facts.Cuts, cut)
	}
	out.Text = strings.Join(rows, "\n")
	return out, nil
}

func taskKill() Tool {
	return define("task_kill", State,
		"Ends a background task and all it started; harmless twice. For a child agent use agent_kill.",
		runTaskKill)
}

func runTaskKill(_ context.Context, c *Call, a taskArgs) (Output, error) {
	t, err := c.set.tasks.find(a.ID)
	if err != nil {
		return Output{}, err
	}
	if t.ended() {
		state, e := t.state()
		f := e.facts()
		f.TaskID = t.id
		return Output{Text: fmt.Sprintf("%s had ended before · %s · %s; there was nothing to do", t.id, state, seconds(t.age(e))), Facts: f}, nil
	}
	t.mu.Lock()
	t.asked = true
	t.mu.Unlock()
	t.proc.Kill()
	<-t.proc.Done()
	state, e := t.state()
	f := e.facts()
	f.TaskID = t.id
	if !e.Killed {
		return Output{Text: fmt.Sprintf("%s ended by itself · %s · %s", t.id, state, seconds(t.age(e))), Facts: f}, nil
	}
	lines := append([]string{fmt.Sprintf("%s killed, %s ended · %s", t.id, processes(1+e.Left), seconds(t.age(e)))}, e.notes()...)
	return Output{Text: strings.Join(lines, "\n"), Facts: f}, nil
}
