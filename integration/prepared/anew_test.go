package prepared

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// openAnew opens a session through a proxy whose rule is for these tables of its database.
func openAnew(t *testing.T, server *servers.Server, tables string) wireSession {
	t.Helper()
	db := harness.Database(t, server)
	proxy := harness.StartWith(t, server.Addr, "ids: {segment: {start: 1000}}", fmt.Sprintf(`{table: "%s.%s", column: id, source: ids}`, db, tables))
	return wireSession{wireclient.Open(t, proxy.Addr("a"), db)}
}

var text1 = []byte{0, 1, mysql.MYSQL_TYPE_VAR_STRING, 0, 1, 'x'} // one parameter, 'x', with its type

// TestPreparedAnew executes the same statements while what they were prepared for changes: as on a
// server, nobody has to prepare them again, also where the client gives the types of its parameters
// once only.
func TestPreparedAnew(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) { testPreparedAnew(t, server) })
}

func testPreparedAnew(t *testing.T, server *servers.Server) {
	w := openAnew(t, server, "*")
	w.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(20) UNIQUE, b VARCHAR(20))")
	named, _ := w.statement(t, "INSERT INTO t (a) VALUES (?)")
	placed, _ := w.statement(t, "INSERT INTO t VALUES (NULL, ?, 'b')")
	pid, _ := w.statement(t, "SELECT COUNT(*) FROM t WHERE a = ?")
	w.Must(t, "PREPARE n FROM 'INSERT INTO t (a) VALUES (''n'')'")
	typed, next := map[uint32]bool{}, uint64(1000)
	execute := func(id uint32, want uint64) {
		t.Helper()
		rest := [][]byte{{0, 0}, {1, 'x'}}
		if !typed[id] {
			rest = [][]byte{text1}
		}
		typed[id] = true
		assert.MustEqual(t, fmt.Sprintf("statement %d: insert id", id), w.executed(t, id, rest...), want)
		w.Must(t, "DELETE FROM t")
	}
	inserts := func(id uint32) {
		t.Helper()
		execute(id, next)
		next++
	}
	keeps := func(id uint32) { // the id that the row brings
		t.Helper()
		execute(id, 0)
	}
	byName := func() {
		t.Helper()
		assert.MustEqual(t, "EXECUTE n: insert id", w.Must(t, "EXECUTE n").InsertID, next)
		next++
		w.Must(t, "DELETE FROM t")
	}
	all := func() {
		t.Helper()
		inserts(named)
		inserts(placed)
		byName()
	}
	all()
	for _, ddl := range []string{
		"DROP TABLE t; CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20))",
		"ALTER TABLE t MODIFY id BIGINT UNSIGNED NOT NULL",
		"ALTER TABLE t RENAME COLUMN a TO c, RENAME COLUMN b TO a", // columns by position have other names
		"CREATE TEMPORARY TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20)); INSERT INTO t (id) VALUES (76)",
	} {
		w.Must(t, ddl)
		if strings.Contains(ddl, "TEMPORARY") {
			for i, id := range []uint32{named, placed} {
				assert.MustEqual(t, "insert id of the temporary table", w.executed(t, id, []byte{0, 0}, []byte{1, 'x'}), uint64(77+i))
			}
			w.Must(t, "EXECUTE n", "DROP TEMPORARY TABLE t")
		}
		all()
		all()
	}
	w.Must(t, "ALTER TABLE t DROP COLUMN id, ADD COLUMN d VARCHAR(1) FIRST")
	keeps(named)
	keeps(named)
	keeps(placed)
	w.Must(t, "ALTER TABLE t DROP COLUMN d, ADD COLUMN id BIGINT PRIMARY KEY FIRST")
	all()
	w.Must(t, "DROP TABLE t")
	w.refused(t, mysql.ER_NO_SUCH_TABLE, named, []byte{0, 0}, []byte{1, 'x'})
	assert.MustEqual(t, "EXECUTE n without its table: error", w.Fails(t, "EXECUTE n").Code, mysql.ER_NO_SUCH_TABLE)
	w.Must(t, "CREATE TABLE t (x INT, id BIGINT PRIMARY KEY, a VARCHAR(20))")
	inserts(named)
	byName()
	w.executed(t, pid, text1)
	w.Must(t, "DEALLOCATE PREPARE n")
	w.reset(t, named)
	inserts(named)
	for _, id := range []uint32{named, placed, pid} {
		w.command(t, mysql.COM_STMT_CLOSE, id)
		w.refused(t, mysql.ER_UNKNOWN_STMT_HANDLER, id, text1)
	}
}

// reset sends COM_STMT_RESET.
func (s wireSession) reset(t *testing.T, id uint32) {
	t.Helper()
	s.command(t, mysql.COM_STMT_RESET, id)
	r, err := s.Results()
	assert.MustTrue(t, err == nil && r[0].Err == nil, "%v %v", err, r)
}

// TestPreparedAnewLong sends long data for a statement whose table has changed: it arrives, and
// what a piece goes to is another statement of the server.
func TestPreparedAnewLong(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := openAnew(t, server, "*")
		w.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a LONGTEXT)")
		st, _ := w.statement(t, "INSERT INTO t (id, a) VALUES (?, ?)")
		types := []byte{0, 1, mysql.MYSQL_TYPE_BLOB, 0, mysql.MYSQL_TYPE_BLOB, 0}
		send := func(sum int, rest ...[]byte) {
			t.Helper()
			for range 3 {
				w.longData(t, st, 1, strings.Repeat("x", sum/3))
			}
			w.longData(t, st, 0, "0")
			w.executed(t, st, rest...)
			assert.Equal(t, fmt.Sprintf("rows of %d bytes", sum), w.Value(t, "SELECT COUNT(*) FROM t WHERE LENGTH(a) = "+fmt.Sprint(sum)), "1")
		}
		send(30, types)
		w.Must(t, "ALTER TABLE t MODIFY id INT NOT NULL")
		send(3_000_000, []byte{0, 0})
		w.Must(t, "ALTER TABLE t MODIFY id INT UNSIGNED NOT NULL")
		w.longData(t, st, 1, "lost")
		w.reset(t, st)
		send(60, []byte{0, 0})
		w.Must(t, "ALTER TABLE t DROP COLUMN id")
		w.longData(t, st, 1, "lost")
		w.refused(t, mysql.ER_BAD_FIELD_ERROR, st, types)
	})
}

// TestPreparedAnewElsewhere executes statements where text would read otherwise than it did: in
// another schema, under other quotes, or where no schema leads back.
func TestPreparedAnewElsewhere(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := openAnew(t, server, "t")
		db := w.Value(t, "SELECT DATABASE()")
		other := harness.Database(t, server)
		w.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(20))", "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')")
		st, _ := w.statement(t, `INSERT INTO "t" ("a") VALUES ('\\')`)
		query, _ := w.statement(t, `INSERT INTO "t" ("a") SELECT '\\'`)
		w.Must(t, `PREPARE n FROM 'INSERT INTO "t" ("a") VALUES (''\\\\'')'`, "USE "+other, "SET sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'")
		all := map[uint32]string{query: `\`}
		if server.Kind == servers.MariaDB { // MySQL reads it by the sql_mode of now
			all[st] = `\`
			w.Must(t, "ALTER TABLE "+db+".t MODIFY id INT")
		}
		for id, stored := range all {
			assert.GreaterOrEqual(t, "insert id", w.executed(t, id), 1000)
			assert.Equal(t, "stored", w.Value(t, "SELECT a FROM "+db+".t"), stored)
			w.Must(t, "DELETE FROM "+db+".t")
		}
		if server.Kind == servers.MariaDB {
			assert.GreaterOrEqual(t, "EXECUTE n: insert id", w.Must(t, "EXECUTE n").InsertID, 1000)
		}
		got := w.Value(t, "SELECT CONCAT(DATABASE(), '/', @@sql_mode)")
		assert.True(t, got == other+"/STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES" || got == other+"/NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES", "the session is in %s", got)
		scratch := harness.Database(t, server)
		w.Must(t, "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')", "USE "+other, "ALTER TABLE "+db+".t MODIFY id INT UNSIGNED")
		for range 2 {
			w.executed(t, st)
			assert.MustEqual(t, "the schema", w.Value(t, "SELECT DATABASE()"), other)
		}
		w.Must(t, "USE "+scratch, "DROP DATABASE "+scratch, "ALTER TABLE "+db+".t MODIFY id BIGINT")
		w.refused(t, mysql.ER_NO_DB_ERROR, st) // nothing leads back
		w.Must(t, "USE "+db)
		w.executed(t, st)
	})
}

// TestPreparedAnewPipelined sends executions and a change of their table without waiting for
// replies.
func TestPreparedAnewPipelined(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := openAnew(t, server, "t")
		w.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE free (a INT)")
		st, _ := w.statement(t, "INSERT INTO t (a) VALUES (1)")
		free, _ := w.statement(t, "INSERT INTO free (a) VALUES (2)")
		execute := func() {
			for _, id := range []uint32{st, free, st, free, st, free} {
				w.write(t, append(binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_EXECUTE}, id), 0, 1, 0, 0, 0))
			}
		}
		for _, ddl := range []string{"ALTER TABLE t MODIFY id INT", "ALTER TABLE t MODIFY id BIGINT"} {
			execute()
			w.write(t, append([]byte{mysql.COM_QUERY}, ddl...))
			execute()
			for range 13 {
				w.Conn.ResetSequence()
				w.Conn.Sequence = 1 // of a reply
				r, err := w.Results()
				assert.MustTrue(t, err == nil && r[0].Err == nil, "%v %v", err, r)
			}
		}
		assert.Equal(t, "rows, with consecutive ids", w.Value(t, "SELECT CONCAT(COUNT(*), ' ', MAX(id) - MIN(id)) FROM t"), "12 11")
	})
}
