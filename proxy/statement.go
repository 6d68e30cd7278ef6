package proxy

import (
	"bytes"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/draw"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// statement is a held command on its way to the server. It is reused; its slices alias the
// client's bytes until the next read.
//
// A text of several statements may go to the server in pieces: what a
// statement changes decides how those behind it are read, and what became of
// some INSERTs must be known before anything else happens.
type statement struct {
	heldCommand
	answers
	decision
	reply     *relay.InsertReply // to the piece that was sent
	elsewhere elsewhere
	out       []byte // what is sent in place of what came, behind room for a header
}

// heldCommand is a command as it came, without the pieces of it that were sent.
type heldCommand struct {
	whole    []byte // all of it, as the client sent it; nil: payload makes it again
	prefix   []byte // command byte and query attributes
	text     []byte // SQL that was not sent yet: the piece, and what is behind it
	seq      byte   // sequence number of the last frame of the command, or of the replies to earlier pieces
	multi    bool   // the server splits the text at ';'
	begun    time.Time
	pieces   int             // that were sent
	executes *relay.Prepared // the statement that it executes, or brings long data of, if anything is known of that
	writes   finder          // of the words that an INSERT, REPLACE or LOAD begins with
	doubtful [len(doubts)]finder
}

// answers are what was learned for a command, and what became of what was tried.
type answers struct {
	// denied is what the server answered instead of describing tables, to this session
	// and for this statement, by their keys: another user may be told more.
	denied      map[string]*facts.Table
	asked       *draw.Asked      // what SET insert_id asks its first statement for; nil: nothing
	values      []rewriter.Value // of the expressions for ids in its first statement
	source      *innerText       // the text that a PREPARE or EXECUTE IMMEDIATE was asked for
	bound       []rewriter.Value // of the ids among the arguments of an EXECUTE
	fileCharset string           // character_set_database, where a LOAD DATA needs it
	// refused is the statement that is refused once those in front of it are
	// over; 0: none.
	refused int
	// selection is of its only statement, when the rows of that come from a query.
	selection selection
}

// deny notes that the server did not describe a table, or not all of it.
func (a *answers) deny(key string, f *facts.Table) {
	if a.denied == nil {
		a.denied = map[string]*facts.Table{}
	}
	a.denied[key] = f
}

// more forgets what was learned for a piece that was sent.
func (a *answers) more() {
	a.values, a.source, a.bound, a.refused, a.selection = nil, nil, nil, 0, selection{}
	a.fileCharset, a.asked = "", nil
}

// read takes a held command, one whole packet.
func (st *statement) read(command []byte, caps uint64, m *relay.Requests) {
	payload := wire.Join(command)
	at := 1
	if payload[0] == mysql.COM_QUERY {
		at, _ = wire.QueryText(payload, caps)
	}
	st.whole, st.prefix, st.text, st.seq, st.pieces = payload, payload[:at], payload[at:], m.Seq, 0
	st.answers = answers{}
	st.writes = finder{-1}
	for i := range st.doubtful {
		st.doubtful[i] = finder{-1}
	}
	m.Conversation.Mu.Lock()
	defer m.Conversation.Mu.Unlock()
	st.multi = m.Conversation.Multi && payload[0] == mysql.COM_QUERY
	st.executes = nil
	if st.isExecution() {
		st.executes = m.StatementOf(payload)
	}
	st.begun = time.Now()
}

// mayCall reports whether the INSERT or LOAD decided on last may call a function that can set variables.
func (d *decision) mayCall(sql []byte, head rewriter.Head) bool {
	if head.Kind == rewriter.Load {
		return rewriter.CallsUnknown(sql, head.Target.Table)
	}
	return d.filled.plans[len(d.filled.parts)-1].MayCall(sql)
}

// prepares reports whether it is a statement to prepare.
func (c *heldCommand) prepares() bool { return c.prefix[0] == mysql.COM_STMT_PREPARE }

// isExecution reports whether it executes a prepared statement by its number.
func (c *heldCommand) isExecution() bool {
	return c.prefix[0] == mysql.COM_STMT_EXECUTE || c.prefix[0] == relay.ComBulkExecute
}

// payload returns the command, whose text was not sent yet.
func (c *heldCommand) payload() []byte {
	if c.whole == nil {
		c.whole = append(bytes.Clone(c.prefix), c.text...)
	}
	return c.whole
}

// next goes on to the piece behind one that was sent.
func (st *statement) next(seq byte) {
	st.text, st.seq, st.begun = st.text[st.rest:], seq, time.Now()
	st.pieces++
	st.writes.at = max(st.writes.at-st.rest, -1)
	for i := range st.doubtful {
		st.doubtful[i].at = max(st.doubtful[i].at-st.rest, -1)
	}
	st.more()
}

// keep copies what is still needed of the client's bytes.
func (c *heldCommand) keep() {
	c.whole, c.prefix, c.text = nil, bytes.Clone(c.prefix), bytes.Clone(c.text)
}

// forget lets go of the client's bytes, and of all that was learned and decided.
func (st *statement) forget() {
	st.whole, st.prefix, st.text, st.executes, st.reply = nil, nil, nil, nil, nil
	st.answers = answers{}
	st.decision.reset(nil)
	st.execution.e, st.forwarded = nil, forwardedExecution{}
}

// finder knows where in a text something is next. It looks at no byte twice,
// however often it is asked, as what was sent is taken off the text.
type finder struct {
	at int // at or shortly before it; behind the text when there is none, -1 when it was not looked for
}

// behind reports whether in finds something in text[from:], which is at most
// eight bytes long.
func (f *finder) behind(text []byte, from int, in func([]byte) bool) bool {
	const window, word = 4096, 8
	if f.at >= from {
		return f.at < len(text)
	}
	for f.at = from; f.at < len(text); f.at += window {
		if in(text[f.at:min(f.at+window+word, len(text))]) {
			return true
		}
	}
	return false
}

// writesBehind reports whether an INSERT, REPLACE or LOAD may stand in
// text[at:].
func (c *heldCommand) writesBehind(at int) bool {
	return c.writes.behind(c.text, at, rewriter.MentionsWrite)
}

// doubts are the bytes whose reading depends on a setting.
var doubts = [...]struct {
	setting relay.Known
	in      func([]byte) bool
}{
	{relay.KnowQuotes, func(b []byte) bool { return bytes.IndexByte(b, '"') >= 0 }},
	{relay.KnowBackslash, func(b []byte) bool { return bytes.IndexByte(b, '\\') >= 0 }},
	{relay.KnowCharset, func(b []byte) bool { return rewriter.DoubtsOf(b)&rewriter.DoubtCharset != 0 }},
}

// doubted reports whether the reading of the text depends on one of the given
// settings.
func (c *heldCommand) doubted(settings relay.Known) bool {
	for i, d := range doubts {
		if settings&d.setting != 0 && c.doubtful[i].behind(c.text, 0, d.in) {
			return true
		}
	}
	return false
}

// sql returns the text of the piece.
func (st *statement) sql() []byte { return st.text[:st.end] }

// readsLastID reports whether the piece reads LAST_INSERT_ID() and does not
// begin with a look at the diagnostics: those are of the statement before the
// text, and paying in front of it would change them. Diagnostics further on
// are of the text's own statements.
func (st *statement) readsLastID() bool {
	if len(st.spans) == 0 {
		return false
	}
	first := st.text[st.spans[0].Start:st.spans[0].End]
	return rewriter.MentionsLastID(st.sql()) && !rewriter.MentionsDiagnostics(first)
}
