package columns

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestGreatestOverBytes has a session whose character sets are binary compare ids that are text
// with their source.
func TestGreatestOverBytes(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE c (id CHAR(20) CHARACTER SET utf8mb4, a INT)", "INSERT INTO c VALUES ('7',0),('10',0),('x',0)")
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 11}}}
rules:     [{table: %[2]s.c, column: id, source: ids}]
`, server.Addr, db))
		s := wireclient.Open(t, proxy.Addr("a"), db)
		s.Must(t, "SET NAMES binary", "INSERT INTO c (a) VALUES (1)")
		assert.Equal(t, "id", direct.Value(t, "SELECT id FROM c WHERE a=1"), "11")
	})
}

// TestTextThatLooksLikeBytes has a session describe tables whose definitions give all text as
// bytes: for itself and for the others the columns are what they are.
func TestTextThatLooksLikeBytes(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, k CHAR(4) CHARACTER SET latin1)", "CREATE TABLE c (id CHAR(20) CHARACTER SET utf8mb4, a INT)")
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {}}}
rules:
  - {table: %[2]s.t, column: id, source: ids, gene: {column: k, bits: 8, by: crc32}}
  - {table: %[2]s.c, column: id, source: ids}
`, server.Addr, db))
		bytes, other := wireclient.Open(t, proxy.Addr("a"), db), wireclient.Open(t, proxy.Addr("a"), db)
		bytes.Must(t, "SET NAMES binary")
		replies, err := other.Prepare("p", "INSERT INTO c (a) VALUES (?)")
		assert.MustTrue(t, err == nil && replies[0].Err == nil, "%v %v", err, replies)
		other.Must(t, "DROP TABLE IF EXISTS nothing") // ends what is known of tables
		bytes.Must(t, "INSERT INTO c (a) VALUES (1)")
		replies, err = other.Execute("p", wireclient.Execution{Args: []wireclient.Argument{wireclient.Long(2)}})
		assert.True(t, err == nil && replies[0].Err == nil, "executed after the other session had described the table: %v, %+v", err, replies)
		for _, s := range []*wireclient.Session{bytes, other} {
			s.Must(t, "INSERT INTO t (k) VALUES ('abcd')", "INSERT INTO t (k) VALUES ('abc')")
			e := s.Fails(t, "INSERT INTO t (k) VALUES ('abc ')")
			assert.True(t, e.Code == 1235, "a space at the end of a CHAR: %v", e)
		}
		rows := direct.Must(t, "SELECT id, k FROM t WHERE id % 256 <> CRC32(k) % 256").Rows
		assert.True(t, len(rows) == 0, "rows have another gene than their key: %v", rows)
		assert.Equal(t, "rows went in", direct.Value(t, "SELECT COUNT(*) FROM t"), "4")
	})
}
