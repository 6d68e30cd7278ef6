package proxy

import (
	"bytes"
	"errors"
	"log/slog"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// statement is a held command on its way to a decision. It is reused; its
// slices alias the client's bytes until the next read.
type statement struct {
	prefix []byte // command byte and query attributes
	text   []byte // SQL
	seq    byte   // sequence number of the last frame
	multi  bool   // the server splits the text at ';'
	begun  time.Time

	// denied is what the server answered instead of describing a table, to
	// this session and for this statement: another user may be told more.
	denied *facts
	// unprepared: it executes what was prepared last, and that was refused here.
	unprepared bool
	deniedKey  string

	out   []byte // the command with its ids, behind room for a frame header
	spans []rewriter.Span
	parts []part
	plans []rewriter.Plan // by index of the part
	key   []byte          // scratch for table keys
	touch touch
	job   *job // besides inserts: schema and temporary tables
	owing bool // LAST_INSERT_ID() must be paid before it
}

// part is one statement of the text that gets ids, or brings its own.
type part struct {
	result int
	span   rewriter.Span
	rule   *rewriter.Rule
	facts  *facts
	column rewriter.Column
	ids    []uint64
}

// need is what a decision waits for.
type need struct {
	kind  needKind
	table rewriter.Name // needTable, needMax
	key   string        // of the table
	part  *part         // needMax
}

type needKind uint8

const (
	needNothing needKind = iota // decided
	needQuiet                   // no command may be pending
	needProbe                   // the session's settings
	needTable                   // the columns of a table
	needMax                     // the greatest id in a column
)

// read takes a held command, one whole packet.
func (st *statement) read(command []byte, caps uint64, m *requests) {
	payload := wire.Join(command)
	at := 1
	if payload[0] == mysql.COM_QUERY {
		at, _ = wire.QueryText(payload, caps)
	}
	st.prefix, st.text, st.seq = payload[:at], payload[at:], m.seq
	st.multi = m.multi && payload[0] == mysql.COM_QUERY
	st.begun = time.Now()
	st.denied = nil
	st.unprepared = m.lastRefused && executesLast(payload)
}

// decider decides on held statements. It does no I/O: what it does not know it
// names, and it is asked again once that was learned.
type decider struct {
	c      *conversation
	tables *tables
	rules  func() ruleBook
	log    *slog.Logger
	stats  *Stats
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
	snap    state
	mode    rewriter.Mode
	rules   ruleBook
	schema  []byte
	known   bool   // the schema is
	barrier string // a statement behind which nothing is certain any more
	busy    bool   // earlier commands are pending
}

// errIncomplete stands in for a need while a text is gone through.
type errIncomplete struct{ need }

func (errIncomplete) Error() string { return "something must be asked first" }

func lacks(kind needKind) error { return errIncomplete{need{kind: kind}} }

// smallText is the size up to which a text and its ids surely fit the server's
// max_allowed_packet.
const smallText = 512 << 10

// decide goes through the statements of st. It returns what it needs to know,
// or an error for the client, or needNothing with st.parts filled.
func (d *decider) decide(st *statement) (need, error) {
	cx := d.begin(st)
	st.parts, st.touch, st.job, st.owing = st.parts[:0], 0, nil, false
	if st.unprepared {
		return need{}, errUnprepared()
	}
	if st.prefix[0] == mysql.COM_STMT_EXECUTE || st.prefix[0] == comBulkExecute {
		st.owing = true
		st.touch = touchLastID
		if cx.snap.preparedState {
			st.touch |= touchAll
		}
		return need{}, nil
	}
	if doubted(st.text)&^cx.snap.known != 0 || len(st.text) > smallText && cx.snap.known&knowNumbers == 0 {
		if st.unconcerned(&cx) {
			st.touch = touchAll | touchLastID
			return need{}, nil
		}
		return need{kind: needProbe}, nil
	}
	st.spans = rewriter.Split(st.spans[:0], st.text, cx.mode)
	if cx.busy && (len(st.spans) > 1 || rewriter.MentionsLastID(st.text)) {
		return need{kind: needQuiet}, nil
	}
	for i := range st.spans {
		err := d.part(st, i, &cx)
		if missing, ok := errors.AsType[errIncomplete](err); ok {
			return missing.need, nil
		}
		if err != nil {
			return need{}, err
		}
	}
	st.owing = st.owing || cx.snap.lastID.owed && st.readsLastID()
	return need{}, nil
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

// readsLastID reports whether the text reads LAST_INSERT_ID() and does not
// begin with a look at the diagnostics: those are of the statement before the
// text, and paying in front of it would change them. Diagnostics further on
// are of the text's own statements.
func (st *statement) readsLastID() bool {
	if len(st.spans) == 0 {
		return false
	}
	first := st.text[st.spans[0].Start:st.spans[0].End]
	return rewriter.MentionsLastID(st.text) && !rewriter.MentionsDiagnostics(first)
}

func (d *decider) begin(st *statement) reading {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	cx := reading{snap: d.c.state, rules: d.rules(), busy: d.c.pending.n > 0}
	cx.mode = cx.snap.mode
	cx.mode.MultiStatements = st.multi
	cx.schema, cx.known = cx.snap.schema, cx.snap.known&knowSchema != 0
	return cx
}

// part decides on the i-th statement of the text.
func (d *decider) part(st *statement, i int, cx *reading) error {
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
		if edited || err != nil {
			return err
		}
		st.owing = st.owing || cx.snap.lastID.owed && leavesUnseen(head, sql)
	case rewriter.Prepare, rewriter.Execute, rewriter.Compound:
		if err := d.hidden(head, sql, cx); err != nil {
			return err
		}
		st.owing = cx.snap.lastID.owed
	case rewriter.Call:
		st.owing = cx.snap.lastID.owed
	}
	d.follow(st, i, head, cx)
	return nil
}

// follow notes what a statement that is not edited changes for those behind it
// and for the session.
func (d *decider) follow(st *statement, i int, head rewriter.Head, cx *reading) {
	sql := st.text[st.spans[i].Start:st.spans[i].End]
	var p pending
	changes(&p, head, sql, true)
	st.touch |= p.touch
	if st.prefix[0] == mysql.COM_STMT_PREPARE {
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
		cx.barrier = "behind DDL in one text"
	case p.touch&(touchSettings|touchSchema) != 0:
		cx.barrier = "behind SET, USE, CALL or EXECUTE in one text"
	}
	switch {
	case head.Temporary && head.Create:
		if !cx.known && len(head.Target.Schema) == 0 || bytes.IndexByte(sql, '!') >= 0 {
			break // which table it makes, or whether, is not certain: the rule stays awake
		}
		st.key = d.tables.appendKey(st.key[:0], schemaOf(head.Target, cx), head.Target.Table)
		st.jobs().temps = append(st.jobs().temps, temp{result: i, name: string(st.key)})
	case head.Drop && cx.snap.temporary != nil:
		st.jobs().temps = append(st.jobs().temps, temp{result: i})
	}
}

func (st *statement) jobs() *job {
	if st.job == nil {
		st.job = &job{}
	}
	return st.job
}

func schemaOf(t rewriter.Name, cx *reading) []byte {
	if len(t.Schema) > 0 {
		return t.Schema
	}
	return cx.schema
}

// ruleOf returns the rule of a table, nil when there is none.
func (d *decider) ruleOf(t rewriter.Name, st *statement, cx *reading) (*rewriter.Rule, error) {
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
		case cx.barrier != "":
			return nil, errUndecided(errors.New("the default schema is not certain " + cx.barrier))
		}
		return nil, lacks(needProbe)
	}
	schema := schemaOf(t, cx)
	rules := cx.rules.Match(schema, t.Table, cx.rules.fold)
	if rules == nil {
		return nil, nil
	}
	if d.tables.fold.Load() == foldUnknown {
		return nil, lacks(needProbe)
	}
	st.key = d.tables.appendKey(st.key[:0], schema, t.Table)
	if _, own := cx.snap.temporary[string(st.key)]; own && cx.barrier == "" {
		if cx.busy { // a command that is pending may drop it
			return nil, lacks(needQuiet)
		}
		return nil, nil
	}
	if len(rules) > 1 && !rules[0].Observe {
		return rules[0], errUnsupported(rules[0], t, "several generated columns")
	}
	return rules[0], nil
}

// hidden refuses a statement that hides an INSERT into a table with a rule.
func (d *decider) hidden(head rewriter.Head, sql []byte, cx *reading) error {
	var st statement
	for _, t := range rewriter.Hidden(nil, sql, cx.mode) {
		rule, err := d.ruleOf(t, &st, cx)
		if err == nil && rule != nil {
			err = d.refuse(rule, t, hiddenForm(head.Kind))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func hiddenForm(k rewriter.Kind) string {
	switch k {
	case rewriter.Prepare:
		return "INSERT in SQL PREPARE"
	case rewriter.Execute:
		return "INSERT in EXECUTE IMMEDIATE"
	}
	return "INSERT inside another statement"
}

// refuse answers for a form that is not filled: an error, or nil when the rule
// lets it pass.
func (d *decider) refuse(rule *rewriter.Rule, t rewriter.Name, form string) error {
	if rule.Observe {
		d.observe(rule, t, "would refuse: "+form)
		return nil
	}
	if rule.Forward {
		d.stats.Forwarded.Add(1)
		d.log.Debug("forwarded without ids", "rule", rule.String(), "table", string(t.Table), "form", form)
		return nil
	}
	d.stats.Refused.Add(1)
	return errUnsupported(rule, t, form)
}

func (d *decider) observe(rule *rewriter.Rule, t rewriter.Name, what string) {
	d.stats.Observed.Add(1)
	d.log.Info("observed", "rule", rule.String(), "schema", string(t.Schema), "table", string(t.Table), "what", what)
}

// insert decides on an INSERT, REPLACE or LOAD. edited is true when it became
// a part of st; else it goes as it is.
func (d *decider) insert(st *statement, i int, head rewriter.Head, cx *reading) (edited bool, err error) {
	rule, err := d.ruleOf(head.Target, st, cx)
	if rule == nil || err != nil {
		return false, err
	}
	if cx.barrier != "" { // what is known of the table may not be true any more
		return false, d.refuse(rule, head.Target, "INSERT "+cx.barrier)
	}
	p, err := d.facts(st, head.Target, rule, cx)
	if e, ok := errors.AsType[*mysql.MyError](err); ok && rule.Observe {
		d.observe(rule, head.Target, "would refuse: "+e.Message)
		return false, nil
	}
	if p.facts == nil || err != nil {
		return false, err
	}
	switch {
	case head.Kind == rewriter.Load:
		return false, d.refuse(rule, head.Target, "LOAD DATA")
	case st.prefix[0] == mysql.COM_STMT_PREPARE:
		return false, d.refuse(rule, head.Target, "prepared INSERT")
	}
	p.span, p.result = st.spans[i], i
	return d.plan(st, head.Target, p, cx)
}

// facts finds the column of the rule in what is known of the table. A part
// without facts goes as it is.
func (d *decider) facts(st *statement, t rewriter.Name, rule *rewriter.Rule, cx *reading) (part, error) {
	f := d.tables.get(st.key)
	if cx.snap.unseen {
		if f = d.own[string(st.key)]; !d.tables.current(f) {
			f = nil
		}
	}
	if st.denied != nil && st.deniedKey == string(st.key) {
		f = st.denied
	}
	if f == nil {
		t.Schema = schemaOf(t, cx)
		return part{}, errIncomplete{need{kind: needTable, table: t, key: string(st.key)}}
	}
	if f.err != nil {
		if f.err.Code == mysql.ER_NO_SUCH_TABLE || f.err.Code == mysql.ER_BAD_DB_ERROR {
			return part{}, nil // the server will say so itself
		}
		return part{}, errFacts(rule, f.name, f.err)
	}
	column, _, ok := f.table.Column(rule.Column)
	switch {
	case !ok && rule.Exact():
		return part{}, errNoColumn(rule, f.name)
	case !ok && f.view:
		return part{}, d.refuse(rule, t, "INSERT through a view without column "+rule.Column)
	case !ok:
		d.stats.NoColumn.Add(1)
		return part{}, nil
	case column.Max == 0:
		return part{}, errColumnType(rule, f.name)
	}
	return part{rule: rule, facts: f, column: column}, nil
}

// plan reads the INSERT and adds it to the parts of st.
func (d *decider) plan(st *statement, t rewriter.Name, p part, cx *reading) (edited bool, err error) {
	n := len(st.parts)
	for len(st.plans) <= n {
		st.plans = append(st.plans, rewriter.Plan{})
	}
	plan := &st.plans[n]
	err = plan.Read(&rewriter.Statement{
		Text: st.text[p.span.Start:p.span.End], Mode: cx.mode, Rules: []*rewriter.Rule{p.rule}, Table: p.facts.table,
	})
	if form, ok := errors.AsType[*rewriter.Unsupported](err); ok {
		return false, d.refuse(p.rule, t, form.Form)
	}
	if err != nil { // ErrRefusedByServer
		if p.facts.at.Before(st.begun) { // by what the table was; the server must be sure to refuse it now
			t.Schema = schemaOf(t, cx)
			return false, errIncomplete{need{kind: needTable, table: t, key: string(st.key)}}
		}
		return false, nil // it goes as it is, and the server says why not
	}
	if plan.ZeroDoubt && cx.snap.known&knowZero == 0 || plan.Rows > 1 && cx.snap.known&knowNumbers == 0 {
		return false, lacks(needProbe)
	}
	filled := plan.Columns[0]
	rejected := filled.Explicit > 0 && p.rule.Explicit == rewriter.Reject
	switch {
	case p.rule.Observe && rejected:
		d.observe(p.rule, t, "would refuse: explicit value")
		return false, nil
	case p.rule.Observe:
		d.observe(p.rule, t, "would fill ids")
		return false, nil
	case rejected:
		return false, errExplicit(p.rule)
	}
	if filled.Generated > 0 && !d.tables.isAdmitted(p.admission()) {
		asked := p
		t.Schema = schemaOf(t, cx)
		return false, errIncomplete{need{kind: needMax, table: t, part: &asked}}
	}
	if n < cap(st.parts) { // the memory of an earlier statement's ids
		p.ids = st.parts[:n+1][n].ids
	}
	st.parts = append(st.parts, p)
	return true, nil
}

// admission names what a source is compared with.
func (p *part) admission() string {
	return p.facts.name + "." + p.rule.Column + " " + p.rule.Source
}
