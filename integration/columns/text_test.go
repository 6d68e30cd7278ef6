package columns

import (
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/wireclient"
)

// TestTextKeys: a key of text whose rule names its table takes the application's own texts under
// every explicit. Whole numbers are ids, and explicit says what becomes of them.
func TestTextKeys(t *testing.T) {
	for _, server := range harness.Servers(t) {
		for _, explicit := range []string{"keep", "reject", "advance"} {
			t.Run(fmt.Sprintf("%s, %s", server.Kind, explicit), func(t *testing.T) {
				w := pair.New(t, server, "[{table: DB.t, column: id, source: ids, explicit: "+explicit+"}]", "CREATE TABLE t (id CHAR(40) NOT NULL PRIMARY KEY, a INT)")
				s := wireclient.Open(t, w.Addr, w.DB)
				s.Must(t, "INSERT INTO t (a) VALUES (1)", "INSERT INTO t VALUES ('abc', 2), (UUID(), 3), ('', 4), (NULL, 5)", "INSERT INTO t SET id = CONCAT('x', 'y'), a = 6",
					"SET @u = 'user'", "INSERT INTO t (id, a) VALUES (@u, 7)", "INSERT INTO t VALUES ('123456789012345678901234567890', 8)")
				for id, a := range map[string]string{"bound": "9", "bound again": "10"} {
					replies, err := s.Prepare("p", "INSERT INTO t (id, a) VALUES (?, ?)")
					assert.MustTrue(t, err == nil && replies[0].Err == nil, "%v %v", err, replies)
					replies, err = s.Execute("p", wireclient.Execution{Args: []wireclient.Argument{wireclient.TextOf(mysql.MYSQL_TYPE_VAR_STRING, id), wireclient.TextOf(mysql.MYSQL_TYPE_VAR_STRING, a)}})
					assert.MustTrue(t, err == nil && replies[0].Err == nil, "%v %v", err, replies)
				}
				replies, err := s.Prepare("c", "INSERT INTO t (id, a) VALUES (CAST(? AS CHAR), ?)")
				assert.MustTrue(t, err == nil && replies[0].Err == nil, "%v %v", err, replies)
				replies, err = s.Execute("c", wireclient.Execution{Args: []wireclient.Argument{wireclient.TextOf(mysql.MYSQL_TYPE_VAR_STRING, "cast"), wireclient.TextOf(mysql.MYSQL_TYPE_VAR_STRING, "11")}})
				assert.MustTrue(t, err == nil && replies[0].Err == nil, "%v %v", err, replies)
				want := "id,1 abc,2 36,3 ,4 id,5 xy,6 user,7 123456789012345678901234567890,8 11 cast"
				got := pair.Shown(s.Must(t, "SELECT IF(a = 3, LENGTH(id), id), a FROM t WHERE a < 8 ORDER BY a")) + " " +
					s.Value(t, "SELECT CONCAT(id, ',8') FROM t WHERE a = 8") + " " + s.Value(t, "SELECT COUNT(*) FROM t") + " " + s.Value(t, "SELECT id FROM t WHERE a = 11")
				assert.True(t, got == want, "%s; want %s", got, want)
				switch replies, err := s.Query("INSERT INTO t VALUES ('5000', 12)"); {
				case err != nil:
					t.Fatal(err)
				case explicit == "reject" && (replies[0].Err == nil || replies[0].Err.Code != 1235), explicit != "reject" && replies[0].Err != nil:
					t.Errorf("a whole number: %v", replies[0].Err)
				}
				s.Must(t, "INSERT INTO t (a) VALUES (13)")
				next := s.Value(t, "SELECT id > 5000 FROM t WHERE a = 13")
				assert.True(t, (next == "1") == (explicit == "advance"), "the next id lies above 5000: %s", next)
			})
		}
	}
}
