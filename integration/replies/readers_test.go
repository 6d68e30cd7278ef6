package replies

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// diagnosticsReaders are texts that read what the statement before left behind, with a doubt in
// them, so that something is to be asked. T is the table that an INSERT in it writes to.
var diagnosticsReaders = []string{
	`SELECT ROW_COUNT(), "T"`,
	`SELECT FOUND_ROWS() AS f, "T"`,
	`SHOW COUNT(*) WARNINGS; INSERT INTO T (a) VALUES ("1")`,
	`SHOW COUNT(*) ERRORS; INSERT INTO T (a) VALUES ("1"), ("2"); SELECT ROW_COUNT()`,
	`SHOW WARNINGS; INSERT INTO T (a) VALUES ("1"); SHOW WARNINGS`,
	`SELECT @@warning_count; INSERT INTO T (a) VALUES ("1")`,
	`SELECT @@error_count, "T"`,
	`GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT; INSERT INTO T (a) VALUES (@r), ("4"); SELECT @n, @r, ROW_COUNT()`,
	`SELECT ROW_COUNT(); SELECT FOUND_ROWS(); INSERT INTO T (a) VALUES ("1"); SELECT ROW_COUNT()`,
	`SELECT ROW_COUNT() AS r; INSERT INTO T (a) VALUES (FOUND_ROWS()); SELECT a FROM T`,
	`GET CURRENT DIAGNOSTICS @n = NUMBER; PREPARE p FROM 'SELECT 5'; EXECUTE p; SELECT @n, "T"`,
	`GET DIAGNOSTICS @r = ROW_COUNT; EXECUTE old; DEALLOCATE PREPARE old; SELECT @r, "x", FOUND_ROWS()`,
	`SELECT FOUND_ROWS(); PREPARE p FROM 'SELECT 5'; INSERT INTO T (a) VALUES ("1"); SELECT ROW_COUNT(), FOUND_ROWS() AS f`,
	`PREPARE p FROM 'DO 1'; SELECT FOUND_ROWS() AS f, "x"`,
	`DEALLOCATE PREPARE old; SELECT FOUND_ROWS() AS f, "x"`,
	`INSERT INTO T (a) VALUES ("x"), ("2"); SHOW WARNINGS; SHOW COUNT(*) WARNINGS`,
	`INSERT INTO T (a) VALUES ("x"); SELECT ROW_COUNT()`,
	`INSERT INTO T (b) VALUES ("x"); SHOW ERRORS`,
	`INSERT INTO T (a) VALUES (1); GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT; SELECT @n, @r`,
}

// diagnosticsStorers are INSERTs that read it themselves: exact where nothing is left to be asked
// about their table and the session.
var diagnosticsStorers = []string{
	`INSERT INTO T (a) VALUES (ROW_COUNT()); SELECT a FROM T`,
	`INSERT INTO T (a) VALUES (FOUND_ROWS()); SELECT a FROM T`,
	`INSERT INTO T (a) VALUES (@@warning_count); SELECT a FROM T`,
	`INSERT INTO T (a) VALUES (ROW_COUNT()), (FOUND_ROWS()), ("7"); SELECT a FROM T`,
}

// TestReaders: what reads the diagnostics, or counts, of the statement before reads what it would
// read natively, whatever is asked about the text that it stands in.
func TestReaders(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners:
  - {name: none, listen: "127.0.0.1:0", upstream: %q}
  - {name: another, listen: "127.0.0.1:0", upstream: %q}
  - {name: elsewhere, listen: "127.0.0.1:0", upstream: %q}
  - {name: own, listen: "127.0.0.1:0", upstream: %q}
sources: {ids: {segment: {}}}
rules:
  - {table: nowhere.nothing, column: id, source: ids, listeners: [none]}
  - {table: "*.order", column: id, source: ids, listeners: [another]}
  - {table: elsewhere.orders, column: id, source: ids, listeners: [elsewhere]}
  - {table: "*.orders", column: id, source: ids, listeners: [own]}
`, server.Addr, server.Addr, server.Addr, server.Addr))
		native, filled := harness.Database(t, server), harness.Database(t, server)
		makeReaders(t, server.Addr, native, "BIGINT AUTO_INCREMENT")
		makeReaders(t, server.Addr, filled, "BIGINT")
		for _, listener := range []string{"none", "another", "elsewhere", "own"} {
			for _, way := range []string{"text", "statements", "prepared"} {
				t.Run(fmt.Sprintf("%s/%s/%s", server.Kind, listener, way), func(t *testing.T) {
					db := native
					if listener == "own" {
						db = filled
					}
					compare := func(texts []string, begin ...string) {
						for _, text := range texts {
							text = tableT.ReplaceAllString(text, "orders")
							want, got := readWith(t, server.Addr, native, way, append(begin, text)...), readWith(t, proxy.Addr(listener), db, way, append(begin, text)...)
							assert.True(t, want == strings.ReplaceAll(got, db, native), "%s\n got  %s\n want %s", text, got, want)
						}
					}
					compare(diagnosticsReaders)
					compare(diagnosticsStorers, `INSERT INTO orders (a) VALUES ("0"), ("0")`)
				})
			}
		}
	}
}

var tableT = regexp.MustCompile(`\bT\b`)

func makeReaders(t *testing.T, addr, db, id string) {
	wireclient.Open(t, addr, db).Must(t, "CREATE TABLE orders (id "+id+" PRIMARY KEY, a INT)", "CREATE TABLE free (a INT)")
}

// readWith runs texts in a session of their own, and returns what the last one gave: in front of it
// is a statement that left two rows and a warning, and one that found three rows.
func readWith(t *testing.T, addr, db, way string, texts ...string) (out string) {
	t.Helper()
	c := wireclient.Open(t, addr, db)
	defer c.Close()
	last := len(texts) - 1
	c.Must(t, "DELETE FROM orders", "PREPARE old FROM 'SELECT 6'", "SET SESSION sql_mode = ''")
	c.Must(t, texts[:last]...)
	c.Must(t, "SELECT 1 UNION SELECT 2 UNION SELECT 3", "INSERT INTO free VALUES ('x'), (2)")
	texts = texts[last:]
	run := c.Query
	if way != "text" {
		texts = strings.Split(texts[0], "; ")
	}
	if way == "prepared" {
		run = c.Prepared
	}
	for _, text := range texts {
		all := assert.Of(run(text)).Must(t)
		for _, r := range all {
			said := ""
			if r.Err != nil {
				said = r.Err.Error()
			}
			out += fmt.Sprintf("%d rows, %d warnings, %q %s; ", r.Affected, r.Warnings, r.Rows, said)
		}
	}
	return out
}

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
		assert.MustEqual(t, "LAST_INSERT_ID()", s.Value(t, "SELECT LAST_INSERT_ID()"), id)
	}
}

// TestUpserts: what an upsert reports of a row that was there, where it is not the plain case. A server
// takes a row for changed where a NULL stands for a column with a default, and the engine finds it the
// same; the reply counts it as if it had gone in. An update may call LAST_INSERT_ID(x), as counters do.
// Of a table with history MariaDB counts three rows.
func TestUpserts(t *testing.T) {
	same := []string{
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
	}
	counter := []string{
		"INSERT INTO t (u, n) VALUES (21, 1) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 1)",
		"INSERT INTO t (u, n) VALUES (21, 1) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 1)",
		"INSERT INTO t (u, n) VALUES (21, 1) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n)",
		"INSERT INTO t SET u = 21, n = 1 ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 10)",
		"INSERT INTO t (u, n) VALUES (21, LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 1)",
		"INSERT INTO t (u, n) VALUES (22, LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 1)",
		"INSERT INTO t (u, n) VALUES (21, 1), (22, 1) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 1)",
		"INSERT INTO t (u, n) VALUES (23, 1), (21, 1) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 1)",
		"INSERT INTO t (u, n) SELECT 21, 1 ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 1)",
		"PREPARE p FROM 'INSERT INTO t (u, n) VALUES (21, ?) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + ?)'",
		"SET @one = 1",
		"EXECUTE p USING @one, @one",
		"INSERT INTO t (u) VALUES (21) ON DUPLICATE KEY UPDATE n = 4, id = LAST_INSERT_ID(id + 0)",
		"INSERT INTO t (u) VALUES (21) ON DUPLICATE KEY UPDATE n = 5, id = (LAST_INSERT_ID(id))",
		"INSERT INTO t (u) VALUES (21) ON DUPLICATE KEY UPDATE n = 6, id = IF(LAST_INSERT_ID(id), id, id)",
		"INSERT INTO t (u) VALUES (21) ON DUPLICATE KEY UPDATE n = 7, id = CAST(LAST_INSERT_ID(id) AS UNSIGNED)",
		"INSERT INTO t (u) VALUES (21) ON DUPLICATE KEY UPDATE n = 8, id = `last_insert_id`(id)",
		"INSERT INTO t (u) VALUES (21) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(LAST_INSERT_ID() + 1)",
	}
	const table = "CREATE TABLE %s.t (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, a VARCHAR(20) DEFAULT 'd', n BIGINT) AUTO_INCREMENT = %d"
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		compared := 0
		play := func(options string, capabilities client.Option, texts []string) {
			w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]",
				fmt.Sprintf(table, "DB", 1)+options, fmt.Sprintf(table, "DB_other", pair.SourceStart)+options)
			native := assert.Of(wireclient.Dial(server.Addr, w.DB+"_other", capabilities)).Must(t)
			proxied := assert.Of(wireclient.Dial(w.Addr, w.DB, capabilities)).Must(t)
			defer native.Close()
			defer proxied.Close()
			for _, text := range texts {
				for _, text := range []string{text, "SELECT LAST_INSERT_ID()", "SELECT * FROM t ORDER BY u"} {
					want, err := native.Query(text)
					assert.Must(t, err)
					got, err := proxied.Query(text)
					assert.True(t, err == nil && reflect.DeepEqual(got, want), "%s%s:\nnatively %v\nshows    %v, %v", text, options, want, got, err)
					compared += len(want)
				}
			}
		}
		plain := func(*client.Conn) error { return nil }
		play("", plain, slices.Concat(same, counter))
		play("", func(c *client.Conn) error { return c.SetCapability(mysql.CLIENT_FOUND_ROWS) }, slices.Concat(same, counter))
		if server.Kind == servers.MariaDB {
			play(" WITH SYSTEM VERSIONING", plain, slices.Concat(same, counter))
		}
		t.Logf("compared: %d replies", compared)
	})
}

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
