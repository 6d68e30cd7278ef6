package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"

	"idproxy/integration/wireclient"
)

// sourceTable is the table that INSERT ... SELECT reads. Row k = 10*place+digit goes in, or not, as
// its digit says; see digitOf. The column given holds NULL, 0 and explicit ids in turn.
var sourceTable = []string{
	"CREATE TABLE src (k INT PRIMARY KEY, a VARCHAR(40), parent BIGINT, u INT, f INT, n INT, c INT, given BIGINT)",
	"CREATE VIEW srcview AS SELECT * FROM src",
	"CREATE TABLE empty_src LIKE src",
	"CREATE TABLE narrow (a VARCHAR(20), u INT)", "INSERT INTO narrow VALUES ('narrow 1', NULL), ('narrow 2', NULL)",
}

// digitOf is the row of a place in the source that has this outcome: it goes in (I), collides with
// one of the fixed rows (S, U, R), updates it with what it holds (N), is too long (L), lacks a
// parent (K), breaks a CHECK (C), holds too large a number (V) or no value where there must be one
// (Z).
var digitOf = map[rune]int{'I': 0, 'L': 1, 'K': 2, 'C': 3, 'V': 4, 'S': 5, 'U': 5, 'R': 5, 'Z': 6, 'N': 7}

const failingRows = "LKCVZ"

// addSource makes the source in a world.
func (w *world) addSource(t *testing.T) {
	t.Helper()
	texts := slices.Clone(sourceTable)
	for place := 1; place <= 6; place++ {
		k, u := 10*place, (place-1)%fixedRows+1
		given := []string{"NULL", "0", fmt.Sprint(700 + place)}[place%3]
		row := func(digit int, a, u, f, n, c string) {
			texts = append(texts, fmt.Sprintf("INSERT INTO src VALUES (%d, %s, NULL, %s, %s, %s, %s, %s)", k+digit, a, u, f, n, c, given))
		}
		name := fmt.Sprintf("'s%d'", place)
		row(0, name, "NULL", "1", "5", "6")
		row(1, "'longer than its column, by far'", "NULL", "NULL", "NULL", "NULL")
		row(2, name, "NULL", "77", "NULL", "NULL")
		row(3, name, "NULL", "NULL", "NULL", "500")
		row(4, name, "NULL", "NULL", "1000", "NULL")
		row(5, name, fmt.Sprint(u), "1", "5", "6")
		row(6, "NULL", "NULL", "NULL", "NULL", "NULL")
		row(7, "'fixed'", fmt.Sprint(u), "NULL", "NULL", "NULL")
	}
	w.observer.Must(t, texts...)
}

// shape is a way to say which rows a SELECT gives. In its text § stands for the columns, ¶ for the
// condition.
type shape struct {
	name, text string
	lacks      string // the kind of server that does not have it
	prefix     string // of the source's columns
}

var shapes = []shape{
	{name: "plain", text: "SELECT § FROM src WHERE ¶"},
	{name: "ORDER BY", text: "SELECT § FROM src WHERE ¶ ORDER BY k DESC"},
	{name: "ORDER BY another column", text: "SELECT § FROM src WHERE ¶ ORDER BY a DESC, k"},
	{name: "LIMIT", text: "SELECT § FROM src WHERE ¶ ORDER BY k LIMIT 5"},
	{name: "LIMIT OFFSET", text: "SELECT § FROM src WHERE ¶ ORDER BY k DESC LIMIT 5 OFFSET 0"},
	{name: "LIMIT with a comma", text: "SELECT § FROM src WHERE ¶ ORDER BY k LIMIT 0, 9"},
	{name: "parentheses", text: "(SELECT § FROM src WHERE ¶ ORDER BY k)"},
	{name: "nested parentheses", text: "((SELECT § FROM src WHERE ¶ ORDER BY k DESC))"},
	{name: "ORDER BY behind parentheses", text: "(SELECT § FROM src WHERE ¶ ORDER BY k) LIMIT 9"},
	{name: "DISTINCT", text: "SELECT DISTINCT § FROM src WHERE ¶"},
	{name: "GROUP BY", text: "SELECT § FROM src WHERE ¶ GROUP BY k, a, u, f, n, c, given, parent ORDER BY k DESC"},
	{name: "UNION ALL", text: "SELECT § FROM src WHERE ¶ UNION ALL SELECT § FROM empty_src WHERE ¶"},
	{name: "UNION ALL, ORDER BY", text: "SELECT § FROM src WHERE ¶ UNION ALL SELECT § FROM empty_src ORDER BY 1, 2"},
	{name: "UNION of parentheses", text: "(SELECT § FROM src WHERE ¶ ORDER BY k LIMIT 9) UNION ALL (SELECT § FROM empty_src)"},
	{name: "WITH", text: "WITH q AS (SELECT * FROM src WHERE ¶) SELECT § FROM q ORDER BY k"},
	{name: "WITH, named as the proxy might", text: "WITH d AS (SELECT * FROM src WHERE ¶), e AS (SELECT * FROM d) SELECT § FROM e ORDER BY k DESC"},
	{name: "derived table", text: "SELECT § FROM (SELECT * FROM src WHERE ¶) d ORDER BY k"},
	{name: "join", text: "SELECT § FROM src JOIN ref r ON r.k > 0 WHERE ¶ ORDER BY src.k DESC", prefix: "src."},
	{name: "join without order", text: "SELECT § FROM src, ref AS r WHERE r.k = 1 AND ¶", prefix: "src."},
	{name: "view", text: "SELECT § FROM srcview WHERE ¶ ORDER BY k"},
	{name: "subquery in the condition", text: "SELECT § FROM src WHERE k IN (SELECT k FROM srcview WHERE ¶) ORDER BY k"},
	{name: "aliases", text: "SELECT § FROM src AS s WHERE ¶ ORDER BY s.k", prefix: "s."},
	{name: "comments", text: "SELECT /* the columns */ § FROM src -- the table\n WHERE ¶ ORDER BY k # the end\n"},
	{name: "FOR UPDATE", text: "SELECT § FROM src WHERE ¶ ORDER BY k FOR UPDATE"},
	{name: "LOCK IN SHARE MODE", text: "SELECT § FROM src WHERE ¶ ORDER BY k DESC LOCK IN SHARE MODE"},
	{name: "FOR SHARE", text: "SELECT § FROM src WHERE ¶ ORDER BY k FOR SHARE", lacks: "MariaDB"},
	{name: "qualified name", text: "SELECT § FROM {db}.src WHERE ¶ ORDER BY {db}.src.k"},
	{name: "index hint", text: "SELECT § FROM src USE INDEX (PRIMARY) WHERE ¶ ORDER BY k"},
	{name: "STRAIGHT_JOIN", text: "SELECT STRAIGHT_JOIN § FROM src WHERE ¶ ORDER BY k"},
	{name: "HAVING", text: "SELECT § FROM src WHERE ¶ GROUP BY k, a, u, f, n, c, given, parent HAVING COUNT(*) = 1 ORDER BY k"},
}

// selecting is a family of INSERT ... SELECT.
type selecting struct {
	name    string
	verbs   []string
	update  string // ON DUPLICATE KEY UPDATE
	rows    []string
	tables  []string // default: all
	options []client.Option
	returns []string
	lacks   string
}

var selectings = []selecting{
	{name: "SELECT", verbs: []string{"INSERT", "INSERT", "INSERT LOW_PRIORITY", "INSERT HIGH_PRIORITY"}, rows: []string{"I", "III", "IIIIII", ""}},
	{name: "SELECT, REPLACE", verbs: []string{"REPLACE", "REPLACE LOW_PRIORITY"}, rows: []string{"I", "R", "IRI", "RRR", ""}},
	{name: "SELECT, IGNORE", verbs: []string{"INSERT IGNORE"}, rows: []string{"III", "S", "ISI", "SIS", "SSS", "IIS", "SII", ""}},
	{
		name: "SELECT, ON DUPLICATE KEY UPDATE", verbs: []string{"INSERT"}, update: "a=VALUES(a), c=VALUES(c)",
		rows: []string{"III", "U", "N", "UUU", "NNN", "IUI", "UIU", "INI", "IUN", "UNI", ""},
	},
	{
		name: "SELECT, ON DUPLICATE KEY UPDATE, found rows", verbs: []string{"INSERT"}, update: "a=VALUES(a)", options: []client.Option{foundRows},
		rows: []string{"III", "U", "N", "UUU", "NNN", "IUI", "UIU", "INI", "UNI"},
	},
	{
		name: "SELECT, ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id)", verbs: []string{"INSERT"}, update: "a=VALUES(a), id=LAST_INSERT_ID(†.id)",
		tables: []string{"t", "mid", "tail", "easy"}, rows: []string{"III", "U", "UUU", "IUI", "IIU"},
	},
	{name: "SELECT, PARTITION", verbs: []string{"INSERT", "REPLACE"}, tables: []string{"parts"}, rows: []string{"I", "III"}},
	{name: "SELECT, failing", verbs: []string{"INSERT", "REPLACE"}, rows: []string{"L", "K", "C", "V", "Z", "ILI", "IIK", "ICI", "IVI", "IIZ", "ZII", "S", "ISI", "IIS"}},
	{name: "SELECT, RETURNING", verbs: []string{"INSERT", "REPLACE"}, lacks: "MySQL", returns: []string{"id", "*", "a, id AS x"}, rows: []string{"I", "III"}},
}

// selectWriter writes INSERT ... SELECT statements.
type selectWriter struct {
	*rand.Rand
	family  *selecting
	binary  bool // the condition's values are parameters
	serial  int
	trigger trigger
}

// givenIDs are the ways in which a SELECT gives ids, and the text of each.
var givenIDs = map[ids]string{nullID: "NULL", zeroID: "0", explicitID: "@k+7000", mixedIDs: "@given"}

// written is a statement and what it is executed with.
type written struct {
	sql  string
	args []wireclient.Argument
}

// statement writes one for rows with these outcomes.
func (w *selectWriter) statement(sh shape, kindOfIDs ids, rows string) written {
	table := "t"
	if all := or(w.family.tables, []string{"t", "t", "mid", "tail", "easy", "v"}); kindOfIDs == absentID || len(w.family.tables) > 0 {
		table = all[w.IntN(len(all))]
	}
	names, values := []string{"a", "u"}, []string{"@a", "@u"}
	if strings.ContainsAny(rows, failingRows) || w.IntN(3) == 0 {
		names, values = append(names, "f", "n", "c"), append(values, "@f", "@n", "@c")
	}
	if w.IntN(3) == 0 {
		parents := []string{"NULL", "3", "LAST_INSERT_ID()"}
		if strings.Contains(w.family.update, "LAST_INSERT_ID") {
			parents = parents[:2] // see the deviation "last insert id that an update leaves"
		}
		names, values = append(names, "parent"), append(values, parents[w.IntN(len(parents))])
	}
	if kindOfIDs != absentID {
		at := w.IntN(len(names) + 1)
		names, values = slices.Insert(names, at, "id"), slices.Insert(values, at, givenIDs[kindOfIDs])
	}
	into := table + " (" + strings.Join(names, ",") + ")"
	if kindOfIDs != absentID && w.IntN(3) == 0 {
		into, values = table, inOrder(table, names, values)
	}
	if table == "parts" {
		into = strings.Replace(into, "parts", "parts PARTITION (p0)", 1)
	}
	return w.assemble(sh, into, strings.Join(values, ", "), rows)
}

// inOrder returns values in the order of a table's columns.
func inOrder(table string, names, values []string) []string {
	var all []string
	for _, name := range strings.Split(columnOrder[table], ",") {
		if i := slices.Index(names, name); i >= 0 {
			all = append(all, values[i])
		} else {
			all = append(all, "NULL")
		}
	}
	return all
}

// assemble puts a statement together.
func (w *selectWriter) assemble(sh shape, into, columns, rows string) written {
	var keys []int
	for i, outcome := range rows {
		keys = append(keys, 10*(i+1)+digitOf[outcome])
	}
	if len(keys) == 0 {
		keys = []int{-1}
	}
	text := strings.ReplaceAll(strings.ReplaceAll(sh.text, "§", columns), "¶", "@k IN ("+strings.Trim(strings.Repeat("?,", len(keys)), ",")+")")
	text = strings.ReplaceAll(text, "@", sh.prefix)
	sql := w.family.verbs[w.IntN(len(w.family.verbs))] + " INTO " + into + " " + text
	if w.family.update != "" {
		table, _, _ := strings.Cut(into, " ")
		sql += " ON DUPLICATE KEY UPDATE " + strings.ReplaceAll(w.family.update, "†", table)
	}
	if w.family.returns != nil {
		sql += " RETURNING " + w.family.returns[w.IntN(len(w.family.returns))]
	}
	var args []wireclient.Argument
	for i := range strings.Count(sql, "?") {
		key := keys[i%len(keys)]
		if w.binary {
			args = append(args, wireclient.Long(int64(key)))
		} else {
			sql = strings.Replace(sql, "?", fmt.Sprint(key), 1)
		}
	}
	return written{sql, args}
}

// steps makes steps of a statement, which is prepared and executed once or twice where it has
// parameters.
func (w *selectWriter) steps(s written) []step {
	if !w.binary {
		return []step{{sql: s.sql}}
	}
	execute := func(session *wireclient.Session, _ string) ([]wireclient.Reply, error) {
		return session.Execute("select", wireclient.Execution{Args: s.args})
	}
	first := step{sql: s.sql, with: fmt.Sprint(s.args), send: func(session *wireclient.Session, sql string) ([]wireclient.Reply, error) {
		if replies, err := session.Prepare("select", sql); err != nil || replies[0].Err != nil {
			return replies, err
		}
		return execute(session, sql)
	}}
	return []step{first, {sql: "(again) " + s.sql, with: first.with, send: execute}}[:1+w.IntN(2)]
}
