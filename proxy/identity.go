package proxy

import (
	"log/slog"
	"sync/atomic"
	"time"

	"idproxy/proxy/eventloop"
)

// identity tells a session from others.
type identity struct {
	id      uint64                 // among all of the process
	address atomic.Pointer[string] // the client's; a PROXY header may say that it is another
	thread  atomic.Uint32          // its number at the server; 0 before the login
	started time.Time
}

// client returns the client's address.
func (i *identity) client() string { return *i.address.Load() }

func (i *identity) setClient(address string) { i.address.Store(&address) }

// said is what each line of the log says of the session.
func said(s *session) []any {
	return []any{"session.id", s.who.id, "listener", s.l.Name, "client.address", s.who.client()}
}

// log returns the log for lines of the session that a lane writes; nil: none does. Who reads the log
// may be slow, so the lane leaves its loop. The log is made anew for each line: they are few, and
// sessions many.
func (s *session) log(by *eventloop.Task) *slog.Logger {
	by.Handoff()
	log := s.l.srv.log.With(said(s)...)
	if thread := s.who.thread.Load(); thread != 0 {
		log = log.With("thread", thread)
	}
	return log
}
