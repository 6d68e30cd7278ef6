package decide

import (
	"bytes"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Decider decides on held statements. It does no I/O: what it does not know it
// names, and it is asked again once that was learned.
type Decider struct {
	Tables *facts.Tables
	Rules  func() relay.RuleBook
	Second SecondReader // nil: none
}

// SecondReader checks a plan with another reader of SQL than the one that made
// it. It is called from many goroutines, for every injected statement, so it
// must be quick where it has seen a statement's like before.
type SecondReader interface {
	// Check returns an error that tells how the two readings differ.
	Check(s *rewriter.Statement, p *rewriter.Plan) error
}

// reading is what a text has said so far, while its statements are gone
// through.
type reading struct {
	now    relay.Snapshot // what is known of the session
	found  *Findings      // what was seen so far
	Mode   rewriter.Mode
	rules  relay.RuleBook
	schema []byte
	known  bool // the schema is
	// prepares: it is a statement to prepare. inner is its text where a PREPARE in SQL brings it.
	prepares bool
	inner    []byte
	// What the statements in front do to what is known of the session:
	settings bool // they may change settings or the schema, to what cannot be told
	barrier  bool // or tables
}

// NeedOf takes the need out of an error that is one.
func NeedOf(err error) (Need, error) {
	if missing, ok := errors.AsType[Need](err); ok {
		return missing, nil
	}
	return nil, err
}

// maxParts bounds the INSERTs of a piece, and so what is kept for them.
const maxParts = 1000

// errCut says that the piece ends in front of a statement: the others must be
// over before it is decided on.
var errCut = errors.New("the statements in front must be over first")

// SmallText is the size up to which a text and its ids surely fit the server's
// max_allowed_packet.
const SmallText = 512 << 10

// Decide goes through the statements of st, as the session is now. It returns what it needs to know,
// or an error for the client, or nil and nil with a decision in st. It changes nothing else.
//
// A text that names no table with a rule, however it is read, goes as it came before
// anything is asked for it, cut off it or refused. Statements by name are known better from
// a text in pieces.
func (d *Decider) Decide(st *Statement, now relay.Snapshot) (Need, error) {
	cx := d.begin(st, now)
	missing, err := d.wholeOrPiece(st, &cx)
	if missing == nil && err == nil && st.Prepares() {
		cx.completePrepare(st)
	}
	return missing, err
}

// wholeOrPiece decides on the next piece, or lets all of the text pass.
func (d *Decider) wholeOrPiece(st *Statement, cx *reading) (Need, error) {
	missing, err := d.judge(st, *cx)
	decided := missing == nil && err == nil
	if decided && (st.Rest == 0 || !cx.rules.Empty() && rewriter.MentionsDynamic(st.Text)) || !d.unconcerned(st, cx) {
		if missing != nil && missing != (NeedQuiet{}) && cx.readersFirst(st) {
			return nil, nil
		}
		return missing, err
	}
	st.Found.unread = append(st.Found.unread, unread{text: st.Text, by: cx.rules.List})
	st.asItCame()
	st.Touch, st.After, st.Owing = relay.TouchAll|relay.TouchLastID, nil, false
	st.Spans, st.End, st.Rest, st.Refused = st.Spans[:0], len(st.Text), 0, 0
	st.Prepared, st.Dynamic = nil, nil
	return nil, nil
}

// judge is decide for what it cannot tell to be without any rule.
func (d *Decider) judge(st *Statement, cx reading) (Need, error) {
	st.reset()
	st.Prepared, st.reply = st.Executes, nil
	switch st.Prefix[0] {
	case mysql.COM_STMT_EXECUTE, relay.ComBulkExecute:
		return NeedOf(d.executes(st, &cx))
	case mysql.COM_STMT_SEND_LONG_DATA:
		return NeedOf(d.readyForLong(st, &cx))
	}
	if st.doubted(^cx.now.Known) || len(st.Text) > SmallText && cx.now.Known&relay.KnowNumbers == 0 {
		return NeedProbe{}, nil
	}
	if cx.now.Busy && rewriter.MentionsLastID(st.Text) {
		return NeedQuiet{}, nil
	}
	if missing, err := NeedOf(d.parts(st, &cx)); missing != nil || err != nil {
		return missing, err
	}
	st.Owing = st.Owing || cx.now.Owes && st.readsLastID()
	if st.Owing && cx.now.Busy { // what is owed then is not certain yet
		return NeedQuiet{}, nil
	}
	return nil, nil
}

// parts goes through the statements of the next piece.
func (d *Decider) parts(st *Statement, cx *reading) error {
	for at := 0; ; {
		span, last, ok := rewriter.Next(st.Text, at, cx.Mode)
		if !ok {
			break
		}
		st.Spans = append(st.Spans, span)
		if st.Touch&relay.TouchInsert != 0 { // the reply shows the insert id of its last result alone
			st.Touch |= relay.TouchLastID
		}
		if cx.now.Busy && !last {
			return NeedQuiet{}
		}
		i := len(st.Spans) - 1
		if i > 0 && i == st.Refused {
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
		if ends || len(st.Filled.Parts) == maxParts || cx.settings && !cx.rules.Empty() && st.writesBehind(at) {
			st.End, st.Rest = span.End, at
			return nil
		}
	}
	return nil
}

// unconcerned reports whether no rule can concern what is left of a text. What looks at
// diagnostics and writes nothing is not asked about: a question would change them.
func (d *Decider) unconcerned(st *Statement, cx *reading) bool {
	switch {
	case st.Prefix[0] != mysql.COM_QUERY && st.Prefix[0] != mysql.COM_STMT_PREPARE, cx.now.Owes:
		return false
	case cx.rules.Empty():
		return true
	case rewriter.MentionsDynamic(st.Text) && (cx.concernsName() || !rewriter.PlainDynamic(st.Text)):
		return false
	}
	return !cx.rules.MayName(st.Text) ||
		rewriter.MentionsDiagnostics(st.Text) && (!rewriter.MentionsWrite(st.Text) || !cx.rules.MayNameIn(st.Text, cx.schema, cx.known))
}

// begin begins to read the command.
func (d *Decider) begin(st *Statement, now relay.Snapshot) reading {
	cx := reading{now: now, rules: d.Rules(), found: &st.Found, prepares: st.Prepares(), Mode: now.Mode}
	cx.Mode.MultiStatements = st.Multi
	cx.schema, cx.known = now.Schema, now.Known&relay.KnowSchema != 0
	return cx
}

// part decides on the i-th statement of the piece. ends: it must be the last.
func (d *Decider) part(st *Statement, i int, cx *reading) (ends bool, err error) {
	span := st.Spans[i]
	sql := st.Text[span.Start:span.End]
	head, more := st.head.Of(sql, cx.Mode)
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
			st.Touch |= relay.TouchNumbers
			cx.barrier, cx.settings = true, true
		}
		if how == noticed || how == alone {
			return how == alone, nil
		}
		st.Owing = st.Owing || cx.now.Owes && head.HidesLastID() && !rewriter.MentionsDiagnostics(sql)
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate, rewriter.Compound:
		if head.Kind != rewriter.Compound && !cx.prepares {
			return d.dynamic(st, i, head, cx)
		}
		if err := d.hidden(st, head, sql, cx); err != nil {
			return false, err
		}
		st.Owing = cx.now.Owes
	case rewriter.Call:
		st.Owing = cx.now.Owes
	}
	if err := d.creates(st, head, sql, cx); err != nil {
		return false, err
	}
	if err := d.temporary(st, i, head, cx); err != nil {
		return false, err
	}
	cx.follow(st, i, head)
	return false, nil
}

// temporary notes the temporary tables that a statement makes or drops.
func (d *Decider) temporary(st *Statement, i int, head rewriter.Head, cx *reading) error {
	switch {
	case cx.prepares:
	case head.Temporary && head.Create && bytes.IndexByte(st.Text[st.Spans[i].Start:st.Spans[i].End], '!') >= 0:
		st.Touch |= relay.TouchAll // whether it makes one is not certain: the rule stays awake
	case head.Temporary && head.Create:
		name, readable, err := d.named(head.Target, cx)
		certain := (cx.known || len(head.Target.Schema) > 0) && d.Tables.Fold() != facts.FoldUnknown
		switch {
		case err != nil && !cx.rules.Empty():
			return err
		case err == nil && !readable: // the server refuses it
		case err == nil && certain:
			st.Key = d.Tables.AppendKey(st.Key[:0], name.Schema, name.Table)
			st.changes().Temps = append(st.changes().Temps, relay.Temp{Result: i, Name: string(st.Key)})
		case cx.rules.Empty():
			st.Touch |= relay.TouchAll
		case cx.barrier:
			return errCut
		default:
			return NeedProbe{}
		}
	case head.Drop && cx.now.Temporary != nil:
		st.changes().Temps = append(st.changes().Temps, relay.Temp{Result: i})
	}
	return nil
}

// follow notes what a statement that is not edited changes for those behind it
// and for the session.
func (cx *reading) follow(st *Statement, i int, head rewriter.Head) {
	sql := st.Text[st.Spans[i].Start:st.Spans[i].End]
	var p relay.Pending
	relay.Changes(&p, head, sql, true)
	st.Touch |= p.Touch
	if cx.prepares {
		return
	}
	st.Unseen = st.Unseen || p.Unseen
	if len(st.Spans) > 1 && p.Touch&relay.TouchInsert != 0 {
		st.Touch |= relay.TouchLastID
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
func (d *Decider) rulesOf(t rewriter.Name, st *Statement, cx *reading) (rewriter.Name, []*rule.Rule, error) {
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
		return name, nil, NeedProbe{}
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
	case d.Tables.Fold() == facts.FoldUnknown:
		return name, nil, NeedProbe{}
	}
	st.Key = d.Tables.AppendKey(st.Key[:0], name.Schema, name.Table)
	own, err := cx.owns(st.Key)
	if err != nil {
		return name, nil, err
	}
	if own {
		if cx.now.Busy { // a command that is pending may drop it
			return name, nil, NeedQuiet{}
		}
		if cx.prepares {
			st.Prepared = &relay.Prepared{Kind: shadow(st.Key)}
		}
		return name, nil, nil
	}
	return name, rules, nil
}

// owns reports whether the table of a key is a temporary one of the session's own, whose
// rules rest. Where the session may have some that were not seen, the server is asked.
func (cx *reading) owns(key []byte) (bool, error) {
	own, known := cx.now.Temporary[string(key)]
	if known || !cx.now.Unseen {
		return own, nil
	}
	return false, NeedOwner{Key: string(key)}
}
