package decide

import (
	"bytes"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

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
	pieces   int            // that were sent
	Executes *protocol.Stmt // the statement that it executes, or brings long data of, if anything is known of that
	head     rewriter.HeadReading
	writes   finder // of the words that an INSERT, REPLACE or LOAD begins with
	doubtful [len(doubts)]finder
	reply    *protocol.InsertReply // to the piece that was sent
	Out      []byte                // what is sent in place of what came, behind room for a header
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

// Keep copies what is still needed of the client's bytes.
func (c *Command) Keep() {
	c.head.Forget()
	c.whole, c.Prefix, c.Text = nil, bytes.Clone(c.Prefix), bytes.Clone(c.Text)
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
	setting protocol.VarSet
	in      func([]byte) bool
}{
	{protocol.KnowQuotes, func(b []byte) bool { return bytes.IndexByte(b, '"') >= 0 }},
	{protocol.KnowBackslash, func(b []byte) bool { return bytes.IndexByte(b, '\\') >= 0 }},
	{protocol.KnowCharset, func(b []byte) bool { return rewriter.DoubtsOf(b)&rewriter.DoubtCharset != 0 }},
}

// doubted reports whether the reading of the text depends on one of the given
// settings.
func (c *Command) doubted(settings protocol.VarSet) bool {
	for i, d := range doubts {
		if settings&d.setting != 0 && c.doubtful[i].behind(c.Text, 0, d.in) {
			return true
		}
	}
	return false
}

// sql returns the text of the piece.
func (c *Command) sql() []byte { return c.Text[:c.End] }

// usesLastID reports whether the piece reads LAST_INSERT_ID(), or may change it without a word.
func (c *Command) usesLastID() bool {
	return len(c.Spans) > 0 && (c.Touch&protocol.TouchLastID != 0 || rewriter.MentionsLastID(c.sql()))
}

// looksBack reports whether the piece begins with a look at the diagnostics: those are of the
// statement before the text, and paying in front of it would change them. Diagnostics further on are
// of the text's own statements.
func (c *Command) looksBack() bool {
	return len(c.Spans) > 0 && rewriter.ReadsDiagnostics(c.Text[c.Spans[0].Start:c.Spans[0].End])
}

// Withheld returns what the reply to the piece left open, nil when that is nothing.
func (c *Command) Withheld() *protocol.Withheld {
	if c.reply == nil {
		return nil
	}
	return c.reply.Withheld
}

// piece is what is sent at once of a command, and what that leaves behind.
type piece struct {
	Spans  []rewriter.Span // its statements
	End    int             // where it ends in the text
	Rest   int             // where the next one begins; 0: there is none
	Touch  protocol.Touch
	After  *protocol.After // what it changes besides
	Owing  bool            // LAST_INSERT_ID() must be paid before it
	Facts  *catalog.Table  // what is known of the table of its last INSERT that may have ids
	Unseen bool            // it may write to tables out of sight
}

// cut ends the piece in front of its i-th statement.
func (p *piece) cut(i int) {
	p.End, p.Rest = p.Spans[i-1].End, p.Spans[i].Start
	p.Spans = p.Spans[:i]
}

// changes returns what the piece changes besides, for more to be added.
func (p *piece) changes() *protocol.After {
	if p.After == nil {
		p.After = &protocol.After{}
	}
	return p.After
}
