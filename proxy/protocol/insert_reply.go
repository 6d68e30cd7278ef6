package protocol

import (
	"bytes"
	"slices"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// maxInfo bounds what is waited for of an OK packet to an injected INSERT: its
// text says how many rows were duplicates.
const maxInfo = 1 << 10

// InsertReply is the reply to a piece of a text, or to an execution: it shows what native
// columns would have shown of the INSERTs in it.
type InsertReply struct {
	passes
	Inserts  []Expect  // by result
	Seq      byte      // sequence number of the command's last frame, as the client sent it
	Load     file      // nil: it asks for none that is given ids
	asked    bool      // the server has asked for that
	Units    *Units    // what results for each row must show
	Withheld *Withheld // the reply has ended with this left open
	into     *[]byte   // what takes the packet when it is held
	// Alone: nobody but who reads from the server looks at it. Its memory is used again when the reply
	// is over.
	Alone bool
	room  []Expect // the memory of Inserts
}

// insertReplies are those whose replies are over.
var insertReplies = sync.Pool{New: func() any { return new(InsertReply) }}

// maxRoom bounds what is kept for INSERTs to come.
const maxRoom = 16

// NewInsertReply returns the reply to a command whose last frame had sequence number seq. It copies
// what is expected of its INSERTs; nil: the command has none.
func NewInsertReply(inserts []Expect, seq byte) *InsertReply {
	r := insertReplies.Get().(*InsertReply)
	r.Seq = seq
	if inserts != nil {
		r.room = append(r.room, inserts...)
		r.Inserts = r.room
	}
	return r
}

// ended ends the use of its memory, where nobody looks at it once the reply is over.
func (r *InsertReply) ended(memory) {
	if !r.Alone || r.Withheld != nil || cap(r.room) > maxRoom {
		return
	}
	clear(r.room)
	*r = InsertReply{room: r.room[:0]}
	insertReplies.Put(r)
}

// file is a file that a statement asks for, whose lines are given ids as they pass.
type file interface {
	// Delta is what is taken off sequence number seq of the reply; of a whole file it is whole.
	Delta(seq, whole byte) byte
	// BrokenOff returns why the file was broken off, nil when it was not.
	BrokenOff() *mysql.MyError
	// Tell puts into e what the file was given so far.
	Tell(e *Expect)
	// Lost returns what a client is told whose server is gone, and the sequence number of what it
	// sent last; nil while it sends.
	Lost() (e *mysql.MyError, seq byte)
}

func (r *InsertReply) owes() bool { return r.Inserts != nil }

func (r *InsertReply) wants() int {
	if r.Inserts == nil {
		return wire.OKPrefix
	}
	return maxInfo
}

// begins corrects what is taken off sequence numbers once a file went in other packets.
func (r *InsertReply) begins(m reply, seq byte) fate {
	r.into = nil
	if r.asked {
		m.takeOff(r.Load.Delta(seq, m.memory().FileDelta()))
	}
	return fatePass
}

// withhold keeps the packet that is looked at from the client.
func (r *InsertReply) withhold(w *Withheld) ruling {
	r.Withheld, r.into = w, &w.Frame
	return ruling{fate: fateHold}
}

func (r *InsertReply) infile() {
	r.asked = r.Load != nil
}

// ok compares the insert id with what a native column would have shown.
func (r *InsertReply) ok(m reply, result int, ok wire.OK, payload []byte) (v ruling) {
	e := r.expected(result)
	if e == nil {
		return v
	}
	if e.drops(&ok) {
		return ruling{patched: clienterr.Payload(e.errDropped(ok.AffectedRows)), used: len(payload), failed: mysql.ER_UNKNOWN_ERROR}
	}
	was := e.Succeeded(&ok, payload)
	if was.Ask != AskNothing {
		v = r.withhold(&Withheld{Expect: e, Ask: was.Ask, Warnings: ok.Warnings > 0})
		m.memory().SetAsking(r)
		return v
	}
	m.memory().Settle(was.Last, was.LastID)
	if was.InsertID != ok.InsertID {
		v.patched, v.used = ok.AppendPrefixWithInsertID(nil, payload, was.InsertID)
	}
	return v
}

func (r *InsertReply) failed(m reply, result int, payload []byte, n int) (v ruling) {
	code := wire.ErrCode(payload)
	e := r.expected(result)
	// 1. What the ERR says of tables and of LAST_INSERT_ID().
	if doubtsTable(code) {
		r.Doubt()
	}
	if e != nil && code != wire.ProgressCode {
		m.memory().Settle(e.Failed(), 0)
	}
	// 2. The client may have to wait for a question.
	broken := r.brokenOff() != nil && len(payload) == n
	if w := r.leavesOpen(m, result, payload); w != nil && !broken {
		return r.withhold(w)
	}
	// 3. It may be told something else, where all of the packet is there.
	if len(payload) == n {
		if v.patched = r.tell(e, payload); v.patched != nil {
			v.used = n
		}
	}
	return v
}

// leavesOpen returns what an ERR leaves open, nil when that is nothing.
func (r *InsertReply) leavesOpen(m reply, result int, payload []byte) *Withheld {
	e := r.expected(result)
	switch {
	case !m.first(): // the client has seen the beginning of the result
	case e.outnumbered(payload):
		return &Withheld{Expect: e, Guard: true}
	case m.precedes() && wire.ErrCode(payload) == mysql.ER_PARSE_ERROR:
		return &Withheld{Quotes: true, Result: result}
	}
	return nil
}

// tell returns the payload that stands for an ERR, nil when that is its own.
func (r *InsertReply) tell(e *Expect, payload []byte) []byte {
	broken := r.brokenOff()
	switch {
	case broken != nil:
		return clienterr.Payload(broken)
	case e.outnumbered(payload):
		return clienterr.Payload(clienterr.RowsComing(e.Table, 1))
	case e != nil && wire.ErrCode(payload) == mysql.ER_COLUMNACCESS_DENIED_ERROR && (e.Generated > 0 || e.Others != nil):
		// The statement that the client sent may not name the column.
		return append(bytes.Clone(payload), clienterr.DeniedNote(e.Table)...)
	}
	return nil
}

// outnumbered reports whether an ERR says that a query gave more rows than there are ids.
func (e *Expect) outnumbered(payload []byte) bool {
	return e != nil && e.selected && wire.ErrCode(payload) == mysql.ER_DATA_OUT_OF_RANGE && rewriter.Guarded(payload)
}

// Doubt ends what is known of the tables.
func (r *InsertReply) Doubt() {
	for i := range r.Inserts {
		if f := r.Inserts[i].Facts; f != nil {
			f.Doubt()
		}
	}
}

// Lost returns what a client is told whose server is gone, and the sequence number of what it sent
// last; nil: nothing. shown: it was given bytes of the reply, partly: the last packet not whole.
func (r *InsertReply) Lost(shown, partly bool) (*mysql.MyError, byte) {
	if r.Load != nil && r.Withheld == nil {
		if partly {
			return nil, 0
		}
		return r.Load.Lost()
	}
	inserts, seq := r.inDoubt()
	if len(inserts) == 0 || shown {
		return nil, 0
	}
	return ErrLost(inserts), seq
}

// inDoubt returns the INSERTs that may have happened when the server is gone, and the sequence
// number of the last frame of their command.
func (r *InsertReply) inDoubt() (inserts []Expect, seq byte) {
	if w := r.Withheld; w != nil && w.Ask != AskNothing && len(w.Frame) > 0 {
		return []Expect{*w.Expect}, w.Frame[3] - 1
	}
	return r.Inserts, r.Seq
}

// brokenOff returns why a load was broken off that the server now answers, nil when it was not.
func (r *InsertReply) brokenOff() *mysql.MyError {
	if r.Load == nil {
		return nil
	}
	return r.Load.BrokenOff()
}

// rowsEnded handles the end of rows that an INSERT ... RETURNING sent. It is kept from the client
// while the server is asked: who has it may delete the rows that the question is about.
func (r *InsertReply) rowsEnded(m reply, result int) fate {
	e := r.expected(result)
	if e == nil || !e.Returning {
		return fatePass
	}
	n := m.rowCount()
	if r.Units != nil && r.Units.result == result {
		n = r.Units.stored()
	}
	was := e.Returned(n)
	if was.Ask != AskNothing {
		m.memory().SetAsking(r)
		return r.withhold(&Withheld{Expect: e, Ask: was.Ask, Warnings: true, Rows: true}).fate
	}
	m.memory().Settle(was.Last, was.LastID)
	return fatePass
}

func (r *InsertReply) row(result, row int, payload []byte) fate {
	if r.Units == nil || !r.Units.awaits(result, row, payload) {
		return fatePass
	}
	r.into = &r.Units.held
	return fateHold
}

// released returns results for each row, in front of what is none.
func (r *InsertReply) released() []byte {
	if r.Units == nil || r.Units.held == nil || r.into == &r.Units.held {
		return nil
	}
	return r.Units.release()
}

func (r *InsertReply) take(b []byte) { *r.into = append(*r.into, b...) }

// expected returns what is expected of a result of the command, nil when
// nothing is.
func (r *InsertReply) expected(result int) *Expect {
	i, found := slices.BinarySearchFunc(r.Inserts, result, func(e Expect, result int) int { return e.Result - result })
	if !found {
		return nil
	}
	if r.Load != nil {
		r.Load.Tell(&r.Inserts[i])
	}
	return &r.Inserts[i]
}

// Withheld is an OK packet kept from the client until the server has answered
// what it leaves open.
type Withheld struct {
	Expect   *Expect
	Ask      question
	Frame    []byte // empty: what was given to the client shows no insert id
	Warnings bool   // the statement left some
	Rows     bool   // it is the end of rows, and shows no insert id
	Guard    bool   // it is the ERR of an INSERT ... SELECT that found more rows than there are ids
	Quotes   bool   // it is an ERR that quotes the text up to the end of the piece
	Result   int    // the statement that such an ERR is of
}

// Payload returns that of the packet.
func (w *Withheld) Payload() []byte { return w.Frame[min(wire.HeaderLen, len(w.Frame)):] }
