package proxy

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/draw"
	"idproxy/proxy/facts"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// statement is a held command on its way to a decision. It is reused; its
// slices alias the client's bytes until the next read.
//
// A text of several statements may go to the server in pieces: what a
// statement changes decides how those behind it are read, and what became of
// some INSERTs must be known before anything else happens.
type statement struct {
	command []byte // all of it, as the client sent it
	prefix  []byte // command byte and query attributes
	text    []byte // SQL that was not sent yet: the piece, and what is behind it
	seq     byte   // sequence number of the last frame of the command, or of the replies to earlier pieces
	multi   bool   // the server splits the text at ';'
	begun   time.Time
	pieces  int // that were sent

	// denied is what the server answered instead of describing tables, to this session
	// and for this statement, by their keys: another user may be told more.
	denied    map[string]*facts.Table
	prepared  *prepared   // what it executes, or prepares, if anything is known of that
	asked     *draw.Asked // what SET insert_id asks its first statement for; nil: nothing
	inner     []byte      // the text that a PREPARE in SQL brings, while that is what is decided on
	execution execution

	// Of the piece:
	spans  []rewriter.Span  // its statements
	end    int              // where it ends in text
	rest   int              // where the next one begins; 0: there is none
	values []rewriter.Value // of the expressions for ids in its first statement
	// Of a PREPARE or EXECUTE in SQL, which is a piece of its own:
	dynamic *rewriter.Dynamic
	source  *innerText       // the text that it was asked for
	bound   []rewriter.Value // of the ids among the arguments
	short   bool             // the arguments are left out, for the server to count them
	// refused is the statement that is refused once those in front of it are
	// over; 0: none.
	refused int
	parts   []part
	plans   []rewriter.Plan    // by index of the part
	reading rewriter.Statement // what a plan reads
	speller speller
	// selection is of its only statement, when the rows of that come from a query.
	selection selection
	key       []byte // scratch for table keys
	touch     touch
	load      *loading // the LOAD DATA that the piece is
	// fileCharset is character_set_database, where a LOAD DATA needs it.
	fileCharset string
	after       *after // what it changes besides
	reply       *pieceReply
	owing       bool         // LAST_INSERT_ID() must be paid before it
	facts       *facts.Table // what is known of the table of its last INSERT that may have ids
	types       bool         // an execution that goes as it is, but for its types
	elsewhere   elsewhere
	unseen      bool // it may write to tables out of sight
	out         []byte

	writes   finder // of the words that an INSERT, REPLACE or LOAD begins with
	doubtful [len(doubts)]finder
}

// part is one statement of the text that gets ids, or brings its own.
type part struct {
	result  int
	span    rewriter.Span
	head    rewriter.Head
	text    []byte        // of the span
	name    rewriter.Name // with its schema
	rules   []*rule.Rule
	facts   *facts.Table
	columns []rule.Column // by rule
	absent  []*rule.Rule  // of a statement to prepare: those whose columns the table does not have
	view    bool          // it is a view that has none of the columns
	ids     [][]uint64    // by rule
	asked   *draw.Asked   // for the first rule, in place of its source's; nil: none
}

// read takes a held command, one whole packet.
func (st *statement) read(command []byte, caps uint64, m *requests) {
	payload := wire.Join(command)
	at := 1
	if payload[0] == mysql.COM_QUERY {
		at, _ = wire.QueryText(payload, caps)
	}
	st.command, st.prefix, st.text, st.seq, st.pieces = payload, payload[:at], payload[at:], m.seq, 0
	m.c.mu.Lock()
	st.multi = m.c.multi && payload[0] == mysql.COM_QUERY
	m.c.mu.Unlock()
	st.begun = time.Now()
	st.denied, st.values, st.refused, st.selection = nil, nil, 0, selection{}
	st.dynamic, st.source, st.bound, st.short, st.asked = nil, nil, nil, false, nil
	st.fileCharset, st.load = "", nil
	st.writes = finder{-1}
	for i := range st.doubtful {
		st.doubtful[i] = finder{-1}
	}
	st.prepared = nil
	if payload[0] == mysql.COM_STMT_EXECUTE || payload[0] == comBulkExecute {
		m.c.mu.Lock()
		st.prepared = m.statementOf(payload)
		m.c.mu.Unlock()
	}
}

// mayCall reports whether the INSERT or LOAD decided on last may call a function that can set variables.
func (st *statement) mayCall(sql []byte, into rewriter.Name) bool {
	if st.load != nil {
		return rewriter.CallsUnknown(sql, into.Table)
	}
	return st.plans[len(st.parts)-1].MayCall(sql)
}

// prepares reports whether what is decided on is a statement to prepare.
func (st *statement) prepares() bool {
	return st.prefix[0] == mysql.COM_STMT_PREPARE || st.inner != nil
}

// payload returns the command, whose text was not sent yet.
func (st *statement) payload() []byte {
	if st.command == nil {
		st.command = append(bytes.Clone(st.prefix), st.text...)
	}
	return st.command
}

// next goes on to the piece behind one that was sent.
func (st *statement) next(seq byte) {
	st.text, st.seq, st.begun = st.text[st.rest:], seq, time.Now()
	st.pieces++
	st.writes.at = max(st.writes.at-st.rest, -1)
	for i := range st.doubtful {
		st.doubtful[i].at = max(st.doubtful[i].at-st.rest, -1)
	}
	st.values, st.source, st.bound, st.refused, st.selection = nil, nil, nil, 0, selection{}
	st.fileCharset, st.asked = "", nil
}

// cut ends the piece in front of its i-th statement.
func (st *statement) cut(i int) {
	st.end, st.rest = st.spans[i-1].End, st.spans[i].Start
	st.spans = st.spans[:i]
}

// keep copies what is still needed of the client's bytes.
func (st *statement) keep() {
	st.command, st.prefix, st.text = nil, bytes.Clone(st.prefix), bytes.Clone(st.text)
}

// deny notes that the server did not describe a table, or not all of it.
func (st *statement) deny(key string, f *facts.Table) {
	if st.denied == nil {
		st.denied = map[string]*facts.Table{}
	}
	st.denied[key] = f
}

// forget lets go of the client's bytes.
func (st *statement) forget() {
	st.command, st.prefix, st.text, st.after, st.reply, st.denied = nil, nil, nil, nil, nil, nil
	st.dynamic, st.source, st.bound, st.prepared = nil, nil, nil, nil
	st.load, st.facts = nil, nil
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
func (st *statement) writesBehind(at int) bool {
	return st.writes.behind(st.text, at, rewriter.MentionsWrite)
}

// doubts are the bytes whose reading depends on a setting.
var doubts = [...]struct {
	setting known
	in      func([]byte) bool
}{
	{knowQuotes, func(b []byte) bool { return bytes.IndexByte(b, '"') >= 0 }},
	{knowBackslash, func(b []byte) bool { return bytes.IndexByte(b, '\\') >= 0 }},
	{knowCharset, func(b []byte) bool { return rewriter.DoubtsOf(b)&rewriter.DoubtCharset != 0 }},
}

// doubted reports whether the reading of the text depends on one of the given
// settings.
func (st *statement) doubted(settings known) bool {
	for i, d := range doubts {
		if settings&d.setting != 0 && st.doubtful[i].behind(st.text, 0, d.in) {
			return true
		}
	}
	return false
}

// piece returns the text of the piece.
func (st *statement) piece() []byte { return st.text[:st.end] }

// readsLastID reports whether the piece reads LAST_INSERT_ID() and does not
// begin with a look at the diagnostics: those are of the statement before the
// text, and paying in front of it would change them. Diagnostics further on
// are of the text's own statements.
func (st *statement) readsLastID() bool {
	if len(st.spans) == 0 {
		return false
	}
	first := st.text[st.spans[0].Start:st.spans[0].End]
	return rewriter.MentionsLastID(st.piece()) && !rewriter.MentionsDiagnostics(first)
}

// newPart returns the memory for a part behind those that st has, which it may
// become.
func (st *statement) newPart() *part {
	n := len(st.parts)
	st.parts = slices.Grow(st.parts, 1)
	if len(st.plans) <= n {
		st.plans = append(st.plans, rewriter.Plan{})
	}
	p := &st.parts[:n+1][n]
	*p = part{rules: p.rules[:0], columns: p.columns[:0], ids: p.ids}
	return p
}

// changes returns what the piece changes besides, for more to be added.
func (st *statement) changes() *after {
	if st.after == nil {
		st.after = &after{}
	}
	return st.after
}
