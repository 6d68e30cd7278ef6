package proxy

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"
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

	mu      sync.Mutex // guards all below
	pending queue
	state   state
	settled chan struct{} // when set, closed once pending is empty
	// Of the reply that ended last: whether it was an ERR, and its last sequence
	// number.
	failed   bool
	seq      byte
	affected uint64 // rows, as its OK packet says; not set without one
	okSeen   bool
	// delta is what the sequence numbers of a file's packets lack for the
	// server: what is taken off those of its reply.
	delta  atomic.Uint32
	asking *withheld     // the OK packet that waits for the answer to a question
	kept   []byte        // the reply to SHOW WARNINGS, which a question of ours ended on the server
	infile chan struct{} // holds a token when the server asked for a file
	// prepared holds what is known of prepared statements, by number.
	prepared map[uint32]*prepared
	newest   newest
	// named holds what is known of statements prepared in SQL, by name in lower
	// case, and blind says that some were prepared unread while no table had a
	// rule. Only the goroutine that reads from the client uses them.
	named map[string]*prepared
	blind bool
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

// pending is a command that was sent, or a reply that was made here, in the
// order in which the client must see the replies.
type pending struct {
	reply    replyKind
	seqDelta byte // frames added to the command: taken off the reply's sequence numbers
	more     bool // another piece of the same text follows: the reply ends in SERVER_MORE_RESULTS_EXISTS
	touch    touch
	age      uint32 // of the state when the command was sent
	job      *job   // nil for nearly all that is forwarded
}

// ours reports whether the command is the proxy's own: the client does not see
// its reply.
func (p *pending) ours() bool { return p.job != nil && p.job.hidden != notHidden }

// touch is the set of things that a command may change.
type touch uint8

const (
	touchLastID   touch = 1 << iota // may change LAST_INSERT_ID() in ways its reply does not show
	touchInsert                     // an INSERT that is not ours: its reply shows whether LAST_INSERT_ID() changed
	touchSettings                   // may change the tracked settings
	touchTables                     // may change columns of tables
	touchReset                      // COM_RESET_CONNECTION: when it succeeds the session is as new
	touchSchema                     // may change the default schema, to one its text does not tell
	touchTemps                      // may drop or rename temporary tables
	touchNext                       // SET TRANSACTION: is of the next transaction alone
)

// job is what must be done with a reply beyond relaying it.
type job struct {
	hidden  hidden   // the command is ours and its reply is kept from the client
	local   []byte   // the reply itself, made here; nothing was sent to the server
	seq     byte     // sequence number of the command's last frame, as the client sent it
	inserts []expect // what OK packets of injected INSERTs must show, by result
	schema  []byte   // not nil: the default schema once the command succeeds
	temps   []temp   // temporary tables made, and forgotten
	answer  *answer  // who waits for a hidden reply
	load    *loading // the file it asks for is given ids
	units   *units   // what results for each row must show
	// prepared is the statement that a PREPARE makes, named that of one in SQL.
	prepared, named *prepared
	// withheld is set when the reply has ended with a question left.
	withheld *withheld
}

// temp is a temporary table that one result of a command makes.
type temp struct {
	result int
	name   string // key of the table; empty: whatever there was is gone
}

// hidden says what a hidden command was.
type hidden uint8

const (
	notHidden    hidden = iota
	hiddenAsk           // someone waits for the answer
	hiddenLastID        // SELECT LAST_INSERT_ID(), pipelined before an INSERT
	hiddenPay           // DO LAST_INSERT_ID(n), pipelined before a reader
)

// answer receives a hidden reply.
type answer struct {
	packets []byte // whole frames, headers and all; none when they were more than maxAnswer
	full    bool
	done    chan struct{}
}

// maxAnswer bounds a hidden reply, in bytes. A table of 4,096 columns, the
// most a server allows, takes less than half of it.
const maxAnswer = 4 << 20

// take keeps bytes of the reply, or, once it is too large, nothing of it.
func (a *answer) take(b []byte) {
	if a.full = a.full || len(a.packets)+len(b) > maxAnswer; a.full {
		a.packets = nil
		return
	}
	a.packets = append(a.packets, b...)
}

// queue is a ring of pending commands.
type queue struct {
	ring    []pending
	head, n int
}

func (q *queue) push(p pending) {
	if q.n == len(q.ring) {
		grown := make([]pending, max(4, 2*len(q.ring)))
		for i := range q.n {
			grown[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = p
	q.n++
}

func (q *queue) at(i int) *pending { return &q.ring[(q.head+i)%len(q.ring)] }

func (q *queue) pop() {
	q.ring[q.head] = pending{}
	q.head = (q.head + 1) % len(q.ring)
	q.n--
}

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
	if p.job != nil && p.job.schema != nil || p.touch&touchSchema != 0 {
		c.state.forget(knowSchema)
	}
	if p.touch&touchTemps != 0 {
		c.state.makeTemporary("")
	}
	if p.touch&touchAll == touchAll {
		c.state.unseen = true
		c.forgetUnseen()
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

// idle reports whether no command is pending and no transaction open.
func (c *conversation) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.n == 0 && !c.state.inTrans && c.phase() == phaseCommands
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

// inFlight returns what was expected of an injected INSERT that stands first
// among the pending commands, hidden ones aside: the statement that a lost
// server leaves in doubt.
func (c *conversation) inFlight() (inserts []expect, seq byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.asking; w != nil && len(w.frame) > 0 {
		return []expect{*w.expect}, w.frame[3] - 1
	}
	for i := range c.pending.n {
		j := c.pending.at(i).job
		if j == nil {
			break
		}
		if j.hidden == notHidden {
			return j.inserts, j.seq
		}
	}
	return nil, 0
}

// loading returns the load that stands first among the pending commands, hidden ones aside; nil when that is another command.
func (c *conversation) loading() *loading {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.pending.n {
		if j := c.pending.at(i).job; j == nil || j.hidden == notHidden {
			if j == nil {
				return nil
			}
			return j.load
		}
	}
	return nil
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
		if j := c.pending.at(i).job; j != nil && j.inserts != nil {
			return true
		}
	}
	return c.state.lastID.owed
}

// setAsking notes that an OK packet waits for a question; nil: none does.
func (c *conversation) setAsking(w *withheld) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = w
}

// lastReply says how the reply ended that ended last.
func (c *conversation) lastReply() (failed bool, seq byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed, c.seq
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
	if c.kept == nil || !isShowWarnings(sql) {
		return nil
	}
	return bytes.Clone(c.kept)
}

// lastAffected returns how many rows the statement affected whose reply ended
// last; ok is false when no OK packet said so.
func (c *conversation) lastAffected() (rows uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.affected, c.okSeen
}

// settle notes what became of LAST_INSERT_ID().
func (c *conversation) settle(n native) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked(n.last, n.lastID)
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
	c.pending.push(pending{job: &job{local: local}})
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
	c.failed, c.seq, c.affected, c.okSeen = o.failed, o.seq, o.affected, o.okSeen
	for c.pending.n > 0 {
		j := c.pending.at(0).job
		if j == nil || j.local == nil {
			break
		}
		due = append(due, j.local...)
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
	if j := p.job; j != nil {
		if j.named != nil && o.failed {
			j.named.failed = true
		}
		if j.schema != nil && !o.failed && s.age == p.age {
			s.learnSchema(j.schema)
		}
		for _, t := range j.temps {
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
		c.forgetStatements()
	case p.touch&touchReset != 0:
		s.reset()
		c.forgetStatements()
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

func (c *conversation) applyLastID(p *pending, o outcome) {
	id := &c.state.lastID
	injected := false
	if p.job != nil {
		if p.job.hidden == hiddenPay && !o.failed {
			id.owed = false
		}
		if p.job.hidden != notHidden {
			return
		}
		injected = p.job.inserts != nil
	}
	if id.owed && o.insertID == 0 {
		return // nothing was paid, for the command read diagnostics, and it set no id that shows
	}
	if p.touch&touchLastID != 0 ||
		p.touch&touchInsert != 0 && (o.failed || !o.okSeen) ||
		!injected && o.insertID != 0 {
		*id = lastID{}
	}
}
