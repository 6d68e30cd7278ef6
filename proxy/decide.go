package proxy

import (
	"bytes"
	"errors"
	"log/slog"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/rewriter"
)

// need is what a decision waits for.
type need struct {
	kind    needKind
	table   rewriter.Name     // needTable, needEngine
	key     string            // of the table
	column  *filling          // needMax
	values  []string          // needValues, needSource: expressions
	columns []rewriter.Column // needValues: of each, the column it is for
	wide    []bool            // needValues: of each bound one, whether its column has wide ids; nil: none has
	ignore  bool              // needValues: the statement says IGNORE
	bound   bool              // needValues: they are arguments of EXECUTE
	facts   *facts            // needEngine
	part    *part             // needCount, needExact
	plan    *rewriter.Plan    // needCount, needExact
}

type needKind uint8

const (
	needNothing needKind = iota // decided
	needQuiet                   // no command may be pending
	needProbe                   // the session's settings
	needTable                   // the columns of a table
	needMax                     // the greatest id in a column
	needValues                  // what expressions for ids are worth
	needSource                  // the text that an expression gives a PREPARE
	needCharset                 // character_set_database
	needEngine                  // whether the table's engine takes rows back
	needExact                   // whether MariaDB keeps the values of a query that stands inside another
	needCount                   // how many rows a query gives
)

// decider decides on held statements. It does no I/O: what it does not know it
// names, and it is asked again once that was learned.
type decider struct {
	c      *conversation
	tables *tables
	rules  func() ruleBook
	log    *slog.Logger
	stats  *Stats
	second SecondReader // nil: none
	// own holds facts once routines or the like have run in the session: a
	// temporary table that they made is not what others see by its name.
	own map[string]*facts
}

// keep remembers what the server said of a table.
func (d *decider) keep(key string, f *facts, unseen bool) {
	switch {
	case !unseen:
		d.tables.put(key, f)
		return
	case d.own == nil || len(d.own) >= maxOwn:
		d.own = map[string]*facts{}
	}
	d.own[key] = f
}

// maxOwn bounds the facts a session keeps for itself; when there are more, it
// asks again.
const maxOwn = 64

// reading is what a text has said so far, while its statements are gone
// through.
type reading struct {
	snap   state
	mode   rewriter.Mode
	rules  ruleBook
	schema []byte
	known  bool // the schema is
	// What the statements in front do to what is known of the session:
	settings bool // they may change settings or the schema, to what cannot be told
	barrier  bool // or tables
	busy     bool // earlier commands are pending
	remaking bool // and one of them may change tables
	owes     bool // LAST_INSERT_ID() is owed, or may be when they are over
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
// or an error for the client, or needNothing with st.parts filled.
func (d *decider) decide(st *statement) (need, error) {
	cx := d.begin(st)
	st.parts, st.touch, st.job, st.owing = st.parts[:0], 0, nil, false
	st.load = nil
	if st.dynamic != nil {
		st.dynamic, st.prepared, st.short = nil, nil, false
	}
	st.spans, st.end, st.rest = st.spans[:0], len(st.text), 0
	if st.prepares() {
		st.prepared = nil
	}
	if st.prefix[0] == mysql.COM_STMT_EXECUTE || st.prefix[0] == comBulkExecute {
		return needOf(d.executes(st, &cx))
	}
	if st.doubted(^cx.snap.known) || len(st.text) > smallText && cx.snap.known&knowNumbers == 0 {
		if st.unconcerned(&cx) {
			d.c.blind = d.c.blind || rewriter.MentionsPrepare(st.text)
			st.touch = touchAll | touchLastID
			return need{}, nil
		}
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
		if ends || len(st.parts) == maxParts || cx.settings && !cx.rules.Empty() && st.writesBehind(at) {
			st.end, st.rest = span.End, at
			return nil
		}
	}
	return nil
}

// unconcerned reports whether a text that cannot be read with certainty is
// better passed on as it is: no rule can concern it, and it may look at
// diagnostics, which a question in front of it would change.
func (st *statement) unconcerned(cx *reading) bool {
	if cx.snap.lastID.owed {
		return false
	}
	return cx.rules.Empty() || rewriter.MentionsDiagnostics(st.text) && !rewriter.MentionsWrite(st.text)
}

func (d *decider) begin(st *statement) reading {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	cx := reading{snap: d.c.state.snapshot(), rules: d.rules(), busy: d.c.pending.n > 0}
	cx.owes = d.c.mayOwe()
	for i := range d.c.pending.n {
		cx.remaking = cx.remaking || d.c.pending.at(i).touch&touchTables != 0
	}
	cx.mode = cx.snap.mode
	cx.mode.MultiStatements = st.multi
	cx.schema, cx.known = cx.snap.schema, cx.snap.known&knowSchema != 0
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
		edited, err := d.insert(st, i, head, cx)
		if err != nil {
			return false, err
		}
		if edited && (st.load != nil || !st.plans[len(st.parts)-1].NoLastID) {
			return st.load != nil || st.plans[len(st.parts)-1].Plain, nil
		}
		st.owing = st.owing || cx.owes && leavesUnseen(head) && !rewriter.MentionsDiagnostics(sql)
	case rewriter.Prepare, rewriter.Execute, rewriter.Deallocate, rewriter.Compound:
		if head.Kind != rewriter.Compound && !st.prepares() {
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
	case st.prepares():
	case head.Temporary && head.Create && bytes.IndexByte(st.text[st.spans[i].Start:st.spans[i].End], '!') >= 0:
		st.touch |= touchAll // whether it makes one is not certain: the rule stays awake
	case head.Temporary && head.Create:
		certain := (cx.known || len(head.Target.Schema) > 0) && d.tables.fold.Load() != foldUnknown
		switch {
		case certain:
			st.key = d.tables.appendKey(st.key[:0], schemaOf(head.Target, cx), head.Target.Table)
			st.jobs().temps = append(st.jobs().temps, temp{result: i, name: string(st.key)})
		case cx.rules.Empty():
			st.touch |= touchAll
		case cx.barrier:
			return errCut
		default:
			return lacks(needProbe)
		}
	case head.Drop && cx.snap.temporary != nil:
		st.jobs().temps = append(st.jobs().temps, temp{result: i})
	}
	return nil
}

// follow notes what a statement that is not edited changes for those behind it
// and for the session.
func (d *decider) follow(st *statement, i int, head rewriter.Head, cx *reading) {
	sql := st.text[st.spans[i].Start:st.spans[i].End]
	var p pending
	changes(&p, head, sql, true)
	st.touch |= p.touch
	if st.prepares() {
		return
	}
	if len(st.spans) > 1 && p.touch&touchInsert != 0 {
		st.touch |= touchLastID
	}
	if p.job != nil {
		cx.schema, cx.known = p.job.schema, true
		st.jobs().schema = p.job.schema
	}
	if p.touch&touchSchema != 0 {
		cx.known = false
		st.jobs().schema = nil
	}
	switch {
	case p.touch&touchTables != 0 && head.Kind == rewriter.DDL:
		cx.barrier = true
	case p.touch&(touchSettings|touchSchema) != 0:
		cx.barrier, cx.settings = true, true
	}
}

func schemaOf(t rewriter.Name, cx *reading) []byte {
	if len(t.Schema) > 0 {
		return t.Schema
	}
	return cx.schema
}

// rulesOf returns the rules of a table, none when it has none.
func (d *decider) rulesOf(t rewriter.Name, st *statement, cx *reading) ([]*rewriter.Rule, error) {
	if cx.rules.Empty() {
		return nil, nil
	}
	if len(t.Table) == 0 {
		return nil, errUndecided(errors.New("the table it writes to could not be read"))
	}
	if len(t.Schema) == 0 && !cx.known {
		switch {
		case !cx.rules.MayMatch(t.Table, cx.rules.fold):
			return nil, nil
		case cx.barrier:
			return nil, errCut
		}
		return nil, lacks(needProbe)
	}
	schema := schemaOf(t, cx)
	rules := cx.rules.Match(schema, t.Table, cx.rules.fold)
	switch {
	case rules == nil:
		return nil, nil
	case cx.barrier: // what is known of the table may not be true any more
		return nil, errCut
	case d.tables.fold.Load() == foldUnknown:
		return nil, lacks(needProbe)
	}
	st.key = d.tables.appendKey(st.key[:0], schema, t.Table)
	if _, own := cx.snap.temporary[string(st.key)]; own {
		if cx.busy { // a command that is pending may drop it
			return nil, lacks(needQuiet)
		}
		if st.prepares() {
			st.prepared = &prepared{shadow: string(st.key)}
		}
		return nil, nil
	}
	return rules, nil
}
