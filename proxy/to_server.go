package proxy

import (
	"errors"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/stats"
	"idproxy/rule"
)

// toServer is the lane of a session that reads from the client, and alone writes to the server.
type toServer struct{ *session }

// requested does what the client's bytes ask for that were read.
func (s toServer) requested(in *inlet) error {
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
func (s toServer) stop(err error) {
	if errors.Is(err, errServerGone) {
		s.server.Close()
		return
	}
	s.close(err)
}

// longStatement is from how many bytes on a statement is decided on beside the loop.
const longStatement = 64 << 10

func (s toServer) act(act relay.Action, b []byte) error {
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
	case relay.ActPassword:
		return s.password(b)
	case relay.ActTooLarge:
		s.stats.Commands.Add(stats.Refused, stats.Query)
		e := clienterr.HeldTooLarge(s.requests.Limit)
		s.chosen().refused("", rule.TooLarge, e)
		err = s.answer(e, s.requests.Seq)
	}
	if err == nil && s.leave() { // it was answered here
		return errDrained
	}
	return err
}
