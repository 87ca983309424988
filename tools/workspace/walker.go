package workspace

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Lanes is the most goroutines that one walk uses: more than a few only wait for each other.
const Lanes = 4

const (
	defaultWalkFiles = 500_000
	defaultWalkTime  = 20 * time.Second
	batchFiles       = 64 // a folder with more files is shared among the lanes
	listBytes        = 64 << 10
)

var errNotRegular = errors.New("not a regular file of this workspace")

// folder is one folder of a walk. It is opened beside its parent's handle when a lane comes to it, and stays open while it is listed, while
// batches of its files wait, and while folders in it wait to be opened.
type folder struct {
	parent *folder
	name   string // in parent
	prefix string // the path that results show, with the / that follows; empty for the root
	depth  int
	fd     int
	mount  mountID
	users  atomic.Int32
	rules  *ignoreFile // what holds for its entries
	kept   bool        // ignored itself: only what git tracks in it is walked
}

// release closes the folder with its last user.
func (f *folder) release() {
	if f.users.Add(-1) == 0 {
		closeHandle(f.fd)
	}
}

// task is a folder to open and list, or files of an open one to hand out.
type task struct {
	dir   *folder
	files []string // paths
}

// walk is one running walk: lanes that take tasks from one stack. Last in, first out keeps the number of open folders near depth times lanes.
type walk struct {
	tree    *Tree
	fn      func(Walked) error
	o       WalkOptions
	prune   map[string]bool
	tracked func() *trackedNames
	mount   mountID

	stop   atomic.Bool // nothing more is begun
	files  atomic.Int64
	others atomic.Int64

	mu        sync.Mutex
	wake      sync.Cond
	stack     []task
	busy      int
	err       error
	panics    any
	limit     string // which bound stopped the walk
	unentered int    // folders that still waited then
	skipped   Skipped
}

// startFolder opens the folder that a walk begins with, through the tree's own root; symlinks on the way to it are followed inside.
func (t *Tree) startFolder(name, shown string, ignore bool) (*folder, error) {
	p, dir, self, err := t.openFolder("search", name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	defer self.Close()
	d := &folder{}
	d.fd, d.mount, err = keepHandle(self)
	if err != nil {
		return nil, t.fail("search", name, p, err)
	}
	if d.mount != p.mount {
		closeHandle(d.fd)
		return nil, &PathError{Op: "search", Path: name, Err: ErrOutside, Why: "it is on another mount"}
	}
	d.users.Store(1)
	if shown != "." {
		d.prefix = strings.TrimSuffix(shown, "/") + "/"
	}
	if ignore && p.area == t.main {
		d.rules = t.outerRules(d.prefix)
	}
	return d, nil
}

func newWalk(t *Tree, o WalkOptions, fn func(Walked) error) *walk {
	if o.MaxFiles <= 0 {
		o.MaxFiles = defaultWalkFiles
	}
	if o.MaxTime <= 0 {
		o.MaxTime = defaultWalkTime
	}
	w := &walk{tree: t, fn: fn, o: o, prune: map[string]bool{}}
	w.wake.L = &w.mu
	if !o.NoIgnore {
		names := o.Prune
		if names == nil {
			names = Pruned()
		}
		for _, name := range names {
			w.prune[name] = true
		}
	}
	w.tracked = sync.OnceValue(t.trackedNames)
	return w
}

// run walks start to the end and waits for every lane.
func (w *walk) run(ctx context.Context, start *folder) (Skipped, error) {
	w.mount = start.mount
	w.stack = append(w.stack, task{dir: start})
	timer := time.AfterFunc(w.o.MaxTime, func() { w.halt(fmt.Sprintf("after %v", w.o.MaxTime), nil) })
	defer timer.Stop()
	unhook := context.AfterFunc(ctx, func() { w.halt("", context.Cause(ctx)) })
	defer unhook()

	var lanes sync.WaitGroup
	for i := range min(Lanes, max(2, runtime.GOMAXPROCS(0))) {
		lanes.Go(func() {
			l := &lane{walk: w, index: i, list: entries{buf: make([]byte, listBytes)}}
			l.run()
		})
	}
	lanes.Wait()
	w.mu.Lock() // the clock and ctx may still strike
	defer w.mu.Unlock()
	w.abandon()
	if w.err == nil && ctx.Err() != nil {
		w.err = context.Cause(ctx)
	}
	if w.panics != nil {
		panic(w.panics)
	}
	w.skipped.Files = int(min(w.files.Load(), int64(w.o.MaxFiles)))
	if w.limit != "" && w.err == nil {
		w.skipped.Stopped = fmt.Sprintf("%s: %d files seen, at least %d folders not entered", w.limit, w.skipped.Files, w.unentered)
	}
	return w.skipped, w.err
}

// halt stops the walk for a bound or an error; the first one counts.
func (w *walk) halt(limit string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit == "" && w.err == nil {
		w.limit, w.err = limit, err
	}
	w.stop.Store(true)
	w.wake.Broadcast()
}

// next takes a task; it waits while others may still bring some.
func (w *walk) next() (task, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.stop.Load() {
			return task{}, false
		}
		if n := len(w.stack); n > 0 {
			t := w.stack[n-1]
			w.stack[n-1] = task{}
			w.stack = w.stack[:n-1]
			w.busy++
			return t, true
		}
		if w.busy == 0 {
			w.wake.Broadcast()
			return task{}, false
		}
		w.wake.Wait()
	}
}

// done ends a task.
func (w *walk) done() {
	w.mu.Lock()
	w.busy--
	if w.busy == 0 && len(w.stack) == 0 {
		w.wake.Broadcast()
	}
	w.mu.Unlock()
}

// push adds tasks; the caller has counted itself as a user of their folders.
func (w *walk) push(ts ...task) {
	if len(ts) == 0 {
		return
	}
	w.mu.Lock()
	w.stack = append(w.stack, ts...)
	w.mu.Unlock()
	if len(ts) == 1 {
		w.wake.Signal()
	} else {
		w.wake.Broadcast()
	}
}

// leave adds a lane's counts and, when it is the one that ends by a panic, keeps the panic for the caller of Walk.
func (w *walk) leave(s Skipped, panicked any) {
	w.mu.Lock()
	w.skipped.add(s)
	if panicked != nil && w.panics == nil {
		w.panics = panicked
	}
	w.mu.Unlock()
	if panicked != nil {
		w.halt("", errors.New("walk: a callback panicked"))
	}
}

// abandon releases the handles that tasks which were never begun hold, and counts their folders.
func (w *walk) abandon() {
	for _, t := range w.stack {
		if t.files == nil {
			w.unentered++
		}
		if t.files == nil && t.dir.parent != nil {
			t.dir.parent.release()
		} else {
			t.dir.release()
		}
	}
	w.stack = nil
}
