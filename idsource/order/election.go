package order

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/lease"
)

const (
	askTime = 2 * time.Second // bounds one question to the register
	lapse   = 2 * time.Second // a hand-over is over by then
)

// ElectionConfig describes an Election.
type ElectionConfig struct {
	Register Register             // required
	Addr     string               // required: where other processes ask this one for ids, host:port
	Rules    Rules                // default DefaultRules
	Clock    func() time.Duration // steady, goes on while the host sleeps; default: the host's since boot
	Logger   *slog.Logger         // default: discard
}

// Election is the part of one process in who leads. It has a goroutine from Start to Close.
type Election struct {
	cfg   ElectionConfig
	token string
	redis string        // where clients ask this process
	wake  chan struct{} // has it look now
	end   context.CancelFunc
	wg    sync.WaitGroup

	state atomic.Pointer[State]

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when the state changes
	failed  error         // why the register does not answer
	known   time.Duration // when it was last known that a process leads; zero: never

	// Of the goroutine.
	seen   Seen
	seenAt time.Duration
}

// State is who leads, as this process knows.
type State struct {
	Leader Leader
	Number int64 // of the term
	own    *Term // nil: another process leads, or nobody
}

// Own returns the term of this process, nil when it does not lead.
func (s *State) Own() *Term { return s.own }

// Term is the time for which this process leads.
type Term struct {
	Number int64
	Store  idsource.SegmentStore // changes nothing once the term has ended

	e     *Election
	until atomic.Int64 // on the election's clock; zero: it has ended, or is not confirmed yet

	mu     sync.Mutex
	ended  bool
	ending []func(ctx context.Context)
}

// Holds says whether ids that were claimed before the call may be given.
func (t *Term) Holds() bool {
	return t.e.cfg.Rules.May(t.e.cfg.Clock(), time.Duration(t.until.Load()))
}

// AtEnd has f called when the term ends, at once when it has. What f may still change in the store
// it has to do until it returns; ctx has ended where that is nothing.
func (t *Term) AtEnd(f func(ctx context.Context)) {
	t.mu.Lock()
	ended := t.ended
	if !ended {
		t.ending = append(t.ending, f)
	}
	t.mu.Unlock()
	if ended {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		f(ctx)
	}
}

// finish ends the term: no ids are given from now on.
func (t *Term) finish(ctx context.Context) {
	t.until.Store(0)
	t.mu.Lock()
	ending := t.ending
	t.ended, t.ending = true, nil
	t.mu.Unlock()
	var wg sync.WaitGroup
	for _, f := range ending {
		wg.Go(func() { f(ctx) })
	}
	wg.Wait()
}

// NewElection makes an Election that knows nobody yet.
func NewElection(c ElectionConfig) *Election {
	if c.Rules == (Rules{}) {
		c.Rules = DefaultRules
	}
	if c.Clock == nil {
		c.Clock = lease.SinceBoot
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Election{cfg: c, token: rand.Text(), wake: make(chan struct{}, 1), changed: make(chan struct{})}
	e.state.Store(&State{})
	return e
}

// Start begins to look and to stand for the lead. redis is where clients ask this process over the Redis
// protocol, host:port; empty: nowhere.
func (e *Election) Start(redis string) {
	e.redis = redis
	var ctx context.Context
	ctx, e.end = context.WithCancel(context.Background())
	e.wg.Go(func() { e.run(ctx) })
}

// User is who other processes log in as here, for as long as they take this one for the leader.
func (e *Election) User() string { return Leader{Token: e.token}.User() }

// State returns who leads.
func (e *Election) State() *State { return e.state.Load() }

// Failing says why the register does not answer; nil: it does.
func (e *Election) Failing() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// Lapsed says why it is not known that a process leads, once that has been so for longer than a hand-over
// takes; nil: it is, or was a moment ago.
func (e *Election) Lapsed() error {
	now := e.cfg.Clock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known > 0 && now-e.known <= lapse {
		return nil
	}
	return cmp.Or(e.failed, errNobody)
}

// Changed returns a channel that is closed when the state changes after the call.
func (e *Election) Changed() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// Look has the election look at once: somebody noticed that the leader may be gone.
func (e *Election) Look() {
	select {
	case e.wake <- struct{}{}:
	default: // it is about to
	}
}

// Close gives the lead up if this process has it, and ends.
func (e *Election) Close(ctx context.Context) error {
	if e.end == nil {
		return nil
	}
	e.end()
	e.wg.Wait()
	t := e.State().own
	if t == nil {
		return nil
	}
	t.finish(ctx) // first: nobody may lead while this process gives ids
	e.set(&State{})
	return e.cfg.Register.Resign(ctx, t.Number, e.token)
}

func (e *Election) run(ctx context.Context) {
	for {
		pause := e.step(ctx)
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		case <-time.After(pause):
		}
	}
}

// step asks the register once, and returns when to ask again.
func (e *Election) step(ctx context.Context) time.Duration {
	ask, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var err error
	pause := e.cfg.Rules.Look
	if t := e.State().own; t != nil {
		pause = e.cfg.Rules.Beat
		err = e.renew(ask, t)
	} else {
		err = e.follow(ask)
	}
	if ctx.Err() == nil {
		e.answered(err)
	}
	if err != nil {
		return min(pause, 50*time.Millisecond)
	}
	return pause
}

func (e *Election) answered(err error) {
	s, now := e.State(), e.cfg.Clock()
	known := err == nil && s.Leader.Token != "" && (s.own == nil || s.own.Holds())
	e.mu.Lock()
	before := e.failed
	if e.failed = err; known {
		e.known = now
	}
	e.mu.Unlock()
	switch {
	case err != nil && before == nil:
		e.cfg.Logger.Warn("who leads cannot be asked", "error.message", err)
	case err == nil && before != nil:
		e.cfg.Logger.Info("who leads can be asked again")
	}
}

// renew leaves a sign of life.
func (e *Election) renew(ctx context.Context, t *Term) error {
	sent := e.cfg.Clock()
	ok, err := e.cfg.Register.Renew(ctx, t.Number, e.token)
	switch {
	case err != nil:
		return err
	case !ok:
		e.depose(t)
		return nil
	}
	e.extend(t, sent)
	return nil
}

// extend moves the end of the term. Those who waited because it had come go on.
func (e *Election) extend(t *Term, sent time.Duration) {
	held := t.Holds()
	t.until.Store(int64(e.cfg.Rules.Until(sent)))
	if !held {
		e.tell()
	}
}

func (e *Election) depose(t *Term) {
	e.cfg.Logger.Warn("another process leads", "term", t.Number)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	t.until.Store(0)
	e.set(&State{})
	t.finish(ended)
	e.Look()
}

// follow looks who leads, and takes the lead when nobody does.
func (e *Election) follow(ctx context.Context) error {
	seen, err := e.cfg.Register.Look(ctx)
	if err != nil {
		return err
	}
	now := e.cfg.Clock() // behind the answer: what it tells was so before
	if seen != e.seen || e.seenAt == 0 {
		e.seen, e.seenAt = seen, now
	}
	if seen.Leader.Token == e.token { // a question that was asked again, or whose answer was lost
		return e.renew(ctx, e.begin(seen.Term, seen.Leader))
	}
	if !e.cfg.Rules.Vacant(seen, e.seenAt, now) {
		if s := e.State(); s.Leader != seen.Leader || s.Number != seen.Term {
			e.cfg.Logger.Info("a process leads", "term", seen.Term, "leader", seen.Leader.Addr)
			e.set(&State{Leader: seen.Leader, Number: seen.Term})
		}
		return nil
	}
	me := Leader{Token: e.token, Addr: e.cfg.Addr, Redis: e.redis}
	sent := e.cfg.Clock()
	term, taken, err := e.cfg.Register.Take(ctx, seen, me)
	if err != nil || !taken {
		e.Look()
		return err
	}
	e.extend(e.begin(term, me), sent)
	return nil
}

// begin makes this process the leader. It may give no ids yet.
func (e *Election) begin(number int64, me Leader) *Term {
	t := &Term{Number: number, Store: e.cfg.Register.During(number, e.token), e: e}
	e.cfg.Logger.Info("this process leads", "term", number)
	e.set(&State{Leader: me, Number: number, own: t})
	return t
}

func (e *Election) set(s *State) {
	e.state.Store(s)
	e.tell()
}

func (e *Election) tell() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.changed)
	e.changed = make(chan struct{})
}
