package oracle

import (
	"fmt"
	"slices"
	"strings"

	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// failure is a way in which an INSERT fails. The rows before and behind the bad one are good.
type failure struct {
	name, columns, good, bad string
	tail                     string // of the statement
	early                    bool   // found before the first row is written
}

var failingInserts = []failure{
	{name: "duplicate key", columns: "a,u", good: "('x',NULL)", bad: "('x',1)"},
	{name: "duplicate explicit id", columns: "id,a", good: "(NULL,'x')", bad: "(90001,'x')"},
	{name: "NOT NULL", columns: "a", good: "('x')", bad: "(NULL)"},
	{name: "foreign key", columns: "a,f", good: "('x',1)", bad: "('x',99)"},
	{name: "foreign key, ON DUPLICATE KEY UPDATE", columns: "a,f", good: "('x',1)", bad: "('x',99)", tail: " ON DUPLICATE KEY UPDATE a = 'y'"},
	{name: "update to a duplicate", columns: "a,u", good: "('x',NULL)", bad: "('x',2)", tail: " ON DUPLICATE KEY UPDATE u = 1"},
	{name: "data too long", columns: "a", good: "('x')", bad: "(REPEAT('x',50))"},
	{name: "CHECK", columns: "id,a,c", good: "(0,'x',1)", bad: "(0,'x',500)"},
	{name: "out of range", columns: "a,id,n", good: "('x',DEFAULT,1)", bad: "('x',DEFAULT,999)"},
	{name: "wrong type", columns: "a,n", good: "('x',1)", bad: "('x','abc')"},
	{name: "subquery of two rows", columns: "a,n", good: "('x',1)", bad: "('x',(SELECT 1 UNION SELECT 2))"},
	{name: "unknown column", columns: "a,nope", good: "('x',1)", bad: "('x',1)", early: true},
	{name: "unknown column as value", columns: "a", good: "('x')", bad: "(nope)", early: true},
	{name: "too few values", columns: "a,u", good: "('x',NULL)", bad: "('x')", early: true},
	{name: "too many values", columns: "a,u", good: "('x',NULL)", bad: "('x',NULL,1)", early: true},
	{name: "column twice", columns: "a,a", good: "('x','x')", bad: "('x','x')", early: true},
	{name: "id twice", columns: "id,a,id", good: "(NULL,'x',NULL)", bad: "(NULL,'x',NULL)", early: true},
	{name: "no value", columns: "a", good: "('x')", bad: "('x',)", early: true},
}

// statement is an INSERT of rows of which the bad-th, from 1, fails.
func (f failure) statement(rows, bad int) string {
	tuples := make([]string, rows)
	for i := range tuples {
		tuples[i] = f.good
		if i+1 == bad {
			tuples[i] = f.bad
		}
	}
	return fmt.Sprintf("INSERT INTO t (%s) VALUES %s", f.columns, strings.Join(tuples, ", ")) + f.tail
}

// readers are what stands behind a failed INSERT: all that can tell an application which value
// LAST_INSERT_ID() has, and what happened. S stands for a number of their own.
var readers = [][]step{
	{{sql: "INSERT INTO t (a,parent) VALUES ('childS', LAST_INSERT_ID())"}},
	{{sql: "INSERT INTO mid (a,id,parent) VALUES ('childS', NULL, @@identity), ('childSb', NULL, @@identity)"}},
	{{sql: "INSERT INTO readings VALUES ('plainS', LAST_INSERT_ID())"}},
	{{sql: "CALL reading('callS')"}, {sql: "SELECT LAST_INSERT_ID()"}},
	{{sql: "CALL last_id()"}},
	{{sql: "SHOW WARNINGS"}, {sql: "INSERT INTO t (a,parent) VALUES ('childS', LAST_INSERT_ID())"}},
	{{sql: "SHOW ERRORS"}, {sql: "SHOW COUNT(*) ERRORS"}, {sql: "SELECT @@error_count, @@warning_count"}, {sql: "SELECT LAST_INSERT_ID()"}},
	{{sql: "SELECT ROW_COUNT()"}, {sql: "INSERT INTO t (a,parent) VALUES ('childS', @@identity)"}},
	{
		{sql: "GET DIAGNOSTICS CONDITION 1 @state = RETURNED_SQLSTATE, @text = MESSAGE_TEXT, @number = MYSQL_ERRNO"},
		{sql: "SELECT @state, @text, @number"},
		{sql: "SELECT LAST_INSERT_ID(), @@identity"},
	},
	{{sql: "SELECT LAST_INSERT_ID()", binary: true}, {sql: "SHOW WARNINGS"}},
	{{sql: "PREPARE p FROM 'SELECT LAST_INSERT_ID()'"}, {sql: "EXECUTE p"}},
	{{sql: "UPDATE readings SET parent = LAST_INSERT_ID() WHERE tag = 'updated'"}},
	{{sql: "SET @x = LAST_INSERT_ID()"}, {sql: "SELECT @x"}},
	{{sql: "SELECT FOUND_ROWS()"}, {sql: "SELECT @@last_insert_id"}},
	{{sql: "DO 1"}, {sql: "SELECT 1"}, {sql: "INSERT INTO tail (a,parent) VALUES ('childS', last_insert_id ())"}},
	{{sql: "INSERT INTO t (a,u,parent) VALUES ('retryS', 1, LAST_INSERT_ID())"}, {sql: "INSERT INTO t (a,u,parent) VALUES ('retryS', NULL, LAST_INSERT_ID())"}},
	{{sql: "INSERT INTO t (a,parent) VALUES ('childS', LAST_INSERT_ID()); SELECT LAST_INSERT_ID(), ROW_COUNT()"}},
	{{sql: "INSERT INTO t (a) VALUES ('nextS')"}, {sql: "SELECT LAST_INSERT_ID()"}},
	{{sql: "INSERT INTO readings (nope) VALUES (1)"}, {sql: "SELECT LAST_INSERT_ID()"}},
	{{sql: "LOAD DATA INFILE '/nowhere' INTO TABLE readings"}, {sql: "SELECT LAST_INSERT_ID()"}},
	{{sql: "INSERT INTO readings (tag) VALUES ('returnS') RETURNING 1"}, {sql: "SELECT LAST_INSERT_ID()"}},
	{{sql: "INSERT INTO lg (note) VALUES ('returnS') RETURNING 1"}, {sql: "SELECT LAST_INSERT_ID()"}},
	{{sql: "INSERT INTO lg (note) VALUES ('otherS')"}, {sql: "SELECT @@identity"}},
	{{sql: "INSERT INTO readings (tag, parent) VALUES ('countS', ROW_COUNT())"}, {sql: "SELECT LAST_INSERT_ID()"}},
	{{sql: "SHOW WARNINGS; SELECT 1"}, {sql: "INSERT INTO readings SELECT 'selectS', LAST_INSERT_ID()"}},
	{{sql: "BEGIN"}, {sql: "INSERT INTO t (a,parent) VALUES ('childS', LAST_INSERT_ID())"}, {sql: "ROLLBACK"}, {sql: "SELECT @@identity"}},
}

var quotedSyntax = &deviation{
	name:      "quoted syntax",
	reason:    "the server's 1064 quotes the text that it got, with the ids in it",
	sameError: true,
}

// failedBatch is the value that native columns leave behind a failed INSERT of several rows.
func failedBatch(seed string) *deviation {
	return &deviation{
		name: "failed batch",
		reason: "an INSERT of several rows that fails behind its first one leaves natively the id of a row that is not there, which the manual " +
			"calls undefined; the proxy leaves the value from before, which names a row",
		expect: func(v string) string { return strings.ReplaceAll(v, unnamed, seed) },
		when: func(native []wireclient.Facet) bool {
			return slices.ContainsFunc(native, func(f wireclient.Facet) bool { return strings.Contains(f.Value, unnamed) })
		},
	}
}

// failureScripts returns a script for each failure and place of the bad row, in which every reader
// follows it once. With triggers, and in a narrow run, every fourth reader does, which is another
// one in each script.
func failureScripts(tr trigger) []script {
	places := []struct{ rows, bad int }{{1, 1}, {3, 1}, {3, 2}, {3, 3}}
	every := 4
	if tr == noTrigger {
		every = width.Of(4, 1)
	}
	var all []script
	for i, f := range failingInserts {
		for j, at := range places {
			if f.early && at.rows > 1 && at.bad < at.rows {
				continue // found before any row is looked at, so one place among several stands for all
			}
			sc := script{name: fmt.Sprintf("%s in row %d of %d", f.name, at.bad, at.rows)}
			for k, reader := range readers {
				if k%every == (i+j)%every {
					sc.steps = append(sc.steps, behind(f.statement(at.rows, at.bad), k)...)
					sc.steps = append(sc.steps, numbered(reader, k, !f.early && at.bad > 1)...)
				}
			}
			all = append(all, sc)
		}
	}
	return all
}

// behind returns the steps up to and with the failed statement.
func behind(sql string, k int) []step {
	return []step{{sql: fmt.Sprintf("INSERT INTO t (a) VALUES ('seed%d')", k)}, {sql: sql}}
}

// numbered returns a reader's steps. moved: the failed statement was one that moves the native
// value.
func numbered(reader []step, k int, moved bool) []step {
	var steps []step
	for _, st := range reader {
		st.sql = strings.ReplaceAll(st.sql, "S'", fmt.Sprintf("%d'", k))
		st.sql = strings.ReplaceAll(st.sql, "Sb'", fmt.Sprintf("%db'", k))
		if moved {
			st.deviation = failedBatch(fmt.Sprintf("t{seed%d}", k))
		}
		steps = append(steps, st)
	}
	return steps
}
