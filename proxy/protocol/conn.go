package protocol

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/authbridge"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// Conn is what the two directions of a session share: the commands
// whose replies have not ended, and the state learned so far. It does no I/O.
type Conn struct {
	Caps    uint64 // what client and server both speak
	MariaDB bool
	Login   *authbridge.Login // where one side is more secure than the other; nil: both are alike
	phases
	Ended atomic.Bool // leave has ended it; set under mu

	mu       sync.Mutex // guards all below
	multi    bool       // the server splits texts at ';'
	deciding bool       // a held statement has neither been sent nor answered
	quits    bool       // the client has sent COM_QUIT
	pending  queue
	state    Vars
	settled  settling
	last     outcome      // of the reply that ended last
	asking   ReplyHandler // has seen a reply to its end, and waits for the answer to a question; nil: none does
	kept     []byte       // the reply to SHOW WARNINGS, which a question of ours ended on the server
	Prepared Statements
	user     string // who logs in, or has
	// Unseen counts what may write to tables out of sight; nil: nobody asks.
	Unseen *atomic.Int64
	// Failed is told of errors that the client sees; nil: nobody is.
	Failed func(code uint16)
	// TablesChanged is called when columns of tables may have changed.
	TablesChanged func()
}

// Has reports whether client and server have agreed on a capability.
func (c *Conn) Has(flag uint32) bool {
	return c.Caps&uint64(flag) != 0
}

// Send records commands that are about to be written to the server. It must
// be called before the write, so that no reply can come first.
func (c *Conn) Send(p Pending) {
	c.mu.Lock()
	c.sendLocked(p)
	c.mu.Unlock()
}

// Prelude is what must be said in front of a command that was decided on.
type Prelude struct {
	Pays  bool   // SET last_insert_id to what is owed
	Value uint64 // that
	Asks  bool   // SELECT LAST_INSERT_ID()
}

// TellInsertID records a SET insert_id that tells the server what it was not told yet, and returns the number;
// 0: there is nothing to tell.
func (c *Conn) TellInsertID() (id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, c.state.InsertID = c.state.InsertID, 0; id > 0 {
		c.sendLocked(Pending{Reply: ReplyResult, Touch: TouchNumbers, Handler: &HiddenReply{}})
	}
	return id
}

// SendBehind is Send for a command that was decided on. It records the prelude in front of it.
// reads: the command may read LAST_INSERT_ID(). changes: it may change it without a word.
func (c *Conn) SendBehind(p Pending, reads, changes bool) (first Prelude) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = nil
	id := c.state.LastID
	if reads && c.state.Payable() {
		first.Pays, first.Value = true, id.Value
		c.sendLocked(Pending{Reply: ReplyResult, Handler: &HiddenReply{Kind: HiddenPay}})
	}
	if first.Asks = changes && !id.Here && (!id.Known || c.pending.Len > 0 && !reads); first.Asks {
		c.sendLocked(Pending{Reply: ReplyResult, Handler: &HiddenReply{Kind: HiddenLastID, Answer: &Answer{}}})
	}
	c.sendLocked(p)
	return first
}

// sendLocked is Send for a caller that holds mu.
func (c *Conn) sendLocked(p Pending) {
	if p.Touch&TouchSettings != 0 {
		c.state.forget(knowSettings)
	}
	if p.Touch&TouchNumbers != 0 {
		c.state.forget(KnowNumbers | KnowAsked)
	}
	if p.After != nil && p.After.Schema != nil || p.Touch&TouchSchema != 0 {
		c.state.forget(KnowSchema)
	}
	if p.Touch&touchTemps != 0 {
		c.state.MakeTemporary("")
	}
	if p.Unseen && c.Unseen != nil {
		c.Unseen.Add(1)
	}
	if p.Touch&TouchAll == TouchAll {
		c.state.Unseen = true
		c.Prepared.forgetUnseen()
	}
	p.age = c.state.Age
	c.pending.push(p)
}

// first returns the oldest command whose reply has not ended.
func (c *Conn) first() (p Pending, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending.Len == 0 {
		return Pending{}, false
	}
	return *c.pending.At(0), true
}

// Decide keeps the conversation from ending while a held statement is decided
// on, until decided. It reports false when it has ended.
func (c *Conn) Decide() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deciding = !c.Ended.Load()
	return c.deciding
}

// Doing says who has logged in and what the conversation waits for: a decision, a reply, or the end
// of a transaction.
func (c *Conn) Doing() (user string, deciding, pending, inTrans bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.user, c.deciding, c.pending.Len > 0, c.state.InTrans
}

// Quits reports whether the client has ended the session.
func (c *Conn) Quits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quits
}

func (c *Conn) quit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quits = true
}

// Decided ends what Decide began.
func (c *Conn) Decided() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deciding = false
}

// Leave ends the conversation for good, and reports true, when no command is
// pending and no transaction open. What is recorded afterwards must not be sent.
func (c *Conn) Leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.state.InTrans && c.leaveLocked()
}

// Abandon is Leave in the middle of a transaction, too: the server takes it back.
func (c *Conn) Abandon() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaveLocked()
}

func (c *Conn) leaveLocked() bool {
	if c.deciding || c.pending.Len > 0 || c.Phase() != PhaseCommands {
		return false
	}
	c.Ended.Store(true)
	return true
}

// Quiet returns a channel that is closed once nothing is pending, and when the server asks for a
// file.
func (c *Conn) Quiet() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan struct{})
	if c.pending.Len == 0 || c.Phase() == PhaseInfile {
		close(ch)
	} else {
		c.settled = ch
	}
	return ch
}

// settling is closed to wake those who wait for Quiet; nil: nobody does.
type settling chan struct{}

func (s *settling) wake() {
	if *s != nil {
		close(*s)
		*s = nil
	}
}

// ReplyHandler returns who sees the reply that the client waits for first; nil: nobody does.
func (c *Conn) ReplyHandler() ReplyHandler {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking != nil {
		return c.asking
	}
	for i := range c.pending.Len {
		if p := c.pending.At(i); !p.ours() {
			return p.Handler
		}
	}
	return nil
}

// maxUser is how much is kept of a user's name, which has 80 characters on MariaDB and 32
// on MySQL.
const maxUser = 320

// SetUser notes who is about to log in.
func (c *Conn) SetUser(user []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user = string(user[:min(len(user), maxUser)])
}

// MaxPending is how many commands may be pending before a reply made here waits
// for them: the server, which holds a client back that sends and sends, does
// not see what is refused here.
const MaxPending = 1000

// Waiting returns how many commands are pending.
func (c *Conn) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.Len
}

// Begin sets the conversation up for what both sides agreed on before the login: their
// capabilities, the server's number, as MariaDB's or MySQL's, and the schema that the client names.
func (c *Conn) Begin(caps uint64, mariaDB bool, version uint32, schema string) {
	c.Caps, c.MariaDB = caps, mariaDB
	c.multi = c.Has(mysql.CLIENT_MULTI_STATEMENTS)
	c.Update(func(s *Vars) {
		s.Mode.MariaDB, s.Mode.Version, s.Increment = mariaDB, version, 1
		if schema != "" {
			s.Schema = []byte(schema)
		}
	})
}

// mayOwe reports whether LAST_INSERT_ID() is owed, or may be once an INSERT that
// is pending is over. The lock is held.
func (c *Conn) mayOwe() bool {
	for i := range c.pending.Len {
		if c.pending.At(i).owes() {
			return true
		}
	}
	return c.state.LastID.Owed
}

// MayOwe is mayOwe for who does not hold the lock.
func (c *Conn) MayOwe() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mayOwe()
}

// LastIDHere returns what LAST_INSERT_ID() natively is where the server was not told, and the session's
// status flags for a reply that says so.
func (c *Conn) LastIDHere() (value uint64, status uint16, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.state
	if s.InTrans {
		status |= mysql.SERVER_STATUS_IN_TRANS
	}
	if !s.Manual {
		status |= mysql.SERVER_STATUS_AUTOCOMMIT
	}
	if s.Mode.NoBackslashEscapes {
		status |= mysql.SERVER_STATUS_NO_BACKSLASH_ESCAPED
	}
	return s.LastID.Value, status, s.LastID.Here
}

// LastIDBeside returns what LAST_INSERT_ID() natively is, where the server was not told that, and has another one.
func (c *Conn) LastIDBeside(servers uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.state
	if s.rivals != nil && slices.Contains(*s.rivals, servers) {
		s.LastID = LastID{Value: servers, Known: true}
	}
	s.rivals = nil
	return s.LastID.Value
}

// MayTurn reports whether what is pending may change whether the server splits texts.
func (c *Conn) MayTurn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.turns()
}

// Splits reports whether the server splits texts at ';'.
func (c *Conn) Splits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.multi
}

// SetAsking notes that the client's reply waits for the answer to a question; nil: none does.
func (c *Conn) SetAsking(w ReplyHandler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = w
}

// Denied says who was refused, and by which error.
func (c *Conn) Denied() (user string, code uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.user, c.last.Code
}

// User returns who logs in, or has.
func (c *Conn) User() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.user
}

// LastReply says how the reply ended that ended last.
func (c *Conn) LastReply() (failed bool, seq byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.failed, c.last.seq
}

// KeepWarnings keeps the reply to SHOW WARNINGS for a client that may send that
// next.
func (c *Conn) KeepWarnings(reply []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = reply
}

// KeptWarnings returns a copy of the reply to a text that the server could not
// answer any more, nil when it can.
func (c *Conn) KeptWarnings(sql []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || !rewriter.IsShowWarnings(sql) {
		return nil
	}
	return bytes.Clone(c.kept)
}

// LastAffected returns how many rows the statement affected whose reply ended
// last; ok is false when no OK packet said so.
func (c *Conn) LastAffected() (rows uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.affected, c.last.okSeen
}

// Settle notes what became of LAST_INSERT_ID().
func (c *Conn) Settle(effect LastEffect, value uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.LastID.settle(effect, value)
	if effect == lastHere {
		c.state.rivals = nil
	}
}

// Answerable reports whether a reply made here may be written at once, which
// is when nothing is pending; else it is queued behind what is.
func (c *Conn) Answerable(local []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending.Len == 0 {
		return true
	}
	c.pending.push(Pending{Handler: &localReply{bytes: local}})
	return false
}

// AppendQuery appends a COM_QUERY packet of our own, with an empty set of
// query attributes where the session has them.
func (c *Conn) AppendQuery(dst []byte, sql string) []byte {
	payload := []byte{mysql.COM_QUERY}
	if c.Has(mysql.CLIENT_QUERY_ATTRIBUTES) {
		payload = append(payload, 0, 1)
	}
	return wire.AppendPacket(dst, 0, append(payload, sql...))
}

// Increment returns auto_increment_increment.
func (c *Conn) Increment() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(c.state.Increment)
}

// TooLarge refuses a command of after bytes that only its ids made larger than the server accepts:
// without them it had before bytes.
func (c *Conn) TooLarge(before, after int) *mysql.MyError {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.state.MaxPacket
	if c.state.Known&KnowNumbers == 0 || uint64(before) > limit || uint64(after) <= limit {
		return nil
	}
	return clienterr.TooLarge(after, "max_allowed_packet", limit)
}

// track learns from session state information what no later command may have changed already.
func (c *Conn) track(info []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending.Len != 1 {
		info = nil
	}
	c.state.track(info)
}
