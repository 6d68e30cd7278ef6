package relay

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unique"

	"idproxy/ascii"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// preparedStatements are those that a session has prepared, as far as there is more to be known of them
// than that they are passed on.
type Statements struct {
	ByNumber map[uint32]*Prepared
	newest   newest
	texts    int  // bytes of the texts kept of them
	Renewed  bool // the server's number of one is another than the client's

	// ByName has those prepared in SQL, by name in lower case, and passed the texts that prepared
	// others unread. Only the goroutine that reads from the client uses these two.
	ByName map[string]*Prepared
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
	p.ByNumber, p.newest, p.texts, p.Renewed = nil, newest{}, 0, false
}

// keepText counts the text of a statement that the server has. It is not kept where
// the session has too many. The lock is held.
func (p *Statements) keepText(e *Prepared) {
	if e.Own == nil || !e.Own.Kept {
		return
	}
	size := len(e.Own.Text.Value())
	if p.texts+size > maxOwnTexts {
		e.Own.Text, e.Own.Kept = unique.Handle[string]{}, false
		return
	}
	p.texts += size
}

// dropText is called when a statement is closed. The lock is held.
func (p *Statements) dropText(e *Prepared) {
	if e.Own != nil && e.Own.Kept {
		p.texts = max(0, p.texts-len(e.Own.Text.Value()))
	}
}

// forgetName drops what is known of a statement prepared in SQL.
func (p *Statements) forgetName(name string) {
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

// keepName notes the statement that a PREPARE makes under a name. It reports false when there
// are too many.
func (p *Statements) keepName(name string, e *Prepared) bool {
	if len(p.ByName) >= MaxNamed {
		if p.forgetFailed(); len(p.ByName) >= MaxNamed {
			return false
		}
	}
	p.forgetName(name)
	p.SetName(name, e)
	p.keepText(e)
	return true
}

// SetName puts a statement in the place of one that had its name.
func (p *Statements) SetName(name string, e *Prepared) {
	if p.ByName == nil {
		p.ByName = map[string]*Prepared{}
	}
	p.ByName[name] = e
}

// ofNumber returns the statement that a command names, nil when nothing is known of it. last is
// the one that the client has prepared last.
func (p *Statements) ofNumber(payload []byte, last *Prepared) *Prepared {
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
func (p *Statements) learn(e *Prepared, reply wire.Prepared) {
	if p.ByNumber == nil {
		p.ByNumber = map[uint32]*Prepared{}
	}
	p.ByNumber[reply.ID] = e
	p.keepText(e)
	e.Learn(reply)
}

// close drops a statement that the client closes.
func (p *Statements) close(payload []byte, e *Prepared) {
	delete(p.ByNumber, binary.LittleEndian.Uint32(payload[1:]))
	p.dropText(e)
}

// KeepName notes the statement that a PREPARE makes under a name. It reports false when there
// are too many.
func (c *Conversation) KeepName(name string, e *Prepared) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Prepared.keepName(name, e)
}

// ForgetName drops what is known of a statement prepared in SQL, which a DEALLOCATE drops.
func (c *Conversation) ForgetName(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Prepared.forgetName(name)
}

// LoseName notes that it is not known what a name stands for.
func (c *Conversation) LoseName(name string) { delete(c.Prepared.ByName, name) }

// PassNames notes a text that goes to the server unread, which the rules do not concern.
func (c *Conversation) PassNames(text []byte, by *rule.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Prepared.PassNames(text, true, by)
}

// Replace puts a statement that was prepared anew in the place of the old one: who knows that
// knows it by e.
func (c *Conversation) Replace(e, anew *Prepared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*e = *anew
}

// Renew notes that the server has given a statement another number than the client's.
func (c *Conversation) Renew(e *Prepared, as wire.Prepared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Learn(as)
	c.Prepared.Renewed, e.Untyped = true, true
}
