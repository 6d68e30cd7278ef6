package proxy

import (
	"errors"
	"sync"
	"time"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// run serves the session from the accepted connection. It returns when a loop has taken it over, or
// at its end.
func (s *session) run() {
	s.login = time.AfterFunc(s.l.srv.settings().Handshake, handshake{s}.expire)
	if err := s.begin(); err != nil {
		s.close(err)
		s.end()
		return
	}
	if s.joinLoop() {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(s.gone)
		defer s.recover()
		s.toClient()
	})
	wg.Go(func() {
		defer s.recover()
		s.toServer()
	})
	wg.Wait()
	s.end()
}

func (s *session) begin() (err error) {
	defer s.recover()
	err = errors.New("internal error") // unless it returns
	return handshake{s}.run()
}

// end is the last that happens to a session.
func (s *session) end() {
	s.login.Stop()
	s.close(nil)
	s.l.srv.ended(s)
}

// drain closes the session once it is between two transactions. It waits for a
// client that is slow to read its reply.
func (s *session) drain() {
	s.draining.Store(true)
	if s.leave() {
		s.close(errDrained)
	}
}

// toServer relays the client's bytes until the client closes.
func (s *session) toServer() {
	s.in = newInlet(s.client, &s.up, &s.stats.FromClient)
	defer s.in.release()
	for {
		if err := s.in.more(); err != nil {
			s.clientClosed(err)
			return
		}
		if err := s.requested(s.in); err != nil {
			s.stop(err)
			return
		}
	}
}

// requested does what the client's bytes ask for that were read.
func (s *session) requested(in *inlet) error {
	for in.r < in.w {
		n, act := s.requests.Next(in.bytes())
		if act == relay.ActMore {
			return nil
		}
		if act == relay.ActReady {
			if err := s.ready(s.requests.Checking); err != nil {
				return err
			}
			continue
		}
		s.holding = n
		if err := s.act(act, in.bytes()[:n]); err != nil {
			return err
		}
		in.consume(s.holding)
	}
	return nil
}

// stop ends the session after err in toServer. When the server is gone, toClient
// still gives the client what the server sent last, or says which ids are in
// doubt, and closes the session then.
func (s *session) stop(err error) {
	if errors.Is(err, errServerGone) {
		s.server.Close()
		return
	}
	s.close(err)
}

// longStatement is from how many bytes on a statement is decided on beside the loop.
const longStatement = 64 << 10

func (s *session) act(act relay.Action, b []byte) error {
	var err error
	switch act {
	case relay.ActForward:
		if s.c.Ended.Load() { // else the commands, which are pending since requests found them, keep it from ending
			return errDrained
		}
		return s.write(b)
	case relay.ActStatement:
		if !s.c.Decide() {
			return errDrained
		}
		if len(b) > longStatement {
			s.up.Leave()
		}
		err = s.statement(b)
		s.c.Decided()
	case relay.ActTooLarge:
		s.stats.Commands.Add(stats.Refused, stats.Query)
		e := clienterr.HeldTooLarge(s.requests.Limit)
		s.chosen().refused("", rule.TooLarge, e)
		err = s.answer(e, s.requests.Seq)
	}
	if err == nil && s.draining.Load() && s.leave() { // it was answered here
		return errDrained
	}
	return err
}

// toClient relays the server's bytes until the server closes.
func (s *session) toClient() {
	in := newInlet(s.server, &s.down, &s.stats.FromServer)
	defer in.release()
	for {
		if err := in.more(); err != nil {
			s.serverClosed()
			return
		}
		if err := s.relay(in); err != nil {
			s.close(err)
			return
		}
	}
}

// relay gives the client what can be given of the bytes read.
func (s *session) relay(in *inlet) error {
	used, ev, err := s.give(in.bytes())
	in.consume(used)
	if err != nil {
		return errClientGone
	}
	if ev&relay.EventDenied != 0 {
		s.denied()
	}
	if ev&relay.EventRefused != 0 {
		return clienterr.Bridge()
	}
	if ev&relay.EventLoggedIn != 0 {
		s.login.Stop()
		s.stats.LoggedIn.Store(true)
	}
	if s.draining.Load() && s.leave() {
		return errDrained
	}
	return nil
}

// give feeds the server's bytes to the machine and writes what comes out of it
// to the client.
func (s *session) give(b []byte) (used int, ev relay.Event, err error) {
	s.lockClient(&s.down)
	defer s.clientMu.Unlock() // when feed panics too, for toServer may wait for it
	out, used, ev := s.replies.Feed(b)
	if len(out) > 0 {
		err = s.tell(&s.down, out)
	}
	return used, ev, err
}

// serverClosed ends the session when the server did.
func (s *session) serverClosed() {
	s.tellLost()
	s.close(errServerGone)
}

// tellLost answers an injected INSERT that was waiting for its reply with the
// ids it was given.
func (s *session) tellLost() {
	s.lockClient(&s.down)
	defer s.clientMu.Unlock()
	r, ok := s.c.Watching().(*relay.InsertReply)
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
