package proxy

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/limit"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/rule"
)

// toServer is the lane of a session that reads from the client, and alone writes to the server.
type toServer struct{ *session }

// requested does what the client's bytes ask for that were read.
func (s toServer) requested(in *inlet) error {
	for in.r < in.w {
		n, act := s.requests.Next(in.bytes())
		if act == protocol.ActMore {
			if s.keep(in) || !s.requests.NoRoom() {
				return nil
			}
			continue
		}
		if act == protocol.ActReady {
			if err := s.ready(s.requests.Checking); err != nil {
				return err
			}
			continue
		}
		if act == protocol.ActInsertID {
			if err := s.tellInsertID(); err != nil {
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

// tellInsertID tells the server what SET insert_id asks for.
func (s toServer) tellInsertID() error {
	if !s.c.Decide() {
		return errDrained
	}
	defer s.c.Decided()
	return s.write(s.appendInsertID(nil))
}

// keep keeps what is there of a command that is not whole. It reports false when limits.held has no room.
func (s toServer) keep(in *inlet) bool {
	held, most := &s.l.srv.held, s.l.srv.settings().Held
	if in.full() {
		s.up.Handoff()
		held.Collect(most)
	}
	return in.keep(held, most)
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

func (s toServer) act(act protocol.Action, b []byte) error {
	var err error
	switch act {
	case protocol.ActForward:
		if s.c.Ended.Load() { // else the commands, which are pending since requests found them, keep it from ending
			return errDrained
		}
		s.awaitsServer()
		return s.write(b)
	case protocol.ActStatement:
		if !s.c.Decide() {
			return errDrained
		}
		err = s.decideOn(b)
		s.c.Decided()
	case protocol.ActPassword:
		s.awaitsServer()
		return s.password(b)
	case protocol.ActTooLarge:
		err = s.tooLarge(clienterr.HeldTooLarge(s.requests.Limit))
	case protocol.ActNoRoom:
		err = s.noRoom()
	}
	if err == nil && s.leave() { // it was answered here
		return errDrained
	}
	return err
}

// decideOn decides on a held command. What becomes of a long one may take as much memory again.
func (s toServer) decideOn(b []byte) error {
	if len(b) <= longStatement {
		return s.statement(b)
	}
	s.up.Handoff()
	held, most := &s.l.srv.held, s.l.srv.settings().Held
	if !s.in.count(held, most) || !held.Take(len(b), most) {
		return s.noRoom()
	}
	defer func() {
		held.Give(len(b))
		held.Discard(len(b))
	}()
	held.Collect(most)
	return s.statement(b)
}

// noRoom answers a command for which limits.held has no room.
func (s toServer) noRoom() error {
	e := clienterr.NoRoom(s.l.srv.settings().Held)
	s.up.Handoff() // for the log
	s.reached(limit.Memory, e)
	return s.tooLarge(e)
}

// tooLarge answers a command that was too large to be held.
func (s toServer) tooLarge(e *mysql.MyError) error {
	s.stats.Commands.Add(stats.Refused, stats.Query)
	s.chosen().refused("", rule.TooLarge, e)
	return s.answer(e, s.requests.Seq)
}
