package proxy

import (
	"errors"
	"log/slog"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/inside"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
)

// Told is the error that a client is told. One of a rule or its source is logged, with what the
// client is not told of it.
func (s *session) Told(err error) *mysql.MyError {
	e := clienterr.From(err)
	if e.Code != mysql.ER_AUTOINC_READ_FAILED && e.Code != mysql.ER_NOT_SUPPORTED_YET {
		return e
	}
	others, ok := s.l.srv.notices.Due(s.l.Name + inside.WithoutNumbers(clienterr.Logged(err, e)))
	if !ok {
		return e
	}
	now := s.c.Vars()
	said := []any{"db.response.status_code", e.Code, "error.message", clienterr.Logged(err, e), "user.name", s.c.User(), "db.namespace", string(now.Schema)}
	if s.held != nil {
		said = append(said, "db.query.text", s.at.decider.Outline(s.held, now.Mode))
	}
	if kept, ok := errors.AsType[clienterr.KeptError](err); ok {
		if _, reference := inside.Text(kept.Cause); reference != "" {
			said = append(said, "reference", reference, "cause", kept.Cause)
		}
	}
	s.log(&s.up).Warn("statement refused", append(said, "others", others)...)
	return e
}

// report logs and counts what the decision found that was made last.
func (s *session) report(found *decide.Findings) {
	s.trace.found(found)
	s.l.srv.Stats.LeftAlone.Add(int64(found.LeftAlone))
	for _, p := range found.Passed {
		s.debug().Debug("forwarded without ids", "rule", p.Rule.String(), "db.collection.name", p.Table, "form", p.Form)
	}
	for _, d := range found.Disputes {
		s.log(&s.up).Warn("two readers read a statement differently, it is not filled", "rule", d.Rule.String(), "db.collection.name", d.Table, "error.message", d.Err)
	}
	for _, o := range found.Observed {
		s.countObserved(&o)
		s.l.srv.notices.observe(o.Sighting)
		if others, ok := s.l.srv.notices.Due(o.Rule + o.Table + o.What); ok {
			s.log(&s.up).Info("observed", "rule", o.Rule, "db.collection.name", o.Table, "what", o.What, "db.query.text", o.Statement, "others", others)
		}
	}
	found.Reset()
}

// chosen returns the session's tracer; nil, unless the settings choose the session now.
func (s *session) chosen() *tracer {
	t := s.l.srv.settings().Trace
	if t == nil || s.l.srv.cfg.Tracer == nil {
		return nil
	}
	user := s.c.User()
	if !t.chooses(user, s.who.client()) {
		return nil
	}
	s.up.Handoff() // as for the log
	log := s.l.srv.cfg.Tracer.With(append(said(s), "thread", s.who.thread.Load(), "user.name", user)...)
	return &tracer{log, &s.c, &s.at.decider}
}

// debug returns the log for lines that are written at level DEBUG, or of a traced session.
func (s *session) debug() *slog.Logger {
	switch {
	case s.trace != nil:
		return s.trace.log
	case s.l.srv.log.Enabled(&s.ctx, slog.LevelDebug):
		return s.log(&s.up)
	}
	return s.l.srv.log // which writes nothing of that level
}
