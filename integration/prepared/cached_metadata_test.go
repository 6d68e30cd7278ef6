package prepared

import (
	"bytes"
	"encoding/binary"
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
