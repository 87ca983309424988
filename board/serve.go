package board

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

const defaultGrace = 20 * time.Second

// Worker is the configuration of Serve.
type Worker struct {
	Name    string        // for people; default host
	Pools   []string      // it takes jobs of; default "default"
	Slots   int           // jobs at once; default 1, negative for none: a steward only
	Version string        // of the program, for WorkerInfo
	Sandbox Sandbox       // of its commands, for WorkerInfo and Entry
	Grace   time.Duration // how long a clean stop waits for handlers after cancelling them, default 20 s

	// Fits says why this worker cannot do a job that others may; nil when it can. Such a job is put back before it is claimed: no
	// attempt and no epoch is spent, and Entry.Waits has the text. nil: every job fits.
	Fits func(Job) error

	// Drain, once closed, lets the worker end of itself: it claims nothing more, what runs goes on to its end, and then Serve returns nil.
	// While a job that it holds has live children it goes on claiming, whatever the queue brings, since it may be the only one that
	// serves them. nil: never.
	Drain <-chan struct{}
}

// Handler does a job. Its ctx is cancelled with a cause: ErrKilled, ErrStopping, ErrLeaseLost, ErrDeadline.
// An error, a panic or a Result with State Failed and Retry is a failed attempt; any other result must have a terminal state and is final.
type Handler func(ctx context.Context, l *Lease) (Result, error)

// server is one call of Serve.
type server struct {
	b     *Board
	id    string // of the worker, unique
	w     Worker
	h     Handler
	log   zerolog.Logger
	slots slots
	rest  rest
	life  context.Context // outlives the caller's: what is handed back is written after that has ended
	stop  context.Context // the caller's
	pulls context.Context // ends when the worker has claimed its last job

	mu      sync.Mutex
	info    WorkerInfo
	leases  map[string]*Lease    // by job
	orphans map[string]time.Time // pointers without entry: since when
	beaten  time.Time            // start of the newest heartbeat that the server took
	busy    int                  // pointers and jobs in hand
	work    sync.WaitGroup
}

// Serve claims and runs jobs until ctx ends, then hands back what runs (no attempt spent) and returns. It also returns when Worker.Drain
// is closed and everything that it ran has ended.
// The error names handlers that did not return within Grace; their leases run out by themselves.
func (b *Board) Serve(ctx context.Context, w Worker, h Handler) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	pulls, endPulls := context.WithCancel(ctx)
	defer endPulls()
	s, err := b.newServer(ctx, life, w, h)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s.pulls = pulls
	if err := s.beat(); err != nil {
		return fmt.Errorf("serve: announce the worker: %w", err)
	}
	defer s.retire()
	p, err := s.newPuller(ctx)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	nudges, err := b.nc.Subscribe(b.names.ctl("*"), s.nudge)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer func() { _ = nudges.Unsubscribe() }() // of a closed connection: nothing is left to end

	var helpers sync.WaitGroup
	helpers.Go(s.beats)
	helpers.Go(func() { b.steward(pulls, s.id, s.log) })
	p.run(ctx)
	endPulls()
	err = s.drain()
	end()
	helpers.Wait()
	return err
}

func (b *Board) newServer(ctx, life context.Context, w Worker, h Handler) (*server, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	w.Name, w.Grace = b.secrets.String(cmp.Or(w.Name, host)), cmp.Or(w.Grace, defaultGrace)
	w.Slots = max(0, cmp.Or(w.Slots, 1))
	if len(w.Pools) == 0 {
		w.Pools = []string{defaultPool}
	}
	id := fmt.Sprintf("%.60s-%.8s", encodeToken(w.Name), uuid.NewString())
	return &server{
		b: b, id: id, w: w, h: h, life: life, stop: ctx,
		log:     b.log.With().Str("worker", id).Logger(),
		slots:   slots{free: w.Slots, freed: make(chan struct{}, 1)},
		leases:  map[string]*Lease{},
		orphans: map[string]time.Time{},
		info: WorkerInfo{
			ID: id, Host: host, PID: os.Getpid(), Version: w.Version, Pools: w.Pools, Slots: w.Slots, Sandbox: w.Sandbox, Started: now(),
		},
	}, nil
}

// beats says that the worker lives, until life ends.
func (s *server) beats() {
	t := time.NewTicker(s.b.beat)
	defer t.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-t.C:
			if err := s.beat(); err != nil && s.life.Err() == nil {
				s.log.Warn().Err(err).Msg("heartbeat")
			}
		}
	}
}

func (s *server) beat() error {
	s.mu.Lock()
	info := s.info
	info.Running = slices.Sorted(maps.Keys(s.leases))
	s.mu.Unlock()
	data, err := encode(info)
	if err != nil {
		return err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(s.life, s.b.ttl)
	defer cancel()
	data = s.b.secrets.JSON(data)
	_, err = persist(ctx, func(ctx context.Context) (uint64, error) { return s.b.workers.Put(ctx, workerKeys+s.id, data) })
	if err == nil {
		s.mu.Lock()
		s.beaten = start
		s.mu.Unlock()
	}
	return err
}

// retire takes the worker off the list.
func (s *server) retire() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), stopTime)
	defer cancel()
	_, err := persist(ctx, func(ctx context.Context) (bool, error) { return true, s.b.workers.Delete(ctx, workerKeys+s.id) })
	if err != nil {
		s.log.Debug().Err(err).Msg("delete heartbeat") // its TTL does the same
	}
}

// nudge makes the holder of a job look at its entry.
func (s *server) nudge(m *nats.Msg) {
	s.mu.Lock()
	l := s.leases[lastToken(m.Subject)]
	s.mu.Unlock()
	if l != nil {
		signal(l.nudged)
	}
}

// count keeps how much is in hand, for a worker that drains.
func (s *server) count(n int) {
	s.mu.Lock()
	s.busy += n
	s.mu.Unlock()
	signal(s.slots.freed)
}

// heard reports whether the others know that this worker lives: whoever was away for longer claims nothing before it has said so.
func (s *server) heard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.beaten) < s.b.ttl*2/3
}

func (s *server) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy == 0
}

// draining reports whether the worker is to end of itself.
func (s *server) draining() bool {
	select {
	case <-s.w.Drain:
		return true
	default:
		return false
	}
}

// parental reports whether a job that this worker holds has live children, which may need this worker's slots.
func (s *server) parental() bool {
	s.mu.Lock()
	held := slices.Collect(maps.Values(s.leases))
	s.mu.Unlock()
	return slices.ContainsFunc(held, func(l *Lease) bool { return s.b.views.alive(l.job) })
}

// pointLater publishes the pointer of a queued entry when its delay is over, or at once when this worker ends before. Where it does
// not come to that, the steward points.
func (s *server) pointLater(e Entry) {
	s.work.Go(func() {
		pause(s.pulls, e.Delay)
		ctx, written := s.concluding()
		defer written()
		if err := s.b.point(ctx, e); err != nil {
			s.log.Warn().Err(err).Msg("queue a job again")
		}
	})
}

// handle does one pointer, for which a slot was taken.
func (s *server) handle(m *nats.Msg) {
	defer s.work.Done()
	defer s.count(-1)
	var l *Lease
	if s.heard() || s.beat() == nil {
		l = s.claim(m)
	} else {
		s.nak(m, 0)
	}
	if l == nil {
		s.slots.give()
		return
	}
	s.mu.Lock()
	s.leases[l.job.ID] = l
	s.mu.Unlock()
	l.run()
	s.mu.Lock()
	if s.leases[l.job.ID] == l {
		delete(s.leases, l.job.ID)
	}
	s.mu.Unlock()
	l.giveSlot()
}

// drain waits for the handlers, which were told to stop.
func (s *server) drain() error {
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	grace := time.NewTimer(s.w.Grace)
	defer grace.Stop()
	select {
	case <-done:
		return nil
	case <-grace.C:
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("serve: jobs %v did not stop within %s; another worker takes them after %s",
			slices.Sorted(maps.Keys(s.leases)), s.w.Grace, s.b.ackWait)
	}
}

// slots counts how many jobs may run at once. A parent that goes on after waiting is served before any new claim.
type slots struct {
	mu    sync.Mutex
	free  int             // below zero while parents go on over the number
	queue []chan struct{} // parents that wait for a slot, first come first served
	freed chan struct{}   // tells the puller to look: there is a slot again, or less in hand
}

func (s *slots) available() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.free)
}

func (s *slots) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free <= 0 {
		return false
	}
	s.free--
	return true
}

func (s *slots) give() {
	s.mu.Lock()
	if len(s.queue) > 0 {
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		close(next)
		return
	}
	s.free++
	s.mu.Unlock()
	signal(s.freed)
}

// resumePatience is how long a parent waits for a slot. Then it goes on over the number: the slots may be held by its own children, which
// hang until it kills them, and would hold each other up for ever.
const resumePatience = time.Second

// resume waits for a slot and takes it.
func (s *slots) resume(ctx context.Context) error {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.queue = append(s.queue, turn)
	s.mu.Unlock()
	patience := time.NewTimer(resumePatience)
	defer patience.Stop()
	select {
	case <-turn:
		return nil
	case <-patience.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.queue, turn)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	over := ctx.Err() == nil
	if over && i >= 0 {
		s.free--
	}
	s.mu.Unlock()
	if over {
		return nil // with the slot that was given in the same moment, or one too many
	}
	if i < 0 {
		s.give()
	}
	return context.Cause(ctx)
}
