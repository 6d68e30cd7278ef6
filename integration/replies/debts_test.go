package replies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestDebts compares, natively and through the proxy, what LAST_INSERT_ID() and the warnings are
// behind statements that fail or are told by their outcome, where something else in the same text
// or in front of it had set them.
func TestDebts(t *testing.T) {
	t.Parallel()
	scripts := [][]string{ // commands; those joined by | are sent at once. {t} has an id and a unique u, of which 1 is there; other has AUTO_INCREMENT
		{"INSERT INTO other (x) VALUES (1); INSERT INTO {t} (u) VALUES (1)"},
		{"INSERT INTO other (x) VALUES (1); COMMIT", "INSERT INTO {t} (u) VALUES (1)"},
		{"INSERT INTO other (x) VALUES (1); INSERT INTO {t} (id, u) VALUES (50, 7)", "INSERT INTO {t} (u) VALUES (1)"},
		{"DO LAST_INSERT_ID(9); INSERT INTO {t} (u) VALUES (1)"},
		{"UPDATE other SET x=LAST_INSERT_ID(5) WHERE id=100; INSERT INTO {t} (u) VALUES (1)"},
		{"INSERT INTO {t} (u) VALUES (2); SELECT LAST_INSERT_ID() - LAST_INSERT_ID(); INSERT INTO {t} (u) VALUES (1)"},
		{"INSERT INTO {t} (u) VALUES (1)", "INSERT INTO other (id) VALUES (500)"},
		{"INSERT INTO {t} (u) VALUES (1)", "INSERT INTO {t} (u) VALUES (1)"},
		{"INSERT IGNORE INTO {t} (u) VALUES (1), (2)", "INSERT INTO other (id) VALUES (500)"},
		{"INSERT IGNORE INTO {t} (u) VALUES (1), (2); SHOW WARNINGS; SHOW WARNINGS; SELECT x FROM other; SHOW WARNINGS"},
		{"INSERT IGNORE INTO {t} (u) VALUES (1), (2)", "SHOW WARNINGS; SELECT x FROM other", "SHOW WARNINGS"},
		{"INSERT INTO {t} (u) VALUES (1), (2) ON DUPLICATE KEY UPDATE u=u", "INSERT INTO {t} (u) VALUES (1)"},
		{"LOCK TABLES {t} WRITE; INSERT IGNORE INTO {t} (id, u) VALUES (NULL, 1), (NULL, 4), (50, 5); UNLOCK TABLES"},
		{"SET sql_select_limit = 0", "INSERT IGNORE INTO {t} (u) VALUES (1), (2)", "SET sql_select_limit = DEFAULT"},
		{"SET sql_select_limit = 0", "INSERT INTO other (x) VALUES (1)", "INSERT INTO {t} (u) SELECT id FROM other", "INSERT INTO other (x) VALUES (LAST_INSERT_ID())", "SELECT COUNT(*) FROM {t} JOIN other ON x={t}.id LIMIT 1"},
		{"SET sql_select_limit = 0|INSERT INTO {t} (u) VALUES (4)|INSERT INTO {t} (u) VALUES (1)", "SET sql_select_limit = DEFAULT"},
		{"INSERT INTO {t} (u) VALUES (1)|INSERT INTO {t} (u) VALUES (1)|SELECT LAST_INSERT_ID() > 999"},
		{"INSERT INTO {t} (u) VALUES (1)|INSERT INTO other (x) VALUES (LAST_INSERT_ID())", "SELECT IFNULL(u, x) FROM other LEFT JOIN {t} t ON t.id=x WHERE other.id > 100"},
		{"INSERT INTO {t} (u) VALUES (1)", "INSERT INTO other (x) VALUES (SLEEP(0.1))|INSERT INTO other (x) SELECT LAST_INSERT_ID()"},
		{"INSERT IGNORE INTO {t} (u) SELECT 5 UNION ALL SELECT 6; SET sql_warnings=1; INSERT INTO other (x) VALUES (LAST_INSERT_ID())", "SELECT u FROM {t} t JOIN other ON t.id=x"},
		{"INSERT INTO {t} (u) VALUES (1)", "SHOW COUNT(*) WARNINGS; INSERT INTO other (x) VALUES (LAST_INSERT_ID()); SHOW COUNT(*) ERRORS", "SELECT u FROM {t} t JOIN other ON t.id=x"},
		{"INSERT INTO {t} (u) VALUES (1)", "SHOW COUNT(*) WARNINGS; SELECT u FROM {t} WHERE id=LAST_INSERT_ID(); SELECT ROW_COUNT()"},
		{"INSERT INTO {t} (u) SELECT x+5 FROM other UNION ALL SELECT 9; SET autocommit=0; INSERT INTO {t} (id, u) VALUES ('6', 6), (7, 7); SELECT @@insert_id", "ROLLBACK; SET autocommit=1"},
	}
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		name := harness.Database(t, s)
		proxy := harness.StartWith(t, s.Addr, "ids: {segment: {start: 1000}}", `{table: "*.plain", column: id, source: ids}, {table: "*.kept", column: id, source: ids}`)
		direct := wireclient.Open(t, s.Addr, name)
		direct.Must(t, "CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE)",
			"CREATE TABLE counted (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE) AUTO_INCREMENT=1000", "CREATE TABLE kept LIKE counted",
			"CREATE TABLE other (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, x BIGINT)", "INSERT INTO other VALUES (100, 0)")
		for _, script := range scripts {
			want := debts(t, s.Addr, name, "counted", script)
			for _, table := range []string{"plain", "kept"} {
				assert.Equal(t, fmt.Sprintf("%q, table %s", script, table), debts(t, proxy.Addr("a"), name, table, script), want)
			}
		}
	})
}

// debts plays a script on a table with two rows and tells what it shows: ids are named by what they
// are the id of.
func debts(t *testing.T, addr, db, table string, script []string) string {
	t.Helper()
	c := wireclient.Open(t, addr, db)
	defer c.Close()
	c.Must(t, "DELETE FROM other WHERE id <> 100", "UPDATE other SET x=0", "ALTER TABLE other AUTO_INCREMENT = 200", "DELETE FROM "+table,
		"INSERT INTO "+table+" (u) VALUES (1)", "INSERT INTO "+table+" (u) VALUES (0)")
	var b strings.Builder
	for _, sql := range script {
		replies := assert.Of(pipeline(c, strings.Split(strings.ReplaceAll(sql, "{t}", table), "|"))).Must(t, sql)
		for _, r := range replies {
			if r.Err != nil {
				fmt.Fprintf(&b, "error %d; ", r.Err.Code)
				continue
			}
			fmt.Fprintf(&b, "%d rows, status %#x, %s; ", r.Affected, r.Status, strings.ReplaceAll(fmt.Sprint(r.Rows), table, "{t}"))
		}
	}
	r := c.Must(t, fmt.Sprintf("SELECT IFNULL((SELECT CONCAT('u=', u) FROM %s WHERE id=LAST_INSERT_ID()), LAST_INSERT_ID())", table))
	return b.String() + fmt.Sprint(r.Rows)
}

// pipeline sends several texts before it reads the replies to the first.
func pipeline(s *wireclient.Session, texts []string) (all []wireclient.Reply, err error) {
	for _, sql := range texts {
		s.Conn.ResetSequence()
		packet := make([]byte, 5, 5+len(sql))
		packet[4] = mysql.COM_QUERY
		if err := s.Conn.WritePacket(append(packet, sql...)); err != nil {
			return nil, err
		}
	}
	for range texts {
		s.Conn.ResetSequence()
		s.Conn.Sequence = 1 // of a reply
		replies, err := s.Results()
		if err != nil {
			return all, err
		}
		all = append(all, replies...)
	}
	return all, nil
}

// TestBelowZero writes ids below zero to an unsigned column: what the server would make 0 of is
// refused, for natively it generates; where the server refuses it, the server's own error comes.
func TestBelowZero(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		name := harness.Database(t, s)
		proxy := harness.StartWith(t, s.Addr, "ids: {segment: {start: 1000}}", `{table: "*.plain", column: id, source: ids}, {table: "*.kept", column: id, source: ids}`)
		c := wireclient.Open(t, proxy.Addr("a"), name)
		c.Must(t, "CREATE TABLE plain (id BIGINT UNSIGNED NOT NULL PRIMARY KEY)")
		for _, tt := range []struct {
			setup, sql string
			code       uint16
		}{
			{"SET sql_mode='STRICT_TRANS_TABLES'", "INSERT INTO plain (id) VALUES (-5)", 1264},
			{"SET sql_mode='STRICT_TRANS_TABLES'", "INSERT INTO plain (id) VALUES (-0.7)", 1264},
			{"SET sql_mode='STRICT_TRANS_TABLES', @x=-5", "INSERT INTO plain (id) VALUES (@x)", 1235},
			{"SET sql_mode='STRICT_TRANS_TABLES'", "INSERT IGNORE INTO plain (id) VALUES (-5)", 1235},
			{"SET sql_mode=''", "INSERT INTO plain (id) VALUES ('-5')", 1235},
			{"SET sql_mode=''", "INSERT INTO plain (id) VALUES (-0.7), ('nancy'), (-5+0)", 0},
		} {
			c.Must(t, tt.setup)
			if tt.code == 0 {
				c.Must(t, tt.sql)
			} else if e := c.Fails(t, tt.sql); e.Code != tt.code {
				t.Errorf("%s; %s: %v, want error %d", tt.setup, tt.sql, e, tt.code)
			}
		}
		assert.Equal(t, "ids", c.Value(t, "SELECT GROUP_CONCAT(id ORDER BY id) FROM plain"), "1000,1001,1002")
	})
}

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
