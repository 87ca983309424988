package board

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// views are the watches of the runs whose parents are held in this process: one a run, shared by all its parents.
type views struct {
	mu sync.Mutex
	of map[string]*view
}

// view is a run's entries as this process has seen them, by parent. A child that was just submitted is in it at once.
type view struct {
	run    string
	users  int
	stop   context.CancelFunc
	synced chan struct{} // closed when the present entries are in
	done   chan struct{} // closed when the watch has ended, with err
	err    error

	mu       sync.Mutex
	families map[string]*family // by parent
}

// family is the children of one parent.
type family struct {
	children map[string]Entry // by id
	placed   int              // that live and are not blocked
	changed  chan struct{}    // closed at the next change
}

// view returns the run's view and starts it where needed; release it once.
func (b *Board) view(ctx context.Context, run string) *view {
	b.views.mu.Lock()
	defer b.views.mu.Unlock()
	v := b.views.of[run]
	if v == nil || v.ended() {
		wctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		v = &view{
			run: run, stop: stop, synced: make(chan struct{}), done: make(chan struct{}),
			families: map[string]*family{},
		}
		if b.views.of == nil {
			b.views.of = map[string]*view{}
		}
		b.views.of[run] = v
		go func() {
			defer close(v.done)
			v.err = b.Watch(wctx, Filter{Run: run}, func() { close(v.synced) }, func(e Entry) error { v.see(e); return nil })
		}()
	}
	v.users++
	return v
}

func (b *Board) release(v *view) {
	b.views.mu.Lock()
	v.users--
	last := v.users == 0
	if last && b.views.of[v.run] == v {
		delete(b.views.of, v.run)
	}
	b.views.mu.Unlock()
	if last {
		v.stop()
		<-v.done
	}
}

func (v *view) ended() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

// family is called with mu held.
func (v *view) family(parent string) *family {
	f := v.families[parent]
	if f == nil {
		f = &family{children: map[string]Entry{}, changed: make(chan struct{})}
		v.families[parent] = f
	}
	return f
}

// see takes in an entry, unless a newer one is there.
func (v *view) see(e Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.family(e.Parent)
	old := f.children[e.ID]
	if old.Revision >= e.Revision {
		return
	}
	f.children[e.ID] = e
	if old.Revision != 0 && old.State.placed() {
		f.placed--
	}
	if e.State.placed() {
		f.placed++
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// placed reports whether a job in this state takes one of the places that its parent allows.
func (s State) placed() bool { return s != Blocked && !s.Terminal() }

// list returns the children of a parent by age, and a channel that is closed at their next change.
func (v *view) list(parent string) ([]Entry, <-chan struct{}) {
	v.mu.Lock()
	f := v.family(parent)
	all, changed := slices.Collect(maps.Values(f.children)), f.changed
	v.mu.Unlock()
	slices.SortFunc(all, byAge)
	return all, changed
}

// count returns how many children a parent has, how many have a place, and the one with an id.
func (v *view) count(parent, id string) (total, placed int, child Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.family(parent)
	return len(f.children), f.placed, f.children[id]
}

// alive reports whether a job that is held in this process has children with a place.
func (vs *views) alive(j Job) bool {
	vs.mu.Lock()
	v := vs.of[j.Run]
	vs.mu.Unlock()
	if v == nil {
		return false
	}
	_, placed, _ := v.count(j.ID, "")
	return placed > 0
}

func (v *view) ready(ctx context.Context) error {
	select {
	case <-v.synced:
		return nil
	case <-v.done:
		return v.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// childView is the view of the lease's run, held until the lease ends. A view whose connection was lost is replaced.
func (l *Lease) childView(ctx context.Context) (*view, error) {
	l.viewMu.Lock()
	defer l.viewMu.Unlock()
	if l.view != nil && l.view.ended() {
		l.b.release(l.view)
		l.view = nil
	}
	if l.view == nil {
		l.view = l.b.view(ctx, l.job.Run)
	}
	if err := l.view.ready(ctx); err != nil {
		return nil, fmt.Errorf("children of job %s: %w", l.job.ID, err)
	}
	return l.view, nil
}

func (l *Lease) releaseView() {
	l.viewMu.Lock()
	defer l.viewMu.Unlock()
	if l.view != nil {
		l.b.release(l.view)
		l.view = nil
	}
}

// Submit starts a child of this job: limits (depth, total, live) come from the caps of the job. The id is derived from the parent and
// call, so that the same call submits once. ErrLimit over the depth or the total; over the live ones the child is blocked until a
// sibling ends. ErrKilled when this job is being killed.
func (l *Lease) Submit(ctx context.Context, call string, child Job) (Entry, error) {
	caps, err := l.job.Caps.Caps()
	if err != nil {
		return Entry{}, fmt.Errorf("submit a child: caps: %w", err)
	}
	parent := l.job
	child.ID, child.Run, child.Parent = childID(parent, call), parent.Run, parent.ID
	child.Path = append(slices.Clone(parent.Path), parent.ID)
	child.Sandbox, child.Rules, child.AskFor = parent.Sandbox, parent.Rules, parent.AskFor // delegation widens nothing
	child.Pool, child.Priority = cmp.Or(child.Pool, parent.Pool), cmp.Or(child.Priority, parent.Priority)
	if d := parent.Deadline; !d.IsZero() && (child.Deadline.IsZero() || d.Before(child.Deadline)) {
		child.Deadline = d
	}
	if child, err = child.complete(); err != nil {
		return Entry{}, err
	}
	if err := l.b.hide(&child); err != nil {
		return Entry{}, err
	}

	l.submitMu.Lock() // one at a time, so that counting is exact
	defer l.submitMu.Unlock()
	v, err := l.childView(ctx)
	if err != nil {
		return Entry{}, err
	}
	total, placed, before := v.count(parent.ID, child.ID)
	if before.ID != "" {
		err := l.b.again(ctx, &before)
		return before, err
	}
	switch {
	case l.Entry().Killing != "":
		return Entry{}, fmt.Errorf("submit a child: job %s is being killed (%s): %w", parent.ID, l.Entry().Killing, ErrKilled)
	case len(child.Path) > caps.Depth:
		return Entry{}, fmt.Errorf("submit a child: %w: depth %d of %d: do the task yourself", ErrLimit, len(parent.Path), caps.Depth)
	case total >= caps.ChildrenTotal:
		return Entry{}, fmt.Errorf("submit a child: %w: %d of %d children were started: do the rest yourself", ErrLimit, total, caps.ChildrenTotal)
	}
	if err := l.b.checkAfter(ctx, []Job{child}); err != nil {
		return Entry{}, err
	}
	e := l.b.newEntry(child)
	e.Live = caps.ChildrenLive
	if placed >= caps.ChildrenLive {
		e.State = Blocked
	}
	stored, err := l.b.store(ctx, []Job{child}, []Entry{e})
	if err != nil {
		return Entry{}, err
	}
	v.see(stored[0])
	signal(l.s.slots.freed) // a worker that drains claims again
	return stored[0], nil
}

// childID is a UUIDv7 in form, so that it sorts behind its parent's time, and always the same for the same call.
func childID(parent Job, call string) string {
	sum := sha256.Sum256([]byte(parent.ID + "\x00" + call))
	var id uuid.UUID
	copy(id[:], sum[:])
	if p, err := uuid.Parse(parent.ID); err == nil {
		copy(id[:6], p[:6])
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// Children lists the direct children, sorted by creation. After the first call it costs no round trip.
func (l *Lease) Children(ctx context.Context) ([]Entry, error) {
	v, err := l.childView(ctx)
	if err != nil {
		return nil, err
	}
	all, _ := v.list(l.job.ID)
	return all, nil
}

// crowd is from how many children on changes are looked at together, each crowdPause: a look at all of them for each change of one
// would cost the square of their number.
const (
	crowd      = 200
	crowdPause = 50 * time.Millisecond
)

// WaitChildren gives the slot back, waits until cond is true of the children (called with all of them at each change) or d has passed
// (d < 0: however long it takes), takes a slot again and returns the children. The lease goes on meanwhile. When ctx ends it
// returns its cause; when the handler's own has ended too, at once and without a slot.
func (l *Lease) WaitChildren(ctx context.Context, d time.Duration, cond func([]Entry) bool) ([]Entry, error) {
	v, err := l.childView(ctx)
	if err != nil {
		return nil, err
	}
	all, changed := v.list(l.job.ID)
	if d == 0 || cond(all) {
		return all, nil
	}
	if err := l.pause(ctx); err != nil {
		return nil, err
	}
	var timeout <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timeout = t.C
	}
	for over := false; !over; {
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), l.unwait())
		case <-timeout:
			over = true
		case <-v.done:
			if v, err = l.childView(ctx); err != nil {
				return nil, errors.Join(err, l.resume(ctx))
			}
		case <-changed:
			if len(all) > crowd {
				pause(ctx, crowdPause)
			}
		}
		all, changed = v.list(l.job.ID)
		over = over || cond(all)
	}
	if err := l.resume(ctx); err != nil {
		return nil, err
	}
	all, _ = v.list(l.job.ID)
	return all, nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
