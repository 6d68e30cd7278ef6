package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// trigger says which triggers the tables of a world have.
type trigger uint8

const (
	noTrigger trigger = iota
	beforeTrigger
	afterTrigger
)

func (tr trigger) String() string {
	return [...]string{"no trigger", "BEFORE trigger", "AFTER trigger"}[tr]
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

// Ids are told apart by their size: those below generatedFrom, and negative ones, were written by a script. The native
// counters of the three tables and the proxy's source start at numbers of their own, so that an id names one row of one
// table.
const (
	generatedFrom = 1_000_000
	sourceStart   = 5_000_000
)

// tableNames are the tables with a rule. They differ in where the id stands, and are otherwise alike.
var tableNames = []string{"t", "mid", "tail"}

// world is one database in which scripts run, and what is known of its rows.
type world struct {
	column   column
	server   *servers.Server
	addr, db string
	observer *rawSession // a direct connection that sees what is not committed yet

	lines   []string          // the contents last observed
	names   map[uint64]string // what rows with these ids hold, deleted ones too
	offsets map[uint64]uint64 // of a generated id from the first that the same step put into the table
}

// newWorld creates the database and its tables. The caller sets addr.
func newWorld(t *testing.T, server *servers.Server, c column, tr trigger) *world {
	t.Helper()
	w := &world{
		column: c, server: server, db: harness.Database(t, server),
		names: map[uint64]string{}, offsets: map[uint64]uint64{},
	}
	w.addr = server.Addr
	w.observer = openSession(t, server.Addr, w.db)
	w.observer.must(t, w.schema(tr)...)
	w.observer.must(t, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
	return w
}

// schema returns the statements that create the tables.
func (w *world) schema(tr trigger) []string {
	id := "id BIGINT NOT NULL PRIMARY KEY"
	if w.column == native || w.column == kept {
		id = "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
	}
	const (
		a    = "a VARCHAR(20) NOT NULL"
		rest = "parent BIGINT, u INT UNIQUE, f INT, n TINYINT, c INT"
		more = "CHECK (c < 100), FOREIGN KEY (f) REFERENCES ref (k)"
	)
	texts := []string{
		"ALTER DATABASE CHARACTER SET utf8mb4", "CREATE TABLE ref (k INT PRIMARY KEY)", "INSERT INTO ref VALUES (1)",
		"CREATE TABLE lg (k BIGINT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(60), rowid BIGINT) AUTO_INCREMENT = 4000000",
		"CREATE TABLE readings (tag VARCHAR(60), parent BIGINT)", "INSERT INTO readings VALUES ('updated', 0)",
		fmt.Sprintf("CREATE TABLE t (%s, %s, %s, %s)", id, a, rest, more),
		fmt.Sprintf("CREATE TABLE mid (%s, %s, %s, %s)", a, id, rest, more),
		fmt.Sprintf("CREATE TABLE tail (%s, %s, %s, %s)", a, rest, id, more),
		"CREATE PROCEDURE reading(tag VARCHAR(60)) INSERT INTO readings VALUES (tag, LAST_INSERT_ID())",
		"CREATE PROCEDURE last_id() SELECT LAST_INSERT_ID()",
	}
	for i, name := range tableNames {
		if w.column == native || w.column == kept {
			texts = append(texts, fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d", name, generatedFrom*(i+1)))
		}
		switch tr {
		case beforeTrigger:
			texts = append(texts, fmt.Sprintf("CREATE TRIGGER %s_before BEFORE INSERT ON %[1]s FOR EACH ROW "+
				"INSERT INTO lg (note) VALUES (CONCAT('before ', NEW.a))", name))
		case afterTrigger:
			texts = append(texts, fmt.Sprintf("CREATE TRIGGER %s_after AFTER INSERT ON %[1]s FOR EACH ROW "+
				"INSERT INTO lg (note, rowid) VALUES (CONCAT('after ', NEW.a), NEW.id)", name))
		}
	}
	return texts
}

// reset empties the tables but for one row that scripts collide with.
func (w *world) reset(t *testing.T) {
	t.Helper()
	w.observer.must(t, "SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO'); DELETE FROM t; DELETE FROM mid; DELETE FROM tail;"+
		"INSERT INTO t (id, a, u) VALUES (90001, 'fixed', 1); DELETE FROM lg; DELETE FROM readings WHERE tag <> 'updated';"+
		"UPDATE readings SET parent = 0")
	w.observe(t)
}

// observeSQL reads all tables in one result: table, id, content, a column that may hold an id of another row.
var observeSQL = func() string {
	var parts []string
	for _, name := range tableNames {
		parts = append(parts, fmt.Sprintf("SELECT '%s', id, CONCAT_WS('|', a, u, f, n, c), parent FROM %[1]s", name))
	}
	parts = append(parts, "SELECT 'lg', k, note, rowid FROM lg", "SELECT 'readings', NULL, tag, parent FROM readings")
	return strings.Join(parts, " UNION ALL ")
}()

// observe reads all tables, learns the names of their rows and returns what has changed, with ids replaced by names.
func (w *world) observe(t *testing.T) string {
	t.Helper()
	rows := w.observer.must(t, observeSQL).rows
	fresh := map[string]uint64{} // least generated id of each table that is new
	for _, row := range rows {
		id, ok := parseID(row[1])
		if !ok {
			continue
		}
		if _, known := w.offsets[id]; !known && isGenerated(id) {
			if least, some := fresh[row[0]]; !some || id < least {
				fresh[row[0]] = id
			}
		}
		w.names[id] = row[0] + "{" + row[2] + "}"
	}
	var lines []string
	for _, row := range rows {
		label := row[1]
		if id, ok := parseID(row[1]); ok && isGenerated(id) {
			if _, known := w.offsets[id]; !known {
				w.offsets[id] = id - fresh[row[0]]
			}
			label = fmt.Sprintf("#+%d", w.offsets[id])
		}
		lines = append(lines, fmt.Sprintf("%s id=%s %s -> %s", row[0], label, row[2], w.name(row[3])))
	}
	slices.Sort(lines)
	before := w.lines
	w.lines = lines
	var changes []string
	for _, line := range linesOnlyIn(before, lines) {
		changes = append(changes, "-"+line)
	}
	for _, line := range linesOnlyIn(lines, before) {
		changes = append(changes, "+"+line)
	}
	return strings.Join(changes, "\n")
}

// parseID reads an id; negative ones as the OK packet shows them.
func parseID(s string) (uint64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(n), true
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func isGenerated(id uint64) bool { return generatedFrom <= id && id < 1<<63 }

// unnamed stands for a generated id that no row ever had.
const unnamed = "(id of no row)"

// name replaces a value that is a generated id by the row it names.
func (w *world) name(value string) string {
	id, ok := parseID(value)
	if !ok || !isGenerated(id) {
		return value
	}
	if name, ok := w.names[id]; ok {
		return name
	}
	return unnamed
}
