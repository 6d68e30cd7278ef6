package proxy

import (
	"time"

	"idproxy/proxy/catalog"
	"idproxy/proxy/choice"
	"idproxy/proxy/limit"
	"idproxy/proxy/stats"
	"idproxy/rule"
)

// ListenerStatus is what a listener does at a moment.
type ListenerStatus struct {
	Name     string
	Listen   string // the address, with the port that a configured 0 became
	Upstream string // the server that new sessions go to
	Servers  []choice.Status
	// Denied says of each of these why the account cannot ask it, though it answers; nil: it can, or
	// its sessions need no account.
	Denied []error
	// Begun is how many columns of the server in use were compared with their sources, and Unbegun why
	// others of any server could not be.
	Begun    int
	Unbegun  []catalog.Failure
	Switches uint64 // how often Upstream became another one
	Problem  error  // why no server can be used; nil: one can
	Open     uint64 // sessions
	LoggedIn uint64 // of those
	States   map[SessionState]uint64
	Accepted uint64             // sessions since the start
	Silent   uint64             // of those, the ones that ended because their login took too long
	Limited  [limit.Keys]uint64 // what limits refused or closed
	// Counts are those of all sessions since the start.
	Counts *stats.Session
	// Held is how many commands were decided on, and how long that took in all.
	Held     uint64
	HeldTime time.Duration
	Errors   map[stats.Error]uint64
	// Questions are those that clients did not see, by kind.
	Questions []QuestionStatus
}

// QuestionStatus counts the questions of one kind.
type QuestionStatus struct {
	Kind  stats.Question
	Count uint64
	Time  time.Duration // that sessions waited for the answers, in all
}

// SessionStatus is what a session does at a moment.
type SessionStatus struct {
	ID       uint64
	Listener string
	Client   string
	User     string
	Thread   uint32 // its number at the server
	State    SessionState
	Started  time.Time
	Counts   *stats.Session
}

// SessionState says what a session does.
type SessionState string

// The states of a session.
const (
	LoggingIn SessionState = "login"
	Idle      SessionState = "idle"     // no command is pending
	Busy      SessionState = "busy"     // the server has not answered yet
	Deciding  SessionState = "deciding" // a command is held
	InTrans   SessionState = "in transaction"
)

// SessionStates are all of them.
var SessionStates = [...]SessionState{LoggingIn, Idle, Deciding, Busy, InTrans}

// RefusedByNoRule returns how many statements were refused that no single rule refused, by reason.
func (srv *Server) RefusedByNoRule() (byReason [rule.Reasons]uint64) {
	_, _, byReason = srv.refused.Load()
	return byReason
}

// Held returns how many bytes of memory the statements take that sessions hold.
func (srv *Server) Held() int64 { return srv.held.Taken() }

// Phase returns how far the server is in letting its sessions go.
func (srv *Server) Phase() Phase {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.phase
}

// Listeners returns what all listeners do.
func (srv *Server) Listeners() []ListenerStatus {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	open := map[*kin][]*session{} // with those of listeners that had the name before
	for s := range srv.sessions {
		open[s.l.kin] = append(open[s.l.kin], s)
	}
	all := make([]ListenerStatus, 0, len(srv.listeners))
	for _, l := range srv.listeners {
		all = append(all, l.status(open[l.kin]))
	}
	return all
}

func (l *listener) status(open []*session) ListenerStatus {
	status := ListenerStatus{
		Name: l.Name, Servers: l.choice.Status(), Open: uint64(len(open)), States: map[SessionState]uint64{}, Accepted: l.stats.Accepted.Load(), Silent: l.stats.Silent.Load(),
		Errors: l.stats.Errors(),
	}
	counts := make([]*stats.Session, 0, len(open))
	for _, s := range open {
		counts = append(counts, &s.stats)
		status.States[s.state()]++
	}
	status.LoggedIn = status.Open - status.States[LoggingIn]
	status.Counts = l.stats.Sum(counts)
	if l.door != nil {
		status.Listen = l.door.Addr().String()
	}
	status.Upstream, status.Switches = l.choice.Used()
	_, status.Problem = l.health.last()
	if !l.choice.Several() && !l.Writable {
		status.Servers[0].Problem = status.Problem // one that refuses sessions answers
	}
	for i, s := range l.servers {
		begun, unbegun := s.tables.Begun()
		if status.Servers[i].Used {
			status.Begun = begun
		}
		status.Unbegun = append(status.Unbegun, unbegun...)
		var denied error
		if why := s.denied.Load(); why != nil && !s.plain.Load() {
			denied = *why
		}
		status.Denied = append(status.Denied, denied)
	}
	for key := range l.limited {
		status.Limited[key] = l.limited[key].Load()
	}
	status.Held, status.HeldTime = l.stats.Held.Load()
	for kind := range l.stats.Questions {
		if n, took := l.stats.Questions[kind].Load(); n > 0 {
			status.Questions = append(status.Questions, QuestionStatus{stats.Question(kind), n, took})
		}
	}
	return status
}

// Sessions returns what all open sessions do, in no order.
func (srv *Server) Sessions() []SessionStatus {
	srv.mu.Lock()
	open := make([]*session, 0, len(srv.sessions))
	for s := range srv.sessions {
		open = append(open, s)
	}
	srv.mu.Unlock()
	all := make([]SessionStatus, 0, len(open))
	for _, s := range open {
		all = append(all, statusOf(s))
	}
	return all
}

func statusOf(s *session) SessionStatus {
	status := SessionStatus{
		ID: s.who.id, Listener: s.l.Name, Client: s.who.client(), Thread: s.who.thread.Load(), State: s.state(), Started: s.who.started, Counts: &s.stats,
	}
	status.User, _, _, _ = s.c.Doing()
	return status
}

func (s *session) state() SessionState {
	_, deciding, pending, open := s.c.Doing()
	switch {
	case !s.stats.LoggedIn.Load():
		return LoggingIn
	case deciding:
		return Deciding
	case pending:
		return Busy
	case open:
		return InTrans
	}
	return Idle
}

// CloseSession cuts a session. It reports false when there is none of that number.
func (srv *Server) CloseSession(id uint64) bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for s := range srv.sessions {
		if s.who.id == id {
			s.close(errClosed)
			return true
		}
	}
	return false
}
