package oracle

import (
	"idproxy/integration/wireclient"
)

// dynamicSessions are sessions with statements prepared in SQL, for the oracle: what they show is
// native.
func dynamicSessions() []script {
	return []script{
		{name: "names", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (a) VALUES (''one'')'", "EXECUTE S", "EXECUTE `s`;", "PREPARE `S` FROM 'INSERT INTO mid (a) VALUES (''two'')'", "EXECUTE s",
			"PREPARE s FROM 'SELEKT'", "EXECUTE s", "SELECT LAST_INSERT_ID()", "PREPARE s FROM 'INSERT INTO t (a,u) VALUES (''dup'', 1)'", "EXECUTE s", "SHOW WARNINGS",
			"SELECT LAST_INSERT_ID()", "DEALLOCATE PREPARE s", "EXECUTE s", "DEALLOCATE PREPARE s", "PREPARE s FROM 'SELECT LAST_INSERT_ID()'", "EXECUTE s", "DROP PREPARE S",
			"EXECUTE s", "PREPARE `a b` FROM 'INSERT INTO t (a) VALUES (''blank'')'", "EXECUTE `A B`", "PREPARE 1st FROM 'INSERT INTO t (a) VALUES (''digit'')'", "EXECUTE 1st",
		)},
		{name: "a PREPARE that fails on the outside keeps the statement", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (a) VALUES (''kept'')'", "PREPARE s FROM", "EXECUTE s", "PREPARE s 'SELECT 1'", "EXECUTE s", "SELECT LAST_INSERT_ID()",
		)},
		{name: "arguments", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (a,parent) VALUES (?,?)'", "SET @a = 'x', @b = 7", "EXECUTE s", "EXECUTE s USING @a", "SHOW WARNINGS", "EXECUTE s USING @a, @b",
			"EXECUTE s USING @a, @b, @c", "EXECUTE s USING @b, @nothing", "SELECT ROW_COUNT()", "EXECUTE s USING @a, @a", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()",
			"EXECUTE s USING @a, LAST_INSERT_ID()", "EXECUTE s USING 'y', 8", "EXECUTE s USING", "EXECUTE nothing USING @a",
		)},
		{name: "a bound id", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (id,a) VALUES (?,?),(?,''second'')'", "SET @n = NULL, @z = 0, @i = 700, @s = '701', @d = 0.3, @a = 'x'", "EXECUTE s USING @n, @a, @n",
			"SELECT LAST_INSERT_ID()", "EXECUTE s USING @z, @a, @i", "EXECUTE s USING @s, @a, @d", "SELECT LAST_INSERT_ID()", "SET @i = 710, @s = 711", "EXECUTE s USING @i, @a, @s",
			"SELECT LAST_INSERT_ID()", "SET @i = -5", "EXECUTE s USING @i, @a, @z", "EXECUTE s USING @i, @a, @z", "SELECT LAST_INSERT_ID()", "EXECUTE s USING @nowhere, @a, @nowhere",
			"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'", "EXECUTE s USING @n, @a, @z", "SELECT LAST_INSERT_ID()",
		)},
		{name: "DEFAULT and literals as arguments", lacks: "MySQL", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (id,a) VALUES (?,?)'", "EXECUTE s USING DEFAULT, 'x'", "EXECUTE s USING IGNORE, 'y'", "EXECUTE s USING NULL, CONCAT('z', 1)",
			"EXECUTE s USING 720, 'explicit'", "SELECT LAST_INSERT_ID()", "EXECUTE s USING 720+1, 'sum'", "EXECUTE s USING '0', 'text'",
			"EXECUTE IMMEDIATE 'INSERT INTO t (id,a) VALUES (?,?)' USING DEFAULT, 'imm'", "SELECT LAST_INSERT_ID()", "EXECUTE IMMEDIATE 'INSERT INTO t (id,a) VALUES (?,?)' USING 730, 'imm 2'",
			"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'", "EXECUTE s USING DEFAULT, 'zero'", "SELECT LAST_INSERT_ID()",
		)},
		{name: "from variables", steps: plainSteps(
			"SET @q = 'INSERT INTO t (a) VALUES (''from a variable'')'", "PREPARE s FROM @q", "SET @q = 'SELEKT'", "EXECUTE s", "PREPARE s FROM @q", "EXECUTE s", "PREPARE s FROM @nothing",
			"SET @q = 5", "PREPARE s FROM @q", "SET @q = 'SELECT COUNT(*) FROM t'", "PREPARE s FROM @q", "EXECUTE s", "SET @q = CONCAT('INSERT ', 'INTO t (a,u) VALUES (?, 1)'), @a = 'dup'",
			"PREPARE s FROM @`q`", "EXECUTE s USING @a", "SELECT LAST_INSERT_ID()", "SET @q = CAST('INSERT INTO t (a) VALUES (''binary'')' AS BINARY)", "PREPARE s FROM @q", "EXECUTE s",
			"SET @q = CONVERT('INSERT INTO t (a) VALUES (''utf16 é'')' USING utf16)", "PREPARE s FROM @q", "EXECUTE s", "SELECT LAST_INSERT_ID()",
		)},
		{name: "EXECUTE IMMEDIATE", lacks: "MySQL", steps: plainSteps(
			"EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (''imm'')'", "SELECT LAST_INSERT_ID()", "SET @t = 't', @a = 'x'", "EXECUTE IMMEDIATE CONCAT('INSERT INTO ', @t, ' (a) VALUES (?),(?)') USING @a, 'y'",
			"SELECT ROW_COUNT()", "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (?)'", "EXECUTE IMMEDIATE 'INSERT INTO t (a,u) VALUES (''dup'', 1)'", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()",
			"EXECUTE IMMEDIATE @nothing", "EXECUTE IMMEDIATE 'SELECT LAST_INSERT_ID()'", "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (''r'') RETURNING id, a'", "SELECT LAST_INSERT_ID()",
			"EXECUTE IMMEDIATE 'SET @x = LAST_INSERT_ID()'", "INSERT INTO mid (a,parent) VALUES ('child', @x)", "EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''SELECT 1'''",
			"EXECUTE IMMEDIATE 'INSERT INTO t ' '(a) VALUES ' '(''joined'')'", "EXECUTE IMMEDIATE 'SELEKT'", "SELECT LAST_INSERT_ID()",
		)},
		{name: "one text", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (a) VALUES (?)'; SET @a = 'one'; EXECUTE s USING @a; SELECT LAST_INSERT_ID(); EXECUTE s USING @a; DEALLOCATE PREPARE s",
			"INSERT INTO t (a) VALUES ('in front'); PREPARE s FROM 'INSERT INTO mid (a,parent) VALUES (''child'', LAST_INSERT_ID())'; EXECUTE s; SELECT LAST_INSERT_ID()",
			"EXECUTE s; PREPARE s FROM 'SELEKT'; EXECUTE s", "EXECUTE s; SELECT 1", "SELECT LAST_INSERT_ID()",
			"SET sql_mode = 'ANSI_QUOTES'; PREPARE s FROM 'INSERT INTO t (\"a\") VALUES (''ansi'')'; EXECUTE s", "SELECT LAST_INSERT_ID()",
		)},
		{name: "what is not an INSERT", steps: plainSteps(
			"PREPARE m FROM 'SET sql_mode = ?'", "SET @m = 'NO_AUTO_VALUE_ON_ZERO'", "EXECUTE m USING @m", "INSERT INTO t (id,a) VALUES (0,'zero')", "SELECT LAST_INSERT_ID()",
			"PREPARE d FROM 'CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20))'", "EXECUTE d", "INSERT INTO t (a) VALUES ('own')", "SELECT COUNT(*) FROM t",
			"DROP TEMPORARY TABLE t", "PREPARE c FROM 'CALL reading(?)'", "SET @tag = 'called'", "INSERT INTO t (a) VALUES ('seed')", "EXECUTE c USING @tag",
			"INSERT INTO t (a,u) VALUES ('dup',1)", "EXECUTE c USING @tag", "PREPARE r FROM 'SELECT LAST_INSERT_ID(), @@identity'", "EXECUTE r",
			"PREPARE l FROM 'INSERT INTO readings VALUES (''plain'', LAST_INSERT_ID())'", "INSERT INTO t (a,u) VALUES ('dup',1)", "EXECUTE l", "PREPARE lg FROM 'INSERT INTO lg (note) VALUES (''own counter'')'",
			"EXECUTE lg", "SELECT LAST_INSERT_ID() > 0", "INSERT INTO t (a,u) VALUES ('dup',1)", "EXECUTE r",
		)},
		{name: "sessions end statements", steps: append(append(
			plainSteps("PREPARE s FROM 'INSERT INTO t (a) VALUES (''gone'')'", "EXECUTE s"), resetsConnection()),
			plainSteps("EXECUTE s", "PREPARE s FROM 'INSERT INTO t (a) VALUES (''again'')'", "EXECUTE s", "SELECT LAST_INSERT_ID()")...)},
		{name: "both protocols", steps: []step{
			prepareStep("b", "INSERT INTO t (a,parent) VALUES (?, LAST_INSERT_ID())"),
			{sql: "PREPARE b FROM 'INSERT INTO mid (a,parent) VALUES (?, LAST_INSERT_ID())'"},
			executeStep("b", wireclient.Varchar("binary")),
			{sql: "SET @a = 'sql'"},
			{sql: "EXECUTE b USING @a"},
			executeStep("b", wireclient.Varchar("binary 2")),
			{sql: "EXECUTE b USING @a"},
			{sql: "SELECT LAST_INSERT_ID()"},
			{sql: "PREPARE x FROM 'PREPARE y FROM ''SELECT 1'''"},
			{sql: "EXECUTE b USING @a", binary: true},
			{sql: "SELECT LAST_INSERT_ID()"},
		}},
		{name: "a procedure with the same name", steps: append([]step{
			{sql: "PREPARE s FROM 'INSERT INTO t (a) VALUES (''outer'')'"},
			{sql: "CALL prepares('SELECT 5')"},
			{sql: "EXECUTE s", deviation: unseenName},
			{sql: "CALL prepares('INSERT INTO t (id,a) VALUES (745,''inner'')')"},
			{sql: "EXECUTE s", deviation: unseenName},
		}, plainSteps("CALL deallocates()", "EXECUTE s", "PREPARE r FROM 'SELECT 1'", "CALL prepares('SELECT 7')", "EXECUTE r", "PREPARE s FROM 'SELECT 8'", "CALL prepares('SELECT 9')",
			"EXECUTE s", "PREPARE s FROM 'INSERT INTO t (a) VALUES (''outer 2'')'", "EXECUTE s", "SELECT LAST_INSERT_ID()",
		)...)},
	}
}

// unseenName is what becomes of a name that a procedure has taken.
var unseenName = &deviation{
	name:   "a procedure takes a name",
	reason: "what a procedure prepares is not seen, so an EXECUTE of its name is written for the INSERT that the client prepared, and the server refuses the number of arguments",
	fails:  "1210 (HY000)",
}
