package dynamic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// insertIDScripts say where ids begin. Table orders has a rule, table other has none.
var insertIDScripts = []struct {
	name string
	run  []string
}{
	{"one row", []string{"SET insert_id = 500", "SELECT @@insert_id", "INSERT INTO orders (a) VALUES (1)", "SELECT LAST_INSERT_ID()", "SELECT @@insert_id"}},
	{"as mysqlbinlog writes it", []string{"SET INSERT_ID=500", "SET TIMESTAMP=1700000000", "INSERT INTO orders (a) VALUES (1), (2)", "INSERT INTO orders (a) VALUES (3)"}},
	{"rows far apart", []string{"SET auto_increment_increment = 10, auto_increment_offset = 3", "SET insert_id = 500", "INSERT INTO orders (a) VALUES (1), (2), (3)", "SELECT LAST_INSERT_ID()"}},
	{"explicit ids leave it", []string{"SET insert_id = 500", "INSERT INTO orders (id, a) VALUES (7, 7)", "SELECT @@insert_id", "INSERT INTO orders (a, id) VALUES (8, NULL)"}},
	{"prepared", []string{"SET SESSION insert_id = 500", "PREPARED INSERT INTO orders (a) VALUES (1), (2)", "PREPARED INSERT INTO orders (a) VALUES (3)"}},
	{"PREPARE", []string{"PREPARE p FROM 'INSERT INTO orders (a) VALUES (1)'", "SET @@insert_id = 500", "EXECUTE p", "DELETE FROM orders", "EXECUTE p"}},
	{"INSERT ... SELECT", []string{"SET insert_id = 500", "INSERT INTO orders (a) SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3", "SELECT LAST_INSERT_ID()"}},
	{"prepared INSERT ... SELECT", []string{"SET insert_id = 500", "PREPARED INSERT INTO orders (a) SELECT 1 UNION ALL SELECT 2"}},
	{"REPLACE", []string{"SET insert_id = 500", "REPLACE INTO orders (a) VALUES (1)"}},
	{"a row that is there", []string{"INSERT INTO orders (id, a) VALUES (1, 1)", "SELECT LAST_INSERT_ID(7)", "SET insert_id = 500", "INSERT INTO orders (a) VALUES (1)", "SELECT LAST_INSERT_ID()"}},
	{"updated", []string{"INSERT INTO orders (id, a) VALUES (1, 1)", "SELECT LAST_INSERT_ID(7)", "SET insert_id = 500", "INSERT INTO orders (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", "SELECT LAST_INSERT_ID()"}},
	{"skipped", []string{"INSERT INTO orders (id, a) VALUES (1, 1)", "SET insert_id = 500", "INSERT IGNORE INTO orders (a) VALUES (1)", "SELECT LAST_INSERT_ID()"}},
	{"one text", []string{"SET insert_id = 500; INSERT INTO orders (a) VALUES (1); INSERT INTO other (a) VALUES (2)"}},
	{"one text, not at its beginning", []string{"SET insert_id = 500", "DO 1; INSERT INTO orders (a) VALUES (1); INSERT INTO orders (a) VALUES (2)"}},
	{"one text, another table first", []string{"SET insert_id = 500", "DO 1; INSERT INTO other (a) VALUES (1); INSERT INTO orders (a) VALUES (2)"}},
	{"explicit ids, read", []string{"SET insert_id = 500", "INSERT INTO orders (id, a) VALUES (7, @@insert_id)", "SELECT a FROM orders"}},
	{"explicit ids, a trigger", []string{"SET insert_id = 500", "INSERT INTO traced (id, a) VALUES (7, 7)", "SELECT id FROM audit", "DELETE FROM traced", "DELETE FROM audit"}},
	{"an expression", []string{"SET @n = 499", "SET sql_auto_is_null = 0, insert_id = @n + 1", "INSERT INTO orders (a) VALUES (1)"}},
	{"a procedure", []string{"CALL begins()", "INSERT INTO orders (a) VALUES (1)"}},
	{"a function", []string{"SELECT beginning()", "INSERT INTO orders (a) VALUES (1)"}},
	{"a prepared SET", []string{"PREPARE s FROM 'SET insert_id = 500'", "EXECUTE s", "INSERT INTO orders (a) VALUES (1)"}},
	{"a binary one", []string{"PREPARED SET insert_id = 500", "INSERT INTO orders (a) VALUES (1)"}},
	{"used up elsewhere", []string{"SET insert_id = 500", "INSERT INTO other (a) VALUES (1)", "INSERT INTO orders (a) VALUES (1)"}},
	{"in a transaction", []string{"START TRANSACTION", "SET insert_id = 500", "INSERT INTO orders (a) VALUES (1)", "COMMIT"}},
	{"last_insert_id is another", []string{"SET last_insert_id = 500", "INSERT INTO orders (a) VALUES (1)"}},
	{"twice", []string{"SET insert_id = 600", "SET insert_id = 500", "INSERT INTO orders (a) VALUES (1)", "SET insert_id = 700", "INSERT INTO orders (a) VALUES (2)"}},
	{"a connection begun anew", []string{"SET insert_id = 500", "RESET", "SELECT @@insert_id"}},
	{"not read, a connection begun anew", []string{"SET insert_id = 500", "RESET", "INSERT INTO orders (a) VALUES (1)"}},
	{"XA", xa("SET insert_id = 500", "INSERT INTO orders (a) VALUES (1)", "SELECT LAST_INSERT_ID(), @@insert_id", "INSERT INTO orders (a) VALUES (2)", "SELECT LAST_INSERT_ID(), @@insert_id")},
	{"XA, several rows", xa("SET insert_id = 500", "INSERT INTO orders (a) VALUES (1), (2), (3)", "INSERT INTO orders (a) VALUES (4), (5)")},
	{"XA, prepared", xa("SET insert_id = 500", "PREPARED INSERT INTO orders (a) VALUES (1), (2)", "PREPARED INSERT INTO orders (a) VALUES (3)", "SELECT LAST_INSERT_ID(), @@insert_id")},
	{"XA, PREPARE", append([]string{"PREPARE p FROM 'INSERT INTO orders (a) VALUES (1)'"}, xa("SET @@session.insert_id := 500", "EXECUTE p", "INSERT INTO orders (a) VALUES (2)")...)},
	{"XA, one text", xa("SET insert_id = 500; INSERT INTO orders (a) VALUES (1); INSERT INTO orders (a) VALUES (2)")},
	{"XA, as mysqlbinlog writes it", xa("SET INSERT_ID=500", "SET TIMESTAMP=1700000000", "SET NAMES utf8", "SHOW WARNINGS", "INSERT INTO orders (a) VALUES (1)", "SET INSERT_ID=600", "INSERT INTO other (a) VALUES (2)")},
	{"XA, another table behind", xa("SET insert_id = 500", "INSERT INTO orders (a) VALUES (1)", "INSERT INTO other (a) VALUES (2)", "SELECT @@insert_id")},
	{"XA, another table behind, prepared", xa("SET insert_id = 500", "PREPARED INSERT INTO orders (a) VALUES (1)", "PREPARED INSERT INTO other (a) VALUES (2), (3)")},
	{"XA, another table first", xa("SET insert_id = 500", "INSERT INTO other (a) VALUES (1)", "INSERT INTO orders (a) VALUES (2)", "SELECT @@insert_id")},
	{"XA, another table first, prepared", xa("SET insert_id = 500", "PREPARED INSERT INTO other (a) VALUES (1)", "PREPARED INSERT INTO orders (a) VALUES (2)")},
	{"XA, set anew", xa("SET insert_id = 500", "SET insert_id = 600", "INSERT INTO orders (a) VALUES (1)", "SET insert_id = 700", "SELECT @@insert_id")},
	{"XA, for the one behind", xa("SET insert_id = 500")},
	{"XA, a trigger", xa("SET insert_id = 500", "INSERT INTO traced (a) VALUES (1), (2)", "SELECT id, a FROM traced", "SELECT id FROM audit", "DELETE FROM traced", "DELETE FROM audit")},
}

// xa returns texts inside of an XA transaction, and what ends that. XID is the transaction's name.
func xa(texts ...string) []string {
	return slices.Concat([]string{"XA START XID"}, texts, []string{"XA END XID", "XA PREPARE XID", "XA COMMIT XID", "INSERT INTO orders (a) VALUES (9)"})
}

// TestInsertID: what SET insert_id asks for is what the next INSERT gets whose ids the server would
// generate, in a table with a rule, too, and nothing is left of it for the one behind.
func TestInsertID(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		setup := []string{
			"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT UNIQUE)", "CREATE TABLE DB_other.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE) AUTO_INCREMENT = 2000",
			"CREATE TABLE traced (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.traced (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 2000",
			"CREATE USER DB IDENTIFIED BY 'grants'", "GRANT SELECT, INSERT, DELETE ON DB.* TO DB",
			"CREATE TABLE keyed (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE moved (id BIGINT PRIMARY KEY, a INT)",
		}
		for _, schema := range []string{"DB", "DB_other"} {
			setup = append(setup, "CREATE TABLE "+schema+".other (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 2000", "CREATE PROCEDURE "+schema+".begins() SET insert_id = 500",
				"CREATE FUNCTION "+schema+".beginning() RETURNS INT DETERMINISTIC BEGIN SET insert_id = 500; RETURN 1; END",
				"CREATE TABLE "+schema+".audit (id BIGINT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 2000", "CREATE TRIGGER "+schema+".traces AFTER INSERT ON "+schema+".traced FOR EACH ROW INSERT INTO audit VALUES (NULL)")
		}
		w := pair.New(t, server, "[{table: DB.orders, column: id, source: ids}, {table: DB.traced, column: id, source: ids}, {table: DB.keyed, column: id, source: ids, explicit: reject}, {table: DB.moved, column: id, source: ids, explicit: advance}]", setup...)
		for _, script := range insertIDScripts {
			t.Run(script.name, func(t *testing.T) {
				ours, native := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")
				for _, text := range append(script.run[:len(script.run):len(script.run)], "INSERT INTO other (a) VALUES (9)", "SELECT id, a FROM orders ORDER BY a", "SELECT id, a FROM other ORDER BY a",
					"INSERT INTO orders (a) VALUES (10)", "DELETE FROM orders", "DELETE FROM other") {
					xid := func(of string) string {
						return strings.ReplaceAll(text, "XID", fmt.Sprintf("'%s, %s, %s'", script.name, w.DB, of))
					}
					assert.Equal(t, text, insertIDShown(t, ours, xid("ours")), insertIDShown(t, native, xid("native")))
				}
			})
		}
		t.Run("LOAD DATA", func(t *testing.T) {
			var got [2]string
			for i, addr := range []string{w.Addr, server.Addr} {
				l := harness.NewLoader(t, server.Config([]string{w.DB, w.DB + "_other"}[i]), addr)
				l.Exec("SET insert_id = 500")
				got[i] = l.Load("LOAD DATA LOCAL INFILE 'f' INTO TABLE orders (a)", strings.NewReader("1\n2\n3\n")) + l.Rows("SELECT id, a, LAST_INSERT_ID(), @@insert_id FROM orders")
				l.Exec("DELETE FROM orders")
			}
			assert.True(t, got[0] == got[1], "%s, natively %s", got[0], got[1])
		})
		t.Run("few rights", func(t *testing.T) {
			s := wireclient.DialAs(t, w.Addr, w.DB, w.DB)
			s.Must(t, "SET insert_id = 500", "INSERT INTO orders (a) VALUES (1)", "SET insert_id = 600")
			assert.True(t, s.Value(t, "SELECT id FROM orders") == "500" && s.Value(t, "SELECT @@insert_id") == "600", "not as it was asked for")
			if server.Kind == servers.MySQL {
				e := s.Fails(t, "INSERT INTO orders (a) VALUES (2)")
				assert.True(t, e.Code == mysql.ER_DBACCESS_DENIED_ERROR && strings.Contains(e.Message, "MySQL forgets SET insert_id only for a temporary table"), "the server knows: %v", e)
			}
			s.Must(t, "DELETE FROM orders")
		})
		t.Run("XA, the server knows", func(t *testing.T) {
			if server.Kind != servers.MySQL {
				return // MariaDB forgets it
			}
			s := wireclient.Open(t, w.Addr, w.DB)
			s.Must(t, "XA START '"+w.DB+"'", "SET insert_id = 500", "SELECT @@insert_id")
			const noTemporary = 4091
			e := s.Fails(t, "INSERT INTO orders (a) VALUES (1)")
			assert.True(t, e.Code == noTemporary && strings.Contains(e.Message, "nothing was sent"), "%v", e)
			assert.Equal(t, "the next one", s.Must(t, "INSERT INTO other (a) VALUES (1)").InsertID, 500)
			s.Must(t, "INSERT INTO orders (a) VALUES (1)", "XA END '"+w.DB+"'", "XA ROLLBACK '"+w.DB+"'")
		})
		t.Run("explicit", func(t *testing.T) {
			s := wireclient.Open(t, w.Addr, w.DB)
			s.Must(t, "SET insert_id = 500")
			e := s.Fails(t, "INSERT INTO keyed (a) VALUES (1)")
			assert.True(t, e.Code == 1235 && s.Value(t, "SELECT @@insert_id") == "500", "reject: %v", e)
			s.Must(t, "SET insert_id = 300000", "INSERT INTO moved (a) VALUES (1), (2)", "INSERT INTO moved (a) VALUES (3)")
			assert.Equal(t, "advance", fmt.Sprint(s.Must(t, "SELECT id FROM moved").Rows), "[[300000] [300001] [300002]]")
		})
	})
}

// insertIDShown shows all replies to a text, with "id" for each number that is generated.
func insertIDShown(t *testing.T, s *wireclient.Session, text string) (all string) {
	t.Helper()
	var replies []wireclient.Reply
	if text != "RESET" {
		replies = unseenStep(s, t, text)
	} else {
		var err error
		replies, err = s.SendText(text)
		assert.Must(t, err)
	}
	for _, r := range replies {
		id := fmt.Sprint(r.InsertID)
		if r.InsertID >= pair.SourceStart {
			id = "id"
		}
		all += fmt.Sprintf("[%s; %d rows, insert id %s]", pair.Shown(r), r.Affected, id)
	}
	return all
}
