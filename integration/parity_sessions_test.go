package integration_test

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// smallSessions are those that are replayed in every variant. Each leaves the database as it found it.
var smallSessions = []session{
	{"text", textSession},
	{"results", resultsSession},
	{"errors", errorSession},
	{"transaction", transactionSession},
	{"prepared", preparedSession},
	{"long data", longDataSession},
	{"cursor", cursorSession},
	{"commands", commandSession},
	{"pipelined", pipelinedSession},
	{"infile", infileSession},
	{"change user", changeUserSession},
}

func (c *rawConn) must(texts ...string) {
	for _, text := range texts {
		check(c.query(text))
	}
}

func textSession(c *rawConn) {
	c.must(
		"DROP TABLE IF EXISTS p_text",
		"CREATE TABLE p_text (a INT PRIMARY KEY, b VARCHAR(200), c DATETIME(6), d DECIMAL(20,5), e BLOB, f DOUBLE) ENGINE=MyISAM CHARSET utf8mb4",
		"INSERT INTO p_text VALUES (1,'value-Qj77-text','2020-02-03 04:05:06.789',1.5,x'00fffe',1e300),(2,NULL,NULL,NULL,NULL,NULL),(3,'','1000-01-01',-0.00001,'',-0.0)",
		"INSERT INTO p_text (a,b) VALUES (4,'\\'quoted\\'; INSERT INTO x')",
		"SELECT * FROM p_text ORDER BY a",
		"SELECT * FROM p_text WHERE a > 100",
		"UPDATE p_text SET b = 'zwei' WHERE a = 2",
		"UPDATE p_text SET b = 'zwei' WHERE a = 2",
		"/* a comment */ -- another\n SELECT 1 # and one more",
		"REPLACE INTO p_text (a,b) VALUES (1,'one'),(9,'nine')",
		"INSERT IGNORE INTO p_text (a,b) VALUES (1,'one'),(10,'nine')",
		"SHOW WARNINGS", "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()",
		"SET NAMES utf8mb4", "SET @a = 'x', @b = 5", "SELECT @a, @b, 'ünïcödé', CONVERT('é' USING latin1)",
		"SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", `SELECT "a", 'back\slash' FROM p_text LIMIT 1`,
		"SET SESSION sql_mode = DEFAULT", "SHOW COLUMNS FROM p_text", "EXPLAIN SELECT * FROM p_text",
		"SELECT '"+strings.Repeat("0123456789", 7000)+"'",
		"USE mysql", "SELECT DATABASE()", "USE "+c.schema, "DO 1",
		"DELETE FROM p_text", "DROP TABLE p_text",
	)
	wantCode(c.query(""), 1065)
}

func resultsSession(c *rawConn) {
	c.must(
		"DROP PROCEDURE IF EXISTS p_two", "DROP TABLE IF EXISTS p_res", "CREATE TABLE p_res (a INT PRIMARY KEY) ENGINE=MyISAM",
		"CREATE PROCEDURE p_two(OUT n INT) BEGIN SELECT 1 AS one; SELECT a, a*2 FROM p_res; INSERT INTO p_res VALUES (77); SET n = 5; END",
		"INSERT INTO p_res VALUES (1); INSERT INTO p_res VALUES (2),(3); SELECT * FROM p_res ORDER BY a; DO 1; SELECT 2",
		"SELECT 1;", "SELECT 1; ;", "SELECT ';'; SELECT ';;'",
		"CALL p_two(@n)", "SELECT @n", "DELETE FROM p_res WHERE a = 77; CALL p_two(@n); SELECT 'last'",
	)
	st, err := c.prepare("CALL p_two(?)")
	check(err)
	c.must("DELETE FROM p_res WHERE a = 77")
	check(c.execute(st, 0, true, long(1)))
	c.command(mysql.COM_SET_OPTION, 1, 0)
	check(c.one())
	wantCode(c.query("SELECT 1; SELECT 2"), 1064)
	c.command(mysql.COM_SET_OPTION, 0, 0)
	check(c.one())
	c.must("SELECT 1; SELECT 2", "DROP PROCEDURE p_two", "DROP TABLE p_res")
}

func errorSession(c *rawConn) {
	c.must("DROP TABLE IF EXISTS p_err", "CREATE TABLE p_err (a INT PRIMARY KEY) ENGINE=MyISAM")
	wantCode(c.query("SELEC 1"), 1064)
	wantCode(c.query("SELECT * FROM p_missing"), 1146)
	wantCode(c.query("INSERT INTO p_err VALUES (1); SELECT 1; INSERT INTO p_err VALUES (2),(1); INSERT INTO p_err VALUES (5)"), 1062)
	wantCode(c.query("SELECT 1; SELECT * FROM p_missing; SELECT 2"), 1146)
	wantCode(c.query("SELECT nope FROM p_err"), 1054)
	wantCode(c.query("INSERT INTO p_err VALUES (1,2)"), 1136)
	wantCode(c.query("USE p_no_such_schema"), 1049)
	c.must("SHOW WARNINGS", "SELECT * FROM p_err ORDER BY a", "DROP TABLE p_err")
	_, err := c.prepare("SELEC ?")
	wantCode(err, 1064)
	wantCode(c.execute(prepared{id: 4711}, 0, false), 1243)
	// An error after rows have been sent: the subquery fails at the second row.
	wantCode(c.query("SELECT a, (SELECT b FROM (SELECT 1 b UNION SELECT 2) x WHERE b <= a) FROM (SELECT 1 a UNION SELECT 2) y"), 1242)
}

func transactionSession(c *rawConn) {
	c.must(
		"DROP TABLE IF EXISTS p_trx", "CREATE TABLE p_trx (a INT PRIMARY KEY) ENGINE=InnoDB",
		"BEGIN", "INSERT INTO p_trx VALUES (1)", "ROLLBACK", "SELECT * FROM p_trx",
		"START TRANSACTION READ ONLY", "SELECT 1", "COMMIT", "SET autocommit = 0", "INSERT INTO p_trx VALUES (2)",
		"SAVEPOINT s", "INSERT INTO p_trx VALUES (3)", "ROLLBACK TO s", "COMMIT", "SET autocommit = 1",
		"SELECT * FROM p_trx", "LOCK TABLES p_trx WRITE", "UNLOCK TABLES", "DROP TABLE p_trx",
	)
}

// everyType is a parameter of each type a client may bind.
func (c *rawConn) everyType() []param {
	year := param{kind: mysql.MYSQL_TYPE_YEAR, value: []byte{0xe4, 7}}
	if !c.mariaDB() { // MySQL takes none
		year = param{kind: mysql.MYSQL_TYPE_SHORT, value: year.value}
	}
	date := []byte{11, 0xe4, 7, 2, 3, 4, 5, 6, 1, 2, 0, 0}
	clock := []byte{12, 1, 1, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0}
	return []param{
		year,
		{kind: mysql.MYSQL_TYPE_TINY, value: []byte{0xff}},
		{kind: mysql.MYSQL_TYPE_SHORT, value: []byte{1, 2}},
		{kind: mysql.MYSQL_TYPE_LONG, value: []byte{1, 2, 3, 4}},
		long(-1 << 40),
		{kind: mysql.MYSQL_TYPE_FLOAT, value: []byte{0, 0, 0x80, 0x3f}},
		double(2.5),
		{kind: mysql.MYSQL_TYPE_NULL, null: true},
		{kind: mysql.MYSQL_TYPE_DATE, value: []byte{4, 0xe4, 7, 2, 3}},
		{kind: mysql.MYSQL_TYPE_DATETIME, value: date},
		{kind: mysql.MYSQL_TYPE_TIMESTAMP, value: []byte{7, 0xe4, 7, 2, 3, 4, 5, 6}},
		{kind: mysql.MYSQL_TYPE_TIME, value: clock},
		text("varchar"),
		{kind: mysql.MYSQL_TYPE_STRING, value: appendText(nil, "")},
		{kind: mysql.MYSQL_TYPE_BLOB, value: appendText(nil, "\x00\xff\xfe")},
		{kind: mysql.MYSQL_TYPE_NEWDECIMAL, value: appendText(nil, "12345678901234567890.5")},
		{kind: mysql.MYSQL_TYPE_LONGLONG, value: make([]byte, 0), null: true},
	}
}

func preparedSession(c *rawConn) {
	params := c.everyType()
	st, err := c.prepare("SELECT ?" + strings.Repeat(",?", len(params)-1))
	check(err)
	check(c.execute(st, 0, true, params...))
	check(c.execute(st, 0, false, params...)) // the types of before
	c.command(mysql.COM_STMT_RESET, st.bytes()...)
	check(c.one())
	check(c.execute(st, 0, false, params...))
	c.command(mysql.COM_STMT_CLOSE, st.bytes()...)
	wantCode(c.execute(st, 0, true, params...), 1243)
	c.must("DROP TABLE IF EXISTS p_stmt", "CREATE TABLE p_stmt (a INT PRIMARY KEY, b TEXT) ENGINE=MyISAM")
	insert, err := c.prepare("INSERT INTO p_stmt VALUES (?, ?), (?, 'literal')")
	check(err)
	check(c.execute(insert, 0, true, long(1), text("one"), long(2)))
	wantCode(c.execute(insert, 0, false, long(3), text("three"), long(1)), 1062)
	check(c.execute(insert, 0, false, long(4), param{kind: mysql.MYSQL_TYPE_VAR_STRING, null: true}, long(5)))
	all, err := c.prepare("SELECT * FROM p_stmt ORDER BY a")
	check(err)
	check(c.execute(all, 0, false))
	check(c.execute(all, 0, false))
	none, err := c.prepare("SET @x = 1")
	check(err)
	check(c.execute(none, 0, false))
	c.command(mysql.COM_STMT_CLOSE, insert.bytes()...)
	again, err := c.prepare("SELECT COUNT(*) FROM p_stmt WHERE a > ?")
	check(err)
	check(c.execute(again, 0, true, long(1)))
	c.must("PREPARE s FROM 'SELECT ?'", "SET @v = 'v'", "EXECUTE s USING @v", "DEALLOCATE PREPARE s", "DROP TABLE p_stmt")
	wantCode(c.execute(again, 0, true, long(1)), 1146)
}

func longDataSession(c *rawConn) {
	st, err := c.prepare("SELECT SHA2(?, 256), LENGTH(?), ?")
	check(err)
	blob := param{kind: mysql.MYSQL_TYPE_BLOB, long: true}
	c.longData(st, 0, "first half, ")
	c.longData(st, 1, strings.Repeat("x", 70000))
	c.longData(st, 0, "second half")
	c.longData(st, 1, "INSERT INTO ruled VALUES (1)")
	check(c.execute(st, 0, true, blob, blob, text("behind")))
	c.longData(st, 0, "thrown away")
	c.command(mysql.COM_STMT_RESET, st.bytes()...)
	check(c.one())
	check(c.execute(st, 0, true, text("a"), text("b"), text("c"))) // nothing may be left of it
	c.longData(st, 7, "no such parameter")
	_ = c.execute(st, 0, true, text("a"), text("b"), text("c")) // servers differ; each must be relayed
}

func cursorSession(c *rawConn) {
	c.must("DROP TABLE IF EXISTS p_cur", "CREATE TABLE p_cur (a INT PRIMARY KEY, b VARCHAR(20)) ENGINE=MyISAM",
		"INSERT INTO p_cur VALUES (1,'a'),(2,NULL),(3,'c'),(4,'d'),(5,'e')")
	st, err := c.prepare("SELECT a, b FROM p_cur WHERE a > ? ORDER BY a")
	check(err)
	for range 2 {
		c.sendExecute(st, 1, true, long(0))
		check(c.cursorOpened())
		for range 3 {
			c.command(mysql.COM_STMT_FETCH, st.bytes(2, 0, 0, 0)...)
			_, err := c.rows()
			check(err)
		}
		c.command(mysql.COM_STMT_RESET, st.bytes()...)
		check(c.one())
	}
	c.command(mysql.COM_STMT_FETCH, st.bytes(2, 0, 0, 0)...)
	_, err = c.rows()
	if err == nil {
		fail("a fetch from a closed cursor succeeds")
	}
	wantCode(c.query("SELECT * FROM p_cur_missing"), 1146)
	c.must("DROP TABLE p_cur")
}

// cursorOpened reads the reply to an execution with a cursor: definitions, and no rows.
func (c *rawConn) cursorOpened() error {
	if !c.has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
		return c.result()
	}
	p := c.packet()
	if p[0] == mysql.ERR_HEADER {
		return rawServerError(p, true)
	}
	_, err := c.resultSet(p) // the end of the definitions is the end of zero rows
	return err
}

// pipelinedSession sends many commands in one segment, before it reads any reply.
func pipelinedSession(c *rawConn) {
	c.must("DROP TABLE IF EXISTS p_pipe", "CREATE TABLE p_pipe (a INT PRIMARY KEY) ENGINE=MyISAM")
	first := prepared{id: 1}
	if c.mariaDB() {
		first.id = 1<<32 - 1 // the last one prepared, whatever its number
	}
	c.pipeline(func() {
		c.sendQuery("SELECT 1")
		c.sendQuery("INSERT INTO p_pipe VALUES (1),(2)")
		c.sendQuery("SELEC 2")
		c.command(mysql.COM_PING)
		c.sendQuery("SELECT a FROM p_pipe ORDER BY a; SELECT 'more'")
		c.commandText(mysql.COM_INIT_DB, c.schema)
		c.commandText(mysql.COM_STMT_PREPARE, "SELECT a + ? FROM p_pipe")
		c.sendExecute(first, 0, true, long(5))
		c.command(mysql.COM_STMT_CLOSE, first.bytes()...)
		c.sendQuery("SELECT 'behind close'")
	})
	check(c.result())
	check(c.result())
	wantCode(c.result(), 1064)
	check(c.one())
	check(c.result())
	check(c.one())
	st, err := c.preparedReply()
	check(err)
	if st.id != first.id && !c.mariaDB() {
		fail("first statement has id %d", st.id)
	}
	check(c.result())
	check(c.result())
	c.pipeline(func() {
		for i := range 500 {
			c.sendQuery(fmt.Sprintf("SELECT %d", i))
		}
	})
	for range 500 {
		check(c.result())
	}
	c.must("DROP TABLE p_pipe")
}

func commandSession(c *rawConn) {
	c.must("DROP TABLE IF EXISTS p_cmd", "CREATE TABLE p_cmd (a INT PRIMARY KEY, b TEXT DEFAULT NULL) ENGINE=MyISAM", "SET @kept = 5")
	for _, command := range []byte{mysql.COM_PING, mysql.COM_DEBUG, mysql.COM_RESET_CONNECTION} {
		c.command(command)
		check(c.one())
	}
	c.must("SELECT @kept, DATABASE()")
	c.commandText(mysql.COM_INIT_DB, "mysql")
	check(c.one())
	c.must("SELECT DATABASE()")
	c.commandText(mysql.COM_INIT_DB, "p_no_such_schema")
	wantCode(c.one(), 1049)
	c.must("SELECT DATABASE()")
	c.commandText(mysql.COM_INIT_DB, c.schema)
	check(c.one())
	c.command(mysql.COM_STATISTICS)
	p := c.packet()
	c.maskGot(0, 4+len(p)) // it counts everybody's queries
	if !strings.HasPrefix(string(p), "Uptime: ") {
		fail("statistics %q", p)
	}
	c.commandText(mysql.COM_FIELD_LIST, "p_cmd\x00%")
	if _, err := c.rows(); err != nil && c.mariaDB() {
		fail("field list: %w", err)
	}
	for _, unknown := range []byte{0x00, 0x05, 0x0b, 0x10, 0x7f, 0xf0, 0xff} {
		c.commandText(unknown, "INSERT INTO ruled VALUES (1)")
		if c.one() == nil {
			fail("command %#x succeeds", unknown)
		}
		c.must("SELECT 'behind', " + fmt.Sprint(unknown))
	}
	c.command(mysql.COM_STMT_RESET, binary.LittleEndian.AppendUint32(nil, 9999)...)
	wantCode(c.one(), 1243)
	c.must("DROP TABLE p_cmd")
}
