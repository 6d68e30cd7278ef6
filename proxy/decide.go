package proxy

import (
	"bytes"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

// need is what a decision waits for.
type need struct {
	kind    needKind
	table   rewriter.Name  // needTable, needEngine
	key     string         // of the table; needOwner
	column  *filling       // needMax
	values  []string       // needValues, needSource: expressions
	columns []rule.Column  // needValues: of each, the column it is for
	wide    []bool         // needValues: of each bound one, whether its column has wide ids; nil: none has
	ignore  bool           // needValues: the statement says IGNORE
	bound   bool           // needValues: they are arguments of EXECUTE
	facts   *facts.Table   // needEngine
	name    facts.Spelling // needName
	part    *part          // needCount, needExact, needAsked
	plan    *rewriter.Plan // needCount, needExact
}

type needKind uint8

const (
	needNothing needKind = iota // decided
	needQuiet                   // no command may be pending
	needRenewal                 // the statement that is executed must be prepared anew
	needReading                 // the session must read its text as it was read
	needProbe                   // the session's settings
	needTable                   // the columns of a table
	needMax                     // the greatest id in a column
	needValues                  // what expressions for ids are worth
	needSource                  // the text that an expression gives a PREPARE
	needCharset                 // character_set_database
	needName                    // a name in UTF-8
	needOwner                   // whether a table is a temporary one of the session's own
	needEngine                  // whether the table's engine takes rows back
	needAsked                   // what SET insert_id asks for
	needSound                   // whether the server can prepare the statement
	needExact                   // whether MariaDB keeps the values of a query that stands inside another
	needCount                   // how many rows a query gives
)

// decider decides on held statements. It does no I/O: what it does not know it
// names, and it is asked again once that was learned.
type decider struct {
	c      *relay.Conversation
	tables *facts.Tables
	rules  func() relay.RuleBook
	second SecondReader // nil: none
}

// reading is what a text has said so far, while its statements are gone
// through.
type reading struct {
	found  *findings // what was seen so far
	snap   relay.State
	mode   rewriter.Mode
	rules  relay.RuleBook
	schema []byte
	known  bool // the schema is
	// prepares: it is a statement to prepare. inner is its text where a PREPARE in SQL brings it.
	prepares bool
	inner    []byte
	// What the statements in front do to what is known of the session:
	settings bool // they may change settings or the schema, to what cannot be told
	barrier  bool // or tables
	busy     bool // earlier commands are pending
	remaking bool // and one of them may change tables
	owes     bool // LAST_INSERT_ID() is owed, or may be when they are over
	// Of the reply to the PREPARE of the statement that is executed:
	params int  // the client's parameters
	broken bool // the server counts others
	failed bool // it was an ERR
}

// errIncomplete stands in for a need while a text is gone through.
type errIncomplete struct{ need }

func (errIncomplete) Error() string { return "something must be asked first" }

func lacks(kind needKind) error { return errIncomplete{need{kind: kind}} }

// needOf takes the need out of an error that stands for one.
func needOf(err error) (need, error) {
	if missing, ok := errors.AsType[errIncomplete](err); ok {
		return missing.need, nil
	}
	return need{}, err
}

// maxParts bounds the INSERTs of a piece, and so what is kept for them.
const maxParts = 1000

// errCut says that the piece ends in front of a statement: the others must be
// over before it is decided on.
var errCut = errors.New("the statements in front must be over first")

// smallText is the size up to which a text and its ids surely fit the server's
// max_allowed_packet.
const smallText = 512 << 10

// decide goes through the statements of st. It returns what it needs to know,
// or an error for the client, or needNothing with a decision in st. It changes nothing else.
//
// A text that names no table with a rule, however it is read, goes as it came before
// anything is asked for it, cut off it or refused. Statements by name are known better from
// a text in pieces.
func (d *decider) decide(st *statement) (need, error) {
	cx := d.begin(st)
	missing, err := d.wholeOrPiece(st, &cx)
	if missing.kind == needNothing && err == nil && st.prepares() {
		d.prepares(st, &cx)
	}
	return missing, err
}

// wholeOrPiece decides on the next piece, or lets all of the text pass.
func (d *decider) wholeOrPiece(st *statement, cx *reading) (need, error) {
	missing, err := d.judge(st, *cx)
	decided := missing.kind == needNothing && err == nil
	if decided && (st.rest == 0 || !cx.rules.Empty() && rewriter.MentionsDynamic(st.text)) || !d.unconcerned(st, cx) {
		if missing.kind != needNothing && missing.kind != needQuiet && d.readersFirst(st, cx) {
			return need{}, nil
		}
		return missing, err
	}
	st.found.unread = append(st.found.unread, unread{text: st.text, by: cx.rules.List})
	st.asItCame()
	st.touch, st.after, st.owing = relay.TouchAll|relay.TouchLastID, nil, false
	st.spans, st.end, st.rest, st.refused = st.spans[:0], len(st.text), 0, 0
	st.prepared, st.dynamic = nil, nil
	return need{}, nil
}

// judge is decide for what it cannot tell to be without any rule.
func (d *decider) judge(st *statement, cx reading) (need, error) {
	st.decision.reset(st.text)
	st.prepared, st.reply = st.executes, nil
	switch st.prefix[0] {
	case mysql.COM_STMT_EXECUTE, relay.ComBulkExecute:
		return needOf(d.executes(st, &cx))
	case mysql.COM_STMT_SEND_LONG_DATA:
		return needOf(d.readyForLong(st, &cx))
	}
	if st.doubted(^cx.snap.Known) || len(st.text) > smallText && cx.snap.Known&relay.KnowNumbers == 0 {
		return need{kind: needProbe}, nil
	}
	if cx.busy && rewriter.MentionsLastID(st.text) {
		return need{kind: needQuiet}, nil
	}
	if missing, err := needOf(d.parts(st, &cx)); missing.kind != needNothing || err != nil {
		return missing, err
	}
	st.owing = st.owing || cx.owes && st.readsLastID()
	if st.owing && cx.busy { // what is owed then is not certain yet
		return need{kind: needQuiet}, nil
	}
	return need{}, nil
}

// parts goes through the statements of the next piece.
func (d *decider) parts(st *statement, cx *reading) error {
	for at := 0; ; {
		span, last, ok := rewriter.Next(st.text, at, cx.mode)
		if !ok {
			break
		}
		st.spans = append(st.spans, span)
		if st.touch&relay.TouchInsert != 0 { // the reply shows the insert id of its last result alone
			st.touch |= relay.TouchLastID
		}
		if cx.busy && !last {
			return lacks(needQuiet)
		}
		i := len(st.spans) - 1
		if i > 0 && i == st.refused {
			st.cut(i)
			return nil
		}
		ends, err := d.part(st, i, cx)
		if errors.Is(err, errCut) {
			st.cut(i)
			return nil
		}
		if err != nil {
			return err
		}
		if last {
			break
		}
		at = span.End + 1
		if ends || len(st.filled.parts) == maxParts || cx.settings && !cx.rules.Empty() && st.writesBehind(at) {
			st.end, st.rest = span.End, at
			return nil
		}
	}
	return nil
}

// unconcerned reports whether no rule can concern what is left of a text. What looks at
// diagnostics and writes nothing is not asked about: a question would change them.
func (d *decider) unconcerned(st *statement, cx *reading) bool {
	switch {
	case st.prefix[0] != mysql.COM_QUERY && st.prefix[0] != mysql.COM_STMT_PREPARE, cx.owes:
		return false
	case cx.rules.Empty():
		return true
	case rewriter.MentionsDynamic(st.text) && (d.concernsName(cx.rules) || !rewriter.PlainDynamic(st.text)):
		return false
	}
	return !cx.rules.MayName(st.text) ||
		rewriter.MentionsDiagnostics(st.text) && (!rewriter.MentionsWrite(st.text) || !cx.rules.MayNameIn(st.text, cx.schema, cx.known))
}

func (d *decider) begin(st *statement) reading {
	d.c.Mu.Lock()
	defer d.c.Mu.Unlock()
	cx := reading{snap: d.c.State.Snapshot(), rules: d.rules(), busy: d.c.Pending.Len > 0, found: &st.found, prepares: st.prepares()}
	cx.owes = d.c.MayOwe()
	for i := range d.c.Pending.Len {
		cx.remaking = cx.remaking || d.c.Pending.At(i).Touch&relay.TouchTables != 0
	}
	if e := st.executes; e != nil {
		cx.params, cx.broken, cx.failed = e.Params, e.Broken, e.Failed
	}
	cx.mode = cx.snap.Mode
	cx.mode.MultiStatements = st.multi
	cx.schema, cx.known = cx.snap.Schema, cx.snap.Known&relay.KnowSchema != 0
	return cx
}

// part decides on the i-th statement of the piece. ends: it must be the last.
func (d *decider) part(st *statement, i int, cx *reading) (ends bool, err error) {
	span := st.spans[i]
	sql := st.text[span.Start:span.End]
	head, more := rewriter.ReadHead(sql, cx.mode)
	if span.Doubt {
		head.Kind = rewriter.Compound
	}
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
		if more && len(head.Target.Table) == 0 {
			break // the text ends before the table: the server refuses it
		}
		how, err := d.insert(st, i, head, cx)
		if err != nil {
			return false, err
		}
		if how != asItIs && st.mayCall(sql, head) {
			st.touch |= relay.TouchNumbers
			cx.barrier, cx.settings = true, true
		}
		if how == noticed || how == alone {
			return how == alone, nil
		}
		st.owing = st.owing || cx.owes && head.HidesLastID() && !rewriter.MentionsDiagnostics(sql)
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate, rewriter.Compound:
		if head.Kind != rewriter.Compound && !cx.prepares {
			return d.dynamic(st, i, head, cx)
		}
		if err := d.hidden(st, head, sql, cx); err != nil {
			return false, err
		}
		st.owing = cx.owes
	case rewriter.Call:
		st.owing = cx.owes
	}
	if err := d.creates(st, head, sql, cx); err != nil {
		return false, err
	}
	if err := d.temporary(st, i, head, cx); err != nil {
		return false, err
	}
	d.follow(st, i, head, cx)
	return false, nil
}

// temporary notes the temporary tables that a statement makes or drops.
func (d *decider) temporary(st *statement, i int, head rewriter.Head, cx *reading) error {
	switch {
	case cx.prepares:
	case head.Temporary && head.Create && bytes.IndexByte(st.text[st.spans[i].Start:st.spans[i].End], '!') >= 0:
		st.touch |= relay.TouchAll // whether it makes one is not certain: the rule stays awake
	case head.Temporary && head.Create:
		name, readable, err := d.named(head.Target, cx)
		certain := (cx.known || len(head.Target.Schema) > 0) && d.tables.Fold() != facts.FoldUnknown
		switch {
		case err != nil && !cx.rules.Empty():
			return err
		case err == nil && !readable: // the server refuses it
		case err == nil && certain:
			st.key = d.tables.AppendKey(st.key[:0], name.Schema, name.Table)
			st.changes().Temps = append(st.changes().Temps, relay.Temp{Result: i, Name: string(st.key)})
		case cx.rules.Empty():
			st.touch |= relay.TouchAll
		case cx.barrier:
			return errCut
		default:
			return lacks(needProbe)
		}
	case head.Drop && cx.snap.Temporary != nil:
		st.changes().Temps = append(st.changes().Temps, relay.Temp{Result: i})
	}
	return nil
}

// follow notes what a statement that is not edited changes for those behind it
// and for the session.
func (d *decider) follow(st *statement, i int, head rewriter.Head, cx *reading) {
	sql := st.text[st.spans[i].Start:st.spans[i].End]
	var p relay.Pending
	relay.Changes(&p, head, sql, true)
	st.touch |= p.Touch
	if cx.prepares {
		return
	}
	st.unseen = st.unseen || p.Unseen
	if len(st.spans) > 1 && p.Touch&relay.TouchInsert != 0 {
		st.touch |= relay.TouchLastID
	}
	if p.After != nil {
		cx.schema, cx.known = p.After.Schema, true
		st.changes().Schema = p.After.Schema
	}
	if p.Touch&relay.TouchSchema != 0 {
		cx.known = false
		st.changes().Schema = nil
	}
	switch {
	case p.Touch&relay.TouchTables != 0 && head.Kind == rewriter.DDL:
		cx.barrier = true
	case p.Touch&(relay.TouchSettings|relay.TouchSchema|relay.TouchNumbers) != 0:
		cx.barrier, cx.settings = true, true
	}
}

// rulesOf returns the rules of a table, none when it has none, and the name in
// UTF-8 that they match.
func (d *decider) rulesOf(t rewriter.Name, st *statement, cx *reading) (rewriter.Name, []*rule.Rule, error) {
	if cx.rules.Empty() {
		return t, nil, nil
	}
	name, ok, err := d.named(t, cx)
	if err != nil || !ok {
		return t, nil, err
	}
	if len(t.Schema) == 0 && !cx.known {
		switch {
		case !cx.rules.MayMatch(name.Table, cx.rules.Fold):
			return name, nil, nil
		case cx.barrier:
			return name, nil, errCut
		}
		return name, nil, lacks(needProbe)
	}
	if len(name.Schema) == 0 { // none is selected: the server refuses it
		return name, nil, nil
	}
	rules := cx.rules.Match(name.Schema, name.Table, cx.rules.Fold)
	switch {
	case rules == nil:
		return name, nil, nil
	case cx.barrier: // what is known of the table may not be true any more
		return name, nil, errCut
	case d.tables.Fold() == facts.FoldUnknown:
		return name, nil, lacks(needProbe)
	}
	st.key = d.tables.AppendKey(st.key[:0], name.Schema, name.Table)
	own, err := cx.owns(st.key)
	if err != nil {
		return name, nil, err
	}
	if own {
		if cx.busy { // a command that is pending may drop it
			return name, nil, lacks(needQuiet)
		}
		if cx.prepares {
			st.prepared = &relay.Prepared{Kind: shadow(st.key)}
		}
		return name, nil, nil
	}
	return name, rules, nil
}

// owns reports whether the table of a key is a temporary one of the session's own, whose
// rules rest. Where the session may have some that were not seen, the server is asked.
func (cx *reading) owns(key []byte) (bool, error) {
	own, known := cx.snap.Temporary[string(key)]
	if known || !cx.snap.Unseen {
		return own, nil
	}
	return false, errIncomplete{need{kind: needOwner, key: string(key)}}
}
