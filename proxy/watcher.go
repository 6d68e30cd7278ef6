package proxy

import (
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// watcher sees the reply to a command while it passes, on the goroutine that reads from
// the server. A reply that nobody watches is passed on as it comes. What is given as
// payload are the first bytes of a packet of n bytes: wire.OKPrefix of them, as many as
// wants says, or all.
type watcher interface {
	// wants returns how many bytes of an OK or ERR packet must be there.
	wants() int
	// begins sees the sequence number of each packet, before that is corrected. What
	// the packet is may change its fate.
	begins(m *replies, seq byte) fate
	// ok sees an OK packet that ends a result, the given one of the reply.
	ok(m *replies, result int, ok wire.OK, payload []byte) ruling
	// failed sees an ERR packet.
	failed(m *replies, payload []byte, n int) ruling
	// row sees any other packet of a result.
	row(m *replies, payload []byte) fate
	// rowsEnded sees the end of the rows of a result.
	rowsEnded(m *replies, result int)
	// infile is told that the server asks for a file.
	infile()
	// prepared sees what a PREPARE was answered with, and definition each packet behind.
	prepared(m *replies, payload []byte, p wire.Prepared)
	definition(m *replies) fate
	// released returns what was held and is due in front of the packet that was looked at.
	released() []byte
	// take is given the bytes of packets that are held.
	take(b []byte)
	// owes reports whether LAST_INSERT_ID() may be owed behind the reply.
	owes() bool
	// ended is told that the reply is over, and all that it changed noted.
	ended(c *conversation)
}

// fate is what becomes of a packet.
type fate uint8

const (
	fatePass fate = iota // to the client
	fateHold             // to the watcher
	fateOmit             // to nobody: the packets behind it count on without it
)

// ruling is what becomes of a packet that ends a result. Bytes in place of its first
// used ones are passed on.
type ruling struct {
	fate    fate
	patched []byte
	used    int
}

// passes is embedded by watchers for what they let pass.
type passes struct{}

func (passes) wants() int                                   { return wire.OKPrefix }
func (passes) begins(*replies, byte) fate                   { return fatePass }
func (passes) ok(*replies, int, wire.OK, []byte) (v ruling) { return v }
func (passes) failed(*replies, []byte, int) (v ruling)      { return v }
func (passes) row(*replies, []byte) fate                    { return fatePass }
func (passes) rowsEnded(*replies, int)                      {}
func (passes) infile()                                      {}
func (passes) prepared(*replies, []byte, wire.Prepared)     {}
func (passes) definition(*replies) fate                     { return fatePass }
func (passes) released() []byte                             { return nil }
func (passes) take([]byte)                                  {}
func (passes) owes() bool                                   { return false }
func (passes) ended(*conversation)                          {}

// localReply is a reply made here, to a command that was not sent.
type localReply struct {
	passes
	bytes []byte
}

// hiddenReply is the reply to a command of our own. The client sees nothing of it.
type hiddenReply struct {
	passes
	kind   hiddenKind
	answer *answer // nil: nobody reads it
}

// hiddenKind says what a hidden command was.
type hiddenKind uint8

const (
	hiddenAsk    hiddenKind = iota // someone waits for the answer
	hiddenLastID                   // SELECT LAST_INSERT_ID(), pipelined before an INSERT
	hiddenPay                      // SET last_insert_id=n, pipelined before a reader
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

func (r *hiddenReply) begins(*replies, byte) fate { return fateHold }

// take keeps bytes of the reply, or, once it is too large, nothing of it.
func (r *hiddenReply) take(b []byte) {
	a := r.answer
	if a == nil {
		return
	}
	if a.full = a.full || len(a.packets)+len(b) > maxAnswer; a.full {
		a.packets = nil
		return
	}
	a.packets = append(a.packets, b...)
}

func (r *hiddenReply) ended(c *conversation) {
	switch {
	case r.answer == nil:
	case r.kind == hiddenLastID:
		c.learnHiddenLastID(r.answer.packets)
	default:
		close(r.answer.done)
	}
}

// prepareReply is the reply to a PREPARE of which something is to be known.
type prepareReply struct {
	passes
	made *prepared
}

// watcher returns who sees the reply to the PREPARE of e; nobody when nothing is to be
// known.
func (e *prepared) watcher() watcher {
	if e == nil {
		return nil
	}
	return &prepareReply{made: e}
}

func (r *prepareReply) prepared(m *replies, payload []byte, p wire.Prepared) {
	wire.SetParams(payload, m.c.learnStatement(r.made, p))
}

// definition keeps from the client what describes hidden parameters.
func (r *prepareReply) definition(m *replies) fate {
	if h := r.made.hidden; h != nil && !r.made.broken && h.hides(m.nth, m.params, !m.c.has(mysql.CLIENT_DEPRECATE_EOF)) {
		return fateOmit
	}
	return fatePass
}

func (r *prepareReply) failed(m *replies, _ []byte, _ int) (v ruling) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	r.made.failed = true
	return v
}

// pieceReply is the reply to a piece of a text, or to an execution: it shows what native
// columns would have shown of the INSERTs in it.
type pieceReply struct {
	passes
	inserts  []expect  // by result
	seq      byte      // sequence number of the command's last frame, as the client sent it
	load     *loading  // the file it asks for is given ids
	units    *units    // what results for each row must show
	withheld *withheld // the reply has ended with this left open
	into     *[]byte   // what takes the packet when it is held
}

func (r *pieceReply) owes() bool { return r.inserts != nil }

func (r *pieceReply) wants() int {
	if r.inserts == nil {
		return wire.OKPrefix
	}
	return maxInfo
}

// begins corrects what is taken off sequence numbers once a file went in other packets.
func (r *pieceReply) begins(m *replies, seq byte) fate {
	r.into = nil
	if r.load != nil && r.load.asked {
		m.cur.seqDelta = r.load.delta(seq, m.c.fileDelta())
	}
	return fatePass
}

// withhold keeps the packet that is looked at from the client.
func (r *pieceReply) withhold(w *withheld) ruling {
	r.withheld, r.into = w, &w.frame
	return ruling{fate: fateHold}
}

func (r *pieceReply) infile() {
	if r.load != nil {
		r.load.asked = true
	}
}

// ok compares the insert id with what a native column would have shown.
func (r *pieceReply) ok(m *replies, result int, ok wire.OK, payload []byte) (v ruling) {
	e := r.expected(result)
	if e == nil {
		return v
	}
	was := e.succeeded(&ok, payload)
	if was.ask != askNothing {
		v = r.withhold(&withheld{expect: e, ask: was.ask, warnings: ok.Warnings > 0})
		m.c.setAsking(r)
		return v
	}
	m.c.settle(was)
	if was.insertID != ok.InsertID {
		v.patched, v.used = ok.AppendPrefixWithInsertID(nil, payload, was.insertID)
	}
	return v
}

func (r *pieceReply) failed(m *replies, payload []byte, n int) (v ruling) {
	code, whole := wire.ErrCode(payload), len(payload) == n
	e := r.expected(m.result)
	if doubtsTable(code) {
		r.doubt()
	}
	if e != nil && code != wire.ProgressCode {
		m.c.settle(native{last: e.failed()})
	}
	var told *mysql.MyError
	switch broken := r.brokenOff(); {
	case broken != nil && whole:
		told = broken
	case e != nil && e.selected && code == mysql.ER_DATA_OUT_OF_RANGE && rewriter.Guarded(payload): // more rows than there are ids
		if m.step == stepFirst {
			return r.withhold(&withheld{expect: e, guard: true})
		}
		if whole { // the client has seen the beginning of the result
			told = errRowsComing(e.table, 1)
		}
	case m.cur.more && m.step == stepFirst && code == mysql.ER_PARSE_ERROR:
		return r.withhold(&withheld{quotes: true, result: m.result})
	}
	switch {
	case told != nil:
		v.patched, v.used = errPayload(told), n
	case whole && code == mysql.ER_COLUMNACCESS_DENIED_ERROR && e != nil && (e.generated > 0 || e.others != nil):
		// The statement that the client sent may not name the column.
		v.patched, v.used = append(append(v.patched, payload...), deniedNote(e.table)...), n
	}
	return v
}

// doubt ends what is known of the tables.
func (r *pieceReply) doubt() {
	for i := range r.inserts {
		if f := r.inserts[i].facts; f != nil {
			f.doubt()
		}
	}
}

// inDoubt returns the INSERTs that may have happened when the server is gone, and the sequence
// number of the last frame of their command.
func (r *pieceReply) inDoubt() (inserts []expect, seq byte) {
	if w := r.withheld; w != nil && w.ask != askNothing && len(w.frame) > 0 {
		return []expect{*w.expect}, w.frame[3] - 1
	}
	return r.inserts, r.seq
}

// brokenOff returns why a load was broken off that the server now answers, nil when it was not.
func (r *pieceReply) brokenOff() *mysql.MyError {
	if r.load == nil {
		return nil
	}
	return r.load.brokenOff()
}

// rowsEnded handles the end of rows that an INSERT ... RETURNING sent.
func (r *pieceReply) rowsEnded(m *replies, result int) {
	e := r.expected(result)
	if e == nil || !e.returning {
		return
	}
	n := m.rowsIn
	if r.units != nil && r.units.result == result {
		n = r.units.stored()
	}
	was := e.returned(n)
	if was.ask != askNothing {
		r.withheld = &withheld{expect: e, ask: was.ask, warnings: true}
		return
	}
	m.c.settle(was)
}

func (r *pieceReply) row(m *replies, payload []byte) fate {
	if r.units == nil || !r.units.awaits(m, payload) {
		return fatePass
	}
	r.into = &r.units.held
	return fateHold
}

// released returns results for each row, in front of what is none.
func (r *pieceReply) released() []byte {
	if r.units == nil || r.units.held == nil || r.into == &r.units.held {
		return nil
	}
	return r.units.release()
}

func (r *pieceReply) take(b []byte) { *r.into = append(*r.into, b...) }

// expected returns what is expected of a result of the command, nil when
// nothing is.
func (r *pieceReply) expected(result int) *expect {
	i, found := slices.BinarySearchFunc(r.inserts, result, func(e expect, result int) int { return e.result - result })
	if !found {
		return nil
	}
	if r.load != nil {
		r.load.tell(&r.inserts[i])
	}
	return &r.inserts[i]
}
