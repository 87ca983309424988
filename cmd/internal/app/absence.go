package app

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// awayTold is how often a person hears that the server is still away.
const awayTold = 10 * time.Second

// absence tells of a server that was connected to and has gone, again and again until it is back.
type absence struct {
	log zerolog.Logger

	mu    sync.Mutex
	since time.Time
	timer *time.Timer // nil while the server is there
}

func (a *absence) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer == nil {
		a.since = time.Now()
		a.timer = time.AfterFunc(awayTold, a.tell)
	}
}

func (a *absence) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer == nil {
		return
	}
	a.log.Warn().Msgf("the server is away since %s; it is tried again and again, Ctrl-C ends this", a.since.Format(time.TimeOnly))
	a.timer.Reset(awayTold)
}

// end is for a server that is back, and for a connection that is closed.
func (a *absence) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
