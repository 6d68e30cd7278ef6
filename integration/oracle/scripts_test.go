package oracle

import (
	"strings"

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
	return &deviation{
		name:    "not filled yet",
		reason:  "a form that is not filled is refused: it would go in without an id",
		refused: form,
	}
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
