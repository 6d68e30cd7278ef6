package decide

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

// Statement is a held command, and what is decided on it. It is used again.
type Statement struct {
	Command
	answers
	decision
}

// Command is a held command as it came, without the pieces of it that were sent. Its slices alias
// the client's bytes until the next read.
//
// A text of several statements may go to the server in pieces: what a
// statement changes decides how those behind it are read, and what became of
// some INSERTs must be known before anything else happens.
type Command struct {
	piece
	whole    []byte // all of it, as the client sent it; nil: payload makes it again
	Prefix   []byte // command byte and query attributes
	Text     []byte // SQL that was not sent yet: the piece, and what is behind it
	Seq      byte   // sequence number of the last frame of the command, or of the replies to earlier pieces
	Multi    bool   // the server splits the text at ';'
	Begun    time.Time
	pieces   int             // that were sent
	Executes *relay.Prepared // the statement that it executes, or brings long data of, if anything is known of that
	head     rewriter.HeadReading
	writes   finder // of the words that an INSERT, REPLACE or LOAD begins with
	doubtful [len(doubts)]finder
	reply    *relay.InsertReply // to the piece that was sent
	Out      []byte             // what is sent in place of what came, behind room for a header
}

// answers are what was learned for a command, and what became of what was tried.
type answers struct {
	// denied is what the server answered instead of describing tables, to this session
	// and for this statement, by their keys: another user may be told more.
	denied      map[string]*facts.Table
	Asked       *draw.Asked      // what SET insert_id asks its first statement for; nil: nothing
	Values      []rewriter.Value // of the expressions for ids in its first statement
	Source      *InnerText       // the text that a PREPARE or EXECUTE IMMEDIATE was asked for
	Bound       []rewriter.Value // of the ids among the arguments of an EXECUTE
	FileCharset string           // character_set_database, where a LOAD DATA needs it
	// Refused is the statement that is refused once those in front of it are
	// over; 0: none.
	Refused int
	// Selection is of its only statement, when the rows of that come from a query.
	Selection Selection
}

// Deny notes that the server did not describe a table, or not all of it.
func (a *answers) Deny(key string, f *facts.Table) {
	if a.denied == nil {
		a.denied = map[string]*facts.Table{}
	}
	a.denied[key] = f
}

// more forgets what was learned for a piece that was sent.
func (a *answers) more() {
	a.Values, a.Source, a.Bound, a.Refused, a.Selection = nil, nil, nil, 0, Selection{}
	a.FileCharset, a.Asked = "", nil
}

// Read takes a held command, one whole packet.
func (st *Statement) Read(command []byte, as relay.Arrival) {
	payload := wire.Join(command)
	at := 1
	if payload[0] == mysql.COM_QUERY {
		at, _ = wire.QueryText(payload, as.Caps)
	}
	st.whole, st.Prefix, st.Text, st.Seq, st.pieces = payload, payload[:at], payload[at:], as.Seq, 0
	st.Multi, st.Executes, st.head, st.Begun = as.Multi, as.Executes, as.Head, time.Now()
	st.answers = answers{}
	st.writes = finder{-1}
	for i := range st.doubtful {
		st.doubtful[i] = finder{-1}
	}
}

// mayCall reports whether the INSERT or LOAD decided on last may call a function that can set variables.
func (d *decision) mayCall(sql []byte, head rewriter.Head) bool {
	if head.Kind == rewriter.Load {
		return rewriter.CallsUnknown(sql, head.Target.Table)
	}
	return d.Filled.plans[len(d.Filled.Parts)-1].MayCall(sql)
}

// Prepares reports whether it is a statement to prepare.
func (c *Command) Prepares() bool { return c.Prefix[0] == mysql.COM_STMT_PREPARE }

// Payload returns the command, whose text was not sent yet.
func (c *Command) Payload() []byte {
	if c.whole == nil {
		c.whole = append(bytes.Clone(c.Prefix), c.Text...)
	}
	return c.whole
}

// Next goes on to the piece behind one that was sent.
func (st *Statement) Next(seq byte) {
	st.Text, st.Seq, st.Begun = st.Text[st.Rest:], seq, time.Now()
	st.pieces++
	st.writes.at = max(st.writes.at-st.Rest, -1)
	for i := range st.doubtful {
		st.doubtful[i].at = max(st.doubtful[i].at-st.Rest, -1)
	}
	st.more()
}

// Keep copies what is still needed of the client's bytes.
func (c *Command) Keep() {
	c.head.Forget()
	c.whole, c.Prefix, c.Text = nil, bytes.Clone(c.Prefix), bytes.Clone(c.Text)
}

// Forget lets go of the client's bytes, and of all that was learned and decided.
func (st *Statement) Forget() {
	st.head.Forget()
	st.whole, st.Prefix, st.Text, st.Executes, st.reply = nil, nil, nil, nil, nil
	st.answers = answers{}
	st.reset()
	st.Execution.e, st.forwarded = nil, forwardedExecution{}
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
func (c *Command) writesBehind(at int) bool {
	return c.writes.behind(c.Text, at, rewriter.MentionsWrite)
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
func (c *Command) doubted(settings relay.Known) bool {
	for i, d := range doubts {
		if settings&d.setting != 0 && c.doubtful[i].behind(c.Text, 0, d.in) {
			return true
		}
	}
	return false
}

// sql returns the text of the piece.
func (c *Command) sql() []byte { return c.Text[:c.End] }

// readsLastID reports whether the piece reads LAST_INSERT_ID() and does not
// begin with a look at the diagnostics: those are of the statement before the
// text, and paying in front of it would change them. Diagnostics further on
// are of the text's own statements.
func (c *Command) readsLastID() bool {
	if len(c.Spans) == 0 {
		return false
	}
	first := c.Text[c.Spans[0].Start:c.Spans[0].End]
	return rewriter.MentionsLastID(c.sql()) && !rewriter.MentionsDiagnostics(first)
}

// Withheld returns what the reply to the piece left open, nil when that is nothing.
func (c *Command) Withheld() *relay.Withheld {
	if c.reply == nil {
		return nil
	}
	return c.reply.Withheld
}
