package prepared

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

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
			return func() {
				r := s.execute(t, id, rest...)
				assert.MustTrue(t, r[0].Err == nil, "%v", r[0].Err)
			}
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
		after := questions()
		assert.True(t, after == before, "%s statements were prepared, then %s", before, after)
	})
}

// TestDoubtedTable adds the column of a rule behind the proxy's back: the first INSERT says that it
// has no default, and those behind it are filled.
func TestDoubtedTable(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 1000}}}
rules:     [{table: "%s.*", column: id, source: ids}]
`, server.Addr, db))
		s, direct := wireSession{wireclient.Open(t, proxy.Addr("a"), db)}, wireclient.Open(t, server.Addr, db)
		s.Must(t, "CREATE TABLE t (a INT)")
		st, _ := s.statement(t, "INSERT INTO t (a) VALUES (1)")
		for i, insert := range []func() *mysql.MyError{
			func() *mysql.MyError { return s.execute(t, st)[0].Err },
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
