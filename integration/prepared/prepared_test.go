package prepared

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// preparedWorld is a database whose table orders gets ids from a proxy, from 1000 on, and one
// session through that.
type preparedWorld struct {
	addr, db string
	conn     *sql.Conn
	proxy    *harness.Proxy
}

func openPrepared(t *testing.T, server *servers.Server) preparedWorld {
	t.Helper()
	name := harness.Database(t, server)
	proxy := harness.StartWith(t, server.Addr, "ids: {segment: {start: 1000}}", `{table: "*.orders", column: id, source: ids}`)
	conn := assert.Of(harness.Open(t, server.Config(name), proxy.Addr("a")).Conn(t.Context())).Must(t)
	t.Cleanup(func() { conn.Close() })
	for _, text := range []string{
		"CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE, a VARCHAR(20))", "CREATE TABLE free (a BIGINT)",
	} {
		assert.Of(conn.ExecContext(t.Context(), text)).Must(t)
	}
	return preparedWorld{proxy.Addr("a"), name, conn, proxy}
}

// TestPrepared executes statements twice, with differing values: each execution gets ids of its
// own, and the client sees the parameters that are its own.
func TestPrepared(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		conn := openPrepared(t, server).conn
		for _, tt := range []struct {
			text string
			args [][]any
			want []int64 // insert ids, from 1000 on those that are generated
		}{
			{"INSERT INTO orders (u) VALUES (?)", [][]any{{1}, {nil}}, []int64{1000, 1001}},
			{"INSERT INTO orders (u, a) VALUES (?, ?), (?, 'x'), (NULL, ?)", [][]any{{1, "a", nil, "b"}, {nil, nil, 5, nil}}, []int64{1000, 1003}},
			{"INSERT INTO orders (id, u) VALUES (?, ?)", [][]any{{nil, 1}, {0, 2}, {7, 3}, {"0", 4}, {"00", 5}, {uint64(9), nil}}, []int64{1000, 1001, 7, 1002, 1003, 9}},
			{"INSERT INTO orders VALUES (?, ?, ?), (NULL, ?, ?)", [][]any{{nil, 1, nil, 2, nil}, {5, 3, nil, 4, nil}}, []int64{1000, 1002}},
			{"INSERT INTO orders (u) VALUES (1) ON DUPLICATE KEY UPDATE u = ?", [][]any{{2}, {2}, {3}}, []int64{1000, 1000, 1002}},
			{"INSERT IGNORE INTO orders (u) VALUES (?)", [][]any{{2}, {2}}, []int64{1000, 0}},
			{"INSERT INTO orders () VALUES ()", [][]any{{}, {}}, []int64{1000, 1001}},
			{"REPLACE INTO orders SET u = ?, a = ?", [][]any{{1, "a"}, {1, "b"}}, []int64{1000, 1001}},
		} {
			t.Run(tt.text, func(t *testing.T) {
				assert.Of(conn.ExecContext(t.Context(), "DELETE FROM orders")).Must(t)
				st := assert.Of(conn.PrepareContext(t.Context(), tt.text)).Must(t)
				defer st.Close()
				var got []int64
				for _, args := range tt.args {
					result := assert.Of(st.ExecContext(t.Context(), args...)).Must(t)
					got = append(got, assert.Of(result.LastInsertId()).Must(t))
				}
				first := got[0]
				for i := range got {
					if got[i] >= first {
						got[i] -= first - 1000
					}
				}
				assert.True(t, slices.Equal(got, tt.want), "insert ids %v, want %v", got, tt.want)
			})
		}
	})
}

// TestPreparedSelectGainsColumn adds a column that a wildcard's rule names to the table of a
// prepared INSERT ... SELECT.
func TestPreparedSelectGainsColumn(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		proxy := harness.StartWith(t, server.Addr, "ids: {segment: {}}",
			fmt.Sprintf(`{table: %s.t, column: id, source: ids}, {table: "%[1]s.*", column: nr, source: ids}`, db))
		s := wireclient.Open(t, proxy.Addr("a"), db)
		s.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		s.MustPrepare(t, "p", "INSERT INTO t (a) SELECT ?")
		s.MustExecute(t, "p", wireclient.Long(1))
		s.Must(t, "ALTER TABLE t ADD nr BIGINT NOT NULL DEFAULT 0")
		s.MustExecute(t, "p", wireclient.Long(1))
		assert.Equal(t, "rows without a number went in, one of them before", s.Value(t, "SELECT COUNT(*) FROM t WHERE nr = 0"), "1")
	})
}

// TestCachedMetadata is a client that keeps the definitions of a statement's columns, and is given
// them again only when they have changed (MARIADB_CLIENT_CACHE_METADATA). What idproxy prepares
// anew it must be told of as natively.
func TestCachedMetadata(t *testing.T) {
	server := harness.MariaDB(t)
	w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`)
	direct := wireclient.Open(t, server.Addr, w.DB)
	for _, eof := range []uint64{0, uint64(mysql.CLIENT_DEPRECATE_EOF)} {
		for _, text := range []string{
			"INSERT INTO t VALUES (NULL, ?, 'b') RETURNING *", "INSERT INTO t VALUES (NULL, ?, 'b'), (NULL, 'c', 'd') RETURNING *", "REPLACE INTO t (a) VALUES (?) RETURNING *",
			"INSERT INTO t (a) SELECT ? RETURNING *", "INSERT INTO t (a) VALUES (?)",
		} {
			var shown [2]string
			for i, side := range []struct{ addr, db, auto string }{{w.Addr, w.DB, ""}, {server.Addr, w.Text("DB_other"), " AUTO_INCREMENT"}} {
				direct.Must(t, "USE "+side.db, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id BIGINT PRIMARY KEY"+side.auto+", a VARCHAR(20), b VARCHAR(20))")
				assert.Must(t, replay.Do(func() {
					c := cachingClient{Conn: replay.Dial(replay.Config{Addr: side.addr, Schema: side.db, User: servers.AppUser, Password: servers.AppPassword, Caps: replay.MariaCacheMetadata | eof})}
					defer c.Close()
					c.Login()
					id := c.prepare(text)
					for _, ddl := range []string{"SELECT 1", "SELECT 2", "ALTER TABLE t RENAME COLUMN a TO c, RENAME COLUMN b TO a", "SELECT 3", "ALTER TABLE t ADD d INT", "ALTER TABLE t DROP d", "SELECT 4"} {
						direct.Must(t, ddl)
						shown[i] += ddl + ": " + c.execute(id) + "\n"
					}
				}), text)
			}
			if strings.Contains(text, "SELECT") { // another statement is executed each time, and described
				shown[1] = strings.ReplaceAll(shown[1], "as known", "described")
			}
			assert.True(t, shown[0] == shown[1], "%s, EOF %#x:\n%snatively\n%s", text, eof, shown[0], shown[1])
			assert.True(t, strings.Contains(text, "RETURNING") == strings.Contains(shown[1], "described: id c a"), "%s: natively %s", text, shown[1])
		}
	}
}

// cachingClient is a client that keeps the names of a statement's columns.
type cachingClient struct {
	*replay.Conn
	names []string
}

// prepare prepares a statement with one parameter.
func (c *cachingClient) prepare(text string) (id []byte) {
	c.CommandText(mysql.COM_STMT_PREPARE, text)
	p := c.Packet()
	if p[0] == mysql.ERR_HEADER {
		replay.Fail("%w", replay.ServerError(p))
	}
	id = bytes.Clone(p[1:5])
	columns := int(binary.LittleEndian.Uint16(p[5:]))
	for _, n := range []int{1, columns} {
		c.define(n)
		if n > 0 {
			c.eof()
		}
	}
	return id
}

// define reads definitions of columns.
func (c *cachingClient) define(n int) {
	c.names = nil
	for range n {
		p := c.Packet()
		for range 4 { // catalog, schema, table, its own name
			p = p[1+p[0]:]
		}
		c.names = append(c.names, string(p[1:1+p[0]]))
	}
}

func (c *cachingClient) eof() {
	if !c.Has(uint64(mysql.CLIENT_DEPRECATE_EOF)) {
		c.Packet()
	}
}

// execute executes a statement, and shows what the client then takes its columns for, and how many
// rows come.
func (c *cachingClient) execute(id []byte) string {
	c.Command(mysql.COM_STMT_EXECUTE, append(bytes.Clone(id), 0, 1, 0, 0, 0, 0, 1, mysql.MYSQL_TYPE_VAR_STRING, 0, 1, 'x')...)
	p := c.Packet()
	switch p[0] {
	case mysql.ERR_HEADER:
		return replay.ServerError(p).Error()
	case mysql.OK_HEADER:
		return "OK"
	}
	out := "as known"
	if p[1] != 0 {
		out = "described"
		c.define(int(p[0]))
	}
	c.eof()
	out += ": " + strings.Join(c.names, " ")
	for {
		switch p := c.Packet(); p[0] {
		case mysql.ERR_HEADER:
			return out + replay.ServerError(p).Error()
		case mysql.EOF_HEADER:
			return out
		}
		out += " row"
	}
}

// TestSetOption turns the splitting of texts on and off: what the server refuses changes nothing,
// and a text that is sent before the reply is cut where the server cuts it.
func TestSetOption(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := openPrepared(t, server)
		s := wireclient.Open(t, w.addr, w.db)
		next := uint64(1000)
		for _, tt := range []struct {
			option byte
			err    uint16
			multi  bool
		}{{2, mysql.ER_UNKNOWN_COM_ERROR, true}, {1, 0, false}, {7, mysql.ER_UNKNOWN_COM_ERROR, false}, {0, 0, true}} {
			for _, waits := range []bool{true, false} {
				option := func() {
					p, err := s.Conn.ReadPacket()
					assert.MustTrue(t, err == nil && (p[0] == mysql.ERR_HEADER) == (tt.err != 0) && (tt.err == 0 || wireclient.ParseERR(p).Code == tt.err), "option %d: %v, %q", tt.option, err, p)
				}
				assert.Must(t, s.Send(mysql.COM_SET_OPTION, []byte{tt.option, 0}))
				if waits {
					option()
				}
				assert.Must(t, s.Send(mysql.COM_QUERY, []byte("DO 1; INSERT INTO orders (a) VALUES ('x')")))
				if !waits {
					s.Conn.ResetSequence()
					s.Conn.Sequence = 1 // of a reply
					option()
					s.Conn.ResetSequence()
					s.Conn.Sequence = 1
				}
				r := assert.Of(s.Results()).Must(t)
				got := fmt.Sprintf("%d results", len(r))
				if r[0].Err != nil {
					got = r[0].Err.Error()[:10]
				} else if len(r) == 2 && r[1].Err == nil {
					got = fmt.Sprint(r[1].InsertID)
				}
				want := "ERROR 1064"
				if tt.multi {
					want = fmt.Sprint(next)
					next++
				}
				assert.Equal(t, fmt.Sprintf("behind option %d, waited for %t", tt.option, waits), got, want)
			}
		}
	})
}

func TestMain(m *testing.M) { harness.Main(m) }
