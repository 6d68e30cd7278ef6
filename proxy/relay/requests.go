package relay

import (
	"bytes"
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

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
	ActReady                   // make the statement in checking ready for long data, and ask again
)

// RuleBook finds the rules of a table.
type RuleBook struct {
	*rule.List
	// Fold: names compare without regard to case, as lower_case_table_names
	// says, or as is safe before the server was asked.
	Fold bool
}

// Requests is the client-to-server machine: it finds the commands in what the
// client sends, records each as pending, and stops at those that must be held:
// an INSERT into a table with a rule, and what may hide one. It does no I/O.
type Requests struct {
	Conversation *Conversation
	Rules        func() RuleBook
	Limit        int             // most bytes of a command to hold
	Commands     *stats.Commands // counts those that are forwarded; nil: nobody asks

	Left     int  // bytes left of the current frame
	cont     bool // the next frame continues the packet
	dropping bool
	silent   bool      // nobody is told of what is dropped
	enough   int       // bytes of the first command to have, or all of it, before it is judged again
	Seq      byte      // sequence number of the last frame seen
	Last     *Prepared // the statement that the client prepared last, if anything is known of it
	Checking *Prepared
	Head     rewriter.HeadReading // of the command that was judged last, if it has SQL text
	unseen   bool                 // the command may write to tables with rules out of sight
}

// verdict is what is to happen to a command.
type verdict uint8

const (
	forwardIt verdict = iota
	holdIt
	waitForIt // there is too little of it to tell
	dropIt    // it is kept here
	checkIt   // the statement that it is of must be ready first
)

// Next looks at the unconsumed bytes the client sent, from the start of in,
// and says what to do with the first n of them.
func (m *Requests) Next(in []byte) (n int, act Action) {
	i := 0
	for i < len(in) {
		if m.Left > 0 {
			k := min(m.Left, len(in)-i)
			i, m.Left = i+k, m.Left-k
			if m.Left == 0 && !m.cont && m.dropping {
				m.dropping = false
				if m.silent {
					m.silent = false
					return i, actDrop
				}
				return i, ActTooLarge
			}
			continue
		}
		rest := in[i:]
		if len(rest) < wire.HeaderLen {
			break
		}
		size := wire.PayloadLen(rest)
		if infile := m.Conversation.Phase() == PhaseInfile; m.cont || m.data(rest, size) {
			m.frame(rest, size)
			if infile {
				rest[3] += m.Conversation.FileDelta()
			}
			continue
		}
		if size > 0 && len(rest) == wire.HeaderLen {
			break
		}
		v := m.command(rest, size)
		if v == forwardIt {
			m.count(rest[wire.HeaderLen:], size)
			m.frame(rest, size)
			continue
		}
		if v == waitForIt || i > 0 {
			break
		}
		if v == checkIt {
			return 0, ActReady
		}
		if v == dropIt {
			m.keepLong(rest[wire.HeaderLen:min(wire.HeaderLen+size, len(rest))], size)
			m.dropping, m.silent = true, true
			m.frame(rest, size)
			continue
		}
		return m.hold(in)
	}
	switch {
	case i == 0:
		return 0, ActMore
	case m.dropping:
		return i, actDrop
	}
	return i, ActForward
}

// count counts a command that is forwarded.
func (m *Requests) count(payload []byte, size int) {
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

func (m *Requests) frame(rest []byte, size int) {
	m.Left = wire.HeaderLen + size
	m.cont = size == wire.MaxPayload
	m.Seq = rest[3]
}

// data reports whether the frame is not a command: data of a LOCAL INFILE, a
// part of an authentication exchange, or of an opaque stream.
func (m *Requests) data(rest []byte, size int) bool {
	switch m.Conversation.Phase() {
	case PhaseInfile:
		if size == 0 {
			m.Conversation.SetPhase(PhaseCommands)
		}
		return true
	case PhaseOpaque:
		return true
	}
	return rest[3] != 0
}

// hold answers for a command that must be whole before it is decided on.
func (m *Requests) hold(in []byte) (int, Action) {
	size, payload, whole := wire.Packet(in)
	if !whole { // else what stands behind it is another command
		payload += announced(in[size:])
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
func (m *Requests) lastFrame(in []byte, size int) int {
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
func (m *Requests) command(rest []byte, size int) verdict {
	payload := rest[wire.HeaderLen:]
	whole := len(payload) >= size && size < wire.MaxPayload
	payload = payload[:min(size, len(payload))]
	if size == 0 {
		m.Conversation.Send(Pending{Reply: ReplyOne})
		return forwardIt
	}
	if len(rest) < m.enough {
		if _, _, ok := wire.Packet(rest); !ok {
			return waitForIt
		}
	}
	m.enough = 0
	m.Head.Forget()
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
	if !whole && size <= maxNote {
		return waitForIt
	}
	return m.other(payload)
}

// undecided is the verdict on a command of which have bytes of size in its
// first frame say too little. A comment may go on for longer than what may be
// held; the command is held then, and so refused.
func (m *Requests) undecided(have, size int) verdict {
	if have < size && have < m.most() {
		m.wait(have)
		return waitForIt
	}
	return holdIt
}

// wait sees to it that a command of which have bytes are there is not judged
// again with each read, which would take quadratic time.
func (m *Requests) wait(have int) { m.enough = min(2*have, m.most()) }

// most returns the size up to which a command may be held.
func (m *Requests) most() int {
	if m.Conversation.Phase() == PhaseAuth { // nobody has logged in yet
		return min(m.Limit, MaxHandshake)
	}
	return m.Limit
}

// maxNote is the size up to which a command without SQL text is waited for, to
// be read whole. Those that say anything that is tracked are smaller.
const maxNote = 4096

// other handles the commands without SQL text.
func (m *Requests) other(payload []byte) verdict {
	p := Pending{Reply: ReplyOf(payload[0])}
	if payload[0] != mysql.COM_PING && payload[0] != mysql.COM_STATISTICS {
		m.Conversation.KeepWarnings(nil)
	}
	switch payload[0] {
	case mysql.COM_INIT_DB:
		p.choose(payload[1:])
	case mysql.COM_CHANGE_USER:
		user, _, _ := bytes.Cut(payload[1:], []byte{0})
		m.Conversation.SetUser(user)
		m.Conversation.SetPhase(PhaseAuth)
		p.Touch = TouchSettings | TouchSchema
		m.Last, m.Conversation.Prepared.ByName, m.Conversation.Prepared.Passed = nil, nil, passedNames{}
	case mysql.COM_RESET_CONNECTION:
		p.Touch = touchReset | TouchSettings
		m.Last, m.Conversation.Prepared.ByName, m.Conversation.Prepared.Passed = nil, nil, passedNames{}
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
		m.Conversation.SetPhase(PhaseOpaque)
	}
	if p.Reply != replyNone {
		m.Conversation.Send(p)
	}
	return forwardIt
}

// query handles COM_QUERY. payload is what has arrived of size bytes.
func (m *Requests) query(payload []byte, size int, whole bool) verdict {
	at, ok := wire.QueryText(payload, m.Conversation.Caps)
	if !ok {
		if whole {
			m.Conversation.Send(Pending{Reply: ReplyResult})
			return forwardIt
		}
		return m.undecided(len(payload), size)
	}
	sql := payload[at:]
	m.Conversation.mu.Lock()
	defer m.Conversation.mu.Unlock()
	s := &m.Conversation.state
	if m.Conversation.kept != nil {
		if first, _, _ := bytes.Cut(sql, []byte(";")); whole && rewriter.IsShowWarnings(first) {
			return holdIt
		}
		m.Conversation.kept = nil
	}
	head, more := m.Head.Read(sql, s.Mode)
	multi := m.Conversation.multi || m.Conversation.mayTurn()
	if !whole && !multi && (more || head.Kind == rewriter.Use) {
		return m.undecided(len(payload), size)
	}
	p := Pending{Reply: ReplyResult}
	if multi && (!whole || several(sql)) {
		if s.LastID.Owed || !m.Rules().Empty() {
			return holdIt
		}
		p.Touch = TouchAll | TouchLastID
		m.Conversation.Prepared.PassNames(sql, whole, m.Rules().List)
	}
	if m.note(&p, head, sql, whole) == holdIt {
		return holdIt
	}
	m.unseen = p.Unseen
	m.Conversation.sendLocked(p)
	return forwardIt
}

// several reports whether a ';' stands in the text with more than blanks
// behind it. It may be in a string; the rewriter will see.
func several(sql []byte) bool {
	i := bytes.IndexByte(sql, ';')
	return i >= 0 && len(bytes.TrimLeft(sql[i+1:], " \t\r\n;\x00")) > 0
}

// note says what a statement may change, or that it must be held.
func (m *Requests) note(p *Pending, head rewriter.Head, sql []byte, whole bool) verdict {
	s := &m.Conversation.state
	if m.Conversation.mayOwe() && m.reads(head, sql, whole) {
		return holdIt
	}
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		if m.mayConcern(head.Target) {
			return holdIt
		}
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate, rewriter.Compound:
		return holdIt
	case rewriter.DDL:
		if head.Temporary || head.Drop && s.Temporary != nil || m.createsRuled(head, sql) {
			return holdIt
		}
	}
	Changes(p, head, sql, whole)
	return forwardIt
}

// choose notes that the command makes a schema the default one. What its name is
// in UTF-8 the server is asked when that matters.
func (p *Pending) choose(schema []byte) {
	if rewriter.DoubtsOf(schema)&rewriter.DoubtCharset != 0 {
		p.Touch |= TouchSchema
		return
	}
	p.After = &After{Schema: bytes.Clone(schema)}
}

// TouchAll is what a statement may change that runs others which are not seen.
const TouchAll = TouchSettings | TouchNumbers | TouchSchema | touchTemps | TouchTables

// Changes says in p what a single statement may change.
func Changes(p *Pending, head rewriter.Head, sql []byte, whole bool) {
	effects := head.Effects(sql)
	if !whole {
		effects |= ^rewriter.SetsTransaction
	}
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace:
		p.Touch |= TouchInsert
	case rewriter.Load:
		p.Touch |= TouchLastID
	case rewriter.Execute, rewriter.Call, rewriter.Compound:
		p.Touch |= TouchAll | TouchLastID
		p.Unseen = head.Kind != rewriter.Compound
	case rewriter.DDL:
		p.Touch |= TouchTables
		if !head.Create && !head.Drop && effects&rewriter.RenamesTable != 0 {
			p.Touch |= touchTemps
		}
	case rewriter.Set:
		if effects&rewriter.SetsSettings != 0 {
			p.Touch |= TouchSettings
		}
		if effects&rewriter.SetsTransaction != 0 {
			p.Touch |= touchNext
		}
	case rewriter.Use:
		if len(head.Target.Schema) == 0 || !whole || bytes.IndexByte(sql, '!') >= 0 { // read otherwise by the server, perhaps
			p.Touch |= TouchSchema
		} else {
			p.choose(head.Target.Schema)
		}
	}
	if effects&rewriter.SetsLastID != 0 {
		p.Touch |= TouchLastID
	}
	if effects&rewriter.SetsNumbering != 0 {
		p.Touch |= TouchNumbers
	}
}

// reads reports whether a statement can read LAST_INSERT_ID(). What stands
// before diagnostics is never delayed: paying would change them.
func (m *Requests) reads(head rewriter.Head, sql []byte, whole bool) bool {
	if !whole {
		return true
	}
	if rewriter.MentionsDiagnostics(sql) {
		return false
	}
	switch head.Kind {
	case rewriter.Call, rewriter.Prepare, rewriter.Execute, rewriter.Compound:
		return true
	}
	return rewriter.MentionsLastID(sql) || head.HidesLastID()
}

// createsRuled reports whether a CREATE TABLE may make a table with a rule: it may
// fill it, too. The state's lock is held.
func (m *Requests) createsRuled(head rewriter.Head, sql []byte) bool {
	switch {
	case !head.Create:
		return false
	case len(head.Target.Table) > 0:
		return m.mayConcern(head.Target)
	}
	return m.Conversation.state.Known&KnowQuotes == 0 && bytes.IndexByte(sql, '"') >= 0 && !m.Rules().Empty() // it may be the name
}

// mayConcern reports whether a statement that writes to a table may be one
// with a rule. The state's lock is held.
func (m *Requests) mayConcern(t rewriter.Name) bool {
	rules, s := m.Rules(), &m.Conversation.state
	switch {
	case rules.Empty():
		return false
	case len(t.Table) == 0, !s.HasInUTF8(t.Schema) || !s.HasInUTF8(t.Table): // or it must be converted first
		return true
	case len(t.Schema) > 0:
		return rules.Match(t.Schema, t.Table, rules.Fold) != nil
	case s.Known&KnowSchema == 0:
		return rules.MayMatch(t.Table, rules.Fold)
	default:
		return rules.Match(s.Schema, t.Table, rules.Fold) != nil
	}
}
