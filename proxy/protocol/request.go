package protocol

import (
	"encoding/binary"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/authbridge"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Action is what a driver must do with bytes that the client sent.
type Action uint8

const (
	ActMore      Action = iota // nothing can be said before more bytes stand behind these
	ActForward                 // send the first n bytes to the server
	ActStatement               // the first n bytes are one whole command to be decided on
	actDrop                    // throw the first n bytes away
	ActTooLarge                // the same, and they end a command that was larger than may be held
	ActNoRoom                  // the same, for a command that NoRoom was said of
	ActInsertID                // tell the server what TellInsertID returns, and ask again
	ActReady                   // make the statement in checking ready for long data, and ask again
	ActPassword                // the first n bytes are a packet for Conn.Login, or the header of one that is too large
)

// RequestParser is the client-to-server machine: it finds the commands in what the
// client sends, records each as pending, and stops at those that must be held:
// an INSERT into a table with a rule, and what may hide one. It does no I/O.
type RequestParser struct {
	Conn     *Conn
	Rules    func() RuleBook
	Limit    int             // most bytes of a command to hold
	Commands *stats.Commands // counts those that are forwarded; nil: nobody asks

	Left     int   // bytes left of the current frame
	enough   int   // bytes of the first command to have, or all of it, before it is judged again
	Last     *Stmt // the statement that the client prepared last, if anything is known of it
	Checking *Stmt
	head     *rewriter.HeadReading // of the command that is judged, if it has SQL text; nil: there is none
	Seq      byte                  // sequence number of the last frame seen
	cont     bool                  // the next frame continues the packet
	dropping bool
	silent   bool // nobody is told of what is dropped
	short    bool // no more of the first command can be held
	unseen   bool // the command may write to tables with rules out of sight
}

// verdict is what is to happen to a command.
type verdict uint8

const (
	forwardIt verdict = iota
	holdIt
	waitForIt // there is too little of it to tell
	dropIt    // it is kept here
	checkIt   // the statement that it is of must be ready first
	tellIt    // the server must be told first what SET insert_id asks for
)

// heads are those that no session needs now: one is kept from when a command is found to when it is
// forwarded or held.
var heads = sync.Pool{New: func() any { return new(rewriter.HeadReading) }}

// readHead reads the head of a command's text.
func (m *RequestParser) readHead(text []byte, mode rewriter.Mode) (h rewriter.Head, more bool) {
	if m.head == nil {
		m.head = heads.Get().(*rewriter.HeadReading)
	}
	return m.head.Read(text, mode)
}

// forgetHead must be called before the memory of the text gets another one.
func (m *RequestParser) forgetHead() {
	if m.head != nil {
		m.head.Forget()
		heads.Put(m.head)
		m.head = nil
	}
}

// Next looks at the unconsumed bytes the client sent, from the start of in,
// and says what to do with the first n of them.
func (m *RequestParser) Next(in []byte) (n int, act Action) {
	i := 0
	for i < len(in) {
		// 1. The rest of a frame that was judged.
		if m.Left > 0 {
			k := min(m.Left, len(in)-i)
			i, m.Left = i+k, m.Left-k
			if m.dropping && m.Left == 0 && !m.cont {
				return i, m.dropped()
			}
			continue
		}
		// 2. A frame that is no command, or not the first one of it.
		rest := in[i:]
		if len(rest) < wire.HeaderLen {
			break
		}
		size := wire.PayloadLen(rest)
		if m.password(rest) {
			if i > 0 {
				break
			}
			return m.wholePassword(rest, size)
		}
		if infile := m.Conn.Phase() == PhaseInfile; m.cont || m.data(rest, size) {
			shift := m.shift()
			m.frame(rest, size)
			rest[3] -= shift
			if infile {
				rest[3] += m.Conn.FileDelta()
			}
			continue
		}
		// 3. A command. What is not forwarded begins with it: what is in front goes first.
		if size > 0 && len(rest) == wire.HeaderLen {
			break
		}
		v := m.command(rest, size)
		if v == forwardIt {
			m.forgetHead()
			m.short = false
			m.count(rest[wire.HeaderLen:], size)
			m.frame(rest, size)
			continue
		}
		if v == waitForIt || i > 0 {
			break
		}
		if v != dropIt {
			return m.stop(v, in)
		}
		m.keepLong(rest[wire.HeaderLen:min(wire.HeaderLen+size, len(rest))], size)
		m.dropping, m.silent = true, true
		m.frame(rest, size)
	}
	switch {
	case i == 0:
		return 0, ActMore
	case m.dropping:
		return i, actDrop
	}
	return i, ActForward
}

// dropped ends a command that was thrown away.
func (m *RequestParser) dropped() Action {
	silent, short := m.silent, m.short
	m.dropping, m.silent, m.short = false, false, false
	switch {
	case silent:
		return actDrop
	case short:
		return ActNoRoom
	}
	return ActTooLarge
}

// stop answers for a command in front of which the driver has something to do.
func (m *RequestParser) stop(v verdict, in []byte) (int, Action) {
	switch v {
	case checkIt:
		return 0, ActReady
	case tellIt:
		return 0, ActInsertID
	}
	return m.hold(in)
}

// count counts a command that is forwarded.
func (m *RequestParser) count(payload []byte, size int) {
	form, kind := stats.Other, stats.Forwarded
	if size > 0 {
		form = stats.FormOf(payload[0])
	}
	if m.unseen {
		kind, m.unseen = stats.Unseen, false
	}
	if m.Commands != nil {
		m.Commands.Add(kind, form)
	}
}

func (m *RequestParser) frame(rest []byte, size int) {
	m.Left = wire.HeaderLen + size
	m.cont = size == wire.MaxPayload
	m.Seq = rest[3]
}

// data reports whether the frame is not a command: data of a LOCAL INFILE, a
// part of an authentication exchange, or of an opaque stream.
func (m *RequestParser) data(rest []byte, size int) bool {
	switch m.Conn.Phase() {
	case PhaseInfile:
		if size == 0 {
			m.Conn.SetPhase(PhaseCommands)
		}
		return true
	case PhaseOpaque:
		return true
	}
	return rest[3] != 0
}

// password reports whether the frame has what the login needs read.
func (m *RequestParser) password(rest []byte) bool {
	login := m.Conn.Login
	if login == nil || rest[3] == 0 || m.cont {
		return false
	}
	phase := m.Conn.Phase() // of commands: the server has ended the login meanwhile
	return (phase == PhaseAuth || phase == PhaseCommands) && login.Expects()
}

func (m *RequestParser) wholePassword(rest []byte, size int) (int, Action) {
	m.Seq = rest[3]
	switch {
	case size > authbridge.MaxPacket:
		return wire.HeaderLen, ActPassword
	case len(rest) < wire.HeaderLen+size:
		return 0, ActMore
	}
	return wire.HeaderLen + size, ActPassword
}

// shift is what sequence numbers of a login are ahead of those of the server.
func (m *RequestParser) shift() byte {
	if m.Conn.Login == nil || m.cont || m.Conn.Phase() != PhaseAuth {
		return 0
	}
	return m.Conn.Login.Shift()
}

// hold answers for a command that must be whole before it is decided on.
func (m *RequestParser) hold(in []byte) (int, Action) {
	size, payload, whole := wire.Packet(in)
	if !whole { // else what stands behind it is another command
		payload += announced(in[size:])
	}
	if !whole || payload > m.most() {
		m.forgetHead() // else the text stays in memory, which may be large, until the next command
	}
	if payload > m.most() {
		m.dropping = true
		m.frame(in, wire.PayloadLen(in))
		return m.Next(in)
	}
	if !whole {
		m.wait(len(in))
		return 0, ActMore
	}
	m.Seq = in[m.lastFrame(in, size)+3]
	return size, ActStatement
}

// announced returns the size that the frame header in front of rest gives.
func announced(rest []byte) int {
	if len(rest) < wire.HeaderLen {
		return 0
	}
	return wire.PayloadLen(rest)
}

// lastFrame returns where the last frame of the packet of size bytes starts.
func (m *RequestParser) lastFrame(in []byte, size int) int {
	i := 0
	for {
		n := wire.HeaderLen + wire.PayloadLen(in[i:])
		if i+n >= size {
			return i
		}
		i += n
	}
}

// command decides on the command whose first frame is at the start of rest,
// and records it as pending when it is to be forwarded.
func (m *RequestParser) command(rest []byte, size int) verdict {
	payload := rest[wire.HeaderLen:]
	whole := len(payload) >= size && size < wire.MaxPayload
	payload = payload[:min(size, len(payload))]
	if size == 0 {
		m.Conn.Send(Pending{Reply: ReplyOne})
		return forwardIt
	}
	if len(rest) < m.enough {
		if _, _, ok := wire.Packet(rest); !ok {
			return waitForIt
		}
	}
	m.enough = 0
	m.forgetHead()
	switch payload[0] {
	case mysql.COM_QUERY:
		return m.query(payload, size, whole)
	case mysql.COM_STMT_PREPARE:
		return m.prepare(payload[1:], size-1, whole)
	case mysql.COM_STMT_EXECUTE, ComBulkExecute:
		if len(payload) < 5 && !whole {
			return waitForIt
		}
		return m.execute(payload, size, whole)
	case mysql.COM_STMT_SEND_LONG_DATA:
		return m.longData(payload, size, whole)
	}
	if !whole && (size <= maxNote || payload[0] == mysql.COM_CHANGE_USER && len(payload) < maxNote) {
		return waitForIt
	}
	return m.other(payload)
}

// undecided is the verdict on a command of which have bytes of size in its
// first frame say too little. A comment may go on for longer than what may be
// held; the command is held then, and so refused.
func (m *RequestParser) undecided(have, size int) verdict {
	if have < size && have < m.most() {
		m.wait(have)
		return waitForIt
	}
	return holdIt
}

// wait sees to it that a command of which have bytes are there is not judged
// again with each read, which would take quadratic time.
func (m *RequestParser) wait(have int) { m.enough = min(2*have, m.most()) }

// NoRoom says, after ActMore, that there is no memory for more of the command: Next answers for what
// is there, and drops the command where it would go on to wait. It reports false when that was said
// before and did not help.
func (m *RequestParser) NoRoom() bool {
	if m.short {
		m.short = false
		return false
	}
	m.short, m.enough = true, 0
	return true
}

// most returns the size up to which a command may be held.
func (m *RequestParser) most() int {
	if m.short {
		return 0
	}
	if m.Conn.Phase() == PhaseAuth { // nobody has logged in yet
		return min(m.Limit, MaxHandshake)
	}
	return m.Limit
}

// maxNote is the size up to which a command is waited for, to be read whole, that has no SQL text, or
// sets something, or may use what SET insert_id asks for. Those that say anything that is tracked are smaller.
const maxNote = 4096

// other handles the commands without SQL text.
func (m *RequestParser) other(payload []byte) verdict {
	p := Pending{Reply: ReplyOf(payload[0])}
	if payload[0] != mysql.COM_PING && payload[0] != mysql.COM_STATISTICS {
		m.Conn.KeepWarnings(nil)
	}
	switch payload[0] {
	case mysql.COM_QUIT:
		m.Conn.quit()
	case mysql.COM_INIT_DB:
		p.choose(payload[1:])
	case mysql.COM_CHANGE_USER:
		m.changeUser(payload[1:])
		m.Conn.Update(func(s *Vars) { s.InsertID = 0 })
		p.Touch = TouchSettings | TouchSchema
		m.Last, m.Conn.Prepared.ByName, m.Conn.Prepared.Passed = nil, nil, passedNames{}
	case mysql.COM_RESET_CONNECTION:
		m.Conn.Update(func(s *Vars) { s.InsertID = 0 })
		p.Touch = touchReset | TouchSettings
		m.Last, m.Conn.Prepared.ByName, m.Conn.Prepared.Passed = nil, nil, passedNames{}
	case mysql.COM_STMT_RESET, mysql.COM_STMT_CLOSE:
		m.end(payload)
	case mysql.COM_STMT_FETCH:
		m.fetch(payload)
	case mysql.COM_DROP_DB, mysql.COM_CREATE_DB:
		p.Touch = TouchTables
	case mysql.COM_SET_OPTION:
		if len(payload) >= 3 {
			p.After = &After{option: optionOff}
			if binary.LittleEndian.Uint16(payload[1:]) == 0 {
				p.After.option = optionOn
			}
		}
	}
	if p.Reply == replyOpaque {
		m.Conn.SetPhase(PhaseOpaque)
	}
	if p.Reply != replyNone {
		m.Conn.Send(p)
	}
	return forwardIt
}

// changeUser begins a login in the middle of the session.
func (m *RequestParser) changeUser(payload []byte) {
	c := wire.ParseChangeUser(payload, m.Conn.Caps)
	m.Conn.SetUser(c.User)
	m.Conn.SetPhase(PhaseAuth)
	if login := m.Conn.Login; login != nil {
		login.Again(c.Plugin)
		if login.Blanks(c.Plugin) {
			c.Blank()
		}
	}
}

// RuleBook finds the rules of a table.
type RuleBook struct {
	*rule.List
	// Fold: names compare without regard to case, as lower_case_table_names
	// says, or as is safe before the server was asked.
	Fold bool
}
