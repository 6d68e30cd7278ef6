package replies

import (
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// misfits are INSERTs whose columns or values do not fit the table ruled, which has a rule.
var misfits = []string{
	"INSERT INTO ruled (a, n) VALUES (1, 2, 3)", "INSERT INTO ruled (a, a) VALUES (1, 2)", "INSERT INTO ruled (a, id) VALUES (1, (SELECT 1)), (1, 2, 3)", "INSERT INTO ruled (a, nowhere, id) VALUES (1, 2, (SELECT 1))",
	"INSERT INTO ruled VALUES (1)", "INSERT INTO ruled (a, nowhere, id) VALUES (1, 2, (SELECT 1)); DO 2", "INSERT INTO ruled (a, n) SELECT nowhere, 1 FROM plain", "INSERT INTO ruled (a, n) SELECT 1 FROM plain",
	"INSERT INTO ruled (a, n) SELECT 1, 2, 3 FROM plain", "INSERT INTO ruled (a, n) SELECT 1", "INSERT INTO ruled (a, n) SELECT 1, nowhere", "INSERT INTO ruled (a, nowhere) SELECT a, n FROM plain",
	"INSERT INTO ruled (a, n) SELECT a, n FROM nosuch", "REPLACE INTO ruled (a, n) SELECT a, n FROM plain", "PREPARE p FROM 'INSERT INTO ruled (a, n) VALUES (1, 2, 3)'", "PREPARE p FROM 'INSERT INTO ruled (a, n) VALUES (1, 2)'",
}

// TestFailuresBegin holds that, with autocommit off, an INSERT that fails leaves a transaction open
// where it does natively: MariaDB begins one when it opens tables, MySQL looks at columns before.
// What the table is, is known.
func TestFailuresBegin(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		setup := []string{"CREATE TABLE plain (id BIGINT PRIMARY KEY, a INT, n INT)", "CREATE TABLE ruled (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, n INT)"}
		for _, table := range setup {
			setup = append(setup, "CREATE TABLE DB_other."+table[len("CREATE TABLE "):])
		}
		w := pair.New(t, server, "[{table: DB.ruled, column: id, source: ids}]", setup...)
		ours, native := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")
		begun := 0
		for _, s := range []*wireclient.Session{ours, native} {
			s.Must(t, "INSERT INTO ruled (a, n) SELECT 1, 1", "SET autocommit = 0")
		}
		for _, text := range misfits {
			var got [2]string
			for i, s := range []*wireclient.Session{ours, native} {
				s.Must(t, "ROLLBACK")
				replies := assert.Of(s.Query(text)).Must(t)
				now := s.Must(t, "DO 1").Status & mysql.SERVER_STATUS_IN_TRANS
				begun += int(now)
				got[i] = fmt.Sprintf("%d, in a transaction: %d", errorCode(replies), now)
			}
			assert.True(t, got[0] == got[1], "%s: %s, natively %s", text, got[0], got[1])
		}
		assert.True(t, server.Kind != servers.MariaDB || begun >= 2*10, "%d begin a transaction: the test shows nothing", begun)
	})
}

// errorCode is that of the last reply, 0 when it is none.
func errorCode(replies []wireclient.Reply) uint16 {
	if e := replies[len(replies)-1].Err; e != nil {
		return e.Code
	}
	return 0
}
