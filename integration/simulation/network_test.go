package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// link is the connection of a host to the store.
type link struct {
	until time.Time // it is bad up to here
	how   badness
}

// badness says what a bad link does to messages.
type badness struct {
	lose, cut, double, late float64       // shares of the messages: never heard; heard, and not answered; heard twice; late
	delay                   time.Duration // about by how much
	refuse                  bool          // nothing is sent at all
}

// node is a server of a store.
type node struct {
	w     *world
	down  bool
	life  int           // changes when it starts again: what was on its way has no answer
	slow  time.Duration // about how long it takes
	waits time.Duration // for its disk, at each change
}

var (
	errLost    = errors.New("the connection was lost")
	errRefused = errors.New("the connection was refused")
)

// fate is what becomes of one message and its answer.
type fate struct {
	out, back time.Duration
	again     time.Duration // not 0: it is heard once more, so much later
	lost      bool
	cut       bool
	refused   bool
	breaks    bool // the loss is noticed, as an error; else nothing comes
}

func (p *process) fate(r *rand.Rand) (f fate) {
	w := p.host.w
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fateOver(p.host.link, r)
}

// fateOver is what becomes of a message that goes over a link. The caller holds mu.
func (w *world) fateOver(l link, r *rand.Rand) (f fate) {
	f.out, f.back = between(r, 50*time.Microsecond, time.Millisecond), between(r, 50*time.Microsecond, time.Millisecond)
	w.messages++
	if !l.until.After(time.Now()) {
		return f
	}
	f.lost, f.cut, f.refused = r.Float64() < l.how.lose, r.Float64() < l.how.cut, l.how.refuse
	f.breaks = r.IntN(2) == 0
	if r.Float64() < l.how.double {
		f.again = about(r, l.how.delay+time.Millisecond)
	}
	if r.Float64() < l.how.late {
		f.out += about(r, l.how.delay)
	}
	if r.Float64() < l.how.late {
		f.back += about(r, l.how.delay)
	}
	return f
}

// pause sleeps unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call sends a request to a server, which does it when it hears it. do is one step there: what it
// changes it changes at once. unsent is the error of a request of which nothing was sent.
func call[T any](ctx context.Context, p *process, to func() *node, unsent error, do func() (T, error)) (answer T, err error) {
	return callAbout(ctx, p, "", to, unsent, do)
}

// callAbout is call with a name of what the request is about: those about one thing come one after the other.
func callAbout[T any](ctx context.Context, p *process, about string, to func() *node, unsent error, do func() (T, error)) (answer T, err error) {
	r := p.chance(about)
	p.send()
	defer p.step()
	f := p.fate(r)
	switch {
	case f.refused:
		return answer, errors.Join(pause(ctx, f.out), unsent)
	case f.lost:
		return answer, p.silence(ctx, f)
	}
	heard := func() { // nobody waits for the answer
		if down, _, _ := to().state(r); !down {
			_, _ = do()
		}
	}
	_, life, _ := to().state(r)
	if f.again > 0 {
		time.AfterFunc(f.out+f.again, heard)
	}
	sent := time.Now()
	if err := pause(ctx, f.out); err != nil {
		time.AfterFunc(f.out-time.Since(sent), heard) // it arrives all the same
		return answer, err
	}
	down, now, busy := to().state(r)
	switch {
	case down:
		return answer, errors.Join(pause(ctx, f.back), unsent)
	case now != life:
		return answer, errLost
	}
	answer, err = do()
	if err := pause(ctx, f.back+busy); err != nil {
		return answer, err
	}
	if _, now, _ := to().state(r); now != life {
		return answer, errLost
	}
	if f.cut {
		return answer, p.silence(ctx, f)
	}
	return answer, err
}

// state is whether a server is down, which life it lives, and how long one request takes now.
func (n *node) state(r *rand.Rand) (down bool, life int, busy time.Duration) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if busy = n.waits; n.slow > 0 {
		busy += about(r, n.slow)
	}
	return n.down, n.life, busy
}

// silence is a request that has no answer.
func (p *process) silence(ctx context.Context, f fate) error {
	if f.breaks {
		return errors.Join(pause(ctx, f.back+f.out), errLost)
	}
	hung, cancel := context.WithTimeout(ctx, time.Minute) // a connection that a firewall forgot
	defer cancel()
	<-hung.Done()
	return errLost
}
