package proxy

import (
	"time"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/eventloop"
	"idproxy/proxy/limit"
	"idproxy/proxy/wire"
)

// silence is since when a session has been silent, and what had passed then.
type silence struct {
	since time.Time
	bytes uint64
}

// silences are those of sessions on listeners that bound them. One look a second at all sessions
// costs less than a timer for each, which every command would move.
type silences map[*session]silence

// lookInterval is how often sessions are looked at. A limit is kept to within that.
const lookInterval = time.Second

// watchSilent ends sessions that are silent for too long, until the returned function is called.
func (srv *Server) watchSilent() (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		var seen silences
		for {
			select {
			case <-ended:
				return
			case now := <-ticker.C:
				seen = srv.look(seen, now)
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

// look ends sessions that are silent for too long, and returns the silences of the others.
func (srv *Server) look(seen silences, now time.Time) silences {
	bounded := false
	for _, b := range srv.settings().Bounds {
		bounded = bounded || b.Idle > 0 || b.Transaction > 0
	}
	if !bounded {
		return nil
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	next := make(silences, len(srv.sessions))
	for s := range srv.sessions {
		b := s.l.bounds()
		if b.Idle == 0 && b.Transaction == 0 || !s.stats.LoggedIn.Load() {
			continue
		}
		next[s] = s.silent(seen[s], b, now)
	}
	return next
}

// silent looks at one session. The caller holds srv.mu.
func (s *session) silent(before silence, b *limit.Bounds, now time.Time) silence {
	bytes := s.stats.FromClient.Load() + s.stats.FromServer.Load()
	_, deciding, pending, inTrans := s.c.Doing()
	if deciding || pending || before.since.IsZero() || before.bytes != bytes {
		return silence{now, bytes}
	}
	key, most := limit.Idle, b.Idle
	if inTrans {
		key, most = limit.Transaction, b.Transaction
	}
	if most > 0 && now.Sub(before.since) >= most {
		s.timeOut(key, most)
		before.since = now // if it goes on after all
	}
	return before
}

// timeOut ends a session unless a command has come meanwhile. The client is told, and reads it in
// place of the next reply. The caller holds srv.mu.
func (s *session) timeOut(key limit.Key, after time.Duration) {
	s.l.srv.wg.Go(func() {
		s.clientMu.Lock()
		defer s.clientMu.Unlock()
		if key == limit.Transaction && !s.c.Abandon() || key == limit.Idle && !s.c.Leave() {
			return
		}
		e := clienterr.TimedOut(key.String(), after, s.c.MariaDB)
		s.ctx.End(e)
		s.reached(key, e)
		slow := time.AfterFunc(time.Second, func() { s.close(e) }) // one that does not read
		defer slow.Stop()
		_ = s.tell(&eventloop.Task{}, wire.AppendERR(nil, 0, e)) // it may be gone
		s.close(e)
	})
}
