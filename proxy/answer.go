package proxy

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
)

// answer sends an error made here as the reply to a command whose last frame
// had sequence number seq.
func (s *session) answer(e *mysql.MyError, seq byte) error {
	s.l.stats.Error(stats.Error{Code: e.Code, Side: stats.Proxy})
	return s.deliver(wire.AppendERR(nil, seq+1, e))
}

// passOn is answer with an error that the server gave to a question.
func (s *session) passOn(own *mysql.MyError, seq byte) error {
	s.trace.passedOn(own)
	s.l.stats.Error(stats.Error{Code: own.Code, Side: stats.Server})
	return s.deliver(wire.AppendERR(nil, seq+1, own))
}

// deliver sends a reply made here behind the replies that the client waits for.
func (s *session) deliver(local []byte) error {
	if s.c.Waiting() >= protocol.MaxPending {
		if err := s.quiet(); err != nil {
			return err
		}
	}
	s.lockClient(&s.up)
	defer s.clientMu.Unlock()
	if !s.c.Answerable(local) {
		return nil
	}
	if err := s.tell(&s.up, local); err != nil {
		return errClientGone
	}
	return nil
}
