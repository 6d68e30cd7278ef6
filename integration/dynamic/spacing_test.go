package dynamic

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// spacingScripts set auto_increment_increment in ways that a proxy does not see, and insert two
// rows and more.
var spacingScripts = []struct {
	name, only string
	run        []string
}{
	{"CALL", "", []string{"CALL space()", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in SELECT", "", []string{"SELECT spacing()", "INSERT INTO orders (a) VALUES (1), (2), (3)"}},
	{"function in DO", "", []string{"DO 1 + spacing ()", "INSERT INTO orders (a) SELECT 1 UNION ALL SELECT 2"}},
	{"function with a schema, quoted", "", []string{"DO DB.`spacing`()", "PREPARED INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in SET", "", []string{"SET @a = spacing()", "PREPARE p FROM 'INSERT INTO orders (a) VALUES (1), (2)'", "EXECUTE p"}},
	{"prepared function", "", []string{"PREPARED SELECT spacing()", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in SQL PREPARE", "", []string{"PREPARE f FROM 'DO spacing()'", "EXECUTE f", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in an INSERT elsewhere", "", []string{"INSERT INTO other (a) VALUES (spacing())", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in an INSERT that gets an id", "", []string{"INSERT INTO orders (a) VALUES (spacing())", "DELETE FROM orders", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in a prepared one", "", []string{"PREPARED INSERT INTO orders (a) VALUES (spacing())", "DELETE FROM orders", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"one text", "", []string{"SELECT spacing(); INSERT INTO orders (a) VALUES (1), (2)"}},
	{"one text of INSERTs", "", []string{"INSERT INTO orders (a) VALUES (spacing()); DELETE FROM orders; INSERT INTO orders (a) VALUES (1), (2)"}},
	{"block", "MariaDB", []string{"BEGIN NOT ATOMIC DO spacing(); END", "INSERT INTO orders (a) VALUES (1), (2)"}},
}

// TestSpacingOutOfSight: ids are as far apart as auto_increment_increment says, also where a
// routine has set it.
func TestSpacingOutOfSight(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		setup := []string{"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"}
		for _, schema := range []string{"DB", "DB_other"} {
			setup = append(setup, "CREATE TABLE "+schema+".other (a INT)", "CREATE PROCEDURE "+schema+".space() SET auto_increment_increment = 10",
				"CREATE FUNCTION "+schema+".spacing() RETURNS INT DETERMINISTIC BEGIN SET auto_increment_increment = 10; RETURN 1; END")
		}
		w := pair.New(t, server, "[{table: DB.orders, column: id, source: ids}]", setup...)
		for _, script := range spacingScripts {
			if script.only != "" && script.only != server.Kind.String() {
				continue
			}
			t.Run(script.name, func(t *testing.T) {
				ours, native := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")
				var spread [2]string
				for i, s := range []*wireclient.Session{ours, native} {
					s.Must(t, "DELETE FROM orders", "INSERT INTO orders (a) VALUES (0), (0)", "DELETE FROM orders")
					for _, text := range script.run {
						for _, r := range unseenStep(s, t, w.Text(text)) {
							assert.MustTrue(t, r.Err == nil, "%s: %v", text, r.Err)
						}
					}
					spread[i] = fmt.Sprint(s.Must(t, "SELECT COUNT(*), MAX(id) - MIN(id) FROM orders").Rows)
				}
				assert.True(t, spread[0] == spread[1] && spread[0] != "[[2 1]]", "rows and the space between their ids: %s, natively %s", spread[0], spread[1])
			})
		}
	})
}
