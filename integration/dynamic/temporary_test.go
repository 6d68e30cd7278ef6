package dynamic

import (
	"reflect"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// temporaryMakers make a temporary table that takes the name of orders, in ways that a proxy does
// not see, or not for certain.
var temporaryMakers = []struct {
	name, only string
	run        []string
}{
	{"CALL", "", []string{"CALL make()"}},
	{"CALL, in one text", "", []string{"CALL make(); INSERT INTO orders (a) VALUES (0)"}},
	{"EXECUTE of what a procedure prepared", "", []string{"CALL prepares()", "EXECUTE made"}},
	{"prepared CALL", "", []string{"PREPARED CALL make()"}},
	{"prepared CREATE", "", []string{"PREPARED CREATE TEMPORARY TABLE orders COLUMNS"}},
	{"block", "MariaDB", []string{"BEGIN NOT ATOMIC CREATE TEMPORARY TABLE orders COLUMNS; END"}},
	{"text that is not known", "MariaDB", []string{"EXECUTE IMMEDIATE CONCAT('CREATE TEMPORARY TABLE orders COLUMNS', LEFT(UUID(), 0))"}},
	{"version comment", "", []string{"CREATE /*!50000 TEMPORARY */ TABLE orders COLUMNS"}},
	{"MariaDB's comment", "MariaDB", []string{"CREATE /*M!100000 TEMPORARY */ TABLE orders COLUMNS"}},
	{"ALTER ... RENAME", "", []string{"CREATE TEMPORARY TABLE tmp COLUMNS", "ALTER TABLE tmp RENAME TO orders"}},
	{"ALTER ... RENAME of one not seen", "", []string{"CALL make_tmp()", "INSERT INTO orders (a) VALUES (0)", "ALTER TABLE tmp RENAME orders"}},
	{"RENAME TABLE", "MariaDB", []string{"CREATE TEMPORARY TABLE tmp COLUMNS", "RENAME TABLE tmp TO orders"}},
	{"made again", "", []string{"CALL make()", "INSERT INTO orders (a) VALUES (0)", "DROP TABLE orders", "CALL make()"}},
	{"under a view of its own", "", []string{"CREATE OR REPLACE VIEW other AS SELECT 1", "CALL make()"}},
}

// temporaryUse is what a session does with it.
var temporaryUse = []string{
	"INSERT INTO orders (a) VALUES (1)", "INSERT INTO orders (a) VALUES (2), (3)", "SELECT LAST_INSERT_ID()", "EXECUTED before", "EXECUTE n", "INSERT INTO orders (a) SELECT 4", "INSERT INTO orders VALUES (NULL, 5)",
	"PREPARED INSERT INTO orders (a) VALUES (6)", "EXECUTED before", "EXECUTED query", "INSERT INTO orders (a) VALUES (7); INSERT INTO orders (a) VALUES (8)", "SELECT * FROM orders",
	"CALL nothing()", "EXECUTED before", "INSERT INTO orders (a) VALUES (9)", "SELECT * FROM orders", "DROP TEMPORARY TABLE orders",
}

// TestTemporaryOutOfSight: a rule rests for a temporary table of the session's own, however it came
// to be, and not for the table behind it.
func TestTemporaryOutOfSight(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		const columns = "(id INT AUTO_INCREMENT PRIMARY KEY, a INT)"
		setup := []string{"CREATE TABLE DB_other.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)"}
		for _, schema := range []string{"DB", "DB_other"} {
			setup = append(setup, "CREATE PROCEDURE "+schema+".nothing() DO 1", "CREATE PROCEDURE "+schema+".make() CREATE TEMPORARY TABLE orders "+columns,
				"CREATE PROCEDURE "+schema+".make_tmp() CREATE TEMPORARY TABLE tmp "+columns, "CREATE PROCEDURE "+schema+".prepares() PREPARE made FROM 'CREATE TEMPORARY TABLE orders "+columns+"'")
		}
		setup = append(setup, "CREATE USER DB IDENTIFIED BY 'grants'", "GRANT EXECUTE, CREATE TEMPORARY TABLES ON DB.* TO DB", "GRANT SELECT (id, a), INSERT (id, a) ON DB.orders TO DB")
		w := pair.New(t, server, "[{table: DB.orders, column: id, source: ids}]", setup...)
		t.Cleanup(func() { wireclient.Open(t, server.Addr, "").Must(t, w.Text("DROP USER DB")) })
		for _, maker := range temporaryMakers {
			if maker.only != "" && maker.only != server.Kind.String() {
				continue
			}
			t.Run(maker.name, func(t *testing.T) {
				ours, native := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")
				for _, s := range []*wireclient.Session{ours, native} {
					for name, text := range map[string]string{"before": "INSERT INTO orders (a) VALUES (10)", "query": "INSERT INTO orders (a) SELECT 11"} {
						s.MustPrepare(t, name, text)
					}
					s.Must(t, "PREPARE n FROM 'INSERT INTO orders (a) VALUES (12)'", "INSERT INTO orders (a) VALUES (13)")
				}
				for i, text := range append(maker.run[:len(maker.run):len(maker.run)], temporaryUse...) {
					text = strings.ReplaceAll(text, "COLUMNS", columns)
					got, want := unseenStep(ours, t, text), unseenStep(native, t, text)
					assert.True(t, i < len(maker.run) || reflect.DeepEqual(got, want), "%s\n%+v\nnatively\n%+v", text, got, want)
				}
				ours.Must(t, "DELETE FROM orders")
				for _, text := range []string{"INSERT INTO orders (a) VALUES (20)", "EXECUTED before", "EXECUTE n", "EXECUTED query"} {
					r := unseenStep(ours, t, text)
					assert.True(t, r[0].Err == nil && r[0].InsertID >= pair.SourceStart, "behind it, %s: insert id %d, %v", text, r[0].InsertID, r[0].Err)
				}
			})
		}
		t.Run("few rights", func(t *testing.T) {
			s := wireclient.DialAs(t, w.Addr, w.DB, w.DB)
			s.Must(t, "CALL nothing()", "INSERT INTO orders (a) VALUES (1)", "CALL make()")
			assert.Equal(t, "insert id", s.Must(t, "INSERT INTO orders (a) VALUES (1)").InsertID, 1)
		})
	})
}

// unseenStep sends a text, or prepares and executes one, or executes one that was prepared.
func unseenStep(s *wireclient.Session, t *testing.T, text string) []wireclient.Reply {
	t.Helper()
	send := s.Query
	if sql, ok := strings.CutPrefix(text, "PREPARED "); ok {
		send, text = s.Prepared, sql
	} else if name, ok := strings.CutPrefix(text, "EXECUTED "); ok {
		send, text = func(name string) ([]wireclient.Reply, error) { return s.Execute(name, wireclient.Execution{}) }, name
	}
	replies := assert.Of(send(text)).Must(t, text)
	return replies
}
