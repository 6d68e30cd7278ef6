package proxy

import (
	"bytes"
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// prepared is a statement that the client has prepared and that is more than
// passed on. Only the goroutine that reads from the client uses it once it was
// sent, but for broken and failed.
type prepared struct {
	number uint32 // the server's; 0: its reply has not come
	own    *ownText
	touch  touch // what an execution may change
	reads  bool  // LAST_INSERT_ID() must be right before an execution
	unseen bool  // an execution may write to tables out of sight
	// target is the table of an INSERT; book are the rules that it was prepared by.
	target rewriter.Name
	book   *rule.List
	unread bool // prepared in SQL, unread while no table had a rule
	// makes is the key of the temporary table that a statement prepared in SQL makes.
	makes  string
	kind   kind    // nil: an execution goes as it is
	hidden *hidden // the server's parameters that the client does not have; nil: none
	// Of the reply to the PREPARE, under the conversation's mu:
	broken bool // the server counts other parameters than the proxy
	failed bool // it was an ERR

	params  int      // the client's parameters
	types   []uint16 // of those, as it gave them last
	untyped bool     // the server, which has the statement anew, was not told
	columns uint16   // of its result
	status  uint16   // flags that the server would set at the next execution, had it prepared the statement anew itself
	long    longData
}

// kind is what a prepared statement is to a decision on its executions.
type kind interface {
	// held reports whether each execution is decided on.
	held() bool
	// followsRules reports whether the PREPARE was decided on by the rules of its table: by
	// others it is another statement.
	followsRules() bool
}

// longData is what COM_STMT_SEND_LONG_DATA has brought since the last execution.
type longData struct {
	sent map[int]bool   // the client's parameters whose data the server has
	ids  map[int][]byte // those that are ids: the server has nothing of them
	// ready: the statement was made the right one when the first piece came, or that was
	// refused.
	ready   bool
	refused *mysql.MyError
}

// atServer notes that the server has data of a parameter.
func (l *longData) atServer(param int) {
	if l.sent == nil {
		l.sent = map[int]bool{}
	}
	l.sent[param] = true
}

// has reports whether data of a parameter has come.
func (l *longData) has(param int) bool {
	_, id := l.ids[param]
	return id || l.sent[param]
}

// maxLongID bounds the text of an id that comes as long data; no column holds an
// id that long.
const maxLongID = 4096

// lastStatement is MariaDB's number of the statement that was prepared last.
const lastStatement = 1<<32 - 1

// notePrepared takes the reply to a PREPARE; id 0: it failed.
func (c *conversation) notePrepared(id uint32, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prepared.newest.note(id, ours)
}

// address writes the server's number of e into a command, or, where nothing is known
// of that, the number of the client's last statement into one that says
// lastStatement and that the server would take for another. The lock is held.
func (c *conversation) address(e *prepared, payload []byte) {
	if e != nil && e.number != 0 {
		binary.LittleEndian.PutUint32(payload[1:], e.number)
		return
	}
	if len(payload) < 5 || !c.prepared.newest.hidden || c.prepared.newest.id == 0 || binary.LittleEndian.Uint32(payload[1:]) != lastStatement {
		return
	}
	for i := range c.pending.n {
		if c.pending.at(i).reply == replyPrepare { // the server means that one
			return
		}
	}
	binary.LittleEndian.PutUint32(payload[1:], c.prepared.newest.id)
}

// addressed is address for a caller that does not have the lock.
func (c *conversation) addressed(e *prepared, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.address(e, payload)
}

// newPrepared returns what is to be known of a statement that is prepared as it
// is: nil when nothing is. sql is all of it, or, unless whole, its beginning.
func newPrepared(head rewriter.Head, sql []byte, whole bool) *prepared {
	var p pending
	changes(&p, head, sql, whole)
	e := &prepared{touch: p.touch, unseen: p.unseen}
	runs := false
	switch head.Kind {
	case rewriter.Call, rewriter.Prepare, rewriter.Execute, rewriter.Compound:
		runs = true
		fallthrough // they may do what DDL does
	case rewriter.DDL:
		e.touch |= touchAll
	case rewriter.Use:
		e.touch |= touchSchema
	}
	e.reads = !whole || !rewriter.MentionsDiagnostics(sql) && (runs || rewriter.MentionsLastID(sql) || head.HidesLastID())
	if e.touch == 0 && !e.reads {
		return nil
	}
	return e
}

// inserts reports whether a statement may be one that rules concern.
func inserts(head rewriter.Head) bool {
	return head.Kind == rewriter.Insert || head.Kind == rewriter.Replace
}

// aims notes the table of an INSERT, and its text, nil when too little of it was seen.
func (e *prepared) aims(head rewriter.Head, text []byte, s *state, book *rule.List) {
	e.target, e.book = cloneName(head.Target), book
	if len(e.target.Schema) == 0 {
		e.target.Schema = bytes.Clone(s.knownSchema())
	}
	if text != nil {
		e.own = newOwnText(text, head, s)
	}
}

// cloneName copies a name, for it to outlive the command.
func cloneName(n rewriter.Name) rewriter.Name {
	return rewriter.Name{Schema: bytes.Clone(n.Schema), Table: bytes.Clone(n.Table)}
}

// ruled reports whether the rules of the INSERT are not those that it was prepared by:
// a reload has brought others.
func (e *prepared) ruled(book ruleBook) bool {
	if e.book == nil || e.book == book.List {
		return false
	}
	if e.kind != nil && e.kind.followsRules() {
		return true
	}
	if len(e.target.Schema) == 0 {
		return book.MayMatch(e.target.Table, book.fold)
	}
	for _, rule := range book.Match(e.target.Schema, e.target.Table, book.fold) {
		if !rule.Observe {
			return true
		}
	}
	return false
}

// statementOf returns what is known of the prepared statement that a command
// names, nil when that is nothing. The conversation's lock is held.
func (m *requests) statementOf(payload []byte) *prepared {
	return m.c.prepared.ofNumber(payload, m.last)
}

// execute handles the execution of a prepared statement.
// payload is what has arrived of size bytes.
func (m *requests) execute(payload []byte, size int, whole bool) verdict {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.kept = nil
	p := pending{reply: replyResult}
	e := m.statementOf(payload)
	if e != nil {
		book := m.rules()
		if e.held() || e.ruled(book) || e.reads && m.c.mayOwe() {
			return holdIt
		}
		if e.book != nil { // none of these concern it, too
			e.book = book.List
		}
		if e.own != nil && !e.noteTypes(payload, m.c.caps) && !whole {
			return m.undecided(len(payload), size)
		}
		p.touch, p.unseen, e.long = e.touch, e.unseen, longData{}
	}
	m.c.address(e, payload)
	m.c.sendLocked(p)
	return forwardIt
}

// held reports whether every execution is decided on.
func (e *prepared) held() bool {
	return e.untyped || e.kind != nil && e.kind.held()
}

// noteTypes keeps the types that an execution gives the parameters, for a server
// that has the statement anew does not know them. It reports false when the packet
// ends in front of them.
func (e *prepared) noteTypes(payload []byte, caps uint64) bool {
	types, ok := typesOf(e.types, payload, caps, e.params)
	if len(types) > 0 {
		e.types = types
	}
	return ok
}

// typesOf returns the types that an execution gives the n parameters of its statement, in the
// memory of dst.
func typesOf(dst []uint16, payload []byte, caps uint64, n int) (types []uint16, ok bool) {
	if n == 0 {
		return dst[:0], true
	}
	read := wire.AppendTypes
	if payload[0] == comBulkExecute {
		read = wire.AppendBulkTypes
	}
	return read(dst[:0], payload, caps, n)
}

// prepare handles COM_STMT_PREPARE. sql is what has arrived of size bytes.
func (m *requests) prepare(sql []byte, size int, whole bool) verdict {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.kept = nil
	head, more := rewriter.ReadHead(sql, m.c.state.mode)
	if more && !whole {
		return m.undecided(len(sql), size)
	}
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		if m.mayConcern(head.Target) {
			return holdIt
		}
		if inserts(head) && !whole && size <= min(m.most(), wire.MaxPayload-1, maxOwnTexts-m.c.prepared.texts) { // its text is kept
			return m.undecided(len(sql), size)
		}
	case rewriter.Compound, rewriter.Prepare, rewriter.Execute:
		return holdIt
	case rewriter.DDL:
		if m.createsRuled(head, sql) {
			return holdIt
		}
	}
	m.last = newPrepared(head, sql, whole)
	if inserts(head) {
		text := sql
		if !whole {
			text = nil
		}
		m.last.aims(head, text, &m.c.state, m.rules().List)
	}
	m.c.sendLocked(pending{reply: replyPrepare, watcher: m.last.watcher()})
	return forwardIt
}

// longData handles COM_STMT_SEND_LONG_DATA: the parameter that it names has
// another number on the server when hidden ones stand in front of it.
func (m *requests) longData(payload []byte, size int, whole bool) verdict {
	const head = 7 // command, statement (4), parameter (2)
	if len(payload) < head {
		if whole {
			return m.other(payload)
		}
		return waitForIt
	}
	m.c.mu.Lock()
	e := m.statementOf(payload)
	if e != nil && !e.long.ready && (e.held() || e.ruled(m.rules())) {
		m.c.mu.Unlock()
		m.checking = e
		return checkIt
	}
	if e == nil || e.hidden == nil {
		m.c.address(e, payload)
	}
	m.c.mu.Unlock()
	if e == nil {
		return m.other(payload)
	}
	client := int(binary.LittleEndian.Uint16(payload[5:]))
	if e.hidden == nil {
		e.long.atServer(client)
		return m.other(payload)
	}
	server, role := e.hidden.position(client)
	if role == rewriter.RoleBound {
		if !whole && size <= maxNote {
			return waitForIt
		}
		return dropIt
	}
	if client < e.hidden.client {
		e.long.atServer(client)
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.kept = nil
	m.c.address(e, payload)
	binary.LittleEndian.PutUint16(payload[5:], uint16(min(server, 1<<16-1)))
	return forwardIt
}

// keepLong keeps the data of a parameter that is an id: whether the server gets
// to see it is known at the execution. payload is what has arrived of size bytes.
func (m *requests) keepLong(payload []byte, size int) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.kept = nil
	e := m.statementOf(payload)
	param := int(binary.LittleEndian.Uint16(payload[5:]))
	if e.long.ids == nil {
		e.long.ids = map[int][]byte{}
	}
	have := e.long.ids[param]
	switch {
	case len(payload) < size || len(have)+size > maxLongID:
		have = make([]byte, maxLongID+1)
	default:
		have = append(have, payload[7:]...)
	}
	e.long.ids[param] = have
}

// learnStatement keeps what is known of a statement by the number that the
// server gave it, and returns how many parameters the client is told of.
func (c *conversation) learnStatement(e *prepared, p wire.Prepared) (params uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prepared.learn(e, p)
	return uint16(e.params)
}

// learn takes what the server said of a statement.
func (e *prepared) learn(p wire.Prepared) {
	e.number, e.params, e.columns = p.ID, int(p.Params), p.Columns
	if e.hidden == nil {
		return
	}
	if e.broken = e.params != len(e.hidden.all); !e.broken {
		e.params = e.hidden.client
	}
}

// end handles COM_STMT_RESET, which drops long data, and COM_STMT_CLOSE.
func (m *requests) end(payload []byte) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	e := m.statementOf(payload)
	if e == nil {
		m.c.address(e, payload)
		return
	}
	e.long = longData{}
	if payload[0] == mysql.COM_STMT_CLOSE {
		m.c.prepared.close(payload, e)
		if m.last == e {
			m.last = nil
		}
	}
	m.c.address(e, payload)
}

// fetch handles COM_STMT_FETCH.
func (m *requests) fetch(payload []byte) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if m.c.prepared.renewed {
		m.c.address(m.statementOf(payload), payload)
	}
}
