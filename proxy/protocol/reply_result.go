package protocol

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

func (m *ReplyParser) judgeResult(payload []byte, n int) (v ruling) {
	w := m.cur.Handler
	switch {
	case payload[0] == wire.ErrByte:
		m.fail(payload)
		if w != nil {
			return w.failed(m, m.result, payload, n)
		}
	case m.step == stepFirst:
		switch payload[0] {
		case wire.OKByte:
			return m.resultOK(payload, n)
		case wire.InfileByte:
			m.Conn.Delta.Store(uint32(m.cur.SeqDelta))
			if w != nil {
				w.infile()
			}
			m.askFile()
		default:
			m.beginRows(payload)
		}
	case payload[0] == wire.EOFByte && (n < 9 || m.Conn.Has(mysql.CLIENT_DEPRECATE_EOF) && n < wire.MaxPayload):
		v.fate = m.endOfRows(payload)
	case m.step == stepRows:
		m.rowsIn++
		if w != nil {
			v.fate = w.row(m.result, m.rowsIn, payload)
		}
	}
	return v
}

// beginRows handles the packet in front of definitions: the number of columns.
func (m *ReplyParser) beginRows(payload []byte) {
	m.step, m.rowsIn = stepDefs, 0
	if own := m.cur.shows; own != nil {
		r := wire.NewReader(payload)
		if own.shows(uint32(r.Lenenc()), m.cur.reshaped) && m.cur.renewed {
			m.cur.status = mysql.SERVER_STATUS_METADATA_CHANGED
		}
	}
	if !m.Conn.Has(mysql.CLIENT_DEPRECATE_EOF) {
		return
	}
	r := wire.NewReader(payload)
	m.step, m.rowsIn = stepRows, -int(r.Lenenc())
	if cached := m.Conn.Caps&wire.MariaDBCacheMetadata != 0; cached && r.Uint8() == 0 { // the client has the definitions
		m.rowsIn = 0
	}
}

// endOfRows handles an EOF, or the OK in its place, behind definitions or
// rows.
func (m *ReplyParser) endOfRows(payload []byte) (f fate) {
	status, ok := wire.ParseEOF(payload)
	if !ok {
		m.ending = true
		return fatePass
	}
	if m.step == stepDefs && status&mysql.SERVER_STATUS_CURSOR_EXISTS == 0 {
		m.step = stepRows
		m.more = 0
		if status&mysql.SERVER_PS_OUT_PARAMS != 0 {
			m.more = status & mysql.SERVER_MORE_RESULTS_EXISTS
		}
		m.addStatus(payload, m.cur.More) // a server says so behind the definitions, too
		return fatePass
	}
	if m.step == stepRows {
		status |= m.more
	}
	m.more = 0
	m.end.okSeen, m.end.status, m.end.hasStatus = false, status, true
	if m.cur.Handler != nil {
		f = m.cur.Handler.rowsEnded(m, m.result)
	}
	m.nextResult(status)
	m.addStatus(payload, m.cur.More && m.ending)
	return f
}

func (m *ReplyParser) nextResult(status uint16) {
	m.step = stepFirst
	m.result++
	m.ending = status&mysql.SERVER_MORE_RESULTS_EXISTS == 0
}

// resultOK handles an OK packet that is a result.
func (m *ReplyParser) resultOK(payload []byte, n int) (v ruling) {
	ok, valid := m.ok(payload, n)
	if !valid {
		m.ending = true
		return v
	}
	result := m.result
	m.nextResult(ok.Status)
	m.addStatus(payload, m.cur.More && m.ending)
	if m.cur.Handler != nil {
		return m.cur.Handler.ok(m, result, ok, payload)
	}
	return v
}

// addStatus sets flags in an OK or EOF packet that the server has no reason to set. more: it
// ends a piece of a text, and results of the next piece follow.
func (m *ReplyParser) addStatus(payload []byte, more bool) {
	flags := m.cur.status
	if more {
		flags |= mysql.SERVER_MORE_RESULTS_EXISTS
	}
	if flags != 0 {
		wire.AddStatus(payload, flags)
	}
}

// askFile notes that the server asks for a file, which wakes who waits for its reply.
func (m *ReplyParser) askFile() {
	c := m.Conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.SetPhase(PhaseInfile)
	c.settled.wake()
}
