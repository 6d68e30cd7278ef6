package proxy

import (
	"net"
	"slices"
	"sync/atomic"

	"idproxy/proxy/eventloop"
)

// looped is a session that a loop drives.
type looped struct {
	*session
	client, server *eventloop.Conn
	in, out        *inlet
	lanes          atomic.Int32 // that have not ended
}

// joinLoop moves the session to a loop, if there are loops and its connections are sockets: what
// crypto/tls has read, nobody sees who waits for the connection.
func joinLoop(s *session) bool {
	to := s.l.srv.leastLoop()
	if to == nil || !isSocket(s.client) || !isSocket(s.server) {
		return false
	}
	j := &looped{session: s}
	if err := j.take(to); err != nil {
		s.log(&s.up).Error("session cannot be moved to an event loop", "error.message", err)
		s.close(err)
		j.free()
		s.end()
		return true
	}
	s.in = newInlet(j.client, &s.up, &s.stats.FromClient)
	j.in, j.out = s.in, newInlet(j.server, &s.down, &s.stats.FromServer)
	j.lanes.Store(2)
	j.server.Start()
	j.client.Start()
	return true
}

// leastLoop returns the loop with the fewest connections; nil: there are no loops.
func (srv *Server) leastLoop() *eventloop.Loop {
	if len(srv.loops) == 0 {
		return nil
	}
	return slices.MinFunc(srv.loops, func(a, b *eventloop.Loop) int { return a.Len() - b.Len() })
}

func isSocket(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

func (j *looped) take(to *eventloop.Loop) (err error) {
	if j.client, err = to.Take(j.session.client, j.fromClient); err != nil {
		return err
	}
	handshake{j.session}.setClient(j.client)
	if j.server, err = to.Take(j.session.server, j.fromServer); err != nil {
		return err
	}
	handshake{j.session}.setServer(j.server)
	return nil
}

func (j *looped) free() {
	for _, c := range []*eventloop.Conn{j.client, j.server} {
		if c != nil {
			c.Free()
		}
	}
}

// fromClient is toServer's turn.
func (j *looped) fromClient(t *eventloop.Turn) {
	j.up.On(t)
	if j.readClient() {
		j.over(&j.up, j.client)
	}
	j.up.On(nil)
}

// readClient reports whether the lane has come to its end, as it has when it panics.
func (j *looped) readClient() (over bool) {
	defer j.recover()
	over = true
	if err := j.in.once(j.client); err != nil {
		j.clientClosed(err)
		return over
	}
	if err := (toServer{j.session}).requested(j.in); err != nil {
		toServer{j.session}.stop(err)
		return over
	}
	j.in.rest()
	return false
}

// fromServer is toClient's turn.
func (j *looped) fromServer(t *eventloop.Turn) {
	j.down.On(t)
	if j.readServer() {
		j.gone.End(errServerGone)
		j.over(&j.down, j.server)
	}
	j.down.On(nil)
}

// readServer is readClient for the other lane.
func (j *looped) readServer() (over bool) {
	defer j.recover()
	over = true
	if err := j.out.once(j.server); err != nil {
		toClient{j.session}.serverClosed()
		return over
	}
	if err := (toClient{j.session}).relay(j.out); err != nil {
		j.close(err)
		return over
	}
	j.out.rest()
	return false
}

// over ends a lane, and with the last one the session.
func (j *looped) over(lane *eventloop.Task, c *eventloop.Conn) {
	c.Stop()
	if j.lanes.Add(-1) > 0 {
		return
	}
	lane.Handoff() // for the log
	j.in.release()
	j.out.release()
	j.free()
	j.end()
}
