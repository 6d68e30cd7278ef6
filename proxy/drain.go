package proxy

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Phase says how far a server is in letting its sessions go. Phases follow each other; Resume
// leads back to the first.
type Phase uint8

// The phases.
const (
	Serving Phase = iota
	Unready       // balancers are told to look elsewhere, and sessions are still taken
	Closing       // no new ones are; those that are there end between two transactions
	Drained       // none is left
)

var phaseWords = [...]string{"serving", "unready", "closing", "drained"}

// String is the word for the phase in metrics and in the API.
func (p Phase) String() string { return phaseWords[p] }

// ErrEnding is what Resume answers when the server does not only drain.
var ErrEnding = errors.New("it ends, which cannot be taken back")

// departure says when a session that is let go may end.
type departure uint32

const (
	stays departure = iota
	betweenTransactions
	betweenCommands // the server takes its transaction back
)

// depart has the session end when it may. A client that is slow to read its reply is waited for,
// but not here.
func (s *session) depart(when departure) {
	s.departs.Store(uint32(when))
	s.l.srv.wg.Go(func() {
		if s.leave() {
			s.close(errDrained)
		}
	})
}

// drain lets all sessions go. Its moments count from its beginning.
type drain struct {
	srv                  *Server
	began                time.Time
	delay, spread, limit time.Duration
	ctx                  context.Context // done when it is taken back, or another one goes on with it
	cancel               context.CancelFunc
	done                 chan struct{} // closed at its end
	empty                chan struct{} // closed when no session is left; nil: new ones come
}

func (srv *Server) newDrain() *drain {
	live := srv.settings()
	d := &drain{
		srv: srv, began: time.Now(), delay: live.DrainDelay, spread: live.DrainSpread, limit: live.ShutdownTimeout,
		done: make(chan struct{}),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// stop ends a drain where it is. The phase stays as it is then.
func (d *drain) stop() {
	d.cancel()
	<-d.done
}

// Drain lets all sessions go, as Serve does at its end, and takes no new ones until Resume. It
// waits for nothing.
func (srv *Server) Drain() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.ordered != nil || srv.ending {
		return
	}
	srv.phase = Unready
	srv.ordered = srv.newDrain()
	go srv.ordered.run(func() {})
}

// Resume takes a Drain back. Sessions that have not ended stay.
func (srv *Server) Resume() error {
	srv.mu.Lock()
	d := srv.ordered
	srv.mu.Unlock()
	if d != nil {
		d.stop()
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.ending {
		return ErrEnding
	}
	if d == nil || srv.ordered != d { // taken back by another, and maybe another Drain came since
		return nil
	}
	srv.ordered, srv.phase, srv.empty = nil, Serving, nil
	for s := range srv.sessions {
		if !s.l.removed.Load() {
			s.departs.Store(uint32(stays))
		}
	}
	srv.log.Info("drain taken back", "sessions", len(srv.sessions))
	return nil
}

// drainToTheEnd drains for good. It goes on with a Drain that is under way. stopAccepting is called
// before the first session is let go.
func (srv *Server) drainToTheEnd(stopAccepting func()) {
	srv.mu.Lock()
	srv.ending = true
	before := srv.ordered
	srv.mu.Unlock()
	d := srv.newDrain()
	if before != nil {
		before.stop()
		d.began = before.began
	}
	d.run(stopAccepting)
}

// enter begins a phase, unless a later one has begun, and returns how many sessions there are.
func (srv *Server) enter(p Phase) int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.phase = max(srv.phase, p)
	return len(srv.sessions)
}

// emptied tells a drain that no session is left. The caller holds mu.
func (srv *Server) emptied() {
	if srv.empty != nil && len(srv.sessions) == 0 {
		close(srv.empty)
		srv.empty = nil
	}
}

// closing begins the phase in which no new session comes, and returns those there are.
func (d *drain) closing() (open []*session) {
	srv := d.srv
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.phase = max(srv.phase, Closing)
	for s := range srv.sessions {
		open = append(open, s)
	}
	d.empty = make(chan struct{})
	srv.empty = d.empty
	srv.emptied()
	return open
}

// lastWord is how long before they would be cut sessions end between two commands, in a transaction
// or not: nobody loses the answer to a statement that ends in time.
func (d *drain) lastWord() time.Duration { return min(time.Second, d.limit/10) }

func (d *drain) run(stopAccepting func()) {
	defer close(d.done)
	defer d.cancel()
	sessions := d.srv.enter(Unready)
	d.srv.log.Info("draining", "sessions", sessions, "delay", d.delay, "spread", d.spread, "timeout", d.limit)
	if !d.wait(d.delay) {
		return
	}
	stopAccepting()
	open := d.closing()
	if d.delay > 0 {
		d.srv.log.Info("no new sessions are taken", "sessions", len(open))
	}
	d.letGo(open)
	select {
	case <-d.empty:
		d.srv.enter(Drained)
		d.srv.log.Info("drained", "duration", time.Since(d.began).Round(time.Millisecond))
	case <-d.ctx.Done():
	}
}

// letGo ends sessions until none is left or the drain is taken back.
func (d *drain) letGo(open []*session) {
	for i, s := range open {
		if !d.wait(d.delay + d.spread/time.Duration(len(open))*time.Duration(i)) {
			return
		}
		s.depart(betweenTransactions)
	}
	if !d.wait(d.limit - d.lastWord()) {
		return
	}
	for _, s := range open {
		s.depart(betweenCommands)
	}
	if d.wait(d.limit) {
		d.srv.cut(open)
	}
}

// wait waits for a moment of the drain. It reports false when that is over before, because it was
// taken back or no session is left.
func (d *drain) wait(after time.Duration) bool {
	timer := time.NewTimer(time.Until(d.began.Add(after)))
	defer timer.Stop()
	select {
	case <-d.ctx.Done():
		return false
	case <-d.empty:
		return false
	case <-timer.C:
		return d.ctx.Err() == nil
	}
}

// cut ends those of some sessions that are left, whatever they do.
func (srv *Server) cut(open []*session) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	left := slices.DeleteFunc(open, func(s *session) bool { _, is := srv.sessions[s]; return !is })
	srv.log.Warn("cutting sessions that did not end in time", "sessions", len(left))
	for _, s := range left {
		s.close(errDrained)
	}
}
