package proxy

import (
	"idproxy/proxy/compress"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// toClient is the lane of a session that alone reads from the server.
type toClient struct{ *session }

// relay gives the client what can be given of the bytes read.
func (s toClient) relay(in *inlet) error {
	used, ev, err := s.give(in.bytes())
	in.consume(used)
	if err != nil {
		return err
	}
	if ev&protocol.EventDenied != 0 {
		s.denied()
	}
	if ev&protocol.EventRefused != 0 {
		return s.replies.Refusal
	}
	if s.leave() {
		return errDrained
	}
	return nil
}

// give feeds the server's bytes to the machine and writes what comes out of it
// to the client. A login that is one too many ends with an error in place of the server's OK.
func (s toClient) give(b []byte) (used int, ev protocol.Event, err error) {
	s.lockClient(&s.down)
	defer s.clientMu.Unlock() // when feed panics too, for toServer may wait for it
	out, used, ev := s.replies.Feed(b)
	if ev&protocol.EventLoggedIn != 0 {
		if out, err = s.admit(out); err == nil { // before the client knows: another login may not end this one any more
			s.loggedIn()
			s.stats.LoggedIn.Store(true)
		}
	}
	if len(out) > 0 {
		s.awaitsClient()
		if s.pass(out, ev) != nil {
			err = errClientGone
		}
	}
	return used, ev, err
}

// pass writes to the client. Behind the end of its login the connection may be compressed.
func (s toClient) pass(out []byte, ev protocol.Event) error {
	if c, ok := s.client.(*compress.Conn); ok && ev&protocol.EventLoggedIn != 0 {
		return c.End(out)
	}
	return s.tell(&s.down, out)
}

// serverClosed ends the session when the server did.
func (s toClient) serverClosed() {
	if s.ctx.Cause() == nil && !s.c.Quits() {
		s.l.choice.Doubt() // the server broke it off
	}
	s.tellLost()
	s.close(errServerGone)
}

// tellLost answers an injected INSERT that was waiting for its reply with the
// ids it was given.
func (s toClient) tellLost() {
	s.lockClient(&s.down)
	defer s.clientMu.Unlock()
	r, ok := s.c.ReplyHandler().(*protocol.InsertReply)
	if !ok {
		return
	}
	e, seq := r.Lost(s.replies.Forward, s.replies.Left > 0)
	if e == nil {
		return
	}
	s.log(&s.down).Warn("server lost with an INSERT in flight", "error.message", e.Message)
	_ = s.tell(&s.down, wire.AppendERR(nil, seq+1, e)) // the client may be gone too
}

// denied logs that the server refused a login. It has said why to the client.
func (s toClient) denied() {
	user, code := s.c.Denied()
	if others, ok := s.l.srv.notices.Due(s.l.Name + " login " + user); ok {
		s.log(&s.down).Info("login failed", "user.name", user, "db.response.status_code", code, "others", others)
	}
}
