package replay

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// SmallSessions are those that are replayed in every variant. Each leaves the database as it found
// it.
var SmallSessions = []Session{
	{"text", TextSession},
	{"results", resultsSession},
	{"errors", errorSession},
	{"transaction", transactionSession},
	{"prepared", preparedSession},
	{"long data", longDataSession},
	{"cursor", cursorSession},
	{"commands", commandSession},
	{"pipelined", PipelinedSession},
	{"infile", infileSession},
	{"change user", changeUserSession},
}

// Must runs texts that have to succeed.
func (c *Conn) Must(texts ...string) {
	for _, text := range texts {
		Check(c.Query(text))
	}
}

// TextSession is what the text protocol can do.
func TextSession(c *Conn) {
	c.Must(
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
		"USE mysql", "SELECT DATABASE()", "USE "+c.Schema, "DO 1",
		"DELETE FROM p_text", "DROP TABLE p_text",
	)
	WantCode(c.Query(""), 1065)
}

func resultsSession(c *Conn) {
	c.Must(
		"DROP PROCEDURE IF EXISTS p_two", "DROP TABLE IF EXISTS p_res", "CREATE TABLE p_res (a INT PRIMARY KEY) ENGINE=MyISAM",
		"CREATE PROCEDURE p_two(OUT n INT) BEGIN SELECT 1 AS one; SELECT a, a*2 FROM p_res; INSERT INTO p_res VALUES (77); SET n = 5; END",
		"INSERT INTO p_res VALUES (1); INSERT INTO p_res VALUES (2),(3); SELECT * FROM p_res ORDER BY a; DO 1; SELECT 2",
		"SELECT 1;", "SELECT 1; ;", "SELECT ';'; SELECT ';;'",
		"CALL p_two(@n)", "SELECT @n", "DELETE FROM p_res WHERE a = 77; CALL p_two(@n); SELECT 'last'",
	)
	st, err := c.Prepare("CALL p_two(?)")
	Check(err)
	c.Must("DELETE FROM p_res WHERE a = 77")
	Check(c.Execute(st, 0, WithTypes, Long(1)))
	c.Command(mysql.COM_SET_OPTION, 1, 0)
	Check(c.one())
	WantCode(c.Query("SELECT 1; SELECT 2"), 1064)
	c.Command(mysql.COM_SET_OPTION, 0, 0)
	Check(c.one())
	c.Must("SELECT 1; SELECT 2", "DROP PROCEDURE p_two", "DROP TABLE p_res")
}

func errorSession(c *Conn) {
	c.Must("DROP TABLE IF EXISTS p_err", "CREATE TABLE p_err (a INT PRIMARY KEY) ENGINE=MyISAM")
	WantCode(c.Query("SELEC 1"), 1064)
	WantCode(c.Query("SELECT * FROM p_missing"), 1146)
	WantCode(c.Query("INSERT INTO p_err VALUES (1); SELECT 1; INSERT INTO p_err VALUES (2),(1); INSERT INTO p_err VALUES (5)"), 1062)
	WantCode(c.Query("SELECT 1; SELECT * FROM p_missing; SELECT 2"), 1146)
	WantCode(c.Query("SELECT nope FROM p_err"), 1054)
	WantCode(c.Query("INSERT INTO p_err VALUES (1,2)"), 1136)
	WantCode(c.Query("USE p_no_such_schema"), 1049)
	c.Must("SHOW WARNINGS", "SELECT * FROM p_err ORDER BY a", "DROP TABLE p_err")
	_, err := c.Prepare("SELEC ?")
	WantCode(err, 1064)
	WantCode(c.Execute(Prepared{ID: 4711}, 0, SameTypes), 1243)
	// An error after rows have been sent: the subquery fails at the second row.
	WantCode(c.Query("SELECT a, (SELECT b FROM (SELECT 1 b UNION SELECT 2) x WHERE b <= a) FROM (SELECT 1 a UNION SELECT 2) y"), 1242)
}

func transactionSession(c *Conn) {
	c.Must(
		"DROP TABLE IF EXISTS p_trx", "CREATE TABLE p_trx (a INT PRIMARY KEY) ENGINE=InnoDB",
		"BEGIN", "INSERT INTO p_trx VALUES (1)", "ROLLBACK", "SELECT * FROM p_trx",
		"START TRANSACTION READ ONLY", "SELECT 1", "COMMIT", "SET autocommit = 0", "INSERT INTO p_trx VALUES (2)",
		"SAVEPOINT s", "INSERT INTO p_trx VALUES (3)", "ROLLBACK TO s", "COMMIT", "SET autocommit = 1",
		"SELECT * FROM p_trx", "LOCK TABLES p_trx WRITE", "UNLOCK TABLES", "DROP TABLE p_trx",
	)
}

// everyType is a parameter of each type a client may bind.
func (c *Conn) everyType() []Param {
	year := Param{Kind: mysql.MYSQL_TYPE_YEAR, value: []byte{0xe4, 7}}
	if !c.MariaDB() { // MySQL takes none
		year = Param{Kind: mysql.MYSQL_TYPE_SHORT, value: year.value}
	}
	date := []byte{11, 0xe4, 7, 2, 3, 4, 5, 6, 1, 2, 0, 0}
	clock := []byte{12, 1, 1, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0}
	return []Param{
		year,
		{Kind: mysql.MYSQL_TYPE_TINY, value: []byte{0xff}},
		{Kind: mysql.MYSQL_TYPE_SHORT, value: []byte{1, 2}},
		{Kind: mysql.MYSQL_TYPE_LONG, value: []byte{1, 2, 3, 4}},
		Long(-1 << 40),
		{Kind: mysql.MYSQL_TYPE_FLOAT, value: []byte{0, 0, 0x80, 0x3f}},
		double(2.5),
		{Kind: mysql.MYSQL_TYPE_NULL, Null: true},
		{Kind: mysql.MYSQL_TYPE_DATE, value: []byte{4, 0xe4, 7, 2, 3}},
		{Kind: mysql.MYSQL_TYPE_DATETIME, value: date},
		{Kind: mysql.MYSQL_TYPE_TIMESTAMP, value: []byte{7, 0xe4, 7, 2, 3, 4, 5, 6}},
		{Kind: mysql.MYSQL_TYPE_TIME, value: clock},
		Text("varchar"),
		{Kind: mysql.MYSQL_TYPE_STRING, value: appendText(nil, "")},
		{Kind: mysql.MYSQL_TYPE_BLOB, value: appendText(nil, "\x00\xff\xfe")},
		{Kind: mysql.MYSQL_TYPE_NEWDECIMAL, value: appendText(nil, "12345678901234567890.5")},
		{Kind: mysql.MYSQL_TYPE_LONGLONG, value: make([]byte, 0), Null: true},
	}
}

func preparedSession(c *Conn) {
	params := c.everyType()
	st, err := c.Prepare("SELECT ?" + strings.Repeat(",?", len(params)-1))
	Check(err)
	Check(c.Execute(st, 0, WithTypes, params...))
	Check(c.Execute(st, 0, SameTypes, params...)) // the types of before
	c.Command(mysql.COM_STMT_RESET, st.Bytes()...)
	Check(c.one())
	Check(c.Execute(st, 0, SameTypes, params...))
	c.Command(mysql.COM_STMT_CLOSE, st.Bytes()...)
	WantCode(c.Execute(st, 0, WithTypes, params...), 1243)
	c.Must("DROP TABLE IF EXISTS p_stmt", "CREATE TABLE p_stmt (a INT PRIMARY KEY, b TEXT) ENGINE=MyISAM")
	insert, err := c.Prepare("INSERT INTO p_stmt VALUES (?, ?), (?, 'literal')")
	Check(err)
	Check(c.Execute(insert, 0, WithTypes, Long(1), Text("one"), Long(2)))
	WantCode(c.Execute(insert, 0, SameTypes, Long(3), Text("three"), Long(1)), 1062)
	Check(c.Execute(insert, 0, SameTypes, Long(4), Param{Kind: mysql.MYSQL_TYPE_VAR_STRING, Null: true}, Long(5)))
	all, err := c.Prepare("SELECT * FROM p_stmt ORDER BY a")
	Check(err)
	Check(c.Execute(all, 0, SameTypes))
	Check(c.Execute(all, 0, SameTypes))
	none, err := c.Prepare("SET @x = 1")
	Check(err)
	Check(c.Execute(none, 0, SameTypes))
	c.Command(mysql.COM_STMT_CLOSE, insert.Bytes()...)
	again, err := c.Prepare("SELECT COUNT(*) FROM p_stmt WHERE a > ?")
	Check(err)
	Check(c.Execute(again, 0, WithTypes, Long(1)))
	c.Must("PREPARE s FROM 'SELECT ?'", "SET @v = 'v'", "EXECUTE s USING @v", "DEALLOCATE PREPARE s", "DROP TABLE p_stmt")
	WantCode(c.Execute(again, 0, WithTypes, Long(1)), 1146)
}

func longDataSession(c *Conn) {
	st, err := c.Prepare("SELECT SHA2(?, 256), LENGTH(?), ?")
	Check(err)
	blob := Param{Kind: mysql.MYSQL_TYPE_BLOB, long: true}
	c.longData(st, 0, "first half, ")
	c.longData(st, 1, strings.Repeat("x", 70000))
	c.longData(st, 0, "second half")
	c.longData(st, 1, "INSERT INTO ruled VALUES (1)")
	Check(c.Execute(st, 0, WithTypes, blob, blob, Text("behind")))
	c.longData(st, 0, "thrown away")
	c.Command(mysql.COM_STMT_RESET, st.Bytes()...)
	Check(c.one())
	Check(c.Execute(st, 0, WithTypes, Text("a"), Text("b"), Text("c"))) // nothing may be left of it
	c.longData(st, 7, "no such parameter")
	_ = c.Execute(st, 0, WithTypes, Text("a"), Text("b"), Text("c")) // servers differ; each must be relayed
}

func cursorSession(c *Conn) {
	c.Must("DROP TABLE IF EXISTS p_cur", "CREATE TABLE p_cur (a INT PRIMARY KEY, b VARCHAR(20)) ENGINE=MyISAM",
		"INSERT INTO p_cur VALUES (1,'a'),(2,NULL),(3,'c'),(4,'d'),(5,'e')")
	st, err := c.Prepare("SELECT a, b FROM p_cur WHERE a > ? ORDER BY a")
	Check(err)
	for range 2 {
		c.SendExecute(st, 1, WithTypes, Long(0))
		Check(c.cursorOpened())
		for range 3 {
			c.Command(mysql.COM_STMT_FETCH, st.Bytes(2, 0, 0, 0)...)
			_, err := c.rows()
			Check(err)
		}
		c.Command(mysql.COM_STMT_RESET, st.Bytes()...)
		Check(c.one())
	}
	c.Command(mysql.COM_STMT_FETCH, st.Bytes(2, 0, 0, 0)...)
	_, err = c.rows()
	if err == nil {
		Fail("a fetch from a closed cursor succeeds")
	}
	WantCode(c.Query("SELECT * FROM p_cur_missing"), 1146)
	c.Must("DROP TABLE p_cur")
}

// cursorOpened reads the reply to an execution with a cursor: definitions, and no rows.
func (c *Conn) cursorOpened() error {
	if !c.Has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
		return c.Result()
	}
	p := c.Packet()
	if p[0] == mysql.ERR_HEADER {
		return ServerError(p)
	}
	_, err := c.resultSet(p) // the end of the definitions is the end of zero rows
	return err
}

// PipelinedSession sends many commands in one segment, before it reads any reply.
func PipelinedSession(c *Conn) {
	c.Must("DROP TABLE IF EXISTS p_pipe", "CREATE TABLE p_pipe (a INT PRIMARY KEY) ENGINE=MyISAM")
	first := Prepared{ID: 1}
	if c.MariaDB() {
		first.ID = 1<<32 - 1 // the last one prepared, whatever its number
	}
	c.Pipeline(func() {
		c.SendQuery("SELECT 1")
		c.SendQuery("INSERT INTO p_pipe VALUES (1),(2)")
		c.SendQuery("SELEC 2")
		c.Command(mysql.COM_PING)
		c.SendQuery("SELECT a FROM p_pipe ORDER BY a; SELECT 'more'")
		c.CommandText(mysql.COM_INIT_DB, c.Schema)
		c.CommandText(mysql.COM_STMT_PREPARE, "SELECT a + ? FROM p_pipe")
		c.SendExecute(first, 0, WithTypes, Long(5))
		c.Command(mysql.COM_STMT_CLOSE, first.Bytes()...)
		c.SendQuery("SELECT 'behind close'")
	})
	Check(c.Result())
	Check(c.Result())
	WantCode(c.Result(), 1064)
	Check(c.one())
	Check(c.Result())
	Check(c.one())
	st, err := c.PreparedReply()
	Check(err)
	if st.ID != first.ID && !c.MariaDB() {
		Fail("first statement has id %d", st.ID)
	}
	Check(c.Result())
	Check(c.Result())
	c.Pipeline(func() {
		for i := range 500 {
			c.SendQuery(fmt.Sprintf("SELECT %d", i))
		}
	})
	for range 500 {
		Check(c.Result())
	}
	c.Must("DROP TABLE p_pipe")
}

func commandSession(c *Conn) {
	c.Must("DROP TABLE IF EXISTS p_cmd", "CREATE TABLE p_cmd (a INT PRIMARY KEY, b TEXT DEFAULT NULL) ENGINE=MyISAM", "SET @kept = 5")
	for _, command := range []byte{mysql.COM_PING, mysql.COM_DEBUG, mysql.COM_RESET_CONNECTION} {
		c.Command(command)
		Check(c.one())
	}
	c.Must("SELECT @kept, DATABASE()")
	c.CommandText(mysql.COM_INIT_DB, "mysql")
	Check(c.one())
	c.Must("SELECT DATABASE()")
	c.CommandText(mysql.COM_INIT_DB, "p_no_such_schema")
	WantCode(c.one(), 1049)
	c.Must("SELECT DATABASE()")
	c.CommandText(mysql.COM_INIT_DB, c.Schema)
	Check(c.one())
	c.Command(mysql.COM_STATISTICS)
	p := c.Packet()
	c.MaskGot(0, 4+len(p)) // it counts everybody's queries
	if !strings.HasPrefix(string(p), "Uptime: ") {
		Fail("statistics %q", p)
	}
	c.CommandText(mysql.COM_FIELD_LIST, "p_cmd\x00%")
	if _, err := c.rows(); err != nil && c.MariaDB() {
		Fail("field list: %w", err)
	}
	for _, unknown := range []byte{0x00, 0x05, 0x0b, 0x10, 0x7f, 0xf0, 0xff} {
		c.CommandText(unknown, "INSERT INTO ruled VALUES (1)")
		if c.one() == nil {
			Fail("command %#x succeeds", unknown)
		}
		c.Must("SELECT 'behind', " + fmt.Sprint(unknown))
	}
	c.Command(mysql.COM_STMT_RESET, binary.LittleEndian.AppendUint32(nil, 9999)...)
	WantCode(c.one(), 1243)
	c.Must("DROP TABLE p_cmd")
}

func changeUserSession(c *Conn) {
	c.Must("SET @kept = 1", "SET SESSION sql_mode = 'ANSI_QUOTES'")
	for _, user := range []string{"p_second", "p_third", "p_none"} {
		password := map[string]string{"p_none": ""}[user]
		if user != "p_none" {
			password = "second"
		}
		Check(c.ChangeUser(user, password, c.Schema))
		c.Must("SELECT CURRENT_USER(), @kept, DATABASE(), @@sql_mode")
	}
	Check(c.ChangeUser("p_second", "second", ""))
	c.Must("SELECT DATABASE()")
	if c.caps&(DeprecateEOF|SessionTrack) != DeprecateEOF {
		return // MariaDB takes a second to refuse, so once is enough
	}
	// It ends the session on MySQL and may be repeated on MariaDB.
	WantCode(c.ChangeUser("p_second", "wrong", c.Schema), 1045)
	c.Ended = !c.MariaDB()
}
