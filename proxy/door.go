package proxy

import (
	"fmt"
	"net"
	"strings"
)

// door is what clients come in by: a socket, and the listener in force that has it. A listener that
// takes the place of another one takes its door.
type door struct {
	net.Listener
	srv     *Server
	address net.Addr  // as it is configured
	to      *listener // guarded by Server.mu; nil: it is about to be closed
}

// open opens the door of a listener.
func (srv *Server) open(l *listener) (*door, error) {
	ln, err := srv.cfg.Open(l.Listen.Network(), l.Listen.String())
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	return &door{Listener: ln, srv: srv, address: l.Listen}, nil
}

// leads reports whether the door is at an address. Any free port is none.
func (d *door) leads(to net.Addr) bool {
	return d.address.Network() == to.Network() && d.address.String() == to.String() && !strings.HasSuffix(to.String(), ":0")
}

// name is that of the listener it leads to.
func (d *door) name() string {
	d.srv.mu.Lock()
	defer d.srv.mu.Unlock()
	if d.to == nil {
		return ""
	}
	return d.to.Name
}

// enter has sessions of a door come to the listener. The caller holds Server.mu, or is alone.
func (l *listener) enter(d *door) {
	l.door, d.to = d, l
}

// leave has no more sessions come to the listener. The caller holds Server.mu.
func (l *listener) leave() {
	l.door, l.left = nil, true
	l.goneIfEmpty()
}

// goneIfEmpty ends a listener that has no door and no session. The caller holds Server.mu.
func (l *listener) goneIfEmpty() {
	if !l.left || l.sessions > 0 {
		return
	}
	l.kin.drop(l)
	if l.OnGone != nil {
		l.srv.wg.Go(l.OnGone) // it closes connections, and nobody waits for that
	}
}

func (l *listener) sayListening() {
	l.srv.log.Info("listening", "listen", l.door.Addr().String(), "server.address", l.choice.String(), "listener", l.Name)
}

// accept begins to take clients at the door of a listener. The caller holds mu.
func (srv *Server) accept(l *listener) {
	srv.accepting.Go(l.door.accept)
	if l.mayEncrypt() {
		srv.accepting.Go(func() { _, _ = srv.key() }) // before a client waits for it; an error comes again then
	}
}
