package prepared

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestExecuteMiscounted: EXECUTE with too few arguments is refused for that before anything else,
// also when the statement's table has become another and the statement could not be prepared for
// it.
func TestExecuteMiscounted(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := openAnew(t, server, "t")
		w.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "PREPARE filled FROM 'INSERT INTO t VALUES (NULL, ?)'",
			"CREATE TEMPORARY TABLE t (id BIGINT PRIMARY KEY, a INT, b INT)", "PREPARE resting FROM 'INSERT INTO t VALUES (1, ?, 2)'", "DROP TEMPORARY TABLE t")
		for _, text := range []string{"EXECUTE resting", "SET @a = 1; EXECUTE resting USING @a, @a"} {
			assert.Equal(t, text, errorCode(assert.Of(w.Query(text)).Must(t)), 1210)
		}
		w.Must(t, "RENAME TABLE t TO elsewhere")
		assert.Equal(t, "without its table: error", w.Fails(t, "EXECUTE resting").Code, 1210)
		w.Must(t, "RENAME TABLE elsewhere TO t", "ALTER TABLE t ADD b INT")
		for text, want := range map[string]uint16{"EXECUTE filled": 1210, "EXECUTE filled USING @a": 1136} {
			assert.Equal(t, text, errorCode(assert.Of(w.Query(text)).Must(t)), want)
		}
		w.Must(t, "ALTER TABLE t DROP b", "EXECUTE filled USING @a")
	})
}

// TestPreparedAnewColumns: the flag that says that a result has other columns than were told comes
// once, as natively, when the statement was prepared anew here.
func TestPreparedAnewColumns(t *testing.T) {
	server := harness.MariaDB(t)
	w := openAnew(t, server, "t")
	native := wireclient.Open(t, server.Addr, harness.Database(t, server))
	var got [2]string
	for i, s := range []*wireclient.Session{w.Session, native} {
		s.Must(t, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
		texts := []string{
			"INSERT INTO t (a) VALUES (1) RETURNING *", "INSERT INTO t (a) VALUES (1) RETURNING a", "INSERT INTO t SET id=NULL, a=1 RETURNING *",
			"INSERT INTO t SET id=?, a=? RETURNING *",
		}
		for _, text := range texts {
			assert.Of(s.Prepare(text, text)).Must(t)
		}
		for _, ddl := range []string{"DO 1", "CREATE TEMPORARY TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT)", "DROP TEMPORARY TABLE t", "ALTER TABLE t ADD c INT FIRST"} {
			s.Must(t, ddl)
			for _, text := range append(texts, texts...) {
				args := make([]wireclient.Argument, strings.Count(text, "?"))
				for j := range args {
					args[j] = wireclient.Long(int64(9000 + len(got[i])))
				}
				r := s.MustExecute(t, text, args...)
				assert.MustEqual(t, "rows", len(r.Rows), 1)
				got[i] += fmt.Sprintf("%s: %s: %#x, %d columns\n", ddl, text, r.Status, len(r.Rows[0]))
			}
		}
	}
	assert.Equal(t, "replies", got[0], got[1])
}

// TestPreparedAnewColumnsAtFirst: so it is with the first result that there is, where the columns are others than at
// the PREPARE.
func TestPreparedAnewColumnsAtFirst(t *testing.T) {
	server := harness.MariaDB(t)
	w := openAnew(t, server, "t")
	native := wireclient.Open(t, server.Addr, harness.Database(t, server))
	var got [2]string
	for i, s := range []*wireclient.Session{w.Session, native} {
		s.Must(t, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT NOT NULL)", "CREATE TABLE u (c INT, id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT NOT NULL DEFAULT 1)")
		const text = "INSERT INTO t SET id=NULL, a=1 RETURNING *"
		assert.Of(s.Prepare(text, text)).Must(t)
		for _, between := range []string{"DO 1", "RENAME TABLE t TO v, u TO t, v TO u", "DO 1"} {
			s.Must(t, between)
			r := assert.Of(s.Execute(text, wireclient.Execution{})).Must(t)
			got[i] += fmt.Sprintf("%s: %v, %#x\n", between, r[0].Err, r[0].Status)
		}
	}
	assert.Equal(t, "replies", got[0], got[1])
	assert.Contains(t, "what is native", got[1], "0x402")
}

// TestPreparedFailsElsewhere: when a statement cannot be prepared anew in the schema of its PREPARE,
// the session, whose default schema is another one by then, finds the error as it does natively.
func TestPreparedFailsElsewhere(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE u (id INT PRIMARY KEY)",
			"CREATE TABLE DB_other.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.u (id INT AUTO_INCREMENT PRIMARY KEY)")
		var got [2]string
		for i, side := range []struct{ addr, db string }{{w.Addr, w.DB}, {server.Addr, w.DB + "_other"}} {
			s, other := wireclient.Open(t, side.addr, side.db), wireclient.Open(t, side.addr, side.db)
			const text = "INSERT INTO t (a) VALUES (?)"
			assert.Of(s.Prepare(text, text)).Must(t)
			swap := strings.ReplaceAll("RENAME TABLE DB.t TO DB.v, DB.u TO DB.t, DB.v TO DB.u", "DB", side.db)
			s.Must(t, "USE mysql")
			other.Must(t, swap)
			for _, look := range []string{"SHOW WARNINGS", "SELECT ROW_COUNT()", "SHOW WARNINGS", "SHOW COUNT(*) ERRORS"} {
				r, err := s.Execute(text, wireclient.Execution{Args: []wireclient.Argument{wireclient.Long(1)}})
				assert.MustTrue(t, err == nil && r[0].Err != nil, "%v: %v", err, r)
				got[i] += fmt.Sprintf("%v; %s: %v\n", r[0].Err, look, s.Must(t, look).Rows)
			}
			other.Must(t, swap)
			s.MustExecute(t, text, wireclient.Long(1))
		}
		assert.Equal(t, "replies", got[0], got[1])
	})
}

// TestPreparedUnderModes: what a literal in an id's place is worth depends on the sql_mode of the
// execution, not on that of the PREPARE.
func TestPreparedUnderModes(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
		var got [2]string
		for i, s := range []*wireclient.Session{wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")} {
			texts := []string{"INSERT INTO t (id, a) VALUES ('x', ?)", "INSERT IGNORE INTO t (id, a) VALUES ('', ?)"}
			for _, modes := range [][]string{{"", "STRICT_ALL_TABLES", ""}, {"STRICT_ALL_TABLES", "", "STRICT_TRANS_TABLES"}} {
				for _, mode := range modes {
					s.Must(t, "SET sql_mode = '"+mode+"'")
					for _, text := range texts {
						if mode == modes[0] {
							assert.Of(s.Prepare(text, text)).Must(t)
							s.Must(t, "PREPARE p FROM '"+strings.ReplaceAll(texts[0], "'", "''")+"'")
						}
						r := assert.Of(s.Execute(text, wireclient.Execution{Args: []wireclient.Argument{wireclient.Long(1)}})).Must(t)
						named := assert.Of(s.Query("SET @a = 1; EXECUTE p USING @a")).Must(t)
						got[i] += fmt.Sprintf("%q, %s: %d %d, ids %v %v\n", mode, text, errorCode(r), errorCode(named), r[0].InsertID != 0, named[len(named)-1].InsertID != 0)
					}
				}
			}
		}
		assert.Equal(t, "replies", got[0], got[1])
	})
}

// errorCode is that of the last reply, 0 when it is none.
func errorCode(replies []wireclient.Reply) uint16 {
	if e := replies[len(replies)-1].Err; e != nil {
		return e.Code
	}
	return 0
}

// TestLongDataByPosition: the order of columns is asked for in front of long data, for the server
// drops that with the statement when it must be prepared anew.
func TestLongDataByPosition(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := openAnew(t, server, "t")
		w.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(20))", "INSERT INTO t VALUES (NULL, 'known')")
		wireclient.Open(t, server.Addr, w.Value(t, "SELECT DATABASE()")).Must(t, "ALTER TABLE t MODIFY id BIGINT AFTER a")
		const text = "INSERT INTO t VALUES (?, NULL)"
		w.MustPrepare(t, text, text)
		r := w.MustExecute(t, text, wireclient.InPieces(mysql.MYSQL_TYPE_BLOB, "in pieces"))
		assert.True(t, r.InsertID != 0, "no insert id: %+v", r)
	})
}

// TestSelectTooLarge: an execution of INSERT ... SELECT that is refused for its size leaves no
// statement at the server. It brings the types of its parameters to a statement of its own, where
// the client's need not.
func TestSelectTooLarge(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			const limit = 16 << 10
			server := harness.StartServer(t, kind, servers.Options{Args: []string{fmt.Sprintf("--max-allowed-packet=%d", limit)}})
			w := openAnew(t, server, "t")
			w.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a LONGTEXT)")
			statements := func() string {
				w.Must(t, "DO 1") // no server answers when it closes one
				return wireclient.Open(t, server.Addr, "").Must(t, "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").Rows[0][1]
			}
			size := limit - len("\x17") - 9 - 2 - 3 // the command and its head, no NULL and no types, and a length
			long := append([]byte{0, 0, 0xfc, byte(size), byte(size >> 8)}, strings.Repeat("x", size)...)
			for _, text := range []string{"INSERT INTO t (a) SELECT ?", "INSERT INTO t (a) SELECT 'a' ON DUPLICATE KEY UPDATE a = ?"} { // the second one counts its rows without it
				id, _ := w.statement(t, text)
				w.executed(t, id, text1)
				before := statements()
				w.refused(t, mysql.ER_NET_PACKET_TOO_LARGE, id, long)
				assert.Equal(t, text+": statements of the server", statements(), before)
				w.executed(t, id, []byte{0, 0, 1, 'x'})
			}
		})
	}
}

// TestByPosition changes the columns of a table behind the proxy's back, in front of INSERTs that
// name none: values and ids go to the columns that they go to natively, from the very next
// statement on.
func TestByPosition(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := openPrepared(t, server)
		s, direct := wireSession{wireclient.Open(t, w.addr, w.db)}, wireclient.Open(t, server.Addr, w.db)
		s.Must(t, "DROP TABLE orders", "CREATE TABLE orders (id BIGINT PRIMARY KEY, note BIGINT)")
		inserts := []func(){func() { s.Must(t, "INSERT INTO orders VALUES (NULL, 7)") }, func() { s.Must(t, "EXECUTE n") }, func() { s.Must(t, "EXECUTE IMMEDIATE 'INSERT INTO orders VALUES (NULL, 7)'") }}
		if server.Kind.String() == "MySQL" {
			inserts = inserts[:2]
		}
		s.Must(t, "PREPARE n FROM 'INSERT INTO orders VALUES (NULL, 7)'")
		st, _ := s.statement(t, "INSERT INTO orders VALUES (?, ?)")
		query, _ := s.statement(t, "INSERT INTO orders SELECT NULL, 7")
		execute := func(id uint32, rest ...[]byte) func() {
			return func() { s.executed(t, id, rest...) }
		}
		inserts = append(inserts, execute(st, []byte{1, 1, mysql.MYSQL_TYPE_LONG, 0, mysql.MYSQL_TYPE_LONG, 0, 7, 0, 0, 0}), execute(query),
			func() { s.Must(t, "INSERT INTO orders SELECT NULL, 7") }, func() { s.Must(t, "DO 1; INSERT INTO orders VALUES (NULL, 7)") })
		for i, insert := range inserts {
			insert()
			for _, swapped := range []bool{true, false} {
				if swapped {
					direct.Must(t, "ALTER TABLE orders MODIFY note BIGINT FIRST")
				} else {
					direct.Must(t, "ALTER TABLE orders MODIFY id BIGINT FIRST")
				}
				insert()
				want := "id=1 note=7"
				if swapped {
					want = "id=7 note=NULL"
				}
				row := direct.Value(t, "SELECT CONCAT('id=', IF(id >= 1000, 1, id), ' note=', IFNULL(note, 'NULL')) FROM orders ORDER BY id >= 1000, id DESC LIMIT 1")
				assert.True(t, (!swapped || row == want) && (swapped || strings.HasPrefix(row, want)), "insert %d, columns swapped %t: %s, want %s", i, swapped, row, want)
				direct.Must(t, "DELETE FROM orders")
			}
		}
		// Statements with a list ask nothing.
		questions := func() string { return direct.Must(t, "SHOW GLOBAL STATUS LIKE 'Com_stmt_prepare'").Rows[0][1] }
		s.Must(t, "INSERT INTO orders (note) VALUES (7)")
		before := questions()
		s.Must(t, "INSERT INTO orders (note) VALUES (7)", "INSERT INTO orders SET note = 7")
		assert.Equal(t, "statements that were prepared", questions(), before)
	})
}

// TestDoubtedTable adds the column of a rule behind the proxy's back: the first INSERT says that it
// has no default, and those behind it are filled.
func TestDoubtedTable(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		proxy := harness.StartWith(t, server.Addr, "ids: {segment: {start: 1000}}", fmt.Sprintf(`{table: "%s.*", column: id, source: ids}`, db))
		s, direct := wireSession{wireclient.Open(t, proxy.Addr("a"), db)}, wireclient.Open(t, server.Addr, db)
		s.Must(t, "CREATE TABLE t (a INT)")
		st, _ := s.statement(t, "INSERT INTO t (a) VALUES (1)")
		for i, insert := range []func() *mysql.MyError{
			func() *mysql.MyError { return s.execute(t, st).Err },
			func() *mysql.MyError { r, _ := s.Query("INSERT INTO t (a) VALUES (1)"); return r[0].Err },
		} {
			err := insert()
			assert.MustTrue(t, err == nil, "%v", err)
			direct.Must(t, "DELETE FROM t", "ALTER TABLE t ADD id BIGINT NOT NULL PRIMARY KEY")
			err = insert()
			assert.True(t, err != nil && err.Code == mysql.ER_NO_DEFAULT_FOR_FIELD, "insert %d, right behind the change: %v, want error 1364", i, err)
			err = insert()
			assert.True(t, err == nil, "insert %d, after the error: %v", i, err)
			s.Must(t, "ALTER TABLE t DROP COLUMN id")
		}
	})
}
