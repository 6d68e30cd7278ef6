package proxy

import (
	"log/slog"
	"sync/atomic"
	"time"

	"idproxy/proxy/loop"
)

// identity tells a session from others.
type identity struct {
	id       uint64        // among all of the process
	listener string        // its name
	remote   string        // the client's address
	thread   atomic.Uint32 // its number at the server; 0 before the login
	started  time.Time
	logger   *slog.Logger // of the process
}

// said is what each line of the log says of the session.
func (who *identity) said() []any {
	return []any{"session.id", who.id, "listener", who.listener, "client.address", who.remote}
}

// log returns the log for lines of the session that a lane writes; nil: none does. Who reads the log
// may be slow, so the lane leaves its loop. The log is made anew for each line: they are few, and
// sessions many.
func (who *identity) log(by *loop.Lane) *slog.Logger {
	by.Leave()
	log := who.logger.With(who.said()...)
	if thread := who.thread.Load(); thread != 0 {
		log = log.With("thread", thread)
	}
	return log
}
