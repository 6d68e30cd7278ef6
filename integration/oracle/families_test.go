package oracle

import (
	"fmt"
	"slices"
	"strings"

	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// ids says how the id column is given in a statement.
type ids string

const (
	absentID   ids = "absent"
	nullID     ids = "NULL"
	zeroID     ids = "0"
	defaultID  ids = "DEFAULT"
	explicitID ids = "explicit"
	mixedIDs   ids = "mixed"
	expression ids = "expression"
)

// family is a kind of statement that gets ids: a row of the table of forms.
type family struct {
	name   string
	lacks  string   // the kind of server that does not have it
	verbs  []string // default: INSERT
	ignore bool     // INSERT IGNORE
	bodies []string // default: a column list, and none
	tables []string // default: generalTables
	ids    []ids    // default: all but expressions
	rows   []string // what becomes of the rows, a letter each: default I and III
	part   bool     // PARTITION (p0)
	update bool     // ON DUPLICATE KEY UPDATE
	// not under an UPDATE trigger, where its insert id is another one: docs/semantics/deviations.md
	noUpdateTrigger bool
	own             []string // ... that calls LAST_INSERT_ID(x): one of these, † before columns
	alias           bool     // AS n
	comments        bool     // version comments around words, columns and values
	found           bool     // with CLIENT_FOUND_ROWS
	returns         []string // RETURNING
	mayFail         bool     // some statements fail natively
}

// What becomes of a row: it goes in (I), is skipped (S), updates a row (U), leaves that as it is
// (N), replaces it (R).
var (
	plainRows   = []string{"I", "III"}
	ignoredRows = []string{"I", "S", "II", "SS", "ISI", "SIS", "IIS", "SII"}
	updatedRows = []string{"I", "U", "N", "II", "UU", "NN", "IUI", "UIU", "INI", "IUN", "UNI", "NU", "UN"}
)

var (
	generalTables = []string{"t", "mid", "tail", "two", "easy", "v"}
	allIDs        = []ids{absentID, nullID, zeroID, defaultID, explicitID, mixedIDs}
)

// What an update list may do with LAST_INSERT_ID(x).
var (
	rowIDs  = []string{"†id=LAST_INSERT_ID(†id)"}
	lastIDs = []string{
		"†parent=LAST_INSERT_ID(ABS(IFNULL(†parent,0))+1)", "†n=7, †parent=LAST_INSERT_ID(5)", "†c=LAST_INSERT_ID(IFNULL(†c,0)+1)",
		"†id=LAST_INSERT_ID(†id+0)", "†id=(LAST_INSERT_ID(†id))", "†id=IF(LAST_INSERT_ID(†id),†id,†id)", "†id=CAST(LAST_INSERT_ID(†id) AS UNSIGNED)",
		"†n=IF(LAST_INSERT_ID(31)=31, 1, 2)", "†c=LAST_INSERT_ID(LAST_INSERT_ID(32)+1)",
	}
)

// families are all forms of text INSERT that get ids.
var families = []family{
	{name: "VALUES", bodies: []string{"list"}},
	{name: "no column list", bodies: []string{"bare"}, ids: []ids{nullID, zeroID, defaultID, explicitID, mixedIDs}},
	{name: "priority", verbs: []string{"INSERT LOW_PRIORITY", "INSERT HIGH_PRIORITY", "REPLACE LOW_PRIORITY"}},
	{name: "REPLACE", verbs: []string{"REPLACE"}, rows: []string{"I", "R", "IRI", "RR"}},
	{name: "SET", bodies: []string{"set"}, rows: []string{"I"}},
	{name: "REPLACE SET", verbs: []string{"REPLACE"}, bodies: []string{"set"}, rows: []string{"I", "R"}},
	{name: "IGNORE SET", ignore: true, bodies: []string{"set"}, rows: []string{"I", "S"}},
	{name: "SET, ON DUPLICATE KEY UPDATE", bodies: []string{"set"}, update: true, rows: []string{"I", "U", "N"}},
	{
		name: "VALUES ()", verbs: []string{"INSERT", "REPLACE", "INSERT LOW_PRIORITY"}, bodies: []string{"empty", "empty list"},
		tables: []string{"easy"}, ids: []ids{absentID},
	},
	{name: "IGNORE", ignore: true, rows: ignoredRows},
	{name: "ON DUPLICATE KEY UPDATE", update: true, rows: updatedRows},
	{name: "ON DUPLICATE KEY UPDATE, found rows", update: true, rows: updatedRows, found: true},
	{name: "ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id)", update: true, own: rowIDs, rows: updatedRows},
	{name: "ON DUPLICATE KEY UPDATE LAST_INSERT_ID(x)", update: true, own: lastIDs, noUpdateTrigger: true, rows: updatedRows},
	{name: "ON DUPLICATE KEY UPDATE LAST_INSERT_ID(x), found rows", update: true, own: lastIDs, noUpdateTrigger: true, rows: updatedRows, found: true},
	{name: "IGNORE, ON DUPLICATE KEY UPDATE", ignore: true, update: true, rows: updatedRows},
	{name: "DELAYED", verbs: []string{"INSERT DELAYED", "REPLACE DELAYED"}, tables: []string{"slow"}},
	{name: "PARTITION", verbs: []string{"INSERT", "REPLACE"}, part: true, tables: []string{"parts"}},
	{name: "RETURNING", verbs: []string{"INSERT", "REPLACE"}, lacks: "MySQL", returns: []string{"id", "*", "a, id AS x", "id+0"}},
	{
		name: "RETURNING LAST_INSERT_ID()", verbs: []string{"INSERT", "REPLACE"}, lacks: "MySQL",
		returns: []string{"LAST_INSERT_ID()", "id, LAST_INSERT_ID()", "@@identity, a"},
	},
	{name: "IGNORE, RETURNING", ignore: true, lacks: "MySQL", rows: ignoredRows, returns: []string{"id", "id, LAST_INSERT_ID()"}},
	{
		name: "ON DUPLICATE KEY UPDATE, RETURNING", update: true, lacks: "MySQL", rows: updatedRows,
		returns: []string{"id", "id, a", "id, a, LAST_INSERT_ID()"},
	},
	{name: "row alias", alias: true, lacks: "MariaDB"},
	{name: "row alias, ON DUPLICATE KEY UPDATE", alias: true, update: true, lacks: "MariaDB", rows: updatedRows},
	{
		name: "row alias, ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id)", alias: true, update: true, own: rowIDs, lacks: "MariaDB",
		rows: []string{"I", "U", "IUI", "UU"},
	},
	{name: "version comments", verbs: []string{"INSERT", "REPLACE", "INSERT LOW_PRIORITY"}, comments: true},
	{name: "version comments, IGNORE", ignore: true, comments: true, rows: []string{"I", "S", "II", "ISI"}},
	{name: "version comments, ON DUPLICATE KEY UPDATE", update: true, comments: true, rows: []string{"I", "U", "II", "IUI"}},
	{name: "expressions", verbs: []string{"INSERT", "INSERT", "REPLACE"}, ids: []ids{expression}, rows: []string{"I", "I", "I", "III", "III", "III"}, mayFail: true},
	{name: "expressions, IGNORE", ignore: true, ids: []ids{expression}, rows: []string{"I", "S", "II", "ISI"}, mayFail: true},
	{name: "expressions, ON DUPLICATE KEY UPDATE", update: true, ids: []ids{expression}, rows: []string{"I", "U", "II", "IUI"}, mayFail: true},
	{name: "expressions, SET", bodies: []string{"set"}, ids: []ids{expression}, rows: []string{"I", "I", "I"}, mayFail: true},
}

// or returns the family's own choices, or those of all.
func or[T any](own, common []T) []T {
	if own == nil {
		return common
	}
	return own
}

// form is what a step is an example of.
type form struct {
	*family
	ids     ids
	rows    string
	charset string
	trigger trigger
}

// generates says that a row with a generated id goes in, whatever the choices were.
func (f *form) generates() bool {
	switch f.ids {
	case explicitID, expression:
		return false
	case mixedIDs:
		return strings.Trim(f.rows, "IR") == ""
	}
	return strings.ContainsAny(f.rows, "IR")
}

// coverage is a cell of the table of what has to be tried.
type coverage struct {
	family  string
	ids     ids
	several bool
	charset string
}

func (f *form) coverage() coverage { return coverage{f.name, f.ids, len(f.rows) > 1, f.charset} }

// cover counts the forms that ran natively without an error.
func (o *oracle) cover(sc script, native [][]wireclient.Facet, worlds int) {
	for i, st := range sc.steps {
		if slices.ContainsFunc(native[i], func(f wireclient.Facet) bool { return strings.HasSuffix(f.Name, "error") }) {
			continue
		}
		if st.form != nil {
			o.covered[st.form.coverage()]++
			o.statements += worlds
		}
		for j, kind := range st.pieces {
			o.covered[coverage{family: kind, several: j > 0}]++
		}
	}
}

// wanted returns the cells that the forms of a server must cover: every family with every kind of
// id, one row and several rows, in every character set.
func wanted(kind servers.Kind) []coverage {
	var all []coverage
	charsets := map[string]bool{}
	for _, m := range modesOf(kind) {
		charsets[m.charsetName()] = true
	}
	for _, fam := range familiesOf(kind) {
		for _, i := range or(fam.ids, allIDs) {
			for _, rows := range or(fam.rows, plainRows) {
				for charset := range charsets {
					if c := (coverage{fam.name, i, len(rows) > 1, charset}); c.several || i != mixedIDs {
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

// familiesOf returns the families that a server has.
func familiesOf(kind servers.Kind) []family {
	return slices.DeleteFunc(slices.Clone(families), func(fam family) bool { return fam.lacks == kind.String() })
}

// setting is what scripts are written for.
type setting struct {
	kind    servers.Kind
	trigger trigger
	round   int
}

// familyScripts returns the forms of a family in a mode, each behind another and before something
// that reads what it left, one session for each kind of id.
func familyScripts(fam family, m formMode, at setting) []script {
	w := newWriter("", fam, m, at)
	w.half = w.IntN(2)
	return w.sessions("", func(sc *script, kindOfIDs ids) {
		w.begin()
		for i, rows := range or(fam.rows, plainRows) {
			if !width.Long && m.name != "default" && len(fam.rows) > 6 && i%2 != w.half {
				continue
			}
			if kindOfIDs != mixedIDs || len(rows) > 1 {
				sc.steps = append(sc.steps, w.example(kindOfIDs, rows)...)
			}
		}
	})
}

// sessions returns a script for each kind of id that the mode has. write gives it its steps.
func (w *writer) sessions(protocol string, write func(sc *script, kindOfIDs ids)) []script {
	if w.family.noUpdateTrigger && w.trigger == updateTrigger {
		return nil
	}
	w.serial = w.IntN(len(afterwards)) // so that not every family begins with the same reader
	var all []script
	for _, kindOfIDs := range or(w.family.ids, allIDs) {
		if w.nullGenerates && (kindOfIDs == zeroID || kindOfIDs == defaultID) {
			continue
		}
		sc := script{name: fmt.Sprintf("%s%s, id %s, %s", protocol, w.family.name, kindOfIDs, w.name), options: w.options(), steps: w.setup()}
		if w.family.found {
			sc.options = append(sc.options, foundRows)
		}
		write(&sc, kindOfIDs)
		all = append(all, sc)
	}
	return all
}

var (
	verbs = []string{
		"INSERT INTO", "INSERT", "insert into", "INSERT LOW_PRIORITY INTO", "INSERT HIGH_PRIORITY INTO", "INSERT LOW_PRIORITY",
		"REPLACE INTO", "REPLACE", "Replace LOW_PRIORITY INTO",
	}
	// layouts are column lists; N is the table's name, I the id.
	layouts  = []string{"", "I,a,parent", "a,I,parent", "a,parent,I", "`I`,a,`parent`", "N.I,N.a,N.parent", "a, parent", "A,ID,PARENT"}
	values   = []string{"VALUES", "VALUE", "values"}
	patterns = []string{"G", "E", "GGG", "GGE", "GEG", "EGG", "EEG", "EGE", "GEE", "EEE"}
	parents  = []string{
		"7", "LAST_INSERT_ID()", "last_insert_id( )", "@@identity", "@@SESSION.last_insert_id", "(SELECT LAST_INSERT_ID())",
		"LAST_INSERT_ID()+0", "NULL", "-7", "DEFAULT", "GREATEST(1,LAST_INSERT_ID())",
	}
	gaps = []string{" ", " ", "  ", "\n", "/* a, (b) */", " -- it's\n", " # \"x\n", "\t/**/ "}
)

// generateForms returns statements that each put rows into a table with a rule: every pattern of
// generated and explicit ids with every column list, and of the rest (verb, spelling, names,
// comments, what reads the last insert id) another choice each time. The same at every run.
func generateForms(m formMode) []string {
	f := newFormer(m, "VALUES")
	var all []string
	for range m.rounds {
		for _, pattern := range patterns {
			for _, layout := range layouts {
				if layout == "a, parent" && strings.Contains(pattern, "E") {
					continue // an id that is not there cannot be explicit
				}
				all = append(all, f.form(pattern, layout))
			}
		}
	}
	return all
}

func (f *former) form(pattern, layout string) string {
	table := f.pick(tableNames[:3])
	gap := func() string { return " " }
	if f.IntN(3) == 0 {
		gap = func() string { return f.pick(gaps) }
	}
	var b strings.Builder
	name := f.table(table)
	fmt.Fprintf(&b, "%s%s%s", strings.ReplaceAll(f.pick(verbs), " ", gap()+" "), gap()+" ", name)
	order := layout
	if layout == "" {
		order = map[string]string{"t": "I,a,parent,u,f,n,c", "mid": "a,I,parent,u,f,n,c", "tail": "a,parent,u,f,n,c,I"}[table]
	} else {
		columns := strings.Split(strings.ReplaceAll(layout, "`", f.quoteMark()), ",")
		for i, c := range columns {
			if strings.Trim(c, "N.`\"") == "I" {
				c = strings.Replace(c, "I", "id", 1)
			}
			columns[i] = strings.Replace(c, "N.", name+".", 1)
		}
		fmt.Fprintf(&b, "%s(%s)", gap(), strings.Join(columns, gap()+","+gap()))
	}
	b.WriteString(gap() + " " + f.pick(values) + gap())
	for i, kind := range pattern {
		if kind == 'E' && strings.Contains(pattern[:i], "G") {
			kind = 'L'
		}
		if i > 0 {
			b.WriteString(gap() + "," + gap())
		}
		f.serial++
		b.WriteString("(" + gap() + strings.Join(f.tuple(order, kind), gap()+","+gap()) + gap() + ")")
	}
	b.WriteString(f.pick([]string{"", "", "", ";", " ; ", " /* end */", " -- end"}))
	return b.String()
}

// tuple returns the values for columns in this order.
func (f *former) tuple(order string, kind rune) []string {
	var tuple []string
	for c := range strings.SplitSeq(strings.ToLower(order), ",") {
		c = strings.Trim(c[strings.LastIndex(c, ".")+1:], " `")
		switch c {
		case "i", "id":
			tuple = append(tuple, f.id(kind))
		case "a":
			tuple = append(tuple, f.content())
		case "parent":
			tuple = append(tuple, f.pick(parents))
		default:
			tuple = append(tuple, "NULL")
		}
	}
	return tuple
}

// id returns a spelling of an id that is generated (G), explicit (E), or explicit and not below
// zero (L: later than a generated one).
func (f *former) id(kind rune) string {
	n := 100 + f.serial
	switch kind {
	case 'L':
		return f.pick([]string{fmt.Sprint(n), fmt.Sprintf("'%d'", n), fmt.Sprintf("+%d", n), fmt.Sprintf("00%d", n)})
	case 'E':
		return f.pick([]string{fmt.Sprint(n), fmt.Sprint(n), fmt.Sprintf("'%d'", n), fmt.Sprintf("+%d", n), fmt.Sprintf("-%d", n), fmt.Sprintf("00%d", n)})
	}
	if f.nullGenerates {
		return f.pick([]string{"NULL", "null"})
	}
	return f.pick([]string{"NULL", "null", "Null", "0", "'0'", "DEFAULT", "default"})
}

// table returns a spelling of a table's name.
func (f *former) table(name string) string {
	q := f.quote
	if f.ignoreSpace {
		return q(name)
	}
	return f.pick([]string{
		name, name, q(name), "{db}." + name, q("{db}") + "." + q(name), "{db}." + q(name), "`{db}`.`" + name + "`",
	})
}
