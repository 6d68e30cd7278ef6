package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// trigger says which triggers the tables of a world have.
type trigger uint8

const (
	noTrigger trigger = iota
	beforeTrigger
	afterTrigger
	updateTrigger
)

func (tr trigger) String() string {
	return [...]string{"no trigger", "BEFORE trigger", "AFTER trigger", "UPDATE trigger"}[tr]
}

// column says what kind of id column the tables of a world have.
type column uint8

const (
	native column = iota // AUTO_INCREMENT, reached directly
	plain                // BIGINT without AUTO_INCREMENT, reached through the proxy
	kept                 // AUTO_INCREMENT, reached through the proxy
	bare                 // BIGINT without AUTO_INCREMENT, reached directly: what no proxy at all would give
)

func (c column) String() string { return [...]string{"native", "plain", "kept", "bare"}[c] }

// tableNames are the tables with a rule. The first three differ in where the id stands, and are
// otherwise alike; two has a second column that a source fills, all columns of easy have defaults,
// slow is MyISAM, parts has a partition.
var tableNames = []string{"t", "mid", "tail", "two", "easy", "slow", "parts"}

// columnOrder is what an INSERT without a column list fills. v is a view of t.
var columnOrder = map[string]string{
	"t": "id,a,parent,u,f,n,c", "v": "id,a,parent,u,f,n,c", "mid": "a,id,parent,u,f,n,c", "tail": "a,parent,u,f,n,c,id",
	"two": "id2,id,a,parent,u,f,n,c", "easy": "a,id,parent,u,f,n,c", "slow": "id,a,parent,u,f,n,c", "parts": "id,a,parent,u,f,n,c",
}

// world is one database in which scripts run, and what is known of its rows.
type world struct {
	column   column
	server   *servers.Server
	addr, db string
	recorded *recorded           // the proxy, where another program's is compared with it
	other    *world              // through the other program
	observer *wireclient.Session // a direct connection that sees what is not committed yet

	fixed     map[string][][]string // the rows of each table with which scripts begin
	contents  [][]string            // as last observed; nil: it is not known
	lines     []string              // the same for people to read
	names     map[uint64]string     // what rows with these ids hold, deleted ones too
	labels    map[uint64]string     // how generated ids are shown
	distances string                // of the ids that the last step generated from the first of their table
}

// worlds counts them. The names of their databases are equally long, for the referee.
var worlds atomic.Int64

// newWorld creates the database and its tables. The caller sets addr.
func newWorld(t *testing.T, server *servers.Server, c column, tr trigger) *world {
	t.Helper()
	w := &world{column: c, server: server, db: fmt.Sprintf("world%04d", worlds.Add(1)), names: map[uint64]string{}, labels: map[uint64]string{}}
	harness.NamedDatabase(t, server, w.db)
	w.addr = server.Addr
	w.observer = wireclient.Open(t, server.Socket, w.db)
	w.observer.Must(t, w.schema(tr)...)
	w.observer.Must(t, "SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')", "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
		"PREPARE observe FROM '"+strings.ReplaceAll(w.observeSQL(), "'", "''")+"'")
	return w
}

// counts says whether the id column has AUTO_INCREMENT.
func (w *world) counts() bool { return w.column == native || w.column == kept }

// schema returns the statements that create the tables.
func (w *world) schema(tr trigger) []string {
	id, id2 := "id BIGINT NOT NULL PRIMARY KEY", "id2 BIGINT NOT NULL UNIQUE"
	if w.counts() {
		id = "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
	}
	if w.column == native {
		id2 = "id2 BIGINT"
	}
	const (
		a    = "a VARCHAR(20) NOT NULL"
		rest = "parent BIGINT, u INT UNIQUE, f INT, n TINYINT, c INT"
		easy = "parent BIGINT DEFAULT 3, u INT UNIQUE DEFAULT NULL, f INT DEFAULT 1, n TINYINT DEFAULT 4, c INT"
		some = "parent BIGINT, u INT, f INT, n TINYINT, c INT"
		more = "CHECK (c < 100), FOREIGN KEY (f) REFERENCES ref (k)"
	)
	texts := []string{
		"ALTER DATABASE CHARACTER SET utf8mb4", "CREATE TABLE ref (k INT PRIMARY KEY)", "INSERT INTO ref VALUES (1)",
		"CREATE TABLE lg (k BIGINT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(60), rowid BIGINT) AUTO_INCREMENT = 90000000",
		"CREATE TABLE readings (tag VARCHAR(60), parent BIGINT)", "INSERT INTO readings VALUES ('updated', 0)",
		fmt.Sprintf("CREATE TABLE t (%s, %s, %s, %s)", id, a, rest, more),
		fmt.Sprintf("CREATE TABLE mid (%s, %s, %s, %s)", a, id, rest, more),
		fmt.Sprintf("CREATE TABLE tail (%s, %s, %s, %s)", a, rest, id, more),
		fmt.Sprintf("CREATE TABLE two (%s, %s, %s, %s, %s)", id2, id, a, rest, more),
		fmt.Sprintf("CREATE TABLE easy (%s DEFAULT 'easy', %s, %s, %s)", a, id, easy, more),
		fmt.Sprintf("CREATE TABLE slow (%s, %s, %s) ENGINE = MyISAM", id, a, rest),
		fmt.Sprintf("CREATE TABLE parts (%s, %s, %s) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN MAXVALUE)", id, a, some),
		"CREATE VIEW v AS SELECT * FROM t",
		"CREATE PROCEDURE reading(tag VARCHAR(60)) INSERT INTO readings VALUES (tag, LAST_INSERT_ID())",
		"CREATE PROCEDURE last_id() SELECT LAST_INSERT_ID()",
	}
	for i, name := range tableNames {
		if w.counts() {
			texts = append(texts, fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d", name, wireclient.GeneratedFrom*(i+1)))
		}
		if name == "slow" {
			continue // a trigger would make a delayed INSERT a plain one
		}
		switch tr {
		case beforeTrigger:
			texts = append(texts, fmt.Sprintf("CREATE TRIGGER %s_before BEFORE INSERT ON %[1]s FOR EACH ROW "+
				"INSERT INTO lg (note) VALUES (CONCAT('before ', NEW.a))", name))
		case afterTrigger:
			texts = append(texts, fmt.Sprintf("CREATE TRIGGER %s_after AFTER INSERT ON %[1]s FOR EACH ROW "+
				"INSERT INTO lg (note, rowid) VALUES (CONCAT('after ', NEW.a), NEW.id)", name))
		case updateTrigger:
			texts = append(texts, fmt.Sprintf("CREATE TRIGGER %s_update AFTER UPDATE ON %[1]s FOR EACH ROW "+
				"INSERT INTO lg (note, rowid) VALUES (CONCAT('updated ', NEW.a), NEW.id)", name))
		}
	}
	return texts
}

// fixedRows are there when a script begins, with these numbers in u and the ids that fixedID tells.
const fixedRows = 3

// fixedID is the id of the row of a table that has this number in u.
func fixedID(table string, u int) int { return 90000 + 10*slices.Index(tableNames, table) + u }

// reset gives the tables that hold anything else the rows with which scripts begin: those that
// scripts collide with.
func (w *world) reset(t *testing.T) {
	t.Helper()
	for range 3 {
		if stale := w.stale(); stale != nil {
			w.refill(t, stale)
		}
		w.observe(t, false)
		if w.fixed == nil {
			w.fixed = byTable(w.contents)
		}
		if w.stale() == nil {
			return
		}
	}
	t.Fatalf("the tables of a script that begins hold\n%s", strings.Join(w.lines, "\n"))
}

// stale returns the tables that did not hold the fixed rows when they were last observed: all, when
// that is not known.
func (w *world) stale() (tables []string) {
	now := byTable(w.contents)
	for _, name := range append(slices.Clone(tableNames), "readings", "lg") {
		if w.fixed == nil || w.contents == nil || !slices.EqualFunc(now[name], w.fixed[name], slices.Equal[[]string]) {
			tables = append(tables, name)
		}
	}
	return tables
}

// byTable returns the rows of each table.
func byTable(contents [][]string) map[string][][]string {
	all := map[string][][]string{}
	for _, row := range contents {
		all[row[0]] = append(all[row[0]], row)
	}
	return all
}

// refill empties tables but for the fixed rows.
func (w *world) refill(t *testing.T, tables []string) {
	t.Helper()
	var texts []string
	for _, name := range tables {
		switch name {
		case "readings":
			texts = append(texts, "DELETE FROM readings WHERE tag <> 'updated'; UPDATE readings SET parent = 0")
		case "lg": // is emptied behind the others, whose triggers write to it
		default:
			columns, rows := "id,a,u", []string{}
			for u := 1; u <= fixedRows; u++ {
				row := fmt.Sprintf("%d,'fixed',%d", fixedID(name, u), u)
				if name == "two" {
					columns, row = "id,a,u,id2", fmt.Sprint(row, ",", u)
				}
				rows = append(rows, "("+row+")")
			}
			texts = append(texts, fmt.Sprintf("DELETE FROM %s; INSERT INTO %[1]s (%s) VALUES %s", name, columns, strings.Join(rows, ",")))
		}
	}
	w.observer.Must(t, strings.Join(append(texts, "DELETE FROM lg"), ";"))
}

// observeSQL reads all tables in one result: table, id, content, a column that may hold an id of
// another row. What a second source fills natively stays empty.
func (w *world) observeSQL() string {
	filled := fmt.Sprintf("id2 >= %d", wireclient.SecondSourceStart)
	if w.column == native {
		filled = "COALESCE(id2, 0) = 0"
	}
	var parts []string
	for _, name := range tableNames {
		content := "a, u, f, n, c"
		if name == "two" {
			content += ", IF(" + filled + ", 'filled', COALESCE(id2, 'empty'))"
		}
		parts = append(parts, fmt.Sprintf("SELECT '%s', id, CONCAT_WS('|', %s), parent FROM %[1]s", name, content))
	}
	parts = append(parts, "SELECT 'lg', k, note, rowid FROM lg", "SELECT 'readings', NULL, tag, parent FROM readings")
	return strings.Join(parts, " UNION ALL ")
}

// observe reads all tables, learns the names of their rows and returns what has changed, with ids
// replaced by names. Ids that are new are shown by how far they are from the first one of their
// table, or, when there may be gaps between them, by their rank.
func (w *world) observe(t *testing.T, gaps bool) string {
	t.Helper()
	rows := w.observer.Must(t, "EXECUTE observe").Rows
	if slices.EqualFunc(rows, w.contents, slices.Equal[[]string]) {
		w.distances = ""
		return ""
	}
	w.contents = rows
	w.learn(rows, gaps)
	var lines []string
	for _, row := range rows {
		label := row[1]
		if id, ok := wireclient.ParseID(row[1]); ok && wireclient.IsGenerated(id) {
			label = w.labels[id]
		}
		lines = append(lines, fmt.Sprintf("%s id=%s %s -> %s", row[0], label, row[2], w.name(row[3])))
	}
	slices.Sort(lines)
	before := w.lines
	w.lines = lines
	var changes []string
	for _, line := range wireclient.LinesOnlyIn(before, lines) {
		changes = append(changes, "-"+line)
	}
	for _, line := range wireclient.LinesOnlyIn(lines, before) {
		changes = append(changes, "+"+line)
	}
	return strings.Join(changes, "\n")
}

// learn gives the rows names and new generated ids labels.
func (w *world) learn(rows [][]string, gaps bool) {
	fresh := map[string][]uint64{} // generated ids of each table that are new
	for _, row := range rows {
		id, ok := wireclient.ParseID(row[1])
		if !ok {
			continue
		}
		if _, known := w.labels[id]; !known && wireclient.IsGenerated(id) {
			fresh[row[0]] = append(fresh[row[0]], id)
			w.labels[id] = ""
		}
		w.names[id] = row[0] + "{" + row[2] + "}"
	}
	w.distances = ""
	for _, table := range slices.Sorted(maps.Keys(fresh)) {
		ids := fresh[table]
		slices.Sort(ids)
		for rank, id := range ids {
			w.labels[id] = fmt.Sprintf("#+%d", id-ids[0])
			w.distances += fmt.Sprintf(" %d", id-ids[0])
			if gaps {
				w.labels[id] = fmt.Sprintf("#%d", rank)
			}
		}
	}
}

// unnamed stands for a generated id that no row ever had.
const unnamed = "(id of no row)"

// name replaces a value that is a generated id by the row it names.
func (w *world) name(value string) string {
	id, ok := wireclient.ParseID(value)
	if !ok || !wireclient.IsGenerated(id) {
		return value
	}
	if name, ok := w.names[id]; ok {
		return name
	}
	return unnamed
}
