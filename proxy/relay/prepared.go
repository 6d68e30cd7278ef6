package relay

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Prepared is a statement that the client has prepared and that is more than
// passed on. Once it was sent only the goroutine that reads from the client uses it,
// but for what the reply to its PREPARE says.
type Prepared struct {
	Number uint32 // the server's; 0: its reply has not come
	Own    *OwnText
	Touch  Touch // what an execution may change
	Reads  bool  // LAST_INSERT_ID() must be right before an execution
	Unseen bool  // an execution may write to tables out of sight
	// target is the table of an INSERT; book are the rules that it was prepared by.
	target rewriter.Name
	Book   *rule.List
	Unread bool // prepared in SQL, unread while no table had a rule
	// Makes is the key of the temporary table that a statement prepared in SQL makes.
	Makes  string
	Kind   kind    // nil: an execution goes as it is
	Hidden *Hidden // the server's parameters that the client does not have; nil: none
	// Of the reply to the PREPARE:
	Broken bool // the server counts other parameters than the proxy; under the conversation's mu
	Failed Flag // it was an ERR

	Params  int      // the client's parameters
	Types   []uint16 // of those, as it gave them last
	Untyped bool     // the server, which has the statement anew, was not told
	Columns uint16   // of its result
	Status  uint16   // flags that the server would set at the next execution, had it prepared the statement anew itself
	Long    LongData
}

// Flag is raised by one goroutine and looked at by another. A statement is copied only when nobody
// raises its flag any more.
type Flag struct{ up uint32 }

// Raise raises the flag for good.
func (f *Flag) Raise() { atomic.StoreUint32(&f.up, 1) }

// Raised reports whether somebody has raised it.
func (f *Flag) Raised() bool { return atomic.LoadUint32(&f.up) != 0 }

// kind is what a prepared statement is to a decision on its executions.
type kind interface {
	// Held reports whether each execution is decided on.
	Held() bool
	// FollowsRules reports whether the PREPARE was decided on by the rules of its table: by
	// others it is another statement.
	FollowsRules() bool
}

// LongData is what COM_STMT_SEND_LONG_DATA has brought since the last execution.
type LongData struct {
	Sent map[int]bool   // the client's parameters whose data the server has
	IDs  map[int][]byte // those that are ids: the server has nothing of them
	// Ready: the statement was made the right one when the first piece came, or that was
	// refused.
	Ready   bool
	Refused *mysql.MyError
}

// AtServer notes that the server has data of a parameter.
func (l *LongData) AtServer(param int) {
	if l.Sent == nil {
		l.Sent = map[int]bool{}
	}
	l.Sent[param] = true
}

// Has reports whether data of a parameter has come.
func (l *LongData) Has(param int) bool {
	_, id := l.IDs[param]
	return id || l.Sent[param]
}

// MaxLongID bounds the text of an id that comes as long data; no column holds an
// id that long.
const MaxLongID = 4096

// lastStatement is MariaDB's number of the statement that was prepared last.
const lastStatement = 1<<32 - 1

// notePrepared takes the reply to a PREPARE; id 0: it failed.
func (c *Conversation) notePrepared(id uint32, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Prepared.newest.note(id, ours)
}

// address writes the server's number of e into a command, or, where nothing is known
// of that, the number of the client's last statement into one that says
// lastStatement and that the server would take for another. The lock is held.
func (c *Conversation) address(e *Prepared, payload []byte) {
	if e != nil && e.Number != 0 {
		binary.LittleEndian.PutUint32(payload[1:], e.Number)
		return
	}
	if len(payload) < 5 || !c.Prepared.newest.hidden || c.Prepared.newest.id == 0 || binary.LittleEndian.Uint32(payload[1:]) != lastStatement {
		return
	}
	for i := range c.pending.Len {
		if c.pending.At(i).Reply == ReplyPrepare { // the server means that one
			return
		}
	}
	binary.LittleEndian.PutUint32(payload[1:], c.Prepared.newest.id)
}

// Addressed is address for a caller that does not have the lock.
func (c *Conversation) Addressed(e *Prepared, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.address(e, payload)
}

// NewPrepared returns what is to be known of a statement that is prepared as it
// is: nil when nothing is. sql is all of it, or, unless whole, its beginning.
func NewPrepared(head rewriter.Head, sql []byte, whole bool) *Prepared {
	var p Pending
	Changes(&p, head, sql, whole)
	e := &Prepared{Touch: p.Touch, Unseen: p.Unseen}
	runs := false
	switch head.Kind {
	case rewriter.Call, rewriter.Prepare, rewriter.Execute, rewriter.Compound:
		runs = true
		fallthrough // they may do what DDL does
	case rewriter.DDL:
		e.Touch |= TouchAll
	case rewriter.Use:
		e.Touch |= TouchSchema
	}
	e.Reads = !whole || !rewriter.MentionsDiagnostics(sql) && (runs || rewriter.MentionsLastID(sql) || head.HidesLastID())
	if e.Touch == 0 && !e.Reads {
		return nil
	}
	return e
}

// Inserts reports whether a statement may be one that rules concern.
func Inserts(head rewriter.Head) bool {
	return head.Kind == rewriter.Insert || head.Kind == rewriter.Replace
}

// Aims notes the table of an INSERT, and its text, nil when too little of it was seen.
func (e *Prepared) Aims(head rewriter.Head, text []byte, s *State, book *rule.List) {
	e.target, e.Book = CloneName(head.Target), book
	if len(e.target.Schema) == 0 {
		e.target.Schema = bytes.Clone(s.KnownSchema())
	}
	if text != nil {
		e.Own = newOwnText(text, head, s)
	}
}

// CloneName copies a name, for it to outlive the command.
func CloneName(n rewriter.Name) rewriter.Name {
	return rewriter.Name{Schema: bytes.Clone(n.Schema), Table: bytes.Clone(n.Table)}
}

// Ruled reports whether the rules of the INSERT are not those that it was prepared by:
// a reload has brought others.
func (e *Prepared) Ruled(book RuleBook) bool {
	if e.Book == nil || e.Book == book.List {
		return false
	}
	if e.Kind != nil && e.Kind.FollowsRules() {
		return true
	}
	if len(e.target.Schema) == 0 {
		return book.MayMatch(e.target.Table, book.Fold)
	}
	for _, rule := range book.Match(e.target.Schema, e.target.Table, book.Fold) {
		if !rule.Observe {
			return true
		}
	}
	return false
}

// Arrival is how a command came, beside its bytes.
type Arrival struct {
	Caps     uint64    // what client and server both speak
	Seq      byte      // sequence number of its last frame
	Multi    bool      // it is a text that the server splits at ';'
	Executes *Prepared // the statement that it executes; nil: none, or nothing is known of that
	Head     rewriter.HeadReading
}

// Arrival returns how a command came that was found last, a whole packet.
func (m *Requests) Arrival(packet []byte) Arrival {
	c, payload := m.Conversation, packet[wire.HeaderLen:]
	c.mu.Lock()
	defer c.mu.Unlock()
	as := Arrival{Caps: c.Caps, Seq: m.Seq, Multi: c.multi && payload[0] == mysql.COM_QUERY, Head: m.Head}
	switch payload[0] {
	case mysql.COM_STMT_EXECUTE, ComBulkExecute:
		as.Executes = m.statementOf(payload)
	}
	return as
}

// statementOf returns what is known of the prepared statement that a command
// names, nil when that is nothing. The conversation's lock is held.
func (m *Requests) statementOf(payload []byte) *Prepared {
	return m.Conversation.Prepared.ofNumber(payload, m.Last)
}

// execute handles the execution of a prepared statement.
// payload is what has arrived of size bytes.
func (m *Requests) execute(payload []byte, size int, whole bool) verdict {
	m.Conversation.mu.Lock()
	defer m.Conversation.mu.Unlock()
	m.Conversation.kept = nil
	p := Pending{Reply: ReplyResult}
	e := m.statementOf(payload)
	if e != nil {
		book := m.Rules()
		if e.Held() || e.Ruled(book) || e.Reads && m.Conversation.mayOwe() {
			return holdIt
		}
		if e.Book != nil { // none of these concern it, too
			e.Book = book.List
		}
		if e.Own != nil && !e.noteTypes(payload, m.Conversation.Caps) && !whole {
			return m.undecided(len(payload), size)
		}
		p.Touch, p.Unseen, e.Long = e.Touch, e.Unseen, LongData{}
	}
	m.unseen = p.Unseen
	m.Conversation.address(e, payload)
	m.Conversation.sendLocked(p)
	return forwardIt
}

// Held reports whether every execution is decided on.
func (e *Prepared) Held() bool {
	return e.Untyped || e.Kind != nil && e.Kind.Held()
}

// noteTypes keeps the types that an execution gives the parameters, for a server
// that has the statement anew does not know them. It reports false when the packet
// ends in front of them.
func (e *Prepared) noteTypes(payload []byte, caps uint64) bool {
	types, ok := TypesOf(e.Types, payload, caps, e.Params)
	if len(types) > 0 {
		e.Types = types
	}
	return ok
}

// TypesOf returns the types that an execution gives the n parameters of its statement, in the
// memory of dst.
func TypesOf(dst []uint16, payload []byte, caps uint64, n int) (types []uint16, ok bool) {
	if n == 0 {
		return dst[:0], true
	}
	read := wire.AppendTypes
	if payload[0] == ComBulkExecute {
		read = wire.AppendBulkTypes
	}
	return read(dst[:0], payload, caps, n)
}

// prepare handles COM_STMT_PREPARE. sql is what has arrived of size bytes.
func (m *Requests) prepare(sql []byte, size int, whole bool) verdict {
	m.Conversation.mu.Lock()
	defer m.Conversation.mu.Unlock()
	m.Conversation.kept = nil
	head, more := m.Head.Read(sql, m.Conversation.state.Mode)
	if more && !whole {
		return m.undecided(len(sql), size)
	}
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		if m.mayConcern(head.Target) {
			return holdIt
		}
		if Inserts(head) && !whole && size <= min(m.most(), wire.MaxPayload-1, maxOwnTexts-m.Conversation.Prepared.texts) { // its text is kept
			return m.undecided(len(sql), size)
		}
	case rewriter.Compound, rewriter.Prepare, rewriter.Execute:
		return holdIt
	case rewriter.DDL:
		if m.createsRuled(head, sql) {
			return holdIt
		}
	}
	m.Last = NewPrepared(head, sql, whole)
	if Inserts(head) {
		text := sql
		if !whole {
			text = nil
		}
		m.Last.Aims(head, text, &m.Conversation.state, m.Rules().List)
	}
	m.Conversation.sendLocked(Pending{Reply: ReplyPrepare, Watcher: m.Last.Watcher()})
	return forwardIt
}

// longData handles COM_STMT_SEND_LONG_DATA: the parameter that it names has
// another number on the server when hidden ones stand in front of it.
func (m *Requests) longData(payload []byte, size int, whole bool) verdict {
	const head = 7 // command, statement (4), parameter (2)
	if len(payload) < head {
		if whole {
			return m.other(payload)
		}
		return waitForIt
	}
	m.Conversation.mu.Lock()
	e := m.statementOf(payload)
	if e != nil && !e.Long.Ready && (e.Held() || e.Ruled(m.Rules())) {
		m.Conversation.mu.Unlock()
		m.Checking = e
		return checkIt
	}
	if e == nil || e.Hidden == nil {
		m.Conversation.address(e, payload)
	}
	m.Conversation.mu.Unlock()
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
	m.Conversation.mu.Lock()
	defer m.Conversation.mu.Unlock()
	m.Conversation.kept = nil
	m.Conversation.address(e, payload)
	binary.LittleEndian.PutUint16(payload[5:], uint16(min(server, 1<<16-1)))
	return forwardIt
}

// keepLong keeps the data of a parameter that is an id: whether the server gets
// to see it is known at the execution. payload is what has arrived of size bytes.
func (m *Requests) keepLong(payload []byte, size int) {
	m.Conversation.mu.Lock()
	defer m.Conversation.mu.Unlock()
	m.Conversation.kept = nil
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

// LearnStatement keeps what is known of a statement by the number that the
// server gave it, and returns how many parameters the client is told of.
func (c *Conversation) LearnStatement(e *Prepared, p wire.Prepared) (params uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Prepared.learn(e, p)
	return uint16(e.Params)
}

// Learn takes what the server said of a statement.
func (e *Prepared) Learn(p wire.Prepared) {
	e.Number, e.Params, e.Columns = p.ID, int(p.Params), p.Columns
	if e.Hidden == nil {
		return
	}
	if e.Broken = e.Params != len(e.Hidden.All); !e.Broken {
		e.Params = e.Hidden.Client
	}
}

// end handles COM_STMT_RESET, which drops long data, and COM_STMT_CLOSE.
func (m *Requests) end(payload []byte) {
	m.Conversation.mu.Lock()
	defer m.Conversation.mu.Unlock()
	e := m.statementOf(payload)
	if e == nil {
		m.Conversation.address(e, payload)
		return
	}
	e.Long = LongData{}
	if payload[0] == mysql.COM_STMT_CLOSE {
		m.Conversation.Prepared.close(payload, e)
		if m.Last == e {
			m.Last = nil
		}
	}
	m.Conversation.address(e, payload)
}

// fetch handles COM_STMT_FETCH.
func (m *Requests) fetch(payload []byte) {
	m.Conversation.mu.Lock()
	defer m.Conversation.mu.Unlock()
	if m.Conversation.Prepared.Renewed {
		m.Conversation.address(m.statementOf(payload), payload)
	}
}
