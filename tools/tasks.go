package tools

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"muster/budget"
)

// Bounds of an agent's background tasks.
const (
	tasksLive = 32 // running at a time
	tasksKept = 32 // ended ones that can still be read; the oldest is forgotten first
)

// tasks is the commands of one agent: background tasks, and foreground ones while they run. The zero value is empty and ready.
type tasks struct {
	mu      sync.Mutex
	started int // ids given out
	all     []*task
	front   map[*running]bool
	spilled int
	spills  []string
	closed  bool
}

// task is a background command with how much of it was read.
type task struct {
	*running
	id     string
	number int

	mu    sync.Mutex
	seen  [2]int64 // cursors into stdout and stderr
	asked bool     // task_kill was called
}

// hold registers a foreground command, so that the end of the session ends it; false when that was already.
func (t *tasks) hold(r *running) bool {
	t.mu.Lock()
	if t.front == nil {
		t.front = map[*running]bool{}
	}
	closed := t.closed
	if !closed {
		t.front[r] = true
	}
	t.mu.Unlock()
	if closed {
		r.proc.Kill()
		_, _ = r.proc.Wait()
	}
	return !closed
}

func (t *tasks) drop(r *running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.front, r)
}

// startTask starts a background command and returns its id.
func startTask(c *Call, a commandArgs) (Output, error) {
	t := &c.set.tasks
	if err := t.admit(); err != nil {
		return Output{}, err
	}
	r, err := c.launch(a, c.Caps.TaskBytes, 0)
	if err != nil {
		return Output{}, err
	}
	one, err := t.add(r)
	if err != nil {
		r.proc.Kill()
		_, _ = r.proc.Wait()
		return Output{}, err
	}
	text := fmt.Sprintf("id: %s\nrunning in the background: %s\ntask_output reads what it writes (wait_secs waits for it), task_kill ends it; it is ended with the session at the latest",
		one.id, oneLine(r.line, 200))
	return Output{Text: text, Facts: Facts{TaskID: one.id}}, nil
}

// admit says whether another task may start.
func (t *tasks) admit() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full()
}

func (t *tasks) full() error {
	live := 0
	for _, one := range t.all {
		if !one.ended() {
			live++
		}
	}
	if t.closed {
		return errClosed()
	}
	if live >= tasksLive {
		return fail(Permanent, "%d background tasks are running, which is the most; end one with task_kill, or wait for one with task_output", live)
	}
	return nil
}

func (t *tasks) add(r *running) (*task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.full(); err != nil {
		return nil, err
	}
	t.started++
	one := &task{running: r, id: fmt.Sprintf("task-%d", t.started), number: t.started}
	t.all = append(t.all, one)
	t.forget()
	return one, nil
}

// forget drops the oldest ended tasks beyond tasksKept.
func (t *tasks) forget() {
	ended := 0
	for _, one := range t.all {
		if one.ended() {
			ended++
		}
	}
	kept := t.all[:0]
	for _, one := range t.all {
		if ended > tasksKept && one.ended() {
			ended--
			continue
		}
		kept = append(kept, one)
	}
	clear(t.all[len(kept):])
	t.all = kept
}

// list is the tasks that are known, oldest first.
func (t *tasks) list() []*task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]*task(nil), t.all...)
}

// find finds a task by its id, or by its number alone.
func (t *tasks) find(id string) (*task, error) {
	id = strings.TrimSpace(id)
	all := t.list()
	var names []string
	for _, one := range all {
		if one.id == id || fmt.Sprint(one.number) == id {
			return one, nil
		}
		names = append(names, one.id)
	}
	var number int
	t.mu.Lock()
	started := t.started
	t.mu.Unlock()
	if n, _ := fmt.Sscanf(id, "task-%d", &number); n == 1 && number >= 1 && number <= started {
		return nil, fail(Input, "%s ended and its output is kept no longer; the last %d ended tasks are", id, tasksKept)
	}
	if len(names) == 0 {
		return nil, fail(Input, "no task %q: nothing was started in the background; run_command with background does", shorten(id, 80))
	}
	return nil, fail(Input, "no task %q; there are %s", shorten(id, 80), shorten(strings.Join(names, ", "), 600))
}

// close ends every task and foreground command and waits for it. ended counts processes.
func (t *tasks) close() (ended, survivors int) {
	t.mu.Lock()
	t.closed = true
	var live []*running
	for _, one := range t.all {
		if !one.ended() {
			live = append(live, one.running)
		}
	}
	for r := range t.front {
		live = append(live, r)
	}
	t.mu.Unlock()
	for _, r := range live {
		r.proc.Kill()
	}
	for _, r := range live {
		e, _ := r.proc.Wait()
		if e.Killed {
			ended += 1 + e.Left
		}
		survivors += e.Survivors
	}
	return ended, survivors
}

func (r *running) ended() bool {
	select {
	case <-r.proc.Done():
		return true
	default:
		return false
	}
}

// state is "running", or how the task ended: "exit: 3", "exit: killed (by task_kill)".
func (t *task) state() (text string, e *ending) {
	if !t.ended() {
		return "running", nil
	}
	e = &ending{}
	e.Exit, e.err = t.proc.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked {
		e.why = "by task_kill"
	}
	return "exit: " + e.state(), e
}

// age is how long the task ran or has run.
func (t *task) age(e *ending) time.Duration {
	if e != nil {
		return e.Duration
	}
	return time.Since(t.begun)
}

func (t *task) streams() [2]*budget.Capture { return [2]*budget.Capture{t.stdout, t.stderr} }

// unread says whether there is anything that task_output has not shown.
func (t *task) unread() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, s := range t.streams() {
		if data, _, lost := s.Next(t.seen[i], 1); len(data) > 0 || lost > 0 {
			return true
		}
	}
	return false
}

// settle is how long a wait goes on after the first news, so that one answer has what comes in a burst.
const settle = 100 * time.Millisecond

// await waits until the task has something to tell, for at most d.
func (t *task) await(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	limit := time.NewTimer(d)
	defer limit.Stop()
	for {
		news := t.news.next() // before the look, so that nothing falls between
		if t.unread() || t.ended() {
			break
		}
		select {
		case <-news:
		case <-t.proc.Done():
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
	burst := time.NewTimer(settle)
	defer burst.Stop()
	select {
	case <-t.proc.Done():
	case <-burst.C:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// oneLine is a command on one line of at most n characters.
func oneLine(s string, n int) string { return budget.Preview(s, n) }
