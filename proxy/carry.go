package proxy

import (
	"context"

	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/rule"
)

// A session carries orders out.

func (s *session) Conversation() *protocol.Conn { return &s.c }
func (s *session) Context() context.Context     { return &s.ctx }
func (s *session) Drew(r *rule.Rule, ids int) {
	r.Counts.Drew(ids)
	s.trace.drew(r, ids)
}

func (s *session) Filled()                   { s.l.srv.Stats.Filled.Add(1); s.counts(stats.Filled) }
func (s *session) Prepares(e *protocol.Stmt) { s.requests.Last = e }

// Carry sets variables for what is sent next. It waits for the reply: if the server did not set
// them, as when the query is killed, an execution would find the ids of the one before.
func (s *session) Carry(set []byte) error {
	defer s.askFor(stats.Variables)()
	return s.change(s.c.AppendQuery(nil, string(set)), protocol.Pending{Reply: protocol.ReplyResult})
}
