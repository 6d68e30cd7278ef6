package integration

import (
	"reflect"
	"strings"
	"testing"

	"idproxy/integration/harness"
)

// temporaryMakers make a temporary table that takes the name of orders, in ways that a proxy does not see, or not for certain.
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

// TestTemporaryOutOfSight: a rule rests for a temporary table of the session's own, however it came to be, and not for the table
// behind it.
func TestTemporaryOutOfSight(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			const columns = "(id INT AUTO_INCREMENT PRIMARY KEY, a INT)"
			setup := []string{"CREATE TABLE DB_other.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)"}
			for _, schema := range []string{"DB", "DB_other"} {
				setup = append(setup, "CREATE PROCEDURE "+schema+".nothing() DO 1", "CREATE PROCEDURE "+schema+".make() CREATE TEMPORARY TABLE orders "+columns,
					"CREATE PROCEDURE "+schema+".make_tmp() CREATE TEMPORARY TABLE tmp "+columns, "CREATE PROCEDURE "+schema+".prepares() PREPARE made FROM 'CREATE TEMPORARY TABLE orders "+columns+"'")
			}
			setup = append(setup, "CREATE USER DB IDENTIFIED BY 'grants'", "GRANT EXECUTE, CREATE TEMPORARY TABLES ON DB.* TO DB", "GRANT SELECT (id, a), INSERT (id, a) ON DB.orders TO DB")
			w := newNameWorld(t, server, "[{table: DB.orders, column: id, source: ids}]", setup...)
			t.Cleanup(func() { openSession(t, server.Addr, "").must(t, w.text("DROP USER DB")) })
			for _, maker := range temporaryMakers {
				if maker.only != "" && maker.only != server.Kind.String() {
					continue
				}
				t.Run(maker.name, func(t *testing.T) {
					ours, native := openSession(t, w.addr, w.db), openSession(t, server.Addr, w.db+"_other")
					for _, s := range []*rawSession{ours, native} {
						for name, text := range map[string]string{"before": "INSERT INTO orders (a) VALUES (10)", "query": "INSERT INTO orders (a) SELECT 11"} {
							if r, err := s.prepare(name, text); err != nil || r[0].err != nil {
								t.Fatal(err, r)
							}
						}
						s.must(t, "PREPARE n FROM 'INSERT INTO orders (a) VALUES (12)'", "INSERT INTO orders (a) VALUES (13)")
					}
					for i, text := range append(maker.run[:len(maker.run):len(maker.run)], temporaryUse...) {
						text = strings.ReplaceAll(text, "COLUMNS", columns)
						got, want := ours.unseenStep(t, text), native.unseenStep(t, text)
						if i >= len(maker.run) && !reflect.DeepEqual(got, want) {
							t.Errorf("%s\n%+v\nnatively\n%+v", text, got, want)
						}
					}
					ours.must(t, "DELETE FROM orders")
					for _, text := range []string{"INSERT INTO orders (a) VALUES (20)", "EXECUTED before", "EXECUTE n", "EXECUTED query"} {
						if r := ours.unseenStep(t, text); r[0].err != nil || r[0].insertID < nameSource {
							t.Errorf("behind it, %s: insert id %d, %v", text, r[0].insertID, r[0].err)
						}
					}
				})
			}
			t.Run("few rights", func(t *testing.T) {
				s := dialAs(t, w.addr, w.db, w.db)
				s.must(t, "CALL nothing()", "INSERT INTO orders (a) VALUES (1)", "CALL make()")
				if r := s.must(t, "INSERT INTO orders (a) VALUES (1)"); r.insertID != 1 {
					t.Errorf("insert id %d", r.insertID)
				}
			})
		})
	}
}

// unseenStep sends a text, or prepares and executes one, or executes one that was prepared.
func (s *rawSession) unseenStep(t *testing.T, text string) []reply {
	t.Helper()
	send := s.query
	if sql, ok := strings.CutPrefix(text, "PREPARED "); ok {
		send, text = s.prepared, sql
	} else if name, ok := strings.CutPrefix(text, "EXECUTED "); ok {
		send, text = func(name string) ([]reply, error) { return s.execute(name, execution{}) }, name
	}
	replies, err := send(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return replies
}
