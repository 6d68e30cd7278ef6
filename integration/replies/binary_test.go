package replies

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestIDsUnderBinary: under SET NAMES binary a text in an id's place is worth what it is worth
// under other names, though it has no character set. A number in hexadecimal has none either.
func TestIDsUnderBinary(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]", "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT)", "CREATE TABLE DB_other.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, k INT)")
		ours, native := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")
		show := func(s *wireclient.Session, texts ...string) (all string) {
			for _, text := range texts {
				replies := assert.Of(s.Query(text)).Must(t)
				for _, r := range replies {
					all += strings.ReplaceAll(fmt.Sprintf("[%v %v]", r.Err, r.Rows), w.DB+"_other", w.DB)
				}
			}
			return all
		}
		for _, mode := range []string{"", "STRICT_ALL_TABLES"} {
			for _, names := range []string{"binary", "utf8mb4"} {
				for _, value := range []string{"'v'", "''", "'0.5'", "'0.4'", "'7'", "' 7 '", "'1e1'", "'0'", "x'31'", "0x31", "0x00", "b'0'", "b'110'", "@text", "@none", "_binary'5'"} {
					var got [2]string
					for i, s := range []*wireclient.Session{ours, native} {
						s.Must(t, "SET NAMES "+names, "SET sql_mode = '"+mode+"'", "SET @text = '5', @none = NULL")
						got[i] = show(s, "INSERT INTO t (k, id) VALUES (1, "+value+")", "SELECT IF(LAST_INSERT_ID() = id, 'generated', id) FROM t")
						s.Must(t, "DELETE FROM t")
					}
					assert.True(t, got[0] == got[1], "%s under NAMES %s and sql_mode %q: %s, natively %s", value, names, mode, got[0], got[1])
				}
			}
		}
	})
}
