package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// binder writes the statements of a writer with parameters, and what they are executed with.
type binder struct {
	*writer
	caps     uint64
	names    int                   // statements prepared so far
	open     []opened              // those that were not closed
	previous []wireclient.Argument // of the last execution of the same statement
	density  string                // which values are bound: all, some, none
	always   map[string]bool
	whole    bool // texts are not sent in pieces
	bulk     bool // rows are not in the statement, but in each execution
}

// opened is a statement that may be executed again: the text says what it is.
type opened struct{ name, sql string }

// cell is a value of a tuple: a literal, or a parameter.
type cell struct {
	column  string
	literal string // empty: a parameter
	kind    ids    // of a literal id
}

// outline is a statement whose rows are still open.
type outline struct {
	statement
	cells [][]cell
	tail  []string // what the parameters behind the tuples are: a, n, parent
	sql   string
}

// examples returns a statement with as many rows as each of the outcomes has, the executions with
// these outcomes, and what reads what they left.
func (b *binder) examples(kindOfIDs ids, outcomes []string) []step {
	o := b.outline(kindOfIDs, outcomes)
	b.names++
	b.previous = nil
	name := fmt.Sprintf("p%d", b.names)
	direct := b.kind == servers.MariaDB && b.IntN(4) == 0 && !b.bulk
	var steps []step
	if !direct {
		steps = append(steps, prepareStep(name, o.sql))
	}
	if len(outcomes) == 1 {
		outcomes = []string{outcomes[0], outcomes[0]}
	}
	for i, rows := range outcomes {
		b.whole = direct && i == 0 // long data would need the statement's id
		e := b.execution(o, kindOfIDs, rows)
		st := b.step(o.sql, kindOfIDs, rows)
		st.with = "executed with " + shown(e)
		st.send = func(s *wireclient.Session, _ string) ([]wireclient.Reply, error) { return s.Execute(name, e) }
		if direct && i == 0 {
			st.with = "directly " + st.with
			st.send = func(s *wireclient.Session, sql string) ([]wireclient.Reply, error) { return s.Direct(name, sql, e) }
		}
		if b.IntN(8) == 0 && (i > 0 || !direct) {
			steps = append(steps, resetStep(name))
		}
		steps = append(append(steps, st), b.readers(kindOfIDs, rows)...)
	}
	switch {
	case b.IntN(3) > 0:
		steps = append(steps, closeStep(name))
	case b.IntN(2) == 0:
		b.open = append(b.open, opened{name, o.sql})
	}
	return steps
}

// outline chooses a statement, and which of its values are bound.
func (b *binder) outline(kindOfIDs ids, outcomes []string) *outline {
	all := strings.Join(outcomes, "")
	o := &outline{statement: statement{table: b.pick(or(b.family.tables, generalTables)), body: b.pick(or(b.family.bodies, []string{"list", "list", "bare"}))}}
	if o.body == "bare" && kindOfIDs == absentID {
		o.body = "list"
	}
	b.density = b.pick([]string{"all", "some", "some", "none"})
	b.chooseColumns(&o.statement, kindOfIDs, all)
	b.always = map[string]bool{
		"a": b.family.update || strings.Contains(all, "N"), "u": strings.Trim(all, "I") != "" || b.density != "none",
		"id": kindOfIDs == explicitID || kindOfIDs == expression,
	}
	b.several, b.shapes = len(outcomes[0]) > 1, nil
	rows := len(outcomes[0])
	if b.bulk {
		rows = 1
	}
	for range rows {
		o.cells = append(o.cells, b.cells(o, kindOfIDs))
	}
	for _, cells := range o.cells {
		tuple := make([]string, len(cells))
		for i, c := range cells {
			if tuple[i] = c.literal; tuple[i] == "" {
				tuple[i] = "?"
			}
		}
		o.tuples = append(o.tuples, tuple)
	}
	if b.family.alias {
		b.chooseAlias(&o.statement)
	}
	if b.family.update {
		b.chooseUpdate(&o.statement, kindOfIDs, all)
		b.bindUpdate(o, all)
	}
	o.sql = b.render(&o.statement)
	return o
}

// cells chooses which values of a row are bound, and the literals of the others.
func (b *binder) cells(o *outline, kindOfIDs ids) []cell {
	b.serial++
	literals := map[string][]string{
		"a": {b.content()}, "u": {"NULL"}, "parent": {b.pick(parents)}, "f": {"1"}, "n": {"5"}, "c": {"NULL"}, "id2": {"NULL", "0", "DEFAULT", "'0'"},
	}
	if b.nullGenerates {
		literals["id2"] = literals["id2"][:1]
	}
	cells := make([]cell, len(o.columns))
	for i, column := range o.columns {
		cells[i].column = column
		bound := b.density == "all" || b.density == "some" && b.IntN(2) == 0 || b.always[column]
		if column == "id" && kindOfIDs == defaultID && !b.bulk {
			bound = false // it cannot be bound, but in a bulk
		}
		if column == "id" && kindOfIDs == mixedIDs && len(o.cells) == 0 {
			bound = true // for an explicit one
		}
		switch {
		case bound:
		case column == "id":
			kind := kindOfIDs
			if kind == mixedIDs {
				kind = nullID
				if !b.nullGenerates {
					kind = ids(b.pick([]string{string(nullID), string(zeroID), string(defaultID)}))
				}
			}
			cells[i].kind, cells[i].literal = kind, b.idOf(kind)
		default:
			cells[i].literal = b.pick(literals[column])
		}
	}
	return cells
}

// bindUpdate puts parameters into the update list.
func (b *binder) bindUpdate(o *outline, all string) {
	if b.density == "none" || b.IntN(2) == 0 {
		return
	}
	own := o.table + "."
	switch {
	case len(o.cells) == 1 && b.IntN(2) == 0 && !b.bulk:
		o.update = []string{own + "a=?"}
		o.tail = []string{"a"}
	case !strings.Contains(all, "N") && b.IntN(2) == 0:
		o.update = append(o.update, own+"c=?")
		o.tail = []string{"c"}
	default:
		o.update = append(o.update, own+"f=COALESCE(?, "+own+"f)", own+"n = IFNULL(?,"+own+"n)")
		o.tail = []string{"null", "null"}
	}
}

// shown is how an execution is shown in reports.
func shown(e wireclient.Execution) string {
	s := fmt.Sprint(e.Args)
	if e.Untyped {
		s += " untyped"
	}
	if e.Flags != 0 {
		s += fmt.Sprintf(" flags %d, attributes %s", e.Flags, e.Attributes)
	}
	return s
}

// execution chooses the arguments for rows with these outcomes.
func (b *binder) execution(o *outline, kindOfIDs ids, rows string) wireclient.Execution {
	var e wireclient.Execution
	b.kinds = nil
	explicitFirst := b.IntN(2)
	sticky := b.IntN(2) == 0
	var content string
	for i, outcome := range rows {
		b.serial++
		kind := kindOfIDs
		switch {
		case kindOfIDs == mixedIDs && b.several:
			kind = b.mixed(i, explicitFirst)
		case kindOfIDs == mixedIDs:
			kind = b.mixed(b.IntN(2), explicitFirst)
		}
		cells := o.cells[min(i, len(o.cells)-1)]
		for _, c := range cells {
			if c.kind != "" {
				kind = c.kind
			}
		}
		b.kinds = append(b.kinds, kind)
		var args []wireclient.Argument
		args, content = b.row(o, cells, rowChoice{kind, outcome, sticky, len(e.Args)})
		e.Args = append(e.Args, args...)
	}
	for _, what := range o.tail {
		e.Args = append(e.Args, b.tail(what, content))
	}
	e.Untyped = sameTypes(b.previous, e.Args) && b.IntN(4) > 0
	b.previous = slices.Clone(e.Args)
	if b.IntN(6) == 0 {
		e.Flags |= wireclient.CursorFlag
	}
	if b.caps&uint64(mysql.CLIENT_QUERY_ATTRIBUTES) != 0 && b.IntN(2) == 0 {
		e.Flags |= wireclient.CountFlag
		if b.IntN(3) > 0 {
			e.Attributes = []wireclient.Argument{wireclient.Varchar("trace").Named("traceparent"), wireclient.Long(5).Named(""), wireclient.Null(mysql.MYSQL_TYPE_LONG).Named("none")}[:1+b.IntN(3)]
			e.Untyped = false
		}
	}
	return e
}

// sameTypes says whether a second execution may leave out the types.
func sameTypes(before, now []wireclient.Argument) bool {
	if len(now) == 0 || len(before) != len(now) {
		return false
	}
	for i := range now {
		if before[i].Kind != now[i].Kind || before[i].Unsigned != now[i].Unsigned {
			return false
		}
	}
	return true
}

// tail is an argument behind the tuples.
func (b *binder) tail(what, content string) wireclient.Argument {
	switch what {
	case "a":
		return b.textArgument(content)
	case "c":
		return wireclient.Long(int64(10 + b.serial%80))
	}
	return wireclient.Null(mysql.MYSQL_TYPE_LONG)
}

// readers are what the text half reads with, some of it with statements that were prepared when the
// session began.
func (b *binder) readers(kindOfIDs ids, rows string) []step {
	steps := b.afterExecution(kindOfIDs, rows)
	for i := range steps {
		st := &steps[i]
		if prepared, ok := readersPrepared[st.sql]; ok && b.IntN(3) > 0 {
			st.binary, st.sql, st.send = false, "execute "+st.sql, func(s *wireclient.Session, _ string) ([]wireclient.Reply, error) {
				return s.Execute(prepared, wireclient.Execution{})
			}
		} else if strings.HasPrefix(st.sql, "INSERT INTO t (a,parent) VALUES ('child") && b.IntN(2) == 0 {
			e := wireclient.Execution{Args: []wireclient.Argument{b.textArgument(fmt.Sprintf("child%d", b.serial))}}
			st.sql, st.send = "execute child "+shown(e), func(s *wireclient.Session, _ string) ([]wireclient.Reply, error) { return s.Execute("child", e) }
		}
	}
	return steps
}

// afterExecution is after, behind an execution.
func (b *binder) afterExecution(kindOfIDs ids, rows string) []step {
	if !slices.ContainsFunc(b.kinds, func(k ids) bool { return k != explicitID }) {
		kindOfIDs = explicitID
	}
	steps := b.after(kindOfIDs, rows)
	for i, st := range steps {
		if st.deviation != nil { // whether the proxy asks depends on what the statement can be given, too
			steps[i].deviation = st.deviation.possible()
		}
	}
	return steps
}

// readersPrepared are statements that are prepared once in each session, by what they are called.
var readersPrepared = map[string]string{
	"SELECT LAST_INSERT_ID()":             "last",
	"SELECT LAST_INSERT_ID(), @@identity": "both",
	"SELECT ROW_COUNT()":                  "count",
	"SELECT @@last_insert_id":             "variable",
}

// prepareReaders prepares them.
func prepareReaders() []step {
	steps := []step{prepareStep("child", "INSERT INTO t (a,parent) VALUES (?, LAST_INSERT_ID())")}
	var texts []string
	for sql := range readersPrepared {
		texts = append(texts, sql)
	}
	slices.Sort(texts)
	for _, sql := range texts {
		steps = append(steps, prepareStep(readersPrepared[sql], sql))
	}
	return steps
}

func prepareStep(name, sql string) step {
	return step{sql: sql, with: "prepared", send: func(s *wireclient.Session, sql string) ([]wireclient.Reply, error) { return s.Prepare(name, sql) }}
}

func closeStep(name string) step {
	return step{sql: "close " + name, send: func(s *wireclient.Session, _ string) ([]wireclient.Reply, error) { return s.CloseStatement(name) }}
}

func resetStep(name string) step {
	return step{sql: "reset " + name, send: func(s *wireclient.Session, _ string) ([]wireclient.Reply, error) {
		return s.OnStatement(mysql.COM_STMT_RESET, name)
	}}
}

func executeStep(name string, args ...wireclient.Argument) step {
	return executionStep(name, wireclient.Execution{Args: args})
}

func executionStep(name string, e wireclient.Execution) step {
	return step{sql: "execute " + name + " " + shown(e), send: func(s *wireclient.Session, _ string) ([]wireclient.Reply, error) { return s.Execute(name, e) }}
}

// rowChoice says what the arguments of one row have to bring about.
type rowChoice struct {
	kind    ids  // of its id
	outcome rune // see plainRows
	sticky  bool // of the types of the execution before, where that is possible
	at      int  // the number of its first argument
}

// row returns the arguments of a row, and its content.
func (b *binder) row(o *outline, cells []cell, choice rowChoice) (args []wireclient.Argument, content string) {
	rows := b.rows[base(o.table)]
	if b.family.own != nil {
		rows = rows[:fixedRows]
	}
	known := &rows[b.IntN(len(rows))]
	content = b.raw()
	switch choice.outcome {
	case 'N':
		content = known.a
	case 'U', 'R':
		known.a = content
	}
	u := known.u
	if choice.outcome == 'I' {
		u = 1000 + b.serial
		bound := slices.ContainsFunc(cells, func(c cell) bool { return c.column == "u" && c.literal == "" })
		if bound && base(o.table) != "parts" {
			b.rows[base(o.table)] = append(b.rows[base(o.table)], row{u, content})
		}
	}
	for _, c := range cells {
		if c.literal != "" {
			continue
		}
		var a wireclient.Argument
		switch c.column {
		case "a":
			a = b.textArgument(content)
		case "u":
			a = b.number(int64(u))
		case "f":
			a = b.number(1)
		case "n":
			a = b.number(5)
		case "c":
			a = b.nothing()
		case "parent":
			if a = b.number(int64(b.serial)); b.IntN(3) == 0 {
				a = b.nothing()
			}
		case "id2":
			a = b.idArgument(ids(b.pick([]string{string(nullID), string(explicitID)})), 40_000+int64(b.serial))
		case "id":
			a = b.idArgument(choice.kind, 100+int64(b.serial))
		}
		if at := choice.at + len(args); choice.sticky && at < len(b.previous) {
			a = as(a, b.previous[at])
		}
		args = append(args, a)
	}
	return args, content
}

// raw is a content that no other row has, as the client's character set has it.
func (b *binder) raw() string {
	spellings := []string{"s%d", "s%d'", "s%d?", "?%d", "s%d\\", "s%d`", "s%d -- ", "s%d\"", "(%d),("}
	for _, c := range characters[b.charset] {
		spellings = append(spellings, "s%d"+c, c+"s%d'")
	}
	return fmt.Sprintf(b.pick(spellings), b.serial)
}

// textArgument is a text of any type, now and then in pieces.
func (b *binder) textArgument(s string) wireclient.Argument {
	kind := wireclient.TextTypes[b.IntN(len(wireclient.TextTypes))]
	if !ascii(s) {
		kind = wireclient.TextTypes[b.IntN(3)] // a blob is not converted from the client's character set
	}
	if b.IntN(6) > 0 || b.whole || kind == mysql.MYSQL_TYPE_VARCHAR { // of which MySQL takes no pieces
		return wireclient.TextOf(kind, s)
	}
	half := b.IntN(len(s) + 1)
	return [...]wireclient.Argument{wireclient.InPieces(kind, s), wireclient.InPieces(kind, s[:half], s[half:]), wireclient.InPieces(kind, "", s, "")}[b.IntN(3)]
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// number is a number of any type that holds it.
func (b *binder) number(n int64) wireclient.Argument {
	for {
		kind := wireclient.IntegerTypes[b.IntN(len(wireclient.IntegerTypes))]
		switch negative := b.IntN(4); {
		case negative == 0 && wireclient.Fits(kind, n, true):
			return wireclient.Unsigned(kind, uint64(n))
		case negative == 1:
			return wireclient.TextOf(wireclient.TextTypes[b.IntN(len(wireclient.TextTypes))], strconv.FormatInt(n, 10))
		case wireclient.Fits(kind, n, false):
			return wireclient.Integer(kind, n)
		}
	}
}

// nothing is NULL in any of its ways.
func (b *binder) nothing() wireclient.Argument {
	kinds := slices.Concat(wireclient.IntegerTypes, wireclient.TextTypes, []byte{mysql.MYSQL_TYPE_NULL, mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DOUBLE})
	return wireclient.Null(kinds[b.IntN(len(kinds))])
}

// idArgument is an id of a kind; n is the explicit one. NULL and 0 take turns.
func (b *binder) idArgument(kind ids, n int64) wireclient.Argument {
	switch kind {
	case nullID, zeroID, defaultID:
		if b.nullGenerates || b.IntN(2) == 0 {
			return b.nothing()
		}
		return b.number(0)
	case explicitID:
		if !b.several && b.family.own == nil && b.IntN(6) == 0 {
			n = -n
		}
		return b.number(n)
	}
	digits := strconv.FormatInt(n, 10)
	odd := []wireclient.Argument{
		wireclient.Double(float64(n)), wireclient.Double(float64(n) + 0.4), wireclient.Float(float32(n)), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, digits), wireclient.Varchar("00" + digits),
		wireclient.Varchar("+" + digits), wireclient.Varchar(digits + ".0"), wireclient.Varchar(digits + "e0"), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, digits+".00"), b.nothing(),
	}
	if !b.nullGenerates {
		odd = append(odd, wireclient.Double(0), wireclient.Double(0.4), wireclient.Double(-0.4), wireclient.Float(0.4), wireclient.Float(0), wireclient.Varchar("00"), wireclient.Varchar("-0"), wireclient.Varchar("0.0"), wireclient.Varchar("+0"),
			wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, "0"), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, "0.0"), wireclient.Varchar("0e5"), b.number(0))
	}
	return odd[b.IntN(len(odd))]
}

// as is the same argument in the type of another, if that holds it.
func as(a wireclient.Argument, other wireclient.Argument) wireclient.Argument {
	number, err := strconv.ParseInt(a.Shown, 10, 64)
	wasText := slices.Contains(wireclient.TextTypes, other.Kind)
	switch {
	case a.Null:
		a.Kind, a.Unsigned = other.Kind, other.Unsigned
	case slices.Contains(wireclient.TextTypes, a.Kind) && wasText:
		if a.Chunks != nil && other.Kind == mysql.MYSQL_TYPE_VARCHAR || !ascii(string(a.Value)+strings.Join(a.Chunks, "")) && other.Kind == mysql.MYSQL_TYPE_BLOB {
			return a
		}
		a.Kind = other.Kind
	case wireclient.IntegerSizes[a.Kind] == 0 || err != nil:
	case wasText:
		return wireclient.TextOf(other.Kind, a.Shown)
	case wireclient.IntegerSizes[other.Kind] > 0 && wireclient.Fits(other.Kind, number, other.Unsigned):
		if other.Unsigned {
			return wireclient.Unsigned(other.Kind, uint64(number))
		}
		return wireclient.Integer(other.Kind, number)
	}
	return a
}
