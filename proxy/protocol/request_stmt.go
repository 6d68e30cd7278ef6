package protocol

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// Arrival is how a command came, beside its bytes.
type Arrival struct {
	Caps     uint64 // what client and server both speak
	Seq      byte   // sequence number of its last frame
	Multi    bool   // it is a text that the server splits at ';'
	Executes *Stmt  // the statement that it executes; nil: none, or nothing is known of that
	Head     rewriter.HeadReading
}

// Arrival returns how a command came that was found last, a whole packet.
func (m *RequestParser) Arrival(packet []byte) Arrival {
	c, payload := m.Conn, packet[wire.HeaderLen:]
	c.mu.Lock()
	defer c.mu.Unlock()
	as := Arrival{Caps: c.Caps, Seq: m.Seq, Multi: c.multi && payload[0] == mysql.COM_QUERY}
	if m.head != nil {
		as.Head = *m.head
		m.forgetHead()
	}
	switch payload[0] {
	case mysql.COM_STMT_EXECUTE, ComBulkExecute:
		as.Executes = m.statementOf(payload)
	}
	return as
}

// statementOf returns what is known of the prepared statement that a command
// names, nil when that is nothing. The conversation's lock is held.
func (m *RequestParser) statementOf(payload []byte) *Stmt {
	return m.Conn.Prepared.ofNumber(payload, m.Last)
}

// execute handles the execution of a prepared statement.
// payload is what has arrived of size bytes.
func (m *RequestParser) execute(payload []byte, size int, whole bool) verdict {
	m.Conn.mu.Lock()
	defer m.Conn.mu.Unlock()
	m.Conn.kept = nil
	p := Pending{Reply: ReplyResult}
	e, book := m.statementOf(payload), m.Rules()
	switch {
	case e != nil && (e.Held() || e.Ruled(book) || e.Reads && m.Conn.mayOwe()):
		return holdIt
	case m.Conn.state.InsertID > 0:
		return tellIt
	}
	if e != nil {
		if e.Book != nil { // none of these concern it, too
			e.Book = book.List
		}
		if e.Own != nil && !e.noteTypes(payload, m.Conn.Caps) && !whole {
			return m.undecided(len(payload), size)
		}
		p.Touch, p.Unseen, e.Long = e.Touch, e.Unseen, LongData{}
		e.MayShowOthers(&p)
	}
	m.unseen = p.Unseen
	m.Conn.address(e, payload)
	m.Conn.sendLocked(p)
	return forwardIt
}

// prepare handles COM_STMT_PREPARE. sql is what has arrived of size bytes.
func (m *RequestParser) prepare(sql []byte, size int, whole bool) verdict {
	m.Conn.mu.Lock()
	defer m.Conn.mu.Unlock()
	m.Conn.kept = nil
	head, more := m.readHead(sql, m.Conn.state.Mode)
	if more && !whole {
		return m.undecided(len(sql), size)
	}
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load, rewriter.Portion:
		if m.mayConcern(head.Target) {
			return holdIt
		}
		if Inserts(head) && !whole && size <= min(m.most(), wire.MaxPayload-1, maxOwnTexts-int(m.Conn.Prepared.texts.Load())) { // its text is kept
			return m.undecided(len(sql), size)
		}
	case rewriter.Compound, rewriter.Prepare, rewriter.Execute:
		return holdIt
	case rewriter.DDL:
		if m.createsRuled(head, sql) {
			return holdIt
		}
	}
	m.Last = NewStmt(head, sql, whole)
	if Inserts(head) {
		text := sql
		if !whole {
			text = nil
		}
		m.Last.Aims(head, text, &m.Conn.state, m.Rules().List)
	}
	m.Conn.sendLocked(Pending{Reply: ReplyPrepare, Handler: m.Last.ReplyHandler()})
	return forwardIt
}

// longData handles COM_STMT_SEND_LONG_DATA: the parameter that it names has
// another number on the server when hidden ones stand in front of it.
func (m *RequestParser) longData(payload []byte, size int, whole bool) verdict {
	const head = 7 // command, statement (4), parameter (2)
	if len(payload) < head {
		if whole {
			return m.other(payload)
		}
		return waitForIt
	}
	m.Conn.mu.Lock()
	e := m.statementOf(payload)
	if e != nil && !e.Long.Ready && (e.Held() || e.Ruled(m.Rules())) {
		m.Conn.mu.Unlock()
		m.Checking = e
		return checkIt
	}
	if e == nil || e.Hidden == nil {
		m.Conn.address(e, payload)
	}
	m.Conn.mu.Unlock()
	if e == nil {
		return m.other(payload)
	}
	client := int(binary.LittleEndian.Uint16(payload[5:]))
	if e.Hidden == nil {
		e.Long.AtServer(client)
		return m.other(payload)
	}
	server, role := e.Hidden.position(client)
	if role == rewriter.RoleBound {
		if !whole && size <= maxNote {
			return waitForIt
		}
		return dropIt
	}
	if client < e.Hidden.Client {
		e.Long.AtServer(client)
	}
	m.Conn.mu.Lock()
	defer m.Conn.mu.Unlock()
	m.Conn.kept = nil
	m.Conn.address(e, payload)
	binary.LittleEndian.PutUint16(payload[5:], uint16(min(server, 1<<16-1)))
	return forwardIt
}

// keepLong keeps the data of a parameter that is an id: whether the server gets
// to see it is known at the execution. payload is what has arrived of size bytes.
func (m *RequestParser) keepLong(payload []byte, size int) {
	m.Conn.mu.Lock()
	defer m.Conn.mu.Unlock()
	m.Conn.kept = nil
	e := m.statementOf(payload)
	param := int(binary.LittleEndian.Uint16(payload[5:]))
	if e.Long.IDs == nil {
		e.Long.IDs = map[int][]byte{}
	}
	have := e.Long.IDs[param]
	switch {
	case len(payload) < size || len(have)+size > MaxLongID:
		have = make([]byte, MaxLongID+1)
	default:
		have = append(have, payload[7:]...)
	}
	e.Long.IDs[param] = have
}

// end handles COM_STMT_RESET, which drops long data, and COM_STMT_CLOSE.
func (m *RequestParser) end(payload []byte) {
	m.Conn.mu.Lock()
	defer m.Conn.mu.Unlock()
	e := m.statementOf(payload)
	if e == nil {
		m.Conn.address(e, payload)
		return
	}
	e.Long = LongData{}
	if payload[0] == mysql.COM_STMT_CLOSE {
		m.Conn.Prepared.close(payload, e)
		if m.Last == e {
			m.Last = nil
		}
	}
	m.Conn.address(e, payload)
}

// fetch handles COM_STMT_FETCH.
func (m *RequestParser) fetch(payload []byte) {
	m.Conn.mu.Lock()
	defer m.Conn.mu.Unlock()
	if m.Conn.Prepared.Renewed {
		m.Conn.address(m.statementOf(payload), payload)
	}
}
