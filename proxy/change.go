package proxy

import (
	"slices"
	"sync"
)

// Change is another set of listeners that a server is about to have. All sockets that it needs are
// open, so that nothing can fail any more; nobody is let in by new ones yet. It ends with Commit or Abort.
type Change struct {
	srv    *Server
	made   []*listener
	gone   []string // names of those that no other one takes the place of
	opened []*door
	doors  map[*listener]*door // of those that are made
}

// Prepare makes listeners, each of which takes the place of that of its name, if there is one, and
// opens their addresses. gone are names of listeners that go. An address that one of those has that
// go or are replaced is taken over with its socket. On an error nothing has changed. There is one
// change at a time.
func (srv *Server) Prepare(made []Listener, gone []string) (*Change, error) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.ending || srv.stopped {
		return nil, ErrEnding
	}
	c := &Change{srv: srv, gone: gone, doors: map[*listener]*door{}}
	free := map[string]*door{} // of those that go or are replaced
	for _, l := range srv.listeners {
		if slices.Contains(gone, l.Name) || slices.ContainsFunc(made, func(m Listener) bool { return m.Name == l.Name }) {
			free[l.Name] = l.door
		}
	}
	for _, m := range made {
		with := &kin{}
		if l := srv.named(m.Name); l != nil {
			with = l.kin
		}
		c.made = append(c.made, srv.newListener(m, with))
	}
	for _, l := range c.made { // each its own door first
		if d := free[l.Name]; d != nil && d.address.Network() == l.Listen.Network() && d.address.String() == l.Listen.String() {
			c.doors[l] = d
			delete(free, l.Name)
		}
	}
	for _, l := range c.made {
		if c.doors[l] != nil {
			continue
		}
		d, err := c.doorFor(l, free)
		if err != nil {
			c.Abort()
			return nil, err
		}
		c.doors[l] = d
	}
	return c, nil
}

func (c *Change) doorFor(l *listener, free map[string]*door) (*door, error) {
	for name, d := range free {
		if d.leads(l.Listen) {
			delete(free, name)
			return d, nil
		}
	}
	d, err := c.srv.open(l)
	if err == nil {
		c.opened = append(c.opened, d)
	}
	return d, err
}

// named returns the listener of a name that is in force; nil: there is none. The caller holds mu.
func (srv *Server) named(name string) *listener {
	for _, l := range srv.listeners {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Abort gives the change up.
func (c *Change) Abort() {
	c.close()
	for _, l := range c.made {
		if l.OnGone != nil {
			l.OnGone()
		}
	}
}

func (c *Change) close() {
	for _, d := range c.opened {
		d.Close()
	}
}

// Commit puts the listeners in force, and settings with them. Sessions of a listener that is replaced
// stay with the servers they are at; those of one that goes are let go as in a drain.
// The channel is closed when all of those are gone.
func (c *Change) Commit(live *Settings) (gone <-chan struct{}) {
	srv := c.srv
	srv.mu.Lock()
	defer srv.mu.Unlock()
	doors := map[*door]bool{} // that were there
	for _, l := range srv.listeners {
		doors[l.door] = true
	}
	for _, l := range c.made {
		c.replace(l)
	}
	var removed []*listener
	srv.listeners = slices.DeleteFunc(srv.listeners, func(l *listener) bool {
		goes := slices.Contains(c.gone, l.Name)
		if goes {
			removed = append(removed, l)
		}
		return goes
	})
	srv.set(live)
	ended := srv.remove(removed)
	for d := range doors {
		if d.to != nil && d.to.door != d || d.to == nil {
			d.to = nil
			d.Close()
		}
	}
	for _, l := range c.made {
		if srv.stopped {
			l.door.Close()
			continue
		}
		l.sayListening()
		if srv.accepts && !doors[l.door] {
			srv.accept(l)
		}
	}
	select {
	case srv.checked <- struct{}{}:
	default: // it is about to look
	}
	return ended
}

// replace puts a listener in the place of that of its name, or behind all others.
func (c *Change) replace(l *listener) {
	old := c.srv.named(l.Name)
	if old == nil {
		c.srv.listeners = append(c.srv.listeners, l)
	} else {
		c.srv.listeners[slices.Index(c.srv.listeners, old)] = l
		defer old.leave() // behind it the name has another one
	}
	l.kin.add(l)
	l.enter(c.doors[l])
}

// remove lets the sessions go of listeners that are not in force any more, and tells when all have
// ended. The caller holds mu.
func (srv *Server) remove(gone []*listener) (ended <-chan struct{}) {
	var all sync.WaitGroup
	for _, l := range gone {
		var open []*session
		for s := range srv.sessions {
			if s.l.kin == l.kin {
				open = append(open, s)
			}
		}
		srv.log.Info("listener removed", "listener", l.Name, "sessions", len(open))
		if l.door != nil && l.door.to == l {
			l.door.to = nil
		}
		l.kin.removed.Store(true)
		l.leave()
		if len(open) > 0 {
			all.Go(func() { srv.letGoOf(l.kin, open) })
		}
	}
	done := make(chan struct{})
	srv.wg.Go(func() {
		all.Wait()
		close(done)
	})
	return done
}

// letGoOf lets sessions go, of listeners of one name, as a drain does.
func (srv *Server) letGoOf(k *kin, open []*session) {
	d := srv.newDrain()
	defer d.cancel()
	d.delay, d.empty = 0, k.gone()
	d.letGo(open)
	<-d.empty
}

func (k *kin) add(l *listener) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, l)
}

// drop takes a listener out that has ended.
func (k *kin) drop(l *listener) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = slices.DeleteFunc(k.all, func(one *listener) bool { return one == l })
	if len(k.all) == 0 && k.empty != nil {
		close(k.empty)
		k.empty = nil
	}
}

// gone returns a channel that is closed when none of them is left.
func (k *kin) gone() chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	ch := make(chan struct{})
	if k.empty = ch; len(k.all) == 0 {
		close(ch)
		k.empty = nil
	}
	return ch
}
