package protocol

import (
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/authbridge"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
)

// step is where in a reply the next packet stands.
type step uint8

const (
	stepFirst step = iota // the first packet of a result
	stepDefs              // column definitions that an EOF ends (no CLIENT_DEPRECATE_EOF)
	stepRows              // rows, and with CLIENT_DEPRECATE_EOF the definitions too
	stepCount             // a known number of packets: the definitions of a PREPARE reply
)

// Event is what a driver must know of the bytes it relayed.
type Event uint8

const (
	EventLoggedIn Event = 1 << iota // authentication succeeded
	EventDenied                     // the server refused a login
	EventRefused                    // the client was refused in the middle of a login
)

// ReplyParser is the server-to-client machine: it finds the packets in what the
// server sends, follows the reply to each pending command to its end, takes
// out what the proxy asked for itself, and corrects sequence numbers and
// insert ids. It does no I/O.
//
// Bytes may be passed on before their packet is complete; only the first
// wire.OKPrefix bytes of a packet that decides something are waited for.
type ReplyParser struct {
	Conn   *Conn
	cur    Pending
	end    outcome
	result int   // number of the result within the reply
	count  int32 // packets left in stepCount
	nth    int32 // those seen of them
	rowsIn int   // rows of the result so far, less its column definitions; counted only where a job wants it
	Left   int   // bytes left of the current frame

	out  []byte // what is given out when it is not simply the input
	from int    // start of the input not given out yet

	more    uint16 // SERVER_MORE_RESULTS_EXISTS where only the EOF behind the definitions says so: OUT parameters
	step    step
	fate    fate // of the packet
	events  Event
	active  bool // a reply has begun: cur is valid
	params  bool // definitions of parameters are among those of stepCount
	cont    bool // the next frame continues the packet
	ending  bool // the packet ends the reply
	Forward bool // any byte of this reply was given to the client

	Refusal *mysql.MyError // of EventRefused
}

// Feed takes bytes that the server sent. out is what the client gets, valid
// until the next call: a part of in, or a copy where something was changed.
// The bytes behind in[:used] must be given again in front of what comes next.
func (m *ReplyParser) Feed(in []byte) (out []byte, used int, ev Event) {
	m.out, m.from, m.events = m.out[:0], 0, 0
	i := 0
	for i < len(in) {
		if m.Left > 0 {
			i = m.body(in, i)
			continue
		}
		if m.step == stepRows && m.active && !m.cont && m.cur.Handler == nil {
			i = m.rows(in, i)
			if m.Left > 0 {
				continue
			}
		}
		next, ok := m.packet(in, i)
		if !ok {
			break
		}
		i = next
	}
	if len(m.out) == 0 {
		out = in[m.from:i]
	} else {
		m.out = append(m.out, in[m.from:i]...)
		out = m.out
	}
	return out, i, m.events
}

// rows skips whole rows: the one loop that large results spend their time in.
func (m *ReplyParser) rows(in []byte, i int) int {
	for len(in)-i > wire.HeaderLen {
		n := wire.PayloadLen(in[i:])
		if in[i+wire.HeaderLen] >= wire.EOFByte || n == 0 || n == wire.MaxPayload {
			return i
		}
		in[i+3] -= m.cur.SeqDelta
		m.Forward = true
		i += wire.HeaderLen + n
		if i > len(in) {
			m.Left = i - len(in)
			return len(in)
		}
	}
	return i
}

// body passes over the bytes of a packet whose fate is decided.
func (m *ReplyParser) body(in []byte, i int) int {
	k := min(m.Left, len(in)-i)
	switch m.fate {
	case fateHold:
		m.cur.Handler.take(in[i : i+k])
		m.drop(in, i, k)
	case fateOmit:
		m.drop(in, i, k)
	default:
		m.Forward = m.active
	}
	i += k
	m.Left -= k
	if m.Left > 0 || m.cont {
		return i
	}
	if m.fate == fateOmit {
		m.cur.SeqDelta++
	}
	m.fate = fatePass
	if m.ending {
		m.finish(in, i)
	}
	return i
}

// drop takes k bytes at i out of what is given out.
func (m *ReplyParser) drop(in []byte, i, k int) {
	m.out = append(m.out, in[m.from:i]...)
	m.from = i + k
}

// finish ends the current reply at i and appends the local replies that are
// due behind it.
func (m *ReplyParser) finish(in []byte, i int) {
	m.end.result = m.result
	due := m.Conn.finish(&m.cur, m.end)
	if m.cur.Handler != nil {
		m.cur.Handler.ended(m.Conn)
	}
	if len(due) > 0 {
		m.out = append(append(m.out, in[m.from:i]...), due...)
		m.from = i
	}
	m.cur, m.end, m.active, m.ending, m.Forward = Pending{}, outcome{}, false, false, false
	m.step, m.result = stepFirst, 0
}

// packet begins the frame at i. ok is false when more of it is needed.
func (m *ReplyParser) packet(in []byte, i int) (next int, ok bool) {
	if len(in)-i < wire.HeaderLen {
		return i, false
	}
	n := wire.PayloadLen(in[i:])
	if m.cont {
		in[i+3] -= m.cur.SeqDelta
		m.end.seq = in[i+3]
		m.cont = n == wire.MaxPayload
		m.Left = wire.HeaderLen + n
		return i, true
	}
	if !m.active {
		m.cur, m.active = m.Conn.first()
	}
	payload := in[i+wire.HeaderLen:]
	want := min(n, wire.OKPrefix)
	if n > 0 && len(payload) > 0 && !m.decides(payload[0], n) {
		want = 1
	}
	switch {
	case m.bridged():
		want = min(n, authbridge.MaxPacket)
	case want > 1 && m.cur.Handler != nil:
		want = min(n, m.cur.Handler.wants())
	}
	if len(payload) < want {
		return i, false
	}
	payload = payload[:min(n, len(payload))]
	if m.cur.Handler != nil {
		m.fate = m.cur.Handler.begins(m, in[i+3])
	}
	if m.bridged() {
		m.cur.SeqDelta = -m.Conn.Login.Shift()
	}
	in[i+3] -= m.cur.SeqDelta
	m.end.seq = in[i+3]
	m.Left = wire.HeaderLen + n
	m.cont = n == wire.MaxPayload
	v := m.judge(payload, n)
	m.fate = max(m.fate, v.fate)
	if v.failed != 0 {
		m.end.failed, m.end.Code = true, v.failed
	}
	if m.cur.Handler != nil {
		if rows := m.cur.Handler.released(); rows != nil {
			m.out = append(append(m.out, in[m.from:i]...), rows...)
			m.from = i
		}
	}
	if v.patched != nil {
		m.replace(in, i, v)
		return i + wire.HeaderLen + v.used, true
	}
	return i, true
}

// replace gives out the packet at i as the ruling says.
func (m *ReplyParser) replace(in []byte, i int, v ruling) {
	n := wire.PayloadLen(in[i:]) - v.used
	m.out = append(m.out, in[m.from:i]...)
	m.out = wire.AppendHeader(m.out, len(v.patched)+n, in[i+3])
	m.out = append(m.out, v.patched...)
	m.from = i + wire.HeaderLen + v.used
	m.Left = n
	m.Forward = true
	if n == 0 && m.ending {
		m.finish(in, m.from)
	}
}

// first reports whether the packet that is looked at is the first of a result.
func (m *ReplyParser) first() bool { return m.step == stepFirst }

// rowCount returns how many rows of the result have passed; below 1 while they are its definitions.
func (m *ReplyParser) rowCount() int { return m.rowsIn }

// definition returns the number of the definition that is looked at in the reply to a PREPARE, and
// whether those of parameters are among them.
func (m *ReplyParser) definition() (nth int, params bool) { return int(m.nth), m.params }

// memory is what the session remembers beyond the reply.
func (m *ReplyParser) memory() memory { return m.Conn }

// precedes reports whether another piece of the same text follows the command.
func (m *ReplyParser) precedes() bool { return m.cur.More }

// takeOff sets what is taken off the sequence numbers from the packet that is looked at on.
func (m *ReplyParser) takeOff(delta byte) { m.cur.SeqDelta = delta }

// decides reports whether a packet that starts with b may be one whose
// contents matter.
func (m *ReplyParser) decides(b byte, n int) bool {
	if !m.active {
		return false
	}
	switch {
	case m.cur.Reply == replyRows, m.step == stepDefs, m.step == stepRows:
		return b >= wire.EOFByte && n < wire.MaxPayload
	case m.step == stepCount:
		return b == wire.ErrByte || m.cur.Handler != nil
	}
	return true
}

// judge decides what the packet is, and what becomes of it. payload holds its first
// bytes, as many as decide.
func (m *ReplyParser) judge(payload []byte, n int) (v ruling) {
	if !m.active {
		m.unasked(payload)
		return v
	}
	if n == 0 && !m.bridged() {
		m.ending = m.cur.Reply == ReplyOne || m.cur.Reply == replyRaw
		return v
	}
	switch m.cur.Reply {
	case ReplyResult:
		return m.judgeResult(payload, n)
	case ReplyPrepare:
		return m.judgePrepare(payload, n)
	case ReplyAuth:
		return m.judgeAuth(payload, n)
	case replyRows:
		m.judgeRows(payload, n)
	case replyOpaque:
		m.judgeOpaque(payload)
	case ReplyOne:
		m.judgeOne(payload, n)
	case replyRaw:
		m.ending = true
	case replyNone:
	}
	return v
}

// judgeOne handles a reply of one packet.
func (m *ReplyParser) judgeOne(payload []byte, n int) {
	m.ending = true
	switch payload[0] {
	case wire.ErrByte:
		m.fail(payload)
	case wire.OKByte:
		m.ok(payload, n)
	}
}

// judgeOpaque handles a packet of a stream without an end. One that begins with an ERR was refused:
// the session goes on.
func (m *ReplyParser) judgeOpaque(payload []byte) {
	if payload[0] == wire.ErrByte && wire.ErrCode(payload) != wire.ProgressCode && !m.Forward {
		m.fail(payload)
		m.Conn.SetPhase(PhaseCommands)
	}
}

func (m *ReplyParser) judgeRows(payload []byte, n int) {
	switch {
	case payload[0] == wire.ErrByte:
		m.fail(payload)
	case payload[0] == wire.EOFByte && n < wire.MaxPayload && (n < 9 || m.Conn.Has(mysql.CLIENT_DEPRECATE_EOF)):
		m.ending = true
		if status, ok := wire.ParseEOF(payload); ok {
			m.end.status, m.end.hasStatus = status, true
		}
	}
}

func (m *ReplyParser) judgePrepare(payload []byte, n int) (v ruling) {
	w := m.cur.Handler
	switch {
	case m.step == stepCount && payload[0] != wire.ErrByte:
		if w != nil {
			v.fate = w.definition(m, payload)
		}
		m.nth++
		m.count--
		m.ending = m.count == 0
	case payload[0] == wire.ErrByte:
		m.fail(payload)
		m.Conn.notePrepared(0, m.cur.ours())
		if w != nil {
			w.failed(m, m.result, payload, n)
		}
	case n < wire.PreparedLen:
		m.ending = true
	default:
		p, _ := wire.ParsePrepared(payload)
		m.Conn.notePrepared(p.ID, m.cur.ours())
		if w != nil {
			w.prepared(m, payload, p)
		}
		m.nth, m.params = 0, p.Definitions
		m.count = int32(m.definitions(p.Params, p.Definitions) + m.definitions(p.Columns, p.Definitions))
		m.step = stepCount
		m.ending = m.count == 0
	}
	return v
}

// definitions returns the number of packets that n column definitions take.
// Their EOF comes also where resultset_metadata=NONE left them out.
func (m *ReplyParser) definitions(n uint16, sent bool) (packets int) {
	if sent {
		packets = int(n)
	}
	if n > 0 && !m.Conn.Has(mysql.CLIENT_DEPRECATE_EOF) {
		packets++
	}
	return packets
}

// judgeAuth ends an authentication exchange at OK or ERR. Any other byte is a
// plugin's own affair; MariaDB does not escape a leading 0x00 of plugin data,
// but an OK packet takes at least 7 bytes.
func (m *ReplyParser) judgeAuth(payload []byte, n int) (v ruling) {
	switch {
	case n > 0 && payload[0] == wire.ErrByte:
		m.fail(payload)
		m.events |= EventDenied
	case n >= 7 && payload[0] == wire.OKByte && !(m.bridged() && m.Conn.Login.Due()):
		m.ok(payload, n)
		m.ending = true
		m.events |= EventLoggedIn
	case m.bridged():
		v = m.judgeBridged(payload)
	}
	if m.ending {
		m.Conn.SetPhase(PhaseCommands)
		if m.bridged() {
			m.Conn.Login.Over()
		}
	}
	return v
}

// bridged reports whether the packet is of an authentication between sides that differ.
func (m *ReplyParser) bridged() bool {
	return m.Conn.Login != nil && m.active && m.cur.Reply == ReplyAuth
}

func (m *ReplyParser) judgeBridged(payload []byte) (v ruling) {
	payload = payload[:min(len(payload), authbridge.MaxPacket)]
	switch m.Conn.Login.FromServer(payload) {
	case authbridge.Kept:
		v.fate = fateOmit
	case authbridge.Refused:
		v = m.refuseLogin(clienterr.Exposed(), len(payload))
	case authbridge.Untimely:
		v = m.refuseLogin(clienterr.Untimely(payload), len(payload))
	case authbridge.Passes:
	}
	return v
}

// unasked notes what a server says that nobody asked for. It may say so why it leaves.
func (m *ReplyParser) unasked(payload []byte) {
	if login := m.Conn.Login; login != nil && (len(payload) == 0 || payload[0] != wire.ErrByte) {
		login.Early()
	}
}

// refuseLogin ends a login with an error in place of a packet of the server.
func (m *ReplyParser) refuseLogin(e *mysql.MyError, used int) ruling {
	m.ending = true
	m.events |= EventRefused
	m.end.failed = true
	m.Refusal = e
	return ruling{patched: clienterr.Payload(e), used: used}
}

// fail handles an ERR packet, which ends any reply but for MariaDB's progress
// reports.
func (m *ReplyParser) fail(payload []byte) {
	code := wire.ErrCode(payload)
	if code == wire.ProgressCode {
		return
	}
	m.ending = true
	m.end.failed, m.end.Code = true, code
}

// ok reads an OK packet for what it says of the session.
func (m *ReplyParser) ok(payload []byte, n int) (wire.OK, bool) {
	caps := m.Conn.Caps
	if len(payload) < n { // the end of it has not arrived
		caps = 0
	}
	ok, valid := wire.ParseOK(payload, caps)
	if !valid {
		return ok, false
	}
	m.end.okSeen, m.end.insertID, m.end.affected = true, ok.InsertID, ok.AffectedRows
	m.end.status, m.end.hasStatus = ok.Status, true
	if ok.Status&mysql.SERVER_SESSION_STATE_CHANGED != 0 && m.Conn.Has(mysql.CLIENT_SESSION_TRACK) {
		m.Conn.track(ok.Track)
	}
	return ok, true
}

// learnHiddenLastID reads the answer to SELECT LAST_INSERT_ID().
func (c *Conn) learnHiddenLastID(packets []byte) {
	answer, err := wire.ReadResult(packets, c.Caps)
	if err != nil || len(answer.Rows) != 1 || len(answer.Rows[0]) != 1 {
		return
	}
	id, err := strconv.ParseUint(string(answer.Rows[0][0]), 10, 64)
	if err != nil {
		return
	}
	c.LearnLastID(id)
}
