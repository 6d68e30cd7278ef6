package protocol

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"unique"

	"idproxy/ascii"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Statements are those that a session has prepared, as far as there is more to be known of
// them than that they are passed on.
type Statements struct {
	ByNumber map[uint32]*Stmt
	newest   newest
	texts    atomic.Int64 // bytes of the texts kept of them: both goroutines count
	Renewed  bool         // the server's number of one is another than the client's

	// ByName has those prepared in SQL, by name in lower case, and passed the texts that prepared
	// others unread. Only the goroutine that reads from the client uses these two.
	ByName map[string]*Stmt
	Passed passedNames
}

// MaxNamed bounds the statements that a session has by name. Servers have a limit
// of their own, far below.
const MaxNamed = 1 << 16

// newest is the statement that was prepared last, by the client or by the proxy.
type newest struct {
	id     uint32 // of the client's; 0: none, or its PREPARE failed
	hidden bool   // one of the proxy's has come behind it
}

// note takes a reply to a PREPARE; id 0: it failed.
func (n *newest) note(id uint32, ours bool) {
	if ours {
		n.hidden = true
		return
	}
	*n = newest{id: id}
}

// reset drops all of them, as the server does. Names are dropped when the command is sent.
func (p *Statements) reset() {
	p.ByNumber, p.newest, p.Renewed = nil, newest{}, false
	p.texts.Store(0)
}

// keepText counts the text of a statement that the server has. It is not kept where
// the session has too many. The lock is held.
func (p *Statements) keepText(e *Stmt) {
	if e.Own == nil || !e.Own.Kept {
		return
	}
	size := int64(len(e.Own.Text.Value()))
	if p.texts.Load()+size > maxOwnTexts {
		e.Own.Text, e.Own.Kept = unique.Handle[string]{}, false
		return
	}
	p.texts.Add(size)
}

// dropText is called when a statement is closed.
func (p *Statements) dropText(e *Stmt) {
	if e.Own != nil && e.Own.Kept {
		p.texts.Store(max(0, p.texts.Load()-int64(len(e.Own.Text.Value()))))
	}
}

// ForgetName drops what is known of a statement prepared in SQL.
func (p *Statements) ForgetName(name string) {
	if e := p.ByName[name]; e != nil {
		p.dropText(e)
		delete(p.ByName, name)
	}
}

// forgetFailed drops the names that the server does not have.
func (p *Statements) forgetFailed() {
	for name, e := range p.ByName {
		if e.Failed.Raised() {
			p.dropText(e)
			delete(p.ByName, name)
		}
	}
}

// forgetUnseen drops what is known of statements that go as they are, when a
// routine may have prepared others under their names.
func (p *Statements) forgetUnseen() {
	for name, e := range p.ByName {
		if e.Kind == nil && e.Book == nil && !e.Unread {
			delete(p.ByName, name)
		}
	}
}

// PassNames notes a text that goes to the server unread, which no rule concerns. whole:
// it is not the beginning of one.
func (p *Statements) PassNames(text []byte, whole bool, by *rule.List) {
	if whole && !rewriter.MentionsPrepare(text) {
		return
	}
	lower := bytes.ToLower(text)
	for name, e := range p.ByName {
		escaped := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_$") != ""
		if whole && !escaped && !ascii.HasWord(lower, name) {
			continue
		}
		switch { // whether the server still has this one is not known
		case e.Own != nil && e.Own.Kept:
			p.Passed.Add([]byte(e.Own.Text.Value()), by)
		case e.Book != nil || e.Unread:
			p.Passed.Lose(by)
		}
		p.dropText(e)
		delete(p.ByName, name)
	}
	if whole && rewriter.PlainDynamic(text) {
		p.Passed.Add(text, by)
	} else {
		p.Passed.Lose(by)
	}
}

// KeepName notes the statement that a PREPARE makes under a name. It reports false when there
// are too many.
func (p *Statements) KeepName(name string, e *Stmt) bool {
	if len(p.ByName) >= MaxNamed {
		if p.forgetFailed(); len(p.ByName) >= MaxNamed {
			return false
		}
	}
	p.ForgetName(name)
	p.SetName(name, e)
	p.keepText(e)
	return true
}

// LoseName notes that it is not known what a name stands for.
func (p *Statements) LoseName(name string) { delete(p.ByName, name) }

// SetName puts a statement in the place of one that had its name.
func (p *Statements) SetName(name string, e *Stmt) {
	if p.ByName == nil {
		p.ByName = map[string]*Stmt{}
	}
	p.ByName[name] = e
}

// ofNumber returns the statement that a command names, nil when nothing is known of it. last is
// the one that the client has prepared last.
func (p *Statements) ofNumber(payload []byte, last *Stmt) *Stmt {
	if len(payload) < 5 {
		return nil
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	if e := p.ByNumber[id]; e != nil || id != lastStatement {
		return e
	}
	return last
}

// learn keeps a statement by the number that the server gave it.
func (p *Statements) learn(e *Stmt, reply wire.Prepared) {
	if p.ByNumber == nil {
		p.ByNumber = map[uint32]*Stmt{}
	}
	p.ByNumber[reply.ID] = e
	p.keepText(e)
	e.Learn(reply)
}

// close drops a statement that the client closes.
func (p *Statements) close(payload []byte, e *Stmt) {
	delete(p.ByNumber, binary.LittleEndian.Uint32(payload[1:]))
	p.dropText(e)
}

// Renew notes that the server has given a statement another number than the client's.
func (c *Conn) Renew(e *Stmt, as wire.Prepared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Learn(as)
	c.Prepared.Renewed, e.Untyped = true, true
}

// lastStatement is MariaDB's number of the statement that was prepared last.
const lastStatement = 1<<32 - 1

// notePrepared takes the reply to a PREPARE; id 0: it failed.
func (c *Conn) notePrepared(id uint32, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Prepared.newest.note(id, ours)
}

// address writes the server's number of e into a command, or, where nothing is known
// of that, the number of the client's last statement into one that says
// lastStatement and that the server would take for another. The lock is held.
func (c *Conn) address(e *Stmt, payload []byte) {
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
func (c *Conn) Addressed(e *Stmt, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.address(e, payload)
}

// LearnStatement keeps what is known of a statement by the number that the
// server gave it, and returns how many parameters the client is told of.
func (c *Conn) LearnStatement(e *Stmt, p wire.Prepared) (params uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Prepared.learn(e, p)
	return uint16(e.Params)
}
