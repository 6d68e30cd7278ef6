package replies

import (
	"fmt"
	"reflect"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestUpsertOfSameRow: a server takes a row for changed where a NULL stands for a column with a
// default, and the engine finds it the same. The reply counts it as if it had gone in; its id is
// that of the row that was there.
func TestUpsertOfSameRow(t *testing.T) {
	const table = "CREATE TABLE %s.t (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, a VARCHAR(20) DEFAULT 'd') AUTO_INCREMENT = %d"
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]",
			fmt.Sprintf(table, "DB", 1), fmt.Sprintf(table, "DB_other", pair.SourceStart))
		native, proxied := wireclient.Open(t, server.Addr, w.DB+"_other"), wireclient.Open(t, w.Addr, w.DB)
		compared := 0
		for _, text := range []string{
			"INSERT INTO t (u, a) VALUES (1, NULL) ON DUPLICATE KEY UPDATE a = NULL",
			"INSERT INTO t (u, a) VALUES (1, NULL) ON DUPLICATE KEY UPDATE a = NULL",
			"INSERT IGNORE INTO t (u, a) VALUES (1, NULL) ON DUPLICATE KEY UPDATE a = VALUES(a)",
			"INSERT INTO t (u, a) VALUES (1, NULL) ON DUPLICATE KEY UPDATE a = NULL, id = LAST_INSERT_ID(id)",
			"INSERT INTO t (id, u, a) VALUES (77, 1, NULL) ON DUPLICATE KEY UPDATE a = NULL",
			"INSERT INTO t (u, a) VALUES (2, NULL), (1, NULL) ON DUPLICATE KEY UPDATE a = NULL",
			"INSERT INTO t (u, a) VALUES (2, NULL), (1, NULL) ON DUPLICATE KEY UPDATE a = NULL",
			"INSERT INTO t (u, a) VALUES (LAST_INSERT_ID(5), NULL) ON DUPLICATE KEY UPDATE a = NULL",
			"INSERT INTO t (u, a) VALUES (6, 'x'), (7, 'x') ON DUPLICATE KEY UPDATE a = 'x'",
			"INSERT INTO t (u, a) VALUES (6, 'x'), (7, 'x') ON DUPLICATE KEY UPDATE a = 'x'",
		} {
			for _, text := range []string{text, "SELECT LAST_INSERT_ID()", "SELECT * FROM t"} {
				want, err := native.Query(text)
				assert.Must(t, err)
				got, err := proxied.Query(text)
				assert.True(t, err == nil && reflect.DeepEqual(got, want), "%s:\nnatively %v\nshows    %v, %v", text, want, got, err)
				compared += len(want)
			}
		}
		t.Logf("compared: %d replies", compared)
	})
}
