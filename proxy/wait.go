package proxy

import (
	"idproxy/proxy/decide"
	"idproxy/proxy/eventloop"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// quiet waits until no command is pending. Files that the server asks for
// meanwhile go through.
func (s *session) quiet() error {
	for {
		if _, err := eventloop.Await(s.c.Quiet(), &s.gone); err != nil {
			return err
		}
		if s.c.Phase() != protocol.PhaseInfile {
			return nil
		}
		if err := s.relayFile(); err != nil {
			return err
		}
	}
}

// relayFile passes on the data of a LOCAL INFILE, and nothing that stands
// behind it. The command that asked for it is given up: what is left of it is
// copied, for more bytes of the client take its place.
func (s *session) relayFile() error {
	if s.held != nil { // else a command that is too large to be held is refused
		if l, ok := s.held.Order.(*decide.Loading); ok {
			return s.relayLoad(l)
		}
		s.held.Keep()
	}
	s.in.consume(s.holding)
	s.holding = 0
	for s.c.Phase() == protocol.PhaseInfile {
		b := s.in.bytes()
		if n := s.requests.Left; n > 0 {
			b = b[:min(n, len(b))]
		} else if len(b) >= wire.HeaderLen {
			b = b[:min(wire.HeaderLen+wire.PayloadLen(b), len(b))]
		}
		n, act := s.requests.Next(b)
		if act == protocol.ActMore {
			if err := s.in.more(); err != nil {
				s.clientClosed(err)
				return errClientGone
			}
			continue
		}
		if err := s.write(b[:n]); err != nil {
			return err
		}
		s.in.consume(n)
	}
	return nil
}
