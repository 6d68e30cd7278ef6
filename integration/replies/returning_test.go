package replies

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/wireclient"
)

// TestReturnedRowsDeleted deletes the row of an INSERT ... ON DUPLICATE KEY UPDATE ... RETURNING on
// another connection, as soon as the reply is there: LAST_INSERT_ID() is the id of the row all the
// same.
func TestReturnedRowsDeleted(t *testing.T) {
	server := harness.MariaDB(t)
	w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT) ENGINE=MyISAM")
	s, other := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB)
	for range 200 {
		id := s.Value(t, "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2 RETURNING id")
		other.Must(t, "DELETE FROM t")
		last := s.Value(t, "SELECT LAST_INSERT_ID()")
		assert.MustTrue(t, last == id, "LAST_INSERT_ID() is %s behind %s", last, id)
	}
}
