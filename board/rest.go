package board

import (
	"sync"
	"time"
)

const firstRest, maxRest = time.Second, 30 * time.Second

// rest is the pause of a worker whose handler says that it is unfit. Without it, such a worker would take each job that it hands back, and
// every other one, faster than those that can do them.
type rest struct {
	mu    sync.Mutex
	pause time.Duration // of the newest rest, 0 when the worker was fit since
	until time.Time
}

// unfit begins a rest, twice as long as the one before. Handlers that find out at once, side by side, are one failure.
func (r *rest) unfit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return
	}
	r.pause = min(max(firstRest, 2*r.pause), maxRest)
	r.until = time.Now().Add(r.pause)
}

// fit says that a job ended as it should.
func (r *rest) fit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pause = 0
}

func (r *rest) on() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.until)
}
