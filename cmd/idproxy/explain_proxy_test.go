package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// explainedCorpus are statements that explain and the proxy have to agree on. Each is sent
// alone, with schema DB.
var explainedCorpus = []string{
	"INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a) VALUES (1),(2),(3)", "INSERT INTO t VALUES (NULL,1)", "INSERT INTO t SET a=1", "REPLACE INTO t (a) VALUES (1)",
	"INSERT IGNORE INTO t (a) VALUES (1)", "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=2", "INSERT INTO t () VALUES ()", "INSERT INTO DB.t (a) VALUES (1)",
	"INSERT INTO t (id,a) VALUES (1000000,1)", "INSERT INTO t (id) VALUES (UUID_SHORT())", "INSERT INTO t (id,a) VALUES (RAND(),1)", "INSERT INTO t (a) SELECT 1", "INSERT INTO t (a) SELECT RAND()",
	"INSERT INTO t (a) SELECT SLEEP(0)", "INSERT INTO t (a) TABLE plain", "INSERT INTO t (a,a) VALUES (1,2)", "INSERT INTO t (a VALUES (1)", "INSERT INTO plain VALUES (1)",
	"INSERT INTO `t` (a) VALUES (1)", "INSERT INTO strict (id,a) VALUES (5,1)", "INSERT INTO strict (a) VALUES (1)", "INSERT INTO strict (id,a) SELECT 5,1",
	"LOAD DATA INFILE 'x' INTO TABLE t", "LOAD XML INFILE 'x' INTO TABLE t", "LOAD DATA INFILE 'x' INTO TABLE plain", "CREATE TABLE new_t (id BIGINT PRIMARY KEY) SELECT 1 a",
	"CREATE TABLE new_t SELECT 1 id", "CREATE TABLE new_u (id BIGINT) SELECT 1 a", "CREATE TEMPORARY TABLE tmp (id BIGINT) SELECT 1 a", "CREATE TABLE IF NOT EXISTS t (id BIGINT, a INT) SELECT 1 a",
	"PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'", "PREPARE s FROM 'INSERT INTO t (a) SELECT 1'", "PREPARE s FROM 'INSERT INTO plain VALUES (1)'", "PREPARE s FROM 'SELECT 1'",
	"INSERT INTO watched (id,a) VALUES (RAND(),1)", "INSERT INTO watched (a) VALUES (1)", "CREATE TABLE new_w (id BIGINT) SELECT 1 a", "SELECT 1", "UPDATE t SET a=1 WHERE id=1", "DELETE FROM t WHERE id=1",
	"DO 1", "SET @x = 1", "INSERT INTO loose (a) SELECT RAND()", "INSERT INTO loose (id,a) VALUES (RAND(),1)", "EXPLAIN INSERT INTO t (a) VALUES (1)", "WITH x AS (SELECT 1) SELECT * FROM x",
	"INSERT INTO t (a) WITH x AS (SELECT 1 b) SELECT b FROM x", "BEGIN NOT ATOMIC INSERT INTO t (a) VALUES (1); END", "BEGIN NOT ATOMIC INSERT INTO plain VALUES (1); END",
	"EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (1)'", "EXECUTE IMMEDIATE 'INSERT INTO plain VALUES (1)'", "INSERT INTO t (id) VALUES (DEFAULT)", "INSERT INTO t (id) VALUES ('0')", "INSERT INTO t (a) VALUES (1) RETURNING id",
}

// TestExplainAgreesWithProxy sends statements through the proxy and to explain. What one
// refuses the other does, and what explain fills the proxy fills.
func TestExplainAgreesWithProxy(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server)
		direct := harness.Open(t, server.Config(name), "")
		for _, table := range []string{"t", "strict", "watched", "loose"} {
			assert.Of(direct.Exec("CREATE TABLE " + table + " (id BIGINT PRIMARY KEY, a INT)")).Must(t)
		}
		assert.Of(direct.Exec("CREATE TABLE plain (a INT)")).Must(t)
		text := strings.ReplaceAll(fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
sources: {ids: {segment: {}}}
rules:
  - {table: DB.t, column: id, source: ids}
  - {table: DB.new_t, column: id, source: ids}
  - {table: DB.strict, column: id, source: ids, explicit: reject}
  - {table: DB.watched, column: id, source: ids, mode: observe}
  - {table: DB.new_w, column: id, source: ids, mode: observe}
  - {table: DB.loose, column: id, source: ids, unsupported: forward}
`, server.Addr), "DB", name)
		proxy := harness.StartProxy(t, text)
		path := harness.WriteConfig(t, text)
		for _, sql := range explainedCorpus {
			sql = strings.ReplaceAll(sql, "DB", name)
			db := harness.Open(t, server.Config(name), proxy.Addr("a")) // a session of its own
			db.SetMaxOpenConns(1)
			explained := runWith(t, "", "explain", "--online", "--verbose", "--schema", name, "--config", path, sql)
			assert.True(t, explained.err == "" || strings.Contains(explained.err, "doesn't exist"), "%s: %s", sql, explained.err)
			_, err := db.Exec(sql)
			refusal := ""
			if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == 1235 {
				refusal = e.Message
			}
			depends := strings.Contains(explained.out, "it is refused if a row of the query brings a value of its own")
			// Of what is refused a server may have an error of its own, which is the reply then.
			objected := refusal == "" && err != nil && explained.status == statusFinding
			assert.True(t, depends || objected || (refusal != "") == (explained.status == statusFinding), "%s: the proxy says %v, explain %q", sql, err, explained.out+explained.err)
			if err == nil && strings.HasPrefix(sql, "CREATE TABLE new") {
				assert.Of(direct.Exec("DROP TABLE " + regexp.MustCompile("new_.").FindString(sql))).NoError(t)
			}
			assert.NoError(t, db.Close())
		}
	})
}
