package protocol

import (
	"bytes"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/rewriter"
)

// outcome is how a reply ended.
type outcome struct {
	result    int // results that ended well before it
	affected  uint64
	insertID  uint64
	Code      uint16
	status    uint16
	seq       byte // sequence number of its last packet
	failed    bool // ERR
	okSeen    bool // an OK packet ended it, not rows
	hasStatus bool
}

// inTrans reports whether a transaction is open behind the reply.
func (o outcome) inTrans() bool {
	return o.hasStatus && o.status&mysql.SERVER_STATUS_IN_TRANS != 0
}

// finish ends the reply of the first pending command, records what it
// changed, and returns the replies made here that are now due.
func (c *Conn) finish(p *Pending, o outcome) (due []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending.Pop()
	c.apply(p, o)
	if o.failed && c.Failed != nil && !p.ours() {
		c.Failed(o.Code)
	}
	c.last = o
	for c.pending.Len > 0 {
		local, ok := c.pending.At(0).Handler.(*localReply)
		if !ok {
			break
		}
		due = append(due, local.bytes...)
		c.pending.Pop()
	}
	if c.pending.Len == 0 {
		c.settled.wake()
	}
	return due
}

// apply notes what a command has changed whose reply is over. The lock is held.
func (c *Conn) apply(p *Pending, o outcome) {
	s := &c.state
	// 1. LAST_INSERT_ID().
	s.applyLastID(p, o)
	// 2. What is known of tables, for all sessions.
	if p.Touch&TouchTables != 0 || o.failed && staleTable(o.Code) && !p.ours() {
		c.TablesChanged()
	}
	p.doubtFacts(o)
	// 3. What only the command says.
	if a := p.After; a != nil {
		if a.option != optionNone && !o.failed {
			c.multi = a.option == optionOn
		}
		a.applyTo(s, o, s.Age == p.age)
	}
	if p.Touch&touchTemps != 0 {
		s.MakeTemporary("")
	}
	s.applyOneShot(p, o)
	// 4. A session that is as new.
	switch {
	case o.failed:
	case p.Reply == ReplyAuth:
		s.login()
		c.Prepared.reset()
	case p.Touch&touchReset != 0:
		s.reset()
		c.Prepared.reset()
	}
	// 5. The status flags of the reply.
	if o.hasStatus {
		s.applyStatus(o)
	}
}

// doubtFacts ends what was known of the table where the reply says that a row did not fit it.
func (p *Pending) doubtFacts(o outcome) {
	if o.failed && p.Facts != nil && doubtsTable(o.Code) {
		p.Facts.Doubt()
	}
}

// applyTo notes what the command has changed. fresh: nothing was forgotten since it was sent.
func (a *After) applyTo(s *Vars, o outcome, fresh bool) {
	if a.Named != nil && o.failed {
		a.Named.Failed.Raise()
	}
	if a.Schema != nil && !o.failed && fresh {
		s.learnSchema(a.Schema)
	}
	for _, t := range a.Temps {
		if !o.failed || t.Result < o.result {
			s.MakeTemporary(t.Name)
		}
	}
}

// applyOneShot notes whether SET TRANSACTION waits for the next transaction.
func (s *Vars) applyOneShot(p *Pending, o outcome) {
	switch {
	case p.Touch&touchNext != 0:
		s.OneShot = s.OneShot || !o.failed && !s.InTrans
	case s.InTrans || o.inTrans() || p.Touch&TouchInsert != 0 && !p.ours(): // used up
		s.OneShot = false
	}
}

// applyStatus notes what the flags of the reply say.
func (s *Vars) applyStatus(o outcome) {
	s.InTrans, s.Manual = o.inTrans(), o.status&mysql.SERVER_STATUS_AUTOCOMMIT == 0
	if o.status&mysql.SERVER_STATUS_DB_DROPPED != 0 {
		s.forget(KnowSchema)
	}
	s.seeStatus(o.status&mysql.SERVER_STATUS_NO_BACKSLASH_ESCAPED != 0)
}

// staleTable reports whether an error code says that the columns of a table
// are not those the proxy knows.
func staleTable(code uint16) bool {
	switch code {
	case mysql.ER_BAD_FIELD_ERROR, mysql.ER_WRONG_VALUE_COUNT_ON_ROW, mysql.ER_NO_SUCH_TABLE:
		return true
	}
	return false
}

// doubtsTable reports whether an error code says that a row and its table do not fit,
// which may be the application's own doing: what was known of that table is asked for
// again.
func doubtsTable(code uint16) bool {
	switch code {
	case mysql.ER_BAD_NULL_ERROR, mysql.ER_NO_DEFAULT_FOR_FIELD, mysql.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
		generatedColumn, generatedColumnMariaDB:
		return true
	}
	return false
}

// What servers say to a value for a generated column.
const (
	generatedColumn        = 3105
	generatedColumnMariaDB = 1906
)

// applyLastID notes what the command has made of LAST_INSERT_ID().
func (s *Vars) applyLastID(p *Pending, o outcome) {
	id := &s.LastID
	if r, ours := p.Handler.(*HiddenReply); ours {
		if r.Kind == HiddenPay && !o.failed && !id.Here {
			id.Owed = false
		}
		return
	}
	switch {
	case id.Here && s.lastIDStays(p, o):
	case id.Owed && !id.Here && o.insertID == 0: // nothing was paid, for the command read diagnostics, and it set no id that shows
	case p.Touch&TouchLastID != 0,
		p.Touch&TouchInsert != 0 && (o.failed || !o.okSeen),
		!p.owes() && o.insertID != 0:
		*id = LastID{}
	}
}

// lastIDStays reports whether a command may have left LAST_INSERT_ID() as it was, which the server was not told.
func (s *Vars) lastIDStays(p *Pending, o outcome) bool {
	inserts := p.Touch&TouchInsert != 0 && o.result <= 1
	switch {
	case p.owes() && p.Touch&TouchLastID == 0:
		return true
	case o.failed && o.result == 0:
		return p.Touch&TouchAll != TouchAll || o.Code == mysql.ER_PARSE_ERROR
	case inserts && !o.okSeen, !inserts && p.Touch&TouchLastID != 0: // nothing shows it
		return false
	case o.insertID != 0: // the server's now, or an id that the row brought
		s.rival(o.insertID)
	}
	return true
}

// choose notes that the command makes a schema the default one. What its name is
// in UTF-8 the server is asked when that matters.
func (p *Pending) choose(schema []byte) {
	if rewriter.DoubtsOf(schema)&rewriter.DoubtCharset != 0 {
		p.Touch |= TouchSchema
		return
	}
	p.After = &After{Schema: bytes.Clone(schema)}
}

// TouchAll is what a statement may change that runs others which are not seen.
const TouchAll = TouchSettings | TouchNumbers | TouchSchema | touchTemps | TouchTables

// Changes says in p what a single statement may change.
func Changes(p *Pending, head rewriter.Head, sql []byte, whole bool) {
	effects := head.Effects(sql)
	if !whole {
		effects |= ^rewriter.SetsTransaction
	}
	p.Touch |= touchOf(head, effects)
	switch head.Kind {
	case rewriter.Execute, rewriter.Call:
		p.Unseen = true
	case rewriter.Compound:
		p.Unseen = false
	case rewriter.Use:
		if len(head.Target.Schema) == 0 || !whole || bytes.IndexByte(sql, '!') >= 0 { // read otherwise by the server, perhaps
			p.Touch |= TouchSchema
		} else {
			p.choose(head.Target.Schema)
		}
	}
	if effects&rewriter.SetsLastID != 0 {
		p.Touch |= TouchLastID
	}
	if effects&rewriter.SetsNumbering != 0 {
		p.Touch |= TouchNumbers
	}
}

// touchOf is what a statement of a kind may change.
func touchOf(head rewriter.Head, effects rewriter.Effects) (t Touch) {
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace:
		return TouchInsert
	case rewriter.Load, rewriter.Portion:
		return TouchLastID
	case rewriter.Execute, rewriter.Call, rewriter.Compound:
		return TouchAll | TouchLastID
	case rewriter.DDL:
		if t = TouchTables; effects&rewriter.RenamesTable != 0 && !head.Create && !head.Drop {
			t |= touchTemps
		}
	case rewriter.Set:
		if effects&rewriter.SetsSettings != 0 {
			t |= TouchSettings
		}
		if effects&rewriter.SetsTransaction != 0 {
			t |= touchNext
		}
	}
	return t
}
