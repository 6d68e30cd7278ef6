package oracle

import (
	"fmt"
	"slices"
	"strings"

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
		st := step{
			sql: o.sql, with: "executed with " + shown(e), deviation: b.deviation(o.sql, rows),
			gaps: strings.ContainsAny(rows, "SUN") && strings.Count(rows, "I") > 1,
			form: &form{b.family, kindOfIDs, rows, b.charsetName(), b.trigger},
			send: func(s *wireclient.Session, _ string) ([]wireclient.Reply, error) { return s.Execute(name, e) },
		}
		if direct && i == 0 {
			st.with = "directly " + st.with
			st.send = func(s *wireclient.Session, sql string) ([]wireclient.Reply, error) { return s.Direct(name, sql, e) }
		}
		if b.IntN(8) == 0 && (i > 0 || !direct) {
			steps = append(steps, resetStep(name))
		}
		steps = append(steps, st)
		steps = append(steps, b.readers(kindOfIDs, rows)...)
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
	if !slices.ContainsFunc(b.kinds, func(k ids) bool { return k != explicitID }) {
		kindOfIDs = explicitID
	}
	steps := b.after(kindOfIDs, rows)
	for i := range steps {
		st := &steps[i]
		if st.deviation != nil { // whether the proxy asks depends on what the statement can be given, too
			counts := *st.deviation
			counts.maybe = true
			st.deviation = &counts
		}
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
