package proxy

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// phase says what bytes from the client are when they are not commands.
type phase uint32

const (
	phaseCommands phase = iota
	phaseAuth           // packets with sequence numbers other than 0 belong to an authentication exchange
	phaseInfile         // the server asked for a file: data up to an empty packet
	phaseOpaque         // both directions are copied blindly, for good
)

// conversation is what the two directions of a session share: the commands
// whose replies have not ended, and the state learned so far. It does no I/O.
type conversation struct {
	caps    uint64 // what client and server both speak
	mariaDB bool
	now     atomic.Uint32 // phase
	ended   atomic.Bool   // leave has ended it; set under mu

	mu       sync.Mutex // guards all below
	pending  queue
	multi    bool // the server splits texts at ';'
	state    state
	deciding bool          // a held statement has neither been sent nor answered
	settled  chan struct{} // when set, closed once pending is empty
	last     outcome       // of the reply that ended last
	// delta is what the sequence numbers of a file's packets lack for the
	// server: what is taken off those of its reply.
	delta    atomic.Uint32
	asking   watcher       // has seen a reply to its end, and waits for the answer to a question; nil: none does
	kept     []byte        // the reply to SHOW WARNINGS, which a question of ours ended on the server
	infile   chan struct{} // holds a token when the server asked for a file
	prepared preparedStatements
	user     string // who logs in, or has
	// unseen counts what may write to tables out of sight; nil: nobody asks.
	unseen *atomic.Int64
	// tablesChanged is called when columns of tables may have changed.
	tablesChanged func()
}

func (c *conversation) phase() phase { return phase(c.now.Load()) }
func (c *conversation) setPhase(p phase) {
	c.now.Store(uint32(p))
	if p == phaseInfile {
		select {
		case c.infile <- struct{}{}:
		default:
		}
	}
}

func (c *conversation) has(flag uint32) bool {
	return c.caps&uint64(flag) != 0
}

func (c *conversation) fileDelta() byte { return byte(c.delta.Load()) }

// send records commands that are about to be written to the server. It must
// be called before the write, so that no reply can come first.
func (c *conversation) send(p pending) {
	c.mu.Lock()
	c.sendLocked(p)
	c.mu.Unlock()
}

func (c *conversation) sendLocked(p pending) {
	if p.touch&touchSettings != 0 {
		c.state.forget(knowSettings)
	}
	if p.touch&touchNumbers != 0 {
		c.state.forget(knowNumbers | knowAsked)
	}
	if p.after != nil && p.after.schema != nil || p.touch&touchSchema != 0 {
		c.state.forget(knowSchema)
	}
	if p.touch&touchTemps != 0 {
		c.state.makeTemporary("")
	}
	if p.unseen && c.unseen != nil {
		c.unseen.Add(1)
	}
	if p.touch&touchAll == touchAll {
		c.state.unseen = true
		c.prepared.forgetUnseen()
	}
	p.age = c.state.age
	c.pending.push(p)
}

// first returns the oldest command whose reply has not ended.
func (c *conversation) first() (p pending, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending.n == 0 {
		return pending{}, false
	}
	return *c.pending.at(0), true
}

// decide keeps the conversation from ending while a held statement is decided
// on, until decided. It reports false when it has ended.
func (c *conversation) decide() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deciding = !c.ended.Load()
	return c.deciding
}

func (c *conversation) decided() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deciding = false
}

// leave ends the conversation for good, and reports true, when no command is
// pending and no transaction open. What is recorded afterwards must not be sent.
func (c *conversation) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deciding || c.pending.n > 0 || c.state.inTrans || c.phase() != phaseCommands {
		return false
	}
	c.ended.Store(true)
	return true
}

// quiet returns a channel that is closed once nothing is pending.
func (c *conversation) quiet() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan struct{})
	if c.pending.n == 0 {
		close(ch)
	} else {
		c.settled = ch
	}
	return ch
}

// watching returns who sees the reply that the client waits for first; nil: nobody does.
func (c *conversation) watching() watcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking != nil {
		return c.asking
	}
	for i := range c.pending.n {
		if p := c.pending.at(i); !p.ours() {
			return p.watcher
		}
	}
	return nil
}

// maxUser is how much is kept of a user's name, which has 80 characters on MariaDB and 32
// on MySQL.
const maxUser = 320

// setUser notes who is about to log in.
func (c *conversation) setUser(user []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user = string(user[:min(len(user), maxUser)])
}

// maxPending is how many commands may be pending before a reply made here waits
// for them: the server, which holds a client back that sends and sends, does
// not see what is refused here.
const maxPending = 1000

func (c *conversation) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.n >= maxPending
}

// mayOwe reports whether LAST_INSERT_ID() is owed, or may be once an INSERT that
// is pending is over. The lock is held.
func (c *conversation) mayOwe() bool {
	for i := range c.pending.n {
		if c.pending.at(i).owes() {
			return true
		}
	}
	return c.state.lastID.owed
}

// mayTurn reports whether what is pending may change whether the server splits texts.
// The lock is held.
func (c *conversation) mayTurn() bool {
	for i := range c.pending.n {
		if a := c.pending.at(i).after; a != nil && a.option != optionNone {
			return true
		}
	}
	return false
}

// setAsking notes that the client's reply waits for the answer to a question; nil: none does.
func (c *conversation) setAsking(w watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = w
}

// lastReply says how the reply ended that ended last.
func (c *conversation) lastReply() (failed bool, seq byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.failed, c.last.seq
}

// keepWarnings keeps the reply to SHOW WARNINGS for a client that may send that
// next.
func (c *conversation) keepWarnings(reply []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = reply
}

// keptWarnings returns a copy of the reply to a text that the server could not
// answer any more, nil when it can.
func (c *conversation) keptWarnings(sql []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || !rewriter.IsShowWarnings(sql) {
		return nil
	}
	return bytes.Clone(c.kept)
}

// lastAffected returns how many rows the statement affected whose reply ended
// last; ok is false when no OK packet said so.
func (c *conversation) lastAffected() (rows uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.affected, c.last.okSeen
}

// settle notes what became of LAST_INSERT_ID().
func (c *conversation) settle(effect lastEffect, value uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked(effect, value)
}

func (c *conversation) settleLocked(effect lastEffect, value uint64) {
	id := &c.state.lastID
	switch effect {
	case lastIs:
		*id = lastID{value: value, known: true}
	case lastMustBe:
		*id = lastID{value: value, known: true, owed: true}
	case lastMustStay:
		id.owed = id.known
	case lastUnknown:
		*id = lastID{}
	}
}

// answerable reports whether a reply made here may be written at once, which
// is when nothing is pending; else it is queued behind what is.
func (c *conversation) answerable(local []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending.n == 0 {
		return true
	}
	c.pending.push(pending{watcher: &localReply{bytes: local}})
	return false
}

// outcome is how a reply ended.
type outcome struct {
	failed    bool // ERR
	seq       byte // sequence number of its last packet
	result    int  // results that ended well before it
	code      uint16
	okSeen    bool // an OK packet ended it, not rows
	affected  uint64
	insertID  uint64
	status    uint16
	hasStatus bool
}

// inTrans reports whether a transaction is open behind the reply.
func (o outcome) inTrans() bool {
	return o.hasStatus && o.status&mysql.SERVER_STATUS_IN_TRANS != 0
}

// finish ends the reply of the first pending command, records what it
// changed, and returns the replies made here that are now due.
func (c *conversation) finish(p *pending, o outcome) (due []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending.pop()
	c.apply(p, o)
	c.last = o
	for c.pending.n > 0 {
		local, ok := c.pending.at(0).watcher.(*localReply)
		if !ok {
			break
		}
		due = append(due, local.bytes...)
		c.pending.pop()
	}
	if c.pending.n == 0 && c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
	return due
}

func (c *conversation) apply(p *pending, o outcome) {
	s := &c.state
	c.applyLastID(p, o)
	if p.touch&touchTables != 0 || o.failed && staleTable(o.code) && !p.ours() {
		c.tablesChanged()
	}
	if o.failed && p.facts != nil && doubtsTable(o.code) {
		p.facts.Doubt()
	}
	if a := p.after; a != nil {
		if a.named != nil && o.failed {
			a.named.failed = true
		}
		if a.option != optionNone && !o.failed {
			c.multi = a.option == optionOn
		}
		if a.schema != nil && !o.failed && s.age == p.age {
			s.learnSchema(a.schema)
		}
		for _, t := range a.temps {
			if !o.failed || t.result < o.result {
				s.makeTemporary(t.name)
			}
		}
	}
	if p.touch&touchTemps != 0 {
		s.makeTemporary("")
	}
	switch {
	case p.touch&touchNext != 0:
		s.oneShot = s.oneShot || !o.failed && !s.inTrans
	case s.inTrans || o.inTrans() || p.touch&touchInsert != 0 && !p.ours(): // used up
		s.oneShot = false
	}
	switch {
	case o.failed:
	case p.reply == replyAuth:
		s.login()
		c.prepared.reset()
	case p.touch&touchReset != 0:
		s.reset()
		c.prepared.reset()
	}
	if !o.hasStatus {
		return
	}
	s.inTrans, s.manual = o.inTrans(), o.status&mysql.SERVER_STATUS_AUTOCOMMIT == 0
	if o.status&mysql.SERVER_STATUS_DB_DROPPED != 0 {
		s.forget(knowSchema)
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

func (c *conversation) applyLastID(p *pending, o outcome) {
	id := &c.state.lastID
	if r, ours := p.watcher.(*hiddenReply); ours {
		if r.kind == hiddenPay && !o.failed {
			id.owed = false
		}
		return
	}
	if id.owed && o.insertID == 0 {
		return // nothing was paid, for the command read diagnostics, and it set no id that shows
	}
	if p.touch&touchLastID != 0 ||
		p.touch&touchInsert != 0 && (o.failed || !o.okSeen) ||
		!p.owes() && o.insertID != 0 {
		*id = lastID{}
	}
}

// appendQuery appends a COM_QUERY packet of our own, with an empty set of
// query attributes where the session has them.
func (c *conversation) appendQuery(dst []byte, sql string) []byte {
	payload := []byte{mysql.COM_QUERY}
	if c.has(mysql.CLIENT_QUERY_ATTRIBUTES) {
		payload = append(payload, 0, 1)
	}
	return wire.AppendPacket(dst, 0, append(payload, sql...))
}
