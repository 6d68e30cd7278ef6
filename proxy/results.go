package proxy

import (
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// maxInfo bounds what is waited for of an OK packet to an injected INSERT: its
// text says how many rows were duplicates.
const maxInfo = 1 << 10

func (m *replies) judgeResult(payload []byte, n int) (patched []byte, used int) {
	switch {
	case payload[0] == wire.ErrByte:
		m.fail(payload)
		if broken := m.brokenOff(); broken != nil && len(payload) == n {
			return errPayload(broken), n
		}
		switch e := m.guarded(payload); {
		case e != nil && m.step != stepFirst && len(payload) == n: // the client has seen the beginning of the result
			return errPayload(errRowsComing(e.table, 1)), n
		case e != nil && m.step == stepFirst:
			m.cur.job.withheld = &withheld{expect: e, guard: true}
			m.hold = true
			return nil, 0
		case m.cur.more && m.step == stepFirst && wire.ErrCode(payload) == mysql.ER_PARSE_ERROR:
			m.cur.job.withheld = &withheld{quotes: true, result: m.result}
			m.hold = true
			return nil, 0
		}
		return m.denied(payload, n)
	case m.step == stepFirst:
		switch payload[0] {
		case wire.OKByte:
			return m.resultOK(payload, n)
		case wire.InfileByte:
			m.c.delta.Store(uint32(m.cur.seqDelta))
			if j := m.cur.job; j != nil && j.load != nil {
				j.load.asked = true
			}
			m.c.setPhase(phaseInfile)
		default:
			m.step, m.rowsIn = stepDefs, 0
			if m.c.has(mysql.CLIENT_DEPRECATE_EOF) {
				r := wire.NewReader(payload)
				m.step, m.rowsIn = stepRows, -int(r.Lenenc())
				if cached := m.c.caps&wire.MariaDBCacheMetadata != 0; cached && r.Uint8() == 0 { // the client has the definitions
					m.rowsIn = 0
				}
			}
		}
	case payload[0] == wire.EOFByte && (n < 9 || m.c.has(mysql.CLIENT_DEPRECATE_EOF) && n < wire.MaxPayload):
		m.endOfRows(payload)
	case m.step == stepRows:
		m.rowsIn++
	}
	return nil, 0
}

// brokenOff returns why a load was broken off that the server now answers, nil when it was not.
func (m *replies) brokenOff() *mysql.MyError {
	if m.cur.job == nil || m.cur.job.load == nil {
		return nil
	}
	return m.cur.job.load.brokenOff()
}

// guarded returns the INSERT ... SELECT that an ERR says found more rows than
// there are ids, nil for any other ERR.
func (m *replies) guarded(payload []byte) *expect {
	if m.cur.job == nil || wire.ErrCode(payload) != mysql.ER_DATA_OUT_OF_RANGE || !rewriter.Guarded(payload) {
		return nil
	}
	if e := m.cur.job.expected(m.result); e != nil && e.selected {
		return e
	}
	return nil
}

// denied adds to the server's refusal of a column why that column is written to:
// the statement that the client sent may not name it.
func (m *replies) denied(payload []byte, n int) (patched []byte, used int) {
	if m.cur.job == nil || len(payload) < n || wire.ErrCode(payload) != mysql.ER_COLUMNACCESS_DENIED_ERROR {
		return nil, 0
	}
	e := m.cur.job.expected(m.result)
	if e == nil || e.generated == 0 && e.others == nil {
		return nil, 0
	}
	return append(append(patched, payload...), deniedNote(e.table)...), n
}

// endOfRows handles an EOF, or the OK in its place, behind definitions or
// rows.
func (m *replies) endOfRows(payload []byte) {
	status, ok := wire.ParseEOF(payload)
	if !ok {
		m.ending = true
		return
	}
	if m.step == stepDefs && status&mysql.SERVER_STATUS_CURSOR_EXISTS == 0 {
		m.step = stepRows
		m.more = 0
		if status&mysql.SERVER_PS_OUT_PARAMS != 0 {
			m.more = status & mysql.SERVER_MORE_RESULTS_EXISTS
		}
		if m.cur.more { // a server says so behind the definitions, too
			wire.SetMoreResults(payload)
		}
		return
	}
	if m.step == stepRows {
		status |= m.more
	}
	m.more = 0
	m.end.okSeen, m.end.status, m.end.hasStatus = false, status, true
	m.returned(m.result)
	m.nextResult(status)
	m.announce(payload)
}

func (m *replies) nextResult(status uint16) {
	m.step = stepFirst
	m.result++
	m.ending = status&mysql.SERVER_MORE_RESULTS_EXISTS == 0
}

// resultOK handles an OK packet that is a result, and compares its insert id
// with what a native column would have shown.
func (m *replies) resultOK(payload []byte, n int) (patched []byte, used int) {
	ok, valid := m.ok(payload, n)
	if !valid {
		m.ending = true
		return nil, 0
	}
	result := m.result
	m.nextResult(ok.Status)
	m.announce(payload)
	if m.cur.job == nil {
		return nil, 0
	}
	e := m.cur.job.expected(result)
	if e == nil {
		return nil, 0
	}
	was := e.succeeded(&ok, payload)
	if was.ask != askNothing {
		m.cur.job.withheld = &withheld{expect: e, ask: was.ask, warnings: ok.Warnings > 0}
		m.hold = true
		m.c.setAsking(m.cur.job.withheld)
		return nil, 0
	}
	m.c.settle(was)
	if was.insertID != ok.InsertID {
		return ok.AppendPrefixWithInsertID(nil, payload, was.insertID)
	}
	return nil, 0
}

// announce says in the packet that ends a piece of a text that results of the
// next piece follow.
func (m *replies) announce(payload []byte) {
	if m.cur.more && m.ending {
		wire.SetMoreResults(payload)
	}
}

// returned handles the end of rows that an INSERT ... RETURNING sent.
func (m *replies) returned(result int) {
	if m.cur.job == nil {
		return
	}
	e := m.cur.job.expected(result)
	if e == nil || !e.returning {
		return
	}
	n := m.rowsIn
	if u := m.cur.job.units; u != nil && u.result == result {
		n = u.stored()
	}
	was := e.returned(n)
	if was.ask != askNothing {
		m.cur.job.withheld = &withheld{expect: e, ask: was.ask, warnings: true}
		return
	}
	m.c.settle(was)
}

// expected returns what is expected of a result of the command, nil when
// nothing is.
func (j *job) expected(result int) *expect {
	i, found := slices.BinarySearchFunc(j.inserts, result, func(e expect, result int) int { return e.result - result })
	if !found {
		return nil
	}
	if j.load != nil {
		j.load.tell(&j.inserts[i])
	}
	return &j.inserts[i]
}
