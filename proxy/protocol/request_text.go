package protocol

import (
	"bytes"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// query handles COM_QUERY. payload is what has arrived of size bytes.
func (m *RequestParser) query(payload []byte, size int, whole bool) verdict {
	at, ok := wire.QueryText(payload, m.Conn.Caps)
	if !ok {
		if whole {
			m.Conn.Send(Pending{Reply: ReplyResult})
			return forwardIt
		}
		return m.undecided(len(payload), size)
	}
	sql := payload[at:]
	m.Conn.mu.Lock()
	defer m.Conn.mu.Unlock()
	s := &m.Conn.state
	if m.asksKept(sql, whole) {
		return holdIt
	}
	head, more := m.readHead(sql, s.Mode)
	multi := m.Conn.multi || m.Conn.pending.turns()
	if !whole && !multi && (more || head.Kind == rewriter.Use || size <= maxNote && (head.Kind == rewriter.Set || s.InsertID > 0)) {
		return m.undecided(len(payload), size)
	}
	p := Pending{Reply: ReplyResult}
	if multi && (!whole || several(sql)) {
		if s.LastID.Owed || !m.Rules().Empty() {
			return holdIt
		}
		p.Touch = TouchAll | TouchLastID
		m.Conn.Prepared.PassNames(sql, whole, m.Rules().List)
	}
	if v := m.note(&p, head, sql, whole); v != forwardIt {
		return v
	}
	m.unseen = p.Unseen
	m.Conn.sendLocked(p)
	return forwardIt
}

// asksKept reports whether a text begins with a SHOW WARNINGS that was answered beforehand. What
// was kept for it is good for the next command only.
func (m *RequestParser) asksKept(sql []byte, whole bool) bool {
	if m.Conn.kept == nil {
		return false
	}
	first, _, _ := bytes.Cut(sql, []byte(";"))
	if whole && rewriter.IsShowWarnings(first) {
		return true
	}
	m.Conn.kept = nil
	return false
}

// several reports whether a ';' stands in the text with more than blanks
// behind it. It may be in a string; the rewriter will see.
func several(sql []byte) bool {
	i := bytes.IndexByte(sql, ';')
	return i >= 0 && len(bytes.TrimLeft(sql[i+1:], " \t\r\n;\x00")) > 0
}

// note says what a statement may change, or that it must be held, or what must come first.
func (m *RequestParser) note(p *Pending, head rewriter.Head, sql []byte, whole bool) verdict {
	s := &m.Conn.state
	if m.Conn.mayOwe() && m.reads(head, sql, whole) {
		return holdIt
	}
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load, rewriter.Portion:
		if m.mayConcern(head.Target) {
			return holdIt
		}
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate, rewriter.Compound:
		return holdIt
	case rewriter.DDL:
		if head.Temporary || head.Drop && s.Temporary != nil || m.createsRuled(head, sql) {
			return holdIt
		}
	case rewriter.Set:
		if whole && !s.Mode.MariaDB && rewriter.ReadInsertID(sql) > 0 && !m.Rules().Empty() {
			return holdIt
		}
	}
	if s.InsertID > 0 && !(whole && leavesInsertID(head, sql)) {
		return tellIt
	}
	Changes(p, head, sql, whole)
	return forwardIt
}

// leavesInsertID reports whether a statement neither reads insert_id nor generates an id. It may be one that
// reads diagnostics: a SET in front of it would change them.
func leavesInsertID(head rewriter.Head, sql []byte) bool {
	switch head.Kind {
	case rewriter.Set, rewriter.Use:
	case rewriter.Other:
		if !rewriter.ReadsDiagnostics(sql) {
			return false
		}
	default:
		return false
	}
	return !rewriter.MentionsInsertID(sql) && head.Effects(sql)&rewriter.SetsNumbering == 0
}

// reads reports whether a statement can read LAST_INSERT_ID(). What stands
// before diagnostics is never delayed: paying would change them.
func (m *RequestParser) reads(head rewriter.Head, sql []byte, whole bool) bool {
	if !whole {
		return true
	}
	reads := rewriter.MentionsLastID(sql) || head.HidesLastID()
	switch head.Kind {
	case rewriter.Call, rewriter.Prepare, rewriter.Execute, rewriter.Compound:
		reads = true
	}
	return reads && !rewriter.ReadsDiagnostics(sql)
}

// createsRuled reports whether a CREATE TABLE may make a table with a rule: it may
// fill it, too. The state's lock is held.
func (m *RequestParser) createsRuled(head rewriter.Head, sql []byte) bool {
	switch {
	case !head.Create:
		return false
	case len(head.Target.Table) > 0:
		return m.mayConcern(head.Target)
	}
	return m.Conn.state.Known&KnowQuotes == 0 && bytes.IndexByte(sql, '"') >= 0 && !m.Rules().Empty() // it may be the name
}

// mayConcern reports whether a statement that writes to a table may be one
// with a rule. The state's lock is held.
func (m *RequestParser) mayConcern(t rewriter.Name) bool {
	rules, s := m.Rules(), &m.Conn.state
	switch {
	case rules.Empty():
		return false
	case len(t.Table) == 0, !s.HasInUTF8(t.Schema) || !s.HasInUTF8(t.Table): // or it must be converted first
		return true
	case len(t.Schema) > 0:
		return rules.Match(t.Schema, t.Table, rules.Fold) != nil
	case s.Known&KnowSchema == 0:
		return rules.MayMatch(t.Table, rules.Fold)
	default:
		return rules.Match(s.Schema, t.Table, rules.Fold) != nil
	}
}
