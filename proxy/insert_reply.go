package proxy

import (
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// maxInfo bounds what is waited for of an OK packet to an injected INSERT: its
// text says how many rows were duplicates.
const maxInfo = 1 << 10

// pieceReply is the reply to a piece of a text, or to an execution: it shows what native
// columns would have shown of the INSERTs in it.
type pieceReply struct {
	passes
	inserts  []expect  // by result
	seq      byte      // sequence number of the command's last frame, as the client sent it
	load     file      // nil: it asks for none that is given ids
	asked    bool      // the server has asked for that
	units    *units    // what results for each row must show
	withheld *withheld // the reply has ended with this left open
	into     *[]byte   // what takes the packet when it is held
}

// file is a file that a statement asks for, whose lines are given ids as they pass.
type file interface {
	// delta is what is taken off sequence number seq of the reply; of a whole file it is whole.
	delta(seq, whole byte) byte
	// brokenOff returns why the file was broken off, nil when it was not.
	brokenOff() *mysql.MyError
	// tell puts into e what the file was given so far.
	tell(e *expect)
	// lost returns what a client is told whose server is gone, and the sequence number of what it
	// sent last; nil while it sends.
	lost() (e *mysql.MyError, seq byte)
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
	if r.asked {
		m.takeOff(r.load.delta(seq, m.c.fileDelta()))
	}
	return fatePass
}

// withhold keeps the packet that is looked at from the client.
func (r *pieceReply) withhold(w *withheld) ruling {
	r.withheld, r.into = w, &w.frame
	return ruling{fate: fateHold}
}

func (r *pieceReply) infile() {
	r.asked = r.load != nil
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
	m.c.settle(was.last, was.lastID)
	if was.insertID != ok.InsertID {
		v.patched, v.used = ok.AppendPrefixWithInsertID(nil, payload, was.insertID)
	}
	return v
}

func (r *pieceReply) failed(m *replies, result int, payload []byte, n int) (v ruling) {
	code, whole := wire.ErrCode(payload), len(payload) == n
	e := r.expected(result)
	if doubtsTable(code) {
		r.Doubt()
	}
	if e != nil && code != wire.ProgressCode {
		m.c.settle(e.failed(), 0)
	}
	var told *mysql.MyError
	switch broken := r.brokenOff(); {
	case broken != nil && whole:
		told = broken
	case e != nil && e.selected && code == mysql.ER_DATA_OUT_OF_RANGE && rewriter.Guarded(payload): // more rows than there are ids
		if m.first() {
			return r.withhold(&withheld{expect: e, guard: true})
		}
		if whole { // the client has seen the beginning of the result
			told = clienterr.RowsComing(e.table, 1)
		}
	case m.precedes() && m.first() && code == mysql.ER_PARSE_ERROR:
		return r.withhold(&withheld{quotes: true, result: result})
	}
	switch {
	case told != nil:
		v.patched, v.used = clienterr.Payload(told), n
	case whole && code == mysql.ER_COLUMNACCESS_DENIED_ERROR && e != nil && (e.generated > 0 || e.others != nil):
		// The statement that the client sent may not name the column.
		v.patched, v.used = append(append(v.patched, payload...), clienterr.DeniedNote(e.table)...), n
	}
	return v
}

// Doubt ends what is known of the tables.
func (r *pieceReply) Doubt() {
	for i := range r.inserts {
		if f := r.inserts[i].facts; f != nil {
			f.Doubt()
		}
	}
}

// lost returns what a client is told whose server is gone, and the sequence number of what it
// sent last; nil: nothing. shown: it was given bytes of the reply, partly: the last packet not whole.
func (r *pieceReply) lost(shown, partly bool) (*mysql.MyError, byte) {
	if r.load != nil && r.withheld == nil {
		if partly {
			return nil, 0
		}
		return r.load.lost()
	}
	inserts, seq := r.inDoubt()
	if len(inserts) == 0 || shown {
		return nil, 0
	}
	return errLost(inserts), seq
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
	n := m.rowCount()
	if r.units != nil && r.units.result == result {
		n = r.units.stored()
	}
	was := e.returned(n)
	if was.ask != askNothing {
		r.withheld = &withheld{expect: e, ask: was.ask, warnings: true}
		return
	}
	m.c.settle(was.last, was.lastID)
}

func (r *pieceReply) row(result, row int, payload []byte) fate {
	if r.units == nil || !r.units.awaits(result, row, payload) {
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

// withheld is an OK packet kept from the client until the server has answered
// what it leaves open.
type withheld struct {
	expect   *expect
	ask      question
	frame    []byte // empty: what was given to the client shows no insert id
	warnings bool   // the statement left some
	guard    bool   // it is the ERR of an INSERT ... SELECT that found more rows than there are ids
	quotes   bool   // it is an ERR that quotes the text up to the end of the piece
	result   int    // the statement that such an ERR is of
}

func (w *withheld) payload() []byte { return w.frame[min(wire.HeaderLen, len(w.frame)):] }
