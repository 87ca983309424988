package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	tendPoll   = time.Second      // how often the owner looks after its folder and its store
	calm       = time.Minute      // a store that wrote for so long is well again
	maxRestart = 30 * time.Second // the longest wait between two restarts of one that is not
)

// notice logs a state when it begins, and not again while it lasts.
type notice struct {
	log  func(string)
	last string
}

// say logs err with a prefix and a suffix unless that is what was said last; nil ends the state.
func (n *notice) say(prefix string, err error, suffix string) {
	state := ""
	if err != nil {
		state = err.Error()
	}
	if e := (*fullError)(nil); errors.As(err, &e) {
		state = "full" // what is free changes all the time
	}
	if state != "" && state != n.last {
		n.log(prefix + err.Error() + suffix)
	}
	n.last = state
}

// ward is what the owner knows about the state of its folder and its store.
type ward struct {
	s            *Server
	files, store notice
	restarted    time.Time
	wait         time.Duration // before the next restart
}

// tend keeps what others need to find the server in the folder, and the store writing, while this process owns both.
func (s *Server) tend(ctx context.Context) {
	w := &ward{s: s, files: notice{log: s.opts.Log}, store: notice{log: s.opts.Log}}
	tick := time.NewTicker(tendPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.files.say("", w.keepFiles(), "")
		w.heal(ctx)
	}
}

// keepFiles writes the address and the key again where they are gone or damaged: without them nobody else finds the server.
func (w *ward) keepFiles() error {
	dir := w.s.opts.Dir
	if !w.s.lock.at(dir) {
		return fmt.Errorf("data folder %s was removed or replaced while its server runs here: nobody else finds this server; end this process", dir)
	}
	in, err := readInfo(dir)
	if err != nil || in.URL != w.s.at.URL || in.PID != w.s.at.PID {
		if err := writeInfo(dir, w.s.at); err != nil {
			return full(dir, err)
		}
		w.s.opts.Log("data folder " + dir + ": " + infoFile + " was gone or damaged and is written again")
	}
	seed, err := w.s.key.Seed()
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	name := filepath.Join(dir, keyFile)
	if b, err := os.ReadFile(name); err != nil || !bytes.Equal(bytes.TrimSpace(b), seed) {
		if err := replace(name, append(seed, '\n')); err != nil {
			return full(dir, err)
		}
		w.s.opts.Log("data folder " + dir + ": " + keyFile + " was gone or damaged and is written again")
	}
	return nil
}

// heal restarts a server whose store has stopped writing, once there is room for it: after a write error a store refuses every
// write until it is opened anew, room or not.
func (w *ward) heal(ctx context.Context) {
	s := w.s
	if s.stores() {
		w.store.say("", nil, "")
		if w.wait > 0 && time.Since(w.restarted) > calm {
			w.wait = 0
		}
		return
	}
	if err := room(s.opts.Dir); err != nil {
		w.store.say("the board stands still: ", err, ", then it goes on by itself")
		return
	}
	if time.Since(w.restarted) < w.wait {
		return
	}
	w.restarted, w.wait = time.Now(), min(max(2*w.wait, tendPoll), maxRestart)
	if err := s.restart(ctx); err != nil {
		if ctx.Err() == nil {
			w.store.say("restart the server of "+s.opts.Dir+": ", err, "")
		}
		return
	}
	w.store.say("", nil, "")
	s.opts.Log("data folder " + s.opts.Dir + ": its server had stopped storing and was restarted")
}

// stores says whether the store of the server in this process takes writes, as far as the server has noticed.
func (s *Server) stores() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ns != nil && s.ns.JetStreamEnabled() && !s.ns.broken.Load()
}

// restart ends the server of this process and starts one on the same folder, address and key. The lock is held all the while.
func (s *Server) restart(ctx context.Context) error {
	s.mu.Lock()
	old := s.ns
	s.ns = nil
	s.mu.Unlock()
	if old != nil {
		old.stop()
	}
	ns, err := s.serve(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.ns = ns
	s.mu.Unlock()
	s.reconnect()
	return nil
}
