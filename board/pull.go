package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	parkTime   = 5 * time.Second        // how long a pull waits for a job
	lateTime   = 2 * time.Second        // after which an answer will not come any more
	laneRest   = 250 * time.Millisecond // after an error
	maxWaiting = 4096                   // parked pulls a consumer holds: one a worker
)

// puller gets pointers for free slots. It has one lane a pool and priority. While jobs are found it asks the lanes from high to low
// without waiting, for as many as slots are free; when all are empty it parks one pull on each, so that the next job comes without delay.
// It never holds a pointer without a slot: one that finds none goes back at once.
//
// It speaks the pull protocol itself: the client's Messages and Consume stall for half a minute now and then when they fetch one at a
// time, and its Fetch costs a subscription a job and drops what arrives while it is cancelled.
type puller struct {
	s     *server
	lanes []*lane
	inbox string
	msgs  chan *nats.Msg
	sub   *nats.Subscription
}

// lane is one consumer of the queue.
type lane struct {
	filter  string // prefix of its pointers' subjects
	next    string // subject of its pulls
	request uint64 // number of the newest pull
	left    int    // messages that the pull may still bring; 0: no pull is open
	parked  bool   // the open pull waits
	dry     bool   // was empty when asked last
	until   time.Time
	rest    time.Time // no pull before
}

type pullRequest struct {
	Expires time.Duration `json:"expires,omitempty"`
	Batch   int           `json:"batch"`
	NoWait  bool          `json:"no_wait,omitempty"`
}

func (s *server) newPuller(ctx context.Context) (*puller, error) {
	p := &puller{s: s, inbox: nats.NewInbox()}
	if s.w.Slots == 0 {
		return p, nil
	}
	if err := s.b.agreeOnLease(ctx); err != nil {
		return nil, err
	}
	for _, prio := range priorities {
		for _, pool := range s.w.Pools {
			name, filter := s.b.names.consumer(pool, prio), s.b.names.lane(pool, prio)
			cfg := jetstream.ConsumerConfig{
				Durable: name, FilterSubject: filter + "*", AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.b.ackWait,
				MaxAckPending: -1, MaxDeliver: -1, MaxWaiting: maxWaiting,
			}
			_, err := persist(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
				return s.b.jobs.CreateOrUpdateConsumer(ctx, cfg)
			})
			if err != nil {
				return nil, fmt.Errorf("consumer %s: %w", name, err)
			}
			p.lanes = append(p.lanes, &lane{filter: filter, next: "$JS.API.CONSUMER.MSG.NEXT." + s.b.names.jobs + "." + name})
		}
	}
	return p, p.open()
}

// open begins to receive.
func (p *puller) open() (err error) {
	if p.sub != nil || len(p.lanes) == 0 {
		return nil
	}
	p.msgs = make(chan *nats.Msg, len(p.lanes)*(p.s.w.Slots+8)+64)
	p.sub, err = p.s.b.nc.ChanSubscribe(p.inbox+".*.*", p.msgs)
	return err
}

// run pulls until ctx ends, or a worker that drains has nothing in hand any more; what is on its way then goes back.
func (p *puller) run(ctx context.Context) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	drain := p.s.w.Drain
	for ctx.Err() == nil {
		switch draining := p.s.draining(); {
		case draining && p.s.idle():
			p.shut()
			return
		case draining && !p.s.parental(), p.s.rest.on(), !p.s.heard():
			p.shut()
		default:
			if err := p.open(); err != nil {
				p.s.log.Warn().Err(err).Msg("receive from the queue")
			} else {
				p.step()
			}
		}
		select {
		case m := <-p.msgs:
			p.receive(m)
		case <-p.s.slots.freed:
		case <-drain:
			drain = nil // once is enough
		case <-look.C:
		case <-ctx.Done():
		}
	}
	p.shut()
}

// shut ends the open pulls; what is on its way goes back.
func (p *puller) shut() {
	if p.sub == nil {
		return
	}
	// Draining keeps the subscription in the client until the server has heard of its end; unsubscribing would drop what is on its way.
	if err := p.sub.Drain(); err == nil {
		_ = p.s.b.nc.FlushTimeout(stopTime) // without a connection nothing is on its way
	}
	for _, l := range p.lanes {
		l.left, l.dry = 0, false
	}
	msgs := p.msgs
	p.sub, p.msgs = nil, nil
	for {
		select {
		case m, open := <-msgs:
			if !open {
				return
			}
			if p.laneOf(m) != nil {
				p.s.work.Go(func() { p.s.putBack(m) })
			}
		default:
			return
		}
	}
}

// step opens the pulls that are due.
func (p *puller) step() {
	free, t := p.s.slots.available(), time.Now()
	asking := false
	for _, l := range p.lanes {
		if l.left > 0 && t.After(l.until) {
			l.left = 0
		}
		if free == 0 && l.left == 0 {
			l.dry = false // whatever its turn was, it may have jobs when a slot is free again
		}
		asking = asking || l.left > 0 && !l.parked
	}
	if free == 0 || asking {
		return
	}
	for i, l := range p.lanes {
		if l.left == 0 && !l.dry && !t.Before(l.rest) {
			p.pull(i, pullRequest{Batch: free, NoWait: true}, lateTime)
			return
		}
	}
	for i, l := range p.lanes {
		if l.left == 0 && !t.Before(l.rest) {
			p.pull(i, pullRequest{Batch: 1, Expires: parkTime}, parkTime+lateTime)
		}
	}
}

func (p *puller) pull(i int, r pullRequest, wait time.Duration) {
	l := p.lanes[i]
	l.request++
	l.left, l.parked, l.until = r.Batch, !r.NoWait, time.Now().Add(wait)
	data, err := json.Marshal(r)
	if err == nil {
		err = p.s.b.nc.PublishRequest(l.next, p.inbox+"."+strconv.Itoa(i)+"."+strconv.FormatUint(l.request, 10), data)
	}
	if err != nil {
		l.left, l.rest = 0, time.Now().Add(laneRest)
	}
}

func (p *puller) laneOf(m *nats.Msg) *lane {
	for _, l := range p.lanes {
		if strings.HasPrefix(m.Subject, l.filter) {
			return l
		}
	}
	return nil
}

// receive takes a pointer, or the word that a pull is over.
func (p *puller) receive(m *nats.Msg) {
	l := p.laneOf(m)
	if l == nil {
		p.over(m)
		return
	}
	l.left, l.dry = max(0, l.left-1), false
	if !p.s.slots.take() {
		p.s.nak(m, 0)
		return
	}
	p.s.count(1)
	p.s.work.Add(1)
	go p.s.handle(m)
}

func (p *puller) over(m *nats.Msg) {
	where := strings.Split(strings.TrimPrefix(m.Subject, p.inbox+"."), ".")
	if len(where) != 2 {
		return
	}
	i, err := strconv.Atoi(where[0])
	if err != nil || i < 0 || i >= len(p.lanes) {
		return
	}
	l := p.lanes[i]
	if where[1] != strconv.FormatUint(l.request, 10) {
		return
	}
	l.left, l.dry = 0, true
	switch m.Header.Get("Status") {
	case "404", "408":
	default: // no responder, consumer gone, server shutting down
		l.rest = time.Now().Add(laneRest)
	}
}

// nak puts a pointer back, to be delivered again after delay.
func (s *server) nak(m *nats.Msg, delay time.Duration) {
	word := "-NAK"
	if delay > 0 {
		word = fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds())
	}
	if err := s.b.nc.Publish(m.Reply, []byte(word)); err != nil {
		s.log.Debug().Err(err).Msg("put a pointer back") // the queue does the same when the lease is over
	}
}

// ack takes a pointer from the queue, confirmed. Without the confirmation it comes again, and is dropped then.
func (s *server) ack(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(s.life, stopTime)
	defer cancel()
	if _, err := s.b.nc.RequestWithContext(ctx, m.Reply, []byte("+ACK")); err != nil && !errors.Is(err, context.Canceled) {
		s.log.Debug().Err(err).Msg("acknowledge a pointer")
	}
}
