package proxy

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
type preparedStatements struct {
	byNumber map[uint32]*prepared
	newest   newest
	texts    int  // bytes of the texts kept of them
	renewed  bool // the server's number of one is another than the client's

	// byName has those prepared in SQL, by name in lower case, and passed the texts that prepared
	// others unread. Only the goroutine that reads from the client uses these two.
	byName map[string]*prepared
	passed passedNames
}

// maxNamed bounds the statements that a session has by name. Servers have a limit
// of their own, far below.
const maxNamed = 1 << 16

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
func (p *preparedStatements) reset() {
	p.byNumber, p.newest, p.texts, p.renewed = nil, newest{}, 0, false
}

// keepText counts the text of a statement that the server has. It is not kept where
// the session has too many. The lock is held.
func (p *preparedStatements) keepText(e *prepared) {
	if e.own == nil || !e.own.kept {
		return
	}
	size := len(e.own.text.Value())
	if p.texts+size > maxOwnTexts {
		e.own.text, e.own.kept = unique.Handle[string]{}, false
		return
	}
	p.texts += size
}

// dropText is called when a statement is closed. The lock is held.
func (p *preparedStatements) dropText(e *prepared) {
	if e.own != nil && e.own.kept {
		p.texts = max(0, p.texts-len(e.own.text.Value()))
	}
}

// forgetName drops what is known of a statement prepared in SQL.
func (p *preparedStatements) forgetName(name string) {
	if e := p.byName[name]; e != nil {
		p.dropText(e)
		delete(p.byName, name)
	}
}

// forgetFailed drops the names that the server does not have.
func (p *preparedStatements) forgetFailed() {
	for name, e := range p.byName {
		if e.failed {
			p.dropText(e)
			delete(p.byName, name)
		}
	}
}

// forgetUnseen drops what is known of statements that go as they are, when a
// routine may have prepared others under their names.
func (p *preparedStatements) forgetUnseen() {
	for name, e := range p.byName {
		if e.kind == nil && e.book == nil && !e.unread {
			delete(p.byName, name)
		}
	}
}

// passNames notes a text that goes to the server unread, which no rule concerns. whole:
// it is not the beginning of one.
func (p *preparedStatements) passNames(text []byte, whole bool, by *rule.List) {
	if whole && !rewriter.MentionsPrepare(text) {
		return
	}
	lower := bytes.ToLower(text)
	for name, e := range p.byName {
		escaped := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_$") != ""
		if whole && !escaped && !ascii.HasWord(lower, name) {
			continue
		}
		switch { // whether the server still has this one is not known
		case e.own != nil && e.own.kept:
			p.passed.add([]byte(e.own.text.Value()), by)
		case e.book != nil || e.unread:
			p.passed.lose(by)
		}
		p.dropText(e)
		delete(p.byName, name)
	}
	if whole && rewriter.PlainDynamic(text) {
		p.passed.add(text, by)
	} else {
		p.passed.lose(by)
	}
}

// keepName notes the statement that a PREPARE makes under a name. It reports false when there
// are too many.
func (p *preparedStatements) keepName(name string, e *prepared) bool {
	if len(p.byName) >= maxNamed {
		if p.forgetFailed(); len(p.byName) >= maxNamed {
			return false
		}
	}
	p.forgetName(name)
	p.setName(name, e)
	p.keepText(e)
	return true
}

// setName puts a statement in the place of one that had its name.
func (p *preparedStatements) setName(name string, e *prepared) {
	if p.byName == nil {
		p.byName = map[string]*prepared{}
	}
	p.byName[name] = e
}

// ofNumber returns the statement that a command names, nil when nothing is known of it. last is
// the one that the client has prepared last.
func (p *preparedStatements) ofNumber(payload []byte, last *prepared) *prepared {
	if len(payload) < 5 {
		return nil
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	if e := p.byNumber[id]; e != nil || id != lastStatement {
		return e
	}
	return last
}

// learn keeps a statement by the number that the server gave it.
func (p *preparedStatements) learn(e *prepared, reply wire.Prepared) {
	if p.byNumber == nil {
		p.byNumber = map[uint32]*prepared{}
	}
	p.byNumber[reply.ID] = e
	p.keepText(e)
	e.learn(reply)
}

// close drops a statement that the client closes.
func (p *preparedStatements) close(payload []byte, e *prepared) {
	delete(p.byNumber, binary.LittleEndian.Uint32(payload[1:]))
	p.dropText(e)
}
