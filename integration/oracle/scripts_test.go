package oracle

import (
	"fmt"
	"slices"
	"strings"

	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// plainSteps makes steps of texts.
func plainSteps(texts ...string) []step {
	steps := make([]step, len(texts))
	for i, text := range texts {
		steps[i].sql = text
	}
	return steps
}

// plainScripts are sessions that the generated forms do not cover and that show no deviation.
func plainScripts() []script {
	return []script{
		{name: "several statements", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('p'); INSERT INTO mid (a,parent) VALUES ('c', LAST_INSERT_ID()); SELECT LAST_INSERT_ID()",
			"SELECT 1; INSERT INTO t (a) VALUES ('q'),('r'); SELECT ROW_COUNT(); INSERT INTO readings VALUES ('x', LAST_INSERT_ID())",
			"INSERT INTO t (a,u) VALUES ('ok', NULL); INSERT INTO t (a,u) VALUES ('dup', 1); INSERT INTO t (a) VALUES ('never')",
			"INSERT INTO mid (a,parent) VALUES ('c2', LAST_INSERT_ID())",
			"INSERT INTO t (a,u) VALUES ('dup', 1); INSERT INTO t (a) VALUES ('never')",
			"INSERT INTO mid (a,parent) VALUES ('c3', LAST_INSERT_ID());;",
			"UPDATE readings SET parent = LAST_INSERT_ID(); DELETE FROM mid WHERE a = 'c3'; INSERT INTO t VALUES (NULL,'s',@@identity,NULL,NULL,NULL,NULL); ",
			"SELECT LAST_INSERT_ID(), @@identity",
		)},
		{name: "transactions", steps: plainSteps(
			"SET autocommit = 0",
			"INSERT INTO t (a) VALUES ('lost')", "INSERT INTO mid (a,parent) VALUES ('lost too', LAST_INSERT_ID())", "ROLLBACK",
			"SELECT LAST_INSERT_ID()", "INSERT INTO t (a) VALUES ('stays')", "SAVEPOINT s",
			"INSERT INTO t (a) VALUES ('back'), ('back 2')", "ROLLBACK TO s", "INSERT INTO mid (a,parent) VALUES ('of back', LAST_INSERT_ID())",
			"COMMIT", "SET autocommit = 1", "START TRANSACTION READ ONLY", "INSERT INTO t (a) VALUES ('read only')",
			"SELECT LAST_INSERT_ID()", "COMMIT", "SELECT @@identity",
		)},
		{name: "USE", steps: plainSteps(
			"USE {db}", "INSERT INTO t (a) VALUES ('a')", "USE information_schema", "INSERT INTO t (a) VALUES ('none')",
			"INSERT INTO {db}.t (a,parent) VALUES ('b', LAST_INSERT_ID())", "USE `{db}`", "INSERT INTO t (a,parent) VALUES ('c', LAST_INSERT_ID())",
			"USE nowhere", "INSERT INTO t (a,parent) VALUES ('d', LAST_INSERT_ID())", "/* c */ USE {db} ; INSERT INTO t (a) VALUES ('e')",
			"SELECT DATABASE()", "SELECT LAST_INSERT_ID()",
		)},
		{name: "temporary table", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('before')",
			"CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20))",
			"INSERT INTO t (a) VALUES ('own'), ('own 2')", "SELECT LAST_INSERT_ID()", "SELECT * FROM t", "INSERT INTO {db}.t (a) VALUES ('own 3')",
			"INSERT INTO mid (a,parent) VALUES ('other', LAST_INSERT_ID())", "DROP TEMPORARY TABLE t",
			"INSERT INTO t (a,parent) VALUES ('behind', LAST_INSERT_ID())", "SELECT LAST_INSERT_ID()",
		)},
		{name: "zero is a value", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('seed')", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'",
			"INSERT INTO t (id,a) VALUES (0,'zero')", "SELECT LAST_INSERT_ID()", "INSERT INTO t (id,a) VALUES ('0','zero again')",
			"SELECT LAST_INSERT_ID()", "DELETE FROM t WHERE id = 0", "INSERT INTO t (id,a) VALUES ('0','quoted')", "DELETE FROM t WHERE id = 0",
			"REPLACE INTO t VALUES (0,'replaced',LAST_INSERT_ID(),NULL,NULL,NULL,NULL)", "DELETE FROM t WHERE id = 0",
			"INSERT INTO t (id,a) VALUES (NULL,'null'),(0,'zero'),(NULL,'null 2')", "SELECT LAST_INSERT_ID()", "DELETE FROM t WHERE id = 0",
			"INSERT INTO t (a) VALUES ('absent')", "SET sql_mode = DEFAULT", "INSERT INTO t (id,a) VALUES (0,'generated')", "SELECT LAST_INSERT_ID()",
		)},
		{name: "explicit ids", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('seed')", "INSERT INTO t (id,a) VALUES (500,'x')", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (id,a) VALUES (501,'x'),(503,'y')", "INSERT INTO t (id,a) VALUES (-5,'minus')", "REPLACE INTO t (id,a) VALUES (500,'again')",
			"REPLACE INTO t (id,a) VALUES (500,'more'),(503,'more')", "INSERT INTO t (id,a) VALUES (600,'m'),(NULL,'m'),(700,'m')",
			"SELECT LAST_INSERT_ID()", "INSERT INTO t (id,a) VALUES (500,'duplicate')", "INSERT INTO mid (a,parent) VALUES ('c', LAST_INSERT_ID())",
		)},
		{name: "no id column", steps: []step{
			{sql: "INSERT INTO readings VALUES ('x', 1)"},
			{sql: "INSERT INTO readings VALUES ('prepared', 1)", binary: true},
			{sql: "INSERT INTO readings SET tag = 'set'"},
			{sql: "INSERT INTO readings SELECT 'select', 1"},
			{sql: "LOAD DATA INFILE '/nowhere' INTO TABLE readings"},
			{sql: "INSERT INTO missing SET a = 1"},
			{sql: "INSERT INTO missing SET a = 1", binary: true},
			{sql: "LOAD DATA INFILE '/nowhere' INTO TABLE missing"},
		}},
		{name: "replaced rows", steps: plainSteps(
			"REPLACE INTO t (a,u) VALUES ('one',5)", "REPLACE INTO t (a,u) VALUES ('two',5)", "SELECT LAST_INSERT_ID()",
			"REPLACE INTO t (a,u) VALUES ('three',5),('four',6),('five',5)", "SELECT LAST_INSERT_ID(), ROW_COUNT()",
			"REPLACE INTO mid (a,parent,u) VALUES ('child',LAST_INSERT_ID(),5)",
		)},
		{name: "the application sets it", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('seed')", "SELECT LAST_INSERT_ID(42)", "INSERT INTO t (a,parent) VALUES ('c', LAST_INSERT_ID())",
			"SET last_insert_id = 43", "INSERT INTO t (a,u) VALUES ('dup',1)", "INSERT INTO t (a,parent) VALUES ('d', LAST_INSERT_ID())",
			"UPDATE readings SET parent = LAST_INSERT_ID(parent + 44)", "INSERT INTO t (a,u) VALUES ('dup',1)", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (a,parent) VALUES (CONCAT('n', LAST_INSERT_ID(45)), LAST_INSERT_ID())", "SELECT LAST_INSERT_ID()",
		)},
		{name: "the other counter", steps: plainSteps(
			"INSERT INTO lg (note) VALUES ('has a counter of its own')", "INSERT INTO t (a) VALUES ('seed')",
			"INSERT INTO readings VALUES ('x', LAST_INSERT_ID())", "INSERT INTO t (a,u) VALUES ('dup',1)",
			"INSERT INTO readings SELECT 'y', LAST_INSERT_ID()", "INSERT INTO t (a,u) VALUES ('dup',1)", "UPDATE t SET u = NULL WHERE u = LAST_INSERT_ID()",
			"DELETE FROM t WHERE id = LAST_INSERT_ID()", "SELECT LAST_INSERT_ID()",
		)},
	}
}

// deviatingScripts are sessions with the deviations that are known.
func deviatingScripts() []script {
	return []script{
		{name: "version comments", steps: []step{
			{sql: "/*!50000 SELECT */ 1"},
			{sql: "/*! INSERT INTO t (a) VALUES ('whole') */"},
			{sql: "INSERT /*! INTO */ t (a) VALUES ('inside')"},
			{sql: "/*!50000 INSERT INTO readings VALUES ('no rule', 1) */"},
			{sql: "INSERT INTO t (a) VALUES ('x')"},
		}},
		{name: "syntax", steps: []step{
			{sql: "INSERT INTO t (a) VALUES ('seed')"},
			{sql: "INSERT INTO t (a) VALUES ('x)"},
			{sql: "INSERT INTO t (a,parent) VALUES ('c1', LAST_INSERT_ID())"},
			{sql: "INSERT INTO t (a) VALUES ('x'"},
			{sql: "INSERT INTO t (a,parent) VALUES ('c2', LAST_INSERT_ID())"},
			{sql: "INSERT INTO t (a) VALUES ('x') nonsense"},
			{sql: "SELECT LAST_INSERT_ID(), @@identity"},
			{sql: "INSERT INTO t (a) VALUES ('x' 7)", deviation: quotedSyntax},
			{sql: "INSERT INTO t (a,parent) VALUES ('c3', LAST_INSERT_ID())"},
			{sql: "INSERT INTO t (a) VALUES ('y'), ('x' 7), ('z')", deviation: quotedSyntax},
			{sql: "SELECT LAST_INSERT_ID()"},
			{sql: "SELECT 1; INSERT INTO t (a) VALUES ('kept'); INSRT INTO t (a) VALUES ('x')"},
			{sql: "SELECT LAST_INSERT_ID()"},
			{sql: "INSERT INTO readings VALUES ('clears the diagnostics', 1)"},
			{sql: "INSERT INTO t (a) VALUES ('x) "},
			{sql: "SHOW WARNINGS"},
		}},
		{name: "forms not filled yet", steps: notFilled()},
		{name: "SET insert_id", steps: []step{
			{sql: "INSERT INTO t (a) VALUES ('seed')"},
			{sql: "SET insert_id = 940"},
			{sql: "INSERT INTO t (a) VALUES ('chosen')", deviation: &deviation{
				name:   "SET insert_id",
				reason: "a BEFORE trigger that writes to a table with AUTO_INCREMENT takes the id that was asked for, and the row takes it here",
				expect: func(v string) string {
					if v == "t{chosen}" { // the insert id
						return "940"
					}
					return strings.NewReplacer("lg id=940 before", "lg id=#+0 before", "t id=#+0 chosen", "t id=940 chosen", "-> t{chosen}", "-> 940").Replace(v)
				},
				when: func(native []wireclient.Facet) bool {
					return strings.Contains(native[len(native)-1].Value, "lg id=940 before")
				},
			}},
			{sql: "INSERT INTO t (a) VALUES ('behind')"},
			{sql: "SELECT LAST_INSERT_ID()"},
		}},
		{name: "found rows behind a failure", steps: []step{
			{sql: "SELECT 1 UNION SELECT 2 UNION SELECT 3"},
			{sql: "INSERT INTO t (a,u) VALUES ('dup',1)"},
			{sql: "SELECT FOUND_ROWS()", deviation: foundByQuestion},
			{sql: "SELECT 1 UNION SELECT 2 UNION SELECT 3"},
			{sql: "INSERT INTO t (a,u) VALUES ('dup',1)"},
			{sql: "SELECT FOUND_ROWS()"},
		}},
		{name: "both at once behind a failure", steps: []step{
			{sql: "INSERT INTO t (a) VALUES ('seed')"},
			{sql: "INSERT INTO t (a,u) VALUES ('dup',1)"},
			{sql: "SELECT ROW_COUNT(), LAST_INSERT_ID()", deviation: &deviation{
				name: "diagnostics first",
				reason: "one statement that reads diagnostics and LAST_INSERT_ID() behind a failed INSERT gets true diagnostics, and the id that " +
					"the failed row would have had: paying the value back would change the diagnostics",
				expect: func(v string) string { return strings.ReplaceAll(v, "t{seed}", unnamed) },
			}},
			{sql: "SELECT LAST_INSERT_ID()"},
		}},
	}
}

// notYet is a form that is refused until it can be filled.
func notYet(form string) *deviation {
	return &deviation{name: "not filled yet", reason: "a form that is not filled is refused: it would go in without an id", refused: form}
}

// notFilled are the forms of INSERT that are refused for now, each with what the refusal says.
func notFilled() []step {
	var steps []step
	for _, f := range [][2]string{
		{"INSERT INTO t (a) SELECT CONCAT('select', SLEEP(0))", "SELECT"},
		{"INSERT INTO t (a) (SELECT @x := 'parenthesis')", "SELECT"},
		{"REPLACE INTO t (a) SELECT 'replace' WHERE GET_LOCK('x', 0)", "SELECT"},
		{"INSERT INTO t (id,a) VALUES (IF(1,NULL,2),'function')", "expression for column id"},
		{"INSERT INTO t (id,a) VALUES (NULL,'x'),((SELECT 901),'subquery')", "expression for column id"},
		{"INSERT INTO t SET a = 'x', id = IFNULL(@x,NULL)", "expression for column id"},
	} {
		steps = append(steps, step{sql: f[0], deviation: notYet(f[1])})
	}
	steps = append(steps, step{sql: "INSERT INTO t (a) VALUES ('prepared')", binary: true})
	return append(steps, plainSteps("PREPARE p FROM 'INSERT INTO t (a) VALUES (1)'", "EXECUTE p", "SELECT LAST_INSERT_ID()", "INSERT INTO t (a) VALUES ('filled')", "SELECT LAST_INSERT_ID()")...)
}

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

// formScripts are sessions of the other forms that the generated ones do not cover.
func formScripts() []script {
	return []script{
		{name: "character sets change", steps: plainSteps(
			"SET NAMES gbk", "INSERT INTO t (a) VALUES ('1\x95\\'), ('\x81`2')", "SET NAMES sjis", "INSERT INTO t (a,parent) VALUES ('3\x83\\', LAST_INSERT_ID())",
			"SET character_set_client = big5", "INSERT IGNORE INTO t (a,u) VALUES ('4\xb3\\', NULL), ('x\xa4`', 1)", "SELECT LAST_INSERT_ID()",
			"SET NAMES latin1", "INSERT INTO t SET a = '5\x95\\'', parent = LAST_INSERT_ID()", "SET @@SESSION.character_set_client = cp932",
			"INSERT INTO t (a) VALUES ('6\x83\\') ON DUPLICATE KEY UPDATE a = '\x83\\'", "SET CHARACTER SET gbk", "INSERT INTO mid (a) VALUES ('7\x81|\x95\\')",
			"SET NAMES DEFAULT", "INSERT INTO t (a,parent) VALUES ('8é\\'', LAST_INSERT_ID())", "SELECT LAST_INSERT_ID()",
		)},
		{name: "a row with its parent's id", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('parent')", "INSERT INTO tail (id,a) VALUES (LAST_INSERT_ID(),'detail')", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (a) VALUES ('parent 2')", "SET @p = LAST_INSERT_ID()", "INSERT INTO tail SET a = 'detail 2', id = @p",
			"INSERT INTO tail (a,id) VALUES ('again', @p) ON DUPLICATE KEY UPDATE a = VALUES(a)", "INSERT IGNORE INTO tail (a,id) VALUES ('more', @p)",
			"SELECT LAST_INSERT_ID(), @@identity", "REPLACE INTO tail (id,a) VALUES (@@identity,'replaced')", "SELECT LAST_INSERT_ID()",
		)},
		{name: "zero is a value in every form", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('seed')", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'", "SET @zero = 0, @null = NULL",
			"INSERT INTO t (id,a) VALUES (@zero,'zero')", "SELECT LAST_INSERT_ID()", "INSERT IGNORE INTO t (id,a) VALUES (0,'zero again')", "SHOW WARNINGS",
			"SELECT LAST_INSERT_ID()", "INSERT INTO t (id,a) VALUES (0,'more') ON DUPLICATE KEY UPDATE a = 'updated'", "SELECT LAST_INSERT_ID()",
			"DELETE FROM t WHERE id = 0", "INSERT INTO t SET id = 0, a = 'set'", "DELETE FROM t WHERE id = 0", "INSERT INTO t (id,a) VALUES (0.4,'less')",
			"DELETE FROM t WHERE id = 0",
			"INSERT INTO t (id,a) VALUES (@null,'null'),(NULL,'null 2')", "SELECT LAST_INSERT_ID()", "INSERT INTO t SET a = 'absent'", "SELECT LAST_INSERT_ID()",
		)},
		{name: "ids that are there", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('seed')", "INSERT INTO t (id,a) VALUES (90001,'x') ON DUPLICATE KEY UPDATE a = 'y'", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (id,a) VALUES (90001,'x') ON DUPLICATE KEY UPDATE a = a", "INSERT IGNORE INTO t (id,a) VALUES (90001,'x')", "SHOW WARNINGS",
			"INSERT IGNORE INTO t (id,a) VALUES (90001,'x'), (500,'in')", "SELECT LAST_INSERT_ID()", "INSERT IGNORE INTO t (id,a) VALUES (501,'in'), (90001,'x')",
			"INSERT INTO t (id,a) VALUES (90001,'z'), (502,'in') ON DUPLICATE KEY UPDATE a = VALUES(a)", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (id,a) VALUES (503,'in'), (90001,'zz') ON DUPLICATE KEY UPDATE a = VALUES(a)", "REPLACE INTO t (id,a) VALUES (90001,'r'), (NULL,'s')",
			"SELECT LAST_INSERT_ID()", "INSERT INTO t (id,a,u) VALUES (-77,'minus',77)",
			"INSERT INTO t (a,u) VALUES ('below zero',77) ON DUPLICATE KEY UPDATE a = VALUES(a)", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (a,u) VALUES ('both',77), ('in',78) ON DUPLICATE KEY UPDATE a = VALUES(a)", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (a,u) VALUES ('moved',77) ON DUPLICATE KEY UPDATE id = 700", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (a,u) VALUES ('moved',78) ON DUPLICATE KEY UPDATE a = 'moved', id = id - id + 701", "SELECT LAST_INSERT_ID()",
		)},
		{name: "what IGNORE makes of bad values", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('seed')", "INSERT IGNORE INTO t (a) VALUES (NULL)", "SHOW WARNINGS", "INSERT IGNORE INTO t (a) VALUES (REPEAT('x',50))",
			"SHOW WARNINGS", "SELECT LAST_INSERT_ID()", "INSERT IGNORE INTO t (a,f) VALUES ('none',99)", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()",
			"INSERT IGNORE INTO t (a,n) VALUES ('big',999), ('text','abc')", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()",
			"INSERT IGNORE INTO t (a,c) VALUES ('check',500), ('in',5)", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()",
			"INSERT IGNORE INTO t (u) VALUES (70)", "SHOW WARNINGS", "INSERT IGNORE INTO t () VALUES ()", "SELECT LAST_INSERT_ID()",
		)},
		{name: "errors of the other forms", steps: plainSteps(
			"INSERT INTO t (a) VALUES ('seed')", "INSERT INTO t VALUES ()", "INSERT INTO t () VALUES (), ()", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t SET a = 'dup', u = 1", "INSERT INTO t SET nope = 1", "INSERT INTO t SET a = 'x', a = 'y'", "INSERT INTO t SET a = 'x', id = NULL, id = 3",
			"SELECT LAST_INSERT_ID()", "INSERT INTO t (a,f) VALUES ('x',99) ON DUPLICATE KEY UPDATE a = 'y'", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (a,u) VALUES ('x',1) ON DUPLICATE KEY UPDATE nope = 1", "INSERT INTO t (a,u) VALUES ('x',1) ON DUPLICATE KEY UPDATE f = 99",
			"SELECT LAST_INSERT_ID()", "INSERT IGNORE INTO t (a) VALUES ('x',2)", "INSERT IGNORE INTO t (nope) VALUES (1)", "INSERT INTO parts PARTITION (p9) (a) VALUES ('x')",
			"INSERT INTO t PARTITION (p0) (a) VALUES ('x')", "SELECT LAST_INSERT_ID(), @@identity", "INSERT DELAYED INTO t (a) VALUES ('delayed')", "SHOW WARNINGS",
			"INSERT INTO t (id,a) VALUES ('abc','word')", "INSERT INTO t (id,a) VALUES ('','empty')", "INSERT INTO t (id,a) VALUES (99999999999999999999,'far')",
			"INSERT INTO mid (a,parent) VALUES ('child', LAST_INSERT_ID())",
		)},
		{name: "the session asks for more", steps: plainSteps(
			"INSERT IGNORE INTO t (a,u) VALUES ('a',1)", "GET DIAGNOSTICS @rows = ROW_COUNT, @n = NUMBER", "SELECT @rows, @n", "SELECT LAST_INSERT_ID()",
			"BEGIN", "INSERT INTO t (a,u) VALUES ('a',1) ON DUPLICATE KEY UPDATE a = 'b'", "ROLLBACK", "SELECT LAST_INSERT_ID()",
			"BEGIN", "INSERT IGNORE INTO t (a,u) VALUES ('in',NULL), ('out',1)", "SAVEPOINT s", "INSERT INTO mid (a,parent) VALUES ('child', LAST_INSERT_ID())",
			"ROLLBACK TO s", "COMMIT", "SELECT LAST_INSERT_ID()", "INSERT INTO t (a,u) VALUES ('up',1), ('in',NULL) ON DUPLICATE KEY UPDATE a = VALUES(a)",
			"SHOW WARNINGS", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()", "PREPARE p FROM 'SELECT LAST_INSERT_ID()'",
			"INSERT INTO t (a,u) VALUES ('up',1) ON DUPLICATE KEY UPDATE a = VALUES(a)", "EXECUTE p", "DEALLOCATE PREPARE p",
		)},
		{name: "zero by default", steps: []step{
			{sql: "INSERT INTO t (a) VALUES ('seed')"},
			{sql: "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'"},
			{sql: "INSERT INTO t (id,a) VALUES (DEFAULT,'default')", deviation: noDefault},
			{sql: "SELECT LAST_INSERT_ID()"},
		}},
		{name: "what IGNORE makes of ids that are no numbers", steps: []step{
			{sql: "INSERT INTO t (a) VALUES ('seed')"},
			{sql: "INSERT IGNORE INTO t (id,a) VALUES ('','empty')", deviation: warningOfID()},
			{sql: "SHOW WARNINGS", deviation: warningOfID()},
			{sql: "SELECT LAST_INSERT_ID()"},
			{sql: "INSERT IGNORE INTO t (id,a) VALUES ('abc','word'), (NULL,'null')", deviation: warningOfID()},
			{sql: "SELECT LAST_INSERT_ID()"},
			{sql: "INSERT IGNORE INTO t (id,a) VALUES ('12x','number')", deviation: cutID},
			{sql: "SHOW WARNINGS"},
			{sql: "SET sql_mode = ''"},
			{sql: "INSERT INTO t (id,a) VALUES ('','not strict')", deviation: warningOfID()},
			{sql: "SELECT LAST_INSERT_ID()"},
		}},
		{name: "expressions and counts", steps: []step{
			{sql: "INSERT INTO t (a) VALUES ('seed')"},
			{sql: "SET @n = 600"},
			{sql: "INSERT INTO t SET a := 'x', id := @n", deviation: notAnAssignment},
			{sql: "INSERT INTO t (a,u) VALUES ('updated',1) ON DUPLICATE KEY UPDATE a = VALUES(a)"},
			{sql: "SELECT ROW_COUNT()", binary: true},
			{sql: "INSERT INTO t (a) VALUES ('in'),('too') ON DUPLICATE KEY UPDATE a = VALUES(a)"},
			{sql: "SELECT ROW_COUNT()", binary: true},
			{sql: "SELECT LAST_INSERT_ID()"},
		}},
		{name: "a trigger in front of DELAYED", lacks: "MySQL", steps: []step{
			{sql: "INSERT INTO slow (a) VALUES ('seed')"},
			{sql: "CREATE TRIGGER slow_trigger BEFORE INSERT ON slow FOR EACH ROW SET NEW.n = 3"},
			{sql: "INSERT DELAYED INTO slow (a) VALUES ('in')", deviation: delayedTrigger},
			{sql: "SELECT LAST_INSERT_ID()", deviation: delayedTrigger},
			{sql: "DROP TRIGGER slow_trigger"},
			{sql: "INSERT INTO slow (a) VALUES ('last')"},
			{sql: "SELECT LAST_INSERT_ID()"},
		}},
	}
}
