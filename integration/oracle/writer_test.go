package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/servers"
)

func foundRows(c *client.Conn) error { return c.SetCapability(mysql.CLIENT_FOUND_ROWS) }

// writer writes the statements of one family in one mode.
type writer struct {
	*former
	family *family
	setting
	rows map[string][]row // of each table, that later rows may collide with

	half    int      // which of the outcomes are tried where not all are
	several bool     // the statement has more than one row
	kinds   []ids    // of its rows
	shapes  []string // expressions that it has not used yet
}

// newWriter makes a writer whose choices are the same at every run, and others with each protocol.
func newWriter(protocol string, fam family, m formMode, at setting) *writer {
	return &writer{former: newFormer(m, fmt.Sprint(protocol, fam.name, at.round)), family: &fam, setting: at}
}

// row is one that is in a table, by its number in u and the spelling of its content.
type row struct {
	u int
	a string
}

// begin forgets the rows of an earlier script.
func (w *writer) begin() {
	w.rows = map[string][]row{}
	for _, table := range tableNames {
		for u := range fixedRows {
			w.rows[table] = append(w.rows[table], row{u + 1, "'fixed'"})
		}
	}
	w.rows["v"] = nil // see base
}

// base is the table that rows of a table or view are in.
func base(table string) string {
	if table == "v" {
		return "t"
	}
	return table
}

// statement is an INSERT in parts.
type statement struct {
	table   string
	body    string     // list, bare, set, empty, empty list
	columns []string   // of the tuples
	tuples  [][]string // values
	update  []string
	alias   []string // the alias, and names for columns behind it
}

// example returns a statement, what has to stand before it, and what reads what it left.
func (w *writer) example(kindOfIDs ids, rows string) []step {
	s := statement{table: w.pick(or(w.family.tables, generalTables)), body: w.pick(or(w.family.bodies, []string{"list", "list", "bare"}))}
	if s.body == "bare" && kindOfIDs == absentID {
		s.body = "list" // without a list no column is absent
	}
	w.chooseColumns(&s, kindOfIDs, rows)
	w.several, w.shapes, w.kinds = len(rows) > 1, nil, nil
	explicitFirst := w.IntN(2)
	for i, outcome := range rows {
		w.serial++
		kindOfID := kindOfIDs
		if kindOfIDs == mixedIDs {
			kindOfID = w.mixed(i, explicitFirst)
		}
		w.kinds = append(w.kinds, kindOfID)
		s.tuples = append(s.tuples, w.tuple(&s, kindOfID, outcome))
	}
	if w.family.alias {
		w.chooseAlias(&s)
	}
	if w.family.update {
		w.chooseUpdate(&s, kindOfIDs, rows)
	}
	var steps []step
	if kindOfIDs == expression {
		steps = plainSteps(fmt.Sprintf("SET @null = NULL, @zero = 0, @small = 0.4, @n = %d, @s = '%d'", 200_000+10*w.serial, 300_000+10*w.serial))
	}
	return append(append(steps, w.step(w.render(&s), kindOfIDs, rows)), w.after(kindOfIDs, rows)...)
}

// step is the step of an example.
func (w *writer) step(sql string, kindOfIDs ids, rows string) step {
	return step{
		sql: sql, deviation: w.deviation(sql, rows), gaps: strings.ContainsAny(rows, "SUN") && strings.Count(rows, "I") > 1,
		form: &form{w.family, kindOfIDs, rows, w.charsetName(), w.trigger},
	}
}

// mixed chooses the kind of the i-th id, so that there is a generated and an explicit one among the
// first two.
func (w *writer) mixed(i, explicitFirst int) ids {
	if i < 2 && i != explicitFirst || i > 1 && w.IntN(2) == 0 {
		return explicitID
	}
	if w.nullGenerates {
		return nullID
	}
	return ids(w.pick([]string{string(nullID), string(zeroID), string(defaultID)}))
}

// chooseColumns chooses which columns are named, in which order.
func (w *writer) chooseColumns(s *statement, kindOfIDs ids, rows string) {
	switch s.body {
	case "empty", "empty list":
		return
	case "bare":
		s.columns = strings.Split(columnOrder[s.table], ",")
		return
	}
	s.columns = []string{"a"}
	if kindOfIDs != absentID {
		s.columns = append(s.columns, "id")
	}
	if strings.Trim(rows, "I") != "" || w.IntN(3) == 0 {
		s.columns = append(s.columns, "u")
	}
	if w.IntN(3) > 0 {
		s.columns = append(s.columns, "parent")
	}
	if s.table == "two" && w.IntN(2) == 0 {
		s.columns = append(s.columns, "id2")
	}
	w.Shuffle(len(s.columns), func(i, j int) { s.columns[i], s.columns[j] = s.columns[j], s.columns[i] })
}

// tuple returns the values of a row.
func (w *writer) tuple(s *statement, kindOfID ids, outcome rune) []string {
	rows := w.rows[base(s.table)]
	if w.family.own != nil {
		rows = rows[:fixedRows] // natively one that this statement put in could not be updated so
	}
	known := &rows[w.IntN(len(rows))]
	content := w.content()
	switch outcome {
	case 'N':
		content = known.a
	case 'U', 'R':
		known.a = content
	}
	u := known.u
	if outcome == 'I' {
		u = 1000 + w.serial
		if slices.Contains(s.columns, "u") && base(s.table) != "parts" {
			w.rows[base(s.table)] = append(w.rows[base(s.table)], row{u, content})
		}
	}
	values := map[string]string{
		"a": content, "u": fmt.Sprint(u), "parent": w.pick(parents), "f": "1", "n": "5", "c": "NULL",
		"id2": w.second(), "id": w.idOf(kindOfID),
	}
	tuple := make([]string, len(s.columns))
	for i, c := range s.columns {
		tuple[i] = values[c]
	}
	return tuple
}

// second returns a spelling of the id of the second source.
func (w *writer) second() string {
	explicit := fmt.Sprint(40000 + w.serial)
	if w.nullGenerates {
		return w.pick([]string{"NULL", explicit})
	}
	return w.pick([]string{"NULL", "0", "DEFAULT", "'0'", explicit})
}

// idOf returns a spelling of an id.
func (w *writer) idOf(kindOfID ids) string {
	switch kindOfID {
	case nullID:
		return w.pick([]string{"NULL", "null"})
	case zeroID:
		return w.pick([]string{"0", "'0'", "00"})
	case defaultID:
		return w.pick([]string{"DEFAULT", "default", "DEFAULT(id)"})
	case explicitID:
		if w.family.own != nil || w.several {
			return w.id('L') // LAST_INSERT_ID(id) of an id below zero would move the counter to its end
		}
		return w.id('E')
	case expression:
		return w.expression()
	}
	return ""
}

// expressions are ids that the server has to be asked for, where § is a number of their own: first
// those that bring an explicit id or NULL, then those that are 0 in the end, then those that may
// fail for what the session did before.
var expressions = [][]string{
	{
		"@null", "@n", "@s", "@nowhere", "@n+1", "§+@zero", "(§)", "§.5", "§*2 DIV 2", "1+§", "§/1", "§ MOD 100000", "-(-§)", "0x§", "§e0", "N'§'",
		"§.0", "(NULL)", "((NULL))", "_utf8mb4'§'", "'§'+0", "'§.4'",
	},
	{
		"@zero", "@small", "@zero*@n", "@n-@n", "0.0", "0.4", "-0", "+0", "-0.4", "FALSE", "0x00", "b'0'", "'00'", "0e0", "((0))",
		"_utf8mb4'0'", "'0.3'", "(0)", "LAST_INSERT_ID()*0", "@@autocommit-1", "1-1",
	},
	{"''", "LAST_INSERT_ID()-@@identity", "§+LAST_INSERT_ID()-@@SESSION.last_insert_id"},
}

// expression returns one that the statement does not have yet.
func (w *writer) expression() string {
	if len(w.shapes) == 0 {
		w.shapes = slices.Clone(expressions[0])
		if !w.nullGenerates {
			w.shapes = append(w.shapes, expressions[1]...)
		}
		if !w.several && !w.family.ignore && w.name != "not strict" { // where '' generates with a warning, see warningOfID
			w.shapes = append(w.shapes, expressions[2]...)
		}
	}
	i := w.IntN(len(w.shapes))
	e := w.shapes[i]
	w.shapes = slices.Delete(w.shapes, i, i+1)
	return strings.ReplaceAll(e, "§", fmt.Sprint(100+10*w.serial))
}

// chooseAlias names the row.
func (w *writer) chooseAlias(s *statement) {
	s.alias = []string{"n"}
	if w.IntN(2) == 0 {
		for i := range s.columns {
			s.alias = append(s.alias, fmt.Sprintf("x%d", i))
		}
	}
}

// value returns what the update list calls the value of a column that the row brought.
func (w *writer) value(s *statement, column string) string {
	switch {
	case len(s.alias) > 1:
		x := s.alias[1+slices.Index(s.columns, column)]
		return w.pick([]string{x, "n." + x})
	case len(s.alias) == 1:
		return "n." + column
	case w.kind == servers.MariaDB && w.IntN(2) == 0:
		return "VALUE(" + column + ")"
	}
	return w.pick([]string{"VALUES(", "values ("}) + column + ")"
}

// chooseUpdate writes the update list. With one row it may also be one that always changes
// something.
func (w *writer) chooseUpdate(s *statement, kindOfIDs ids, rows string) {
	own := w.pick([]string{"", s.table + ".", w.table(s.table) + "."})
	if len(s.alias) > 0 {
		own = s.table + "."
	}
	s.update = []string{w.pick([]string{"a", own + "a"}) + "=" + w.value(s, "a")}
	if !strings.Contains(rows, "N") {
		switch w.IntN(5) {
		case 0:
			s.update = append(s.update, own+"parent=LAST_INSERT_ID()")
		case 1:
			s.update = append(s.update, own+"n=7")
		case 2:
			s.update = append(s.update, own+"c = IF("+own+"a = "+w.value(s, "a")+", 5, 6)")
		}
	}
	if w.family.own != nil {
		if len(s.alias) == 1 && kindOfIDs == absentID && w.IntN(2) == 0 {
			own = "" // no other column is called id, until one is added
		}
		s.update = slices.Insert(s.update, w.IntN(len(s.update)+1), strings.ReplaceAll(w.pick(w.family.own), "†", own))
	}
}

// render writes a statement with gaps, or with version comments, between its words.
func (w *writer) render(s *statement) string {
	gap := func() string { return " " }
	if w.IntN(3) == 0 {
		gap = func() string { return w.pick(gaps) }
	}
	if w.family.comments {
		gap = w.skipped
	}
	var b strings.Builder
	word := func(words ...string) {
		for _, text := range words {
			for part := range strings.FieldsSeq(text) {
				b.WriteString(w.wrapped(part) + gap() + " ")
			}
		}
	}
	word(w.verb(), w.pick([]string{"INTO", "INTO", ""}))
	b.WriteString(w.table(s.table) + gap())
	if w.family.part {
		b.WriteString(" PARTITION" + gap() + "(" + gap() + w.pick([]string{"p0", w.quote("p0"), "P0"}) + gap() + ")" + gap())
	}
	if s.body == "set" {
		word("", "SET")
		equals := []string{"=", "=", ":="}
		if slices.Contains(w.family.ids, expression) {
			equals = equals[:2] // := beside an expression is refused, see notAnAssignment
		}
		for i, c := range s.columns {
			s.columns[i] = w.column(c) + gap() + w.pick(equals) + gap() + s.tuples[0][i]
		}
		b.WriteString(strings.Join(s.columns, gap()+","+gap()))
	} else {
		w.renderTuples(&b, s, gap)
	}
	b.WriteString(gap() + " ")
	if len(s.alias) > 0 {
		word("AS")
		b.WriteString(w.pick([]string{s.alias[0], w.quote(s.alias[0])}))
		if len(s.alias) > 1 {
			b.WriteString(gap() + "(" + strings.Join(s.alias[1:], gap()+","+gap()) + ")")
		}
		b.WriteString(" ")
	}
	if len(s.update) > 0 {
		word("ON DUPLICATE KEY UPDATE")
		b.WriteString(strings.Join(s.update, gap()+","+gap()) + gap() + " ")
	}
	if returns := w.family.returns; returns != nil {
		word("RETURNING")
		if s.table == "two" { // whose second id is not native's
			returns = slices.DeleteFunc(slices.Clone(returns), func(list string) bool { return list == "*" })
		}
		b.WriteString(w.pick(returns))
	}
	b.WriteString(w.pick([]string{"", "", "", ";", " ; ", " /* end */", " -- end"}))
	return b.String()
}

// renderTuples writes the column list and the tuples.
func (w *writer) renderTuples(b *strings.Builder, s *statement, gap func() string) {
	comma := func() string { return gap() + w.wrapped(",") + gap() }
	list := func(values []string) {
		b.WriteString(w.wrapped("(") + gap())
		for i, v := range values {
			if i > 0 {
				b.WriteString(comma())
			}
			b.WriteString(w.wrapped(v))
		}
		b.WriteString(gap() + w.wrapped(")"))
	}
	switch s.body {
	case "list":
		names := make([]string, len(s.columns))
		for i, c := range s.columns {
			names[i] = w.column(c)
		}
		list(names)
	case "empty list":
		list(nil)
	}
	b.WriteString(gap() + " " + w.wrapped(w.pick(values)) + gap())
	for i, tuple := range s.tuples {
		if i > 0 {
			b.WriteString(comma())
		}
		list(tuple)
	}
}

// verb returns the words in front of INTO.
func (w *writer) verb() string {
	verb := w.pick(or(w.family.verbs, []string{"INSERT", "INSERT", "insert"}))
	if w.family.ignore {
		verb += w.pick([]string{" IGNORE", " IGNORE", " ignore"})
	}
	return verb
}

// column returns a spelling of a column's name.
func (w *writer) column(name string) string {
	return w.pick([]string{name, name, strings.ToUpper(name), w.quote(name), "`" + name + "`"})
}

// wrapped puts a word that does not need it into a version comment that the server runs.
func (w *writer) wrapped(word string) string {
	if !w.family.comments || w.IntN(3) > 0 {
		return word
	}
	own := []string{"/*!80000 %s */", "/*!090000 %s*/", "/*!80000\n%s */"}
	if w.kind == servers.MariaDB {
		own = []string{"/*M! %s */", "/*M!100100 %s*/", "/*!100100 %s */"}
	}
	return fmt.Sprintf(w.pick(append(own, "/*! %s */", "/*!50000 %s*/", "/*!40101 %s */")), word)
}

// skipped returns a gap that may hold a version comment that the server does not run.
func (w *writer) skipped() string {
	own := []string{"/*!100100 , x*/", "/*M! ) */", "/*M!100100 , 5 */"}
	if w.kind == servers.MariaDB {
		own = []string{"/*!80000 , x*/", "/*!50700 ) */", "/*M!990000 , 5 */"}
	}
	return w.pick(append(own, " ", " ", " ", " ", " ", "/*!99999 IGNORE */", "/**/", "/*!*/", "/*!50000 */"))
}

// afterwards is what may stand behind a form: all that can tell an application which row went in. §
// makes names differ.
var afterwards = [][]string{
	{"SELECT LAST_INSERT_ID(), @@identity"},
	{"INSERT INTO t (a,parent) VALUES ('child§', LAST_INSERT_ID())"},
	{"SHOW WARNINGS", "SELECT LAST_INSERT_ID()"},
	{"SELECT ROW_COUNT()", "INSERT INTO `mid` (parent,a,id) VALUES (@@identity,'child§',NULL)"},
	{},
	{"CALL reading('call§')", "SHOW WARNINGS"},
	{"SHOW COUNT(*) WARNINGS", "INSERT INTO t (a,u,parent) VALUES ('dup§', 1, LAST_INSERT_ID())", "SELECT @@last_insert_id"},
	{"SELECT 1", "UPDATE readings SET parent = LAST_INSERT_ID() WHERE tag = 'updated'"},
	{"SHOW WARNINGS", "SHOW WARNINGS LIMIT 1", "INSERT INTO tail (parent,a) VALUES (LAST_INSERT_ID(),'child§')"},
	{"INSERT INTO t (a,u,parent) VALUES ('dup§', 1, LAST_INSERT_ID())", "INSERT INTO t (a,parent) VALUES ('child§', LAST_INSERT_ID())"},
	{"DO 1", "SELECT LAST_INSERT_ID()"},
}

// after returns steps that read what a statement left.
func (w *writer) after(kindOfIDs ids, rows string) []step {
	var steps []step
	asked := w.family.asks(kindOfIDs, rows)
	hidden := w.trigger == updateTrigger && rows == "U"
	for _, sql := range afterwards[w.serial%len(afterwards)] {
		st := step{sql: strings.ReplaceAll(sql, "§", fmt.Sprint(w.serial)), binary: w.IntN(6) == 0 && strings.HasPrefix(sql, "SELECT") && sql != "SELECT ROW_COUNT()"}
		counts := countsOfQuestion[sql]
		if counts != nil && kindOfIDs == expression && len(rows) > 1 {
			continue // whether the proxy asks depends on what the expressions are worth
		}
		switch {
		case asked:
			st.deviation = counts
		case hidden && counts != nil:
			hiddenCounts := *counts
			hiddenCounts.plainOnly = true
			st.deviation = &hiddenCounts
		}
		steps = append(steps, st)
	}
	return steps
}
