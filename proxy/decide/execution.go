package decide

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/ask"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// execution is the execution of a prepared INSERT that gets ids: one row of
// parameters, or, by COM_STMT_BULK_EXECUTE, several.
type execution struct {
	*filled
	e      *relay.Prepared
	One    wire.Execute
	many   wire.Bulk
	bulk   bool
	rows   int              // of parameters
	size   int              // of a bulk execution with its ids, at most
	values []rewriter.Value // of bound ids, row by row
	keys   []wire.Parameter // that genes come from, row by row
	params []wire.Parameter // what is sent
	ids    []byte           // the values of ids in it
	units  *relay.Units     // what the results for each row must show; nil: there are none
}

// idType is the type that ids are bound with, unsigned but for what [splicer.derived] says. Text
// would not do: MySQL takes LAST_INSERT_ID('9223372036854775814') for too large.
const idType = uint16(mysql.MYSQL_TYPE_LONGLONG) | wire.Unsigned

// executes decides on an execution that was held.
func (d *Decider) executes(st *Statement, cx *reading) error {
	e := st.Prepared
	st.forwarded = forwardedExecution{e: e}
	if st.Order = &st.forwarded; e == nil || e.Failed.Raised() { // to the server too, which says so
		return nil
	}
	if e.Long.Refused != nil {
		return e.Long.Refused
	}
	if err := d.allowed(st, e, cx); err != nil {
		return err
	}
	switch {
	case CountedOf(e) != nil:
		return d.selectsPrepared(st, e, cx)
	case FillerOf(e) == nil && cx.now.Busy && cx.now.Owes:
		return NeedQuiet{}
	case FillerOf(e) == nil:
		st.Owing = cx.now.Owes && e.Reads
		st.Touch, st.forwarded.typed = e.Touch, e.Untyped
		cx.found.executed = e
		cx.found.types, _ = relay.TypesOf(cx.found.types, st.Payload(), cx.now.Caps, cx.now.Params)
		cx.found.typed = len(cx.found.types) > 0
		return nil
	}
	return d.fills(st, e, cx)
}

// readyForLong decides whether long data may go to the server.
func (d *Decider) readyForLong(st *Statement, cx *reading) error {
	e := st.Prepared
	if err := d.allowed(st, e, cx); err != nil || FillerOf(e) == nil {
		return err
	}
	return d.asPrepared(st, e, cx)
}

// allowed returns why a statement cannot be executed any more as it was prepared.
func (d *Decider) allowed(st *Statement, e *relay.Prepared, cx *reading) error {
	if _, ok := e.Kind.(*bare); ok {
		if err := d.isBare(st, e, cx); err != nil {
			return err
		}
	}
	if e.Ruled(cx.rules) {
		return outdated(cx, e)
	}
	switch k := e.Kind.(type) {
	case stale:
		return outdated(cx, e)
	case Refusal:
		if cx.now.Busy { // perhaps with its PREPARE
			return NeedQuiet{}
		}
		return k.MyError
	case shadow:
		return k.allowed(cx, e)
	}
	return nil
}

// allowed returns why the statement does not go into the temporary table any more.
func (key shadow) allowed(cx *reading, e *relay.Prepared) error {
	if cx.now.Busy {
		return NeedQuiet{}
	}
	own, err := cx.owns([]byte(key))
	if err == nil && !own {
		err = outdated(cx, e)
	}
	return err
}

// fills decides on the execution of a statement that gets ids.
func (d *Decider) fills(st *Statement, e *relay.Prepared, cx *reading) error {
	f := FillerOf(e)
	if cx.now.Broken {
		return clienterr.Miscounted(f.rules[0], f.facts.Name)
	}
	if len(st.Text) > SmallText && cx.now.Known&relay.KnowNumbers == 0 {
		return NeedProbe{}
	}
	x := &st.Execution
	x.filled, x.e = &st.Filled, e
	if err := x.read(&st.Command, &cx.now, cx.found); err != nil {
		return err
	}
	if err := x.fits(&cx.now.State); err != nil {
		return err
	}
	p, plan := x.room()
	p.head, p.Name = f.head, f.name
	p.Rules, p.columns = append(p.Rules, f.rules...), append(p.columns, f.columns...)
	if err := d.asPrepared(st, e, cx); err != nil {
		return err
	}
	p.Facts = st.Facts
	if err := x.judge(&cx.now.State); err != nil {
		return err
	}
	f.Plan.Bind(plan, x.values, x.rows, p.columns)
	if err := x.genes(plan, &cx.now.State); err != nil {
		return err
	}
	if err := d.bound(st, p, plan, e, f.Plan.Reads, cx); err != nil {
		return err
	}
	if plan.NoLastID { // as one that is prepared as it is
		st.Owing = cx.now.Owes && e.Reads
	}
	st.Order = x
	return nil
}

// bound adds the INSERT that an execution runs to those that get ids. reads: LAST_INSERT_ID() is read.
func (d *Decider) bound(st *Statement, p *Part, plan *rewriter.Plan, e *relay.Prepared, reads bool, cx *reading) error {
	switch {
	case plan.Rows > 1 && cx.now.Known&relay.KnowNumbers == 0:
		return NeedProbe{}
	case reads && cx.now.Busy:
		return NeedQuiet{}
	}
	st.Owing = reads && cx.now.Owes
	st.Touch |= e.Touch
	if err := d.admissible(st, p, plan, cx); err != nil {
		return err
	}
	st.Filled.add()
	return nil
}

// asPrepared sees to it that the table is what it was at the PREPARE, as far as the
// statement's ids depend on it, and so is what generates one.
func (d *Decider) asPrepared(st *Statement, e *relay.Prepared, cx *reading) error {
	f := FillerOf(e)
	if cx.now.Remaking {
		return NeedQuiet{}
	}
	own, err := cx.owns([]byte(f.key))
	switch {
	case err != nil:
		return err
	case own:
		return outdated(cx, e)
	case f.Plan.ZeroDoubt && cx.now.Known&relay.KnowZero == 0:
		return NeedProbe{}
	case f.Plan.Literals && cx.now.Known&relay.KnowStrict == 0:
		return NeedProbe{}
	case f.Plan.ZeroDoubt && f.noZero != cx.now.Mode.NoAutoValueOnZero, f.Plan.Literals && f.strict != cx.now.Strict:
		return outdated(cx, e)
	}
	st.Facts = f.facts
	asked := func(is *facts.Table) bool { return !f.Plan.ByPosition || !is.At.Before(st.Begun) }
	if d.Tables.Current(f.facts) && asked(f.facts) {
		return nil
	}
	now := d.known(st, []byte(f.key))
	switch {
	case now == nil, !asked(now):
		return NeedTable{Table: f.name, Key: f.key}
	case now.Err != nil:
		return now.Err // as the server itself says it
	case !sameColumns(now, f):
		return outdated(cx, e)
	}
	cx.found.executed, cx.found.facts, st.Facts = e, now, now
	return nil
}

// isBare sees to it that the table of a statement that goes as it is still has
// no column with a rule.
func (d *Decider) isBare(st *Statement, e *relay.Prepared, cx *reading) error {
	b := e.Kind.(*bare)
	if cx.now.Remaking {
		return NeedQuiet{}
	}
	st.Facts = b.facts
	if d.Tables.Current(b.facts) {
		return nil
	}
	if own, err := cx.owns([]byte(b.key)); own || err != nil {
		return err
	}
	now := d.known(st, []byte(b.key))
	switch {
	case now == nil:
		return NeedTable{Table: b.name, Key: b.key}
	case now.Err != nil:
		return nil // the server will say so itself
	case now.View, gained(now.Table, b.rules):
		return outdated(cx, e)
	}
	cx.found.executed, cx.found.facts = e, now
	return nil
}

// gained reports whether one of the rules, wildcards that left a table alone, concerns
// it now.
func gained(t *rule.Table, rules []*rule.Rule) bool {
	return slices.ContainsFunc(rules, func(rule *rule.Rule) bool { return rule.Unfit(t).None() })
}

// known returns what is known of a table, nil when nothing is.
func (d *Decider) known(st *Statement, key []byte) *facts.Table {
	if f := st.denied[string(key)]; f != nil {
		return f
	}
	return d.Tables.Get(key)
}

// sameColumns reports whether the statement's ids go into a table that was
// described anew as they did at the PREPARE.
func sameColumns(now *facts.Table, f *filler) bool {
	if now.View != f.facts.View || now.Table == nil || counting(now.Table) != counting(f.facts.Table) || gained(now.Table, f.absent) {
		return false
	}
	for i, rule := range f.rules {
		if column, _, ok := now.Table.Column(rule.Column); !ok || column != f.columns[i] {
			return false
		}
	}
	if !slices.Equal(keyColumns(now.Table, f.rules), f.keys) {
		return false
	}
	sameName := func(a, b rule.Column) bool { return a.Name == b.Name }
	return !f.Plan.ByPosition || slices.EqualFunc(now.Table.Columns, f.facts.Table.Columns, sameName)
}

// counting returns the name of the column with AUTO_INCREMENT.
func counting(t *rule.Table) string {
	for _, columns := range [...][]rule.Column{t.Columns, t.Invisible} {
		for i := range columns {
			if columns[i].AutoIncrement {
				return columns[i].Name
			}
		}
	}
	return ""
}

// read takes the packet apart.
func (x *execution) read(held *Command, now *relay.Snapshot, found *Findings) error {
	x.bulk, x.rows, x.units = held.Prefix[0] == relay.ComBulkExecute, 1, nil
	e, payload := x.e, held.Payload()
	n := FillerOf(e).Plan.Client
	if !x.bulk {
		if err := x.One.Parse(payload, now.Caps, wire.Bound{Parameters: n, Types: e.Types, Long: e.Long.Has}); err != nil {
			return clienterr.Packet(err, now.Mode.MariaDB, "mysqld_stmt_execute")
		}
		found.gives(e, &x.One, n)
		for _, data := range e.Long.IDs {
			if len(data) > relay.MaxLongID {
				return clienterr.LongID(FillerOf(e).rules[0], relay.MaxLongID)
			}
		}
		return nil
	}
	if n == 0 {
		return clienterr.NoBulk()
	}
	const command = "mysqld_stmt_bulk_execute"
	if e.Long.IDs != nil || e.Long.Sent != nil {
		return clienterr.Arguments(command)
	}
	err := x.many.Parse(payload, n, e.Types)
	if x.many.Flags&^(wire.BulkTypes|wire.BulkUnitResults) != 0 {
		return clienterr.NoBulk()
	}
	if err != nil {
		return clienterr.Packet(err, now.Mode.MariaDB, command)
	}
	if x.many.Flags&wire.BulkUnitResults != 0 {
		x.units = &relay.Units{}
	}
	if x.many.Typed {
		found.executed, found.typed, found.types = e, true, append(found.types[:0], x.many.Types...)
	}
	id := 9 // bytes of an id, with its indicator
	if FillerOf(e).anyWide() {
		id = 1 + rule.LongestLiteral
	}
	nulls := 0
	rows, ok := x.many.Walk(func(_, param int, indicator byte, _ []byte) {
		if _, bound := FillerOf(e).boundID(param); bound && indicator != wire.IndicatorNone {
			nulls++
		}
	})
	if x.rows = rows; !ok || rows == 0 {
		return clienterr.Arguments(command)
	}
	x.size = len(payload) + id*(nulls+rows*(len(FillerOf(e).Plan.Parameters)-n))
	return nil
}

// fits refuses a bulk execution that its ids make larger than the server takes,
// before any are drawn: a row may be one byte.
func (x *execution) fits(s *relay.State) error {
	switch {
	case !x.bulk:
	case s.Known&relay.KnowNumbers == 0:
		return NeedProbe{}
	case uint64(x.size) > s.MaxPacket:
		return clienterr.TooLarge(x.size, "max_allowed_packet", s.MaxPacket)
	}
	return nil
}

// judge finds out which of the bound ids generate.
func (x *execution) judge(s *relay.State) error {
	e := x.e
	f := FillerOf(e)
	x.values = x.values[:0]
	if len(f.bound) == 0 {
		return nil
	}
	if f.Plan.Ignore { // what strict modes refuse is let pass then
		loose := *s
		loose.Strict, s = false, &loose
	}
	doubt := false
	var refused error
	take := func(param int, v wire.Parameter) {
		column, ok := f.boundID(param)
		if !ok {
			return
		}
		if data, long := e.Long.IDs[param]; long {
			v = longID(data)
		}
		if f.wide(column) { // NULL alone generates
			x.values = append(x.values, rewriter.Value{Generate: v.Null || byte(v.Type) == mysql.MYSQL_TYPE_NULL})
			return
		}
		if isTime(byte(v.Type)) && !v.Null {
			refused = clienterr.Unsupported(f.rules[column], f.name, "id of a date or time type")
			return
		}
		value, certain := idOf(&v, f.columns[column], s)
		doubt = doubt || !certain && s.Known&(relay.KnowZero|relay.KnowStrict) != relay.KnowZero|relay.KnowStrict
		x.values = append(x.values, value)
	}
	if !x.bulk {
		for i, v := range x.One.Parameters[:f.Plan.Client] {
			take(i, v)
		}
	} else {
		x.many.Walk(func(_, param int, indicator byte, value []byte) {
			v := wire.Parameter{Type: x.many.Types[param], Null: indicator == wire.IndicatorNull, Value: value}
			if indicator >= wire.IndicatorDefault { // stores 0, which generates or not
				v.Type, v.Value = uint16(mysql.MYSQL_TYPE_TINY), []byte{0}
				column, ok := f.boundID(param)
				v.Null = ok && f.wide(column) // or generates in any case
			}
			take(param, v)
		})
	}
	switch {
	case refused != nil:
		return refused
	case doubt:
		return NeedProbe{}
	}
	return nil
}

// isTime reports whether a type is one of dates or times. MySQL goes on to take
// a parameter for a date that was bound as one, also an id.
func isTime(kind byte) bool {
	return kind == mysql.MYSQL_TYPE_DATE || kind == mysql.MYSQL_TYPE_DATETIME || kind == mysql.MYSQL_TYPE_TIMESTAMP || kind == mysql.MYSQL_TYPE_TIME
}

// longID is an id that was sent as long data.
func longID(data []byte) wire.Parameter {
	return wire.Parameter{Type: uint16(mysql.MYSQL_TYPE_VAR_STRING), Value: mysql.PutLengthEncodedString(data)}
}

// idOf says what an AUTO_INCREMENT column makes of a bound value. certain: it
// does so in every sql_mode.
func idOf(p *wire.Parameter, column rule.Column, s *relay.State) (v rewriter.Value, certain bool) {
	kind := byte(p.Type)
	if p.Null || kind == mysql.MYSQL_TYPE_NULL {
		return rewriter.Value{Generate: true}, true
	}
	c := Cell{Value: ask.Value{Kind: kind}, Column: column, Strict: s.Strict}
	if number, ok := p.Integer(); ok {
		if number != 0 && (number <= math.MaxInt64 || p.Type&wire.Unsigned != 0) {
			return rewriter.Value{Known: true, Number: number}, true
		}
		c.Text = strconv.AppendInt(nil, int64(number), 10)
		return c.ID(s), false
	}
	inner, _ := p.Inner()
	switch kind {
	case mysql.MYSQL_TYPE_FLOAT:
		f := math.Float32frombits(binary.LittleEndian.Uint32(p.Value))
		c.Text = strconv.AppendFloat(nil, float64(f), 'g', -1, 64)
	case mysql.MYSQL_TYPE_DOUBLE:
		f := math.Float64frombits(binary.LittleEndian.Uint64(p.Value))
		c.Text = strconv.AppendFloat(nil, f, 'g', -1, 64)
	case mysql.MYSQL_TYPE_DECIMAL, mysql.MYSQL_TYPE_NEWDECIMAL:
		// Servers take the number in front, in every sql_mode.
		c.Kind, c.Text, c.Strict = mysql.MYSQL_TYPE_VAR_STRING, inner, false
	default:
		c.Kind, c.Text = mysql.MYSQL_TYPE_VAR_STRING, inner
	}
	if c.Text == nil {
		c.Text = []byte{}
	}
	return c.ID(s), false
}
