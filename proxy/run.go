package proxy

import (
	"errors"
	"time"
)

// run serves the session from the accepted connection. It returns when a loop has taken it over, or
// at its end.
func (s *session) run() {
	s.guest.clock = time.AfterFunc(s.l.srv.settings().Handshake, handshake{s}.expire)
	if err := s.begin(); err != nil {
		s.close(err)
		s.end()
		return
	}
	if !joinLoop(s) {
		runInGoroutines(s)
	}
}

func (s *session) begin() (err error) {
	defer s.recover()
	err = errors.New("internal error") // unless it returns
	defer s.ctx.Release()              // nobody waits until a command comes
	return handshake{s}.run()
}
