package names

import (
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
)

// viewScripts write through views of orders (id, a). The rules are for orders, for v_* and, in
// another column, for named.
var viewScripts = []pair.Script{
	{Name: "with the column", Steps: []pair.Step{
		{Text: "INSERT INTO v_all (a) VALUES (7), (8)"},
		{Text: "INSERT INTO v_all VALUES (NULL, 9)"},
		{Text: readOrders + " ORDER BY a", Want: "id,7 id,8 id,9"},
		{Text: "SELECT LAST_INSERT_ID() = MAX(id) FROM orders", Want: "1"},
	}},
	{Name: "of a view", Steps: []pair.Step{{Text: "INSERT INTO v_again (a) VALUES (7)"}, {Text: readOrders, Want: "id,7"}}},
	{Name: "with CHECK OPTION", Steps: []pair.Step{
		{Text: "INSERT INTO v_checked (a) VALUES (5)"}, {Text: "INSERT INTO v_checked (a) VALUES (50)", Want: "!1369"}, {Text: readOrders, Want: "id,5"},
	}},
	{Name: "under a name of its own", Steps: []pair.Step{
		{Text: "INSERT INTO named (b) VALUES (7)"},
		{Text: "INSERT INTO named VALUES (8, DEFAULT)"},
		{Text: readOrders + " ORDER BY a", Want: "id,7 id,8"},
	}},
	{Name: "without the column", Steps: []pair.Step{
		{Text: "INSERT INTO v_short (a) VALUES (7)", Want: "!1235", Says: "view without column id"},
		{Text: "INSERT INTO v_short VALUES (7)", Want: "!1235", Says: "view without column id"},
		{Text: "SET sql_mode=''"},
		{Text: "REPLACE v_short (a) VALUES (7)", Want: "!1235", Says: "DB.v_*.id"},
		{Text: readOrders},
	}},
	{Name: "without the column, of a view", Steps: []pair.Step{{Text: "INSERT INTO v_shorter VALUES (7)", Want: "!1235", Says: "view"}, {Text: readOrders}}},
	{Name: "without the column, named", Steps: []pair.Step{
		{Text: "INSERT INTO exact VALUES (7)", Want: "!1054", Says: "Unknown column 'id'"}, {Text: readOrders},
	}},
	{Name: "without the column, forwarded", Steps: []pair.Step{
		{Text: "INSERT INTO f_short VALUES (7)", Want: "!1423"},
		{Text: "SET sql_mode=''"},
		{Text: "INSERT INTO f_short VALUES (7)", Want: "!1235", Says: "store 0"},
		{Text: readOrders},
	}},
	{Name: "a table without the column", Steps: []pair.Step{ // is none of the rule's
		{Text: "INSERT INTO v_table VALUES (7)"}, {Text: "SELECT a FROM v_table", Want: "7"},
	}},
	{Name: "that cannot be written to", Steps: []pair.Step{{Text: "INSERT INTO v_copy (a) VALUES (7)", Want: "!1471"}, {Text: readOrders}}},
	{Name: "named by no rule", Steps: []pair.Step{ // documented: it is forwarded as it is
		{Text: "INSERT INTO other (a) VALUES (7)", Want: "!1423"}, {Text: readOrders},
	}},
}

// TestViews checks that no INSERT through a view that a rule names goes without its id.
func TestViews(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `
  - {table: DB.orders, column: id, source: ids}
  - {table: "DB.v_*", column: id, source: ids}
  - {table: DB.named, column: ident, source: ids}
  - {table: DB.exact, column: id, source: ids}
  - {table: "DB.f_*", column: id, source: ids, unsupported: forward}`,
			"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE VIEW v_all AS SELECT id, a FROM orders",
			"CREATE VIEW v_again AS SELECT a, id FROM v_all", "CREATE VIEW v_checked AS SELECT * FROM orders WHERE a < 10 WITH CHECK OPTION",
			"CREATE VIEW named AS SELECT a AS b, id AS ident FROM orders", "CREATE VIEW v_short AS SELECT a FROM orders",
			"CREATE VIEW v_shorter AS SELECT a FROM v_short", "CREATE VIEW f_short AS SELECT a FROM orders",
			"CREATE VIEW exact AS SELECT a FROM orders", "CREATE VIEW other AS SELECT a FROM orders",
			"CREATE TABLE v_table (a INT)", "CREATE ALGORITHM=TEMPTABLE VIEW v_copy AS SELECT id, a FROM orders")
		w.Run(t, viewScripts, "DELETE FROM orders", "DELETE FROM v_table")
	})
}

// invisibleScripts write to tables whose id SELECT * does not show.
var invisibleScripts = []pair.Script{
	{Name: "with a list", Steps: []pair.Step{
		{Text: "INSERT INTO inv (a) VALUES (7), (8)"},
		{Text: "SELECT id, a FROM inv ORDER BY a", Want: "id,7 id,8"},
		{Text: "SELECT LAST_INSERT_ID() = MIN(id) FROM inv", Want: "1"},
	}},
	{Name: "in the list", Steps: []pair.Step{
		{Text: "INSERT INTO inv (a, id) VALUES (7, NULL), (8, 5), (9, 0)"}, {Text: "SELECT id, a FROM inv ORDER BY a", Want: "id,7 5,8 id,9"},
	}},
	{Name: "without a list", Steps: []pair.Step{
		{Text: "INSERT INTO inv VALUES (7)"},
		{Text: "REPLACE inv VALUES (8), (LAST_INSERT_ID() > 0)"},
		{Text: "SELECT id, a FROM inv ORDER BY a", Want: "id,1 id,7 id,8"},
		{Text: "INSERT INTO inv VALUES (1, 2)", Want: "!1136"},
	}},
	{Name: "made visible", Steps: []pair.Step{
		{Text: "INSERT INTO inv VALUES (7)"},
		{Text: "ALTER TABLE inv MODIFY id BIGINT NOT NULL"},
		{Text: "INSERT INTO inv VALUES (NULL, 8)"},
		{Text: "SELECT id, a FROM inv ORDER BY a", Want: "id,7 id,8"},
	}},
	{Name: "a generated primary key with the rule", Only: "MySQL", Steps: []pair.Step{
		{Text: "INSERT INTO gipk (a) VALUES (7)"},
		{Text: "INSERT INTO gipk VALUES (8, 3)"},
		{Text: "SELECT my_row_id, a FROM gipk ORDER BY a", Want: "id,7 id,8"},
		{Text: "SELECT LAST_INSERT_ID() = MAX(my_row_id) FROM gipk", Want: "1"},
	}},
	{Name: "a generated primary key beside the rule's", Only: "MySQL", Steps: []pair.Step{
		{Text: "INSERT INTO gipk2 (a) VALUES (7)"},
		{Text: "INSERT INTO gipk2 VALUES (NULL, 8)"},
		{Text: "SELECT my_row_id, id, a FROM gipk2 ORDER BY a", Want: "1,id,7 2,id,8"},
		{Text: "SELECT LAST_INSERT_ID() = MAX(id) FROM gipk2", Want: "1"},
	}},
}

// TestInvisibleColumns checks that a column is found that SELECT * does not show.
func TestInvisibleColumns(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		reset := []string{"DROP TABLE IF EXISTS inv", "CREATE TABLE inv (id BIGINT NOT NULL DEFAULT 0 INVISIBLE PRIMARY KEY, a INT)"}
		if server.Kind.String() == "MySQL" {
			reset = append(reset[:1], "CREATE TABLE inv (id BIGINT NOT NULL PRIMARY KEY INVISIBLE, a INT)",
				"DROP TABLE IF EXISTS gipk", "DROP TABLE IF EXISTS gipk2", "SET sql_generate_invisible_primary_key=1",
				"CREATE TABLE gipk (a INT, b INT)", "CREATE TABLE gipk2 (id BIGINT NOT NULL, a INT)")
		}
		w := pair.New(t, server, `
  - {table: DB.inv, column: id, source: ids}
  - {table: DB.gipk, column: my_row_id, source: ids}
  - {table: DB.gipk2, column: id, source: ids}`)
		w.Run(t, invisibleScripts, reset...)
	})
}

// TestOtherCounter writes to tables in which the server counts in a column of its own beside the
// rule's. The last insert id is that of the rule's column.
func TestOtherCounter(t *testing.T) {
	const lastIsID = "SELECT LAST_INSERT_ID() = MIN(id), LAST_INSERT_ID() >= 1000 FROM counted WHERE a = 7"
	scripts := []pair.Script{
		{Name: "beside", Steps: []pair.Step{
			{Text: "INSERT INTO counted (a) VALUES (7), (8)"},
			{Text: lastIsID, Want: "1,1"},
			{Text: "INSERT INTO counted (a, parent) VALUES (9, LAST_INSERT_ID())"},
			{Text: "SELECT seq, id, a, parent FROM counted ORDER BY a", Want: "1,id,7,NULL 2,id,8,NULL 3,id,9,id"},
		}},
		{Name: "a failure", Steps: []pair.Step{
			{Text: "INSERT INTO counted (a) VALUES (7)"}, {Text: "INSERT INTO counted (a, u) VALUES (8, 1), (9, 1)", Want: "!1062"}, {Text: lastIsID, Want: "1,1"},
		}},
	}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, "[{table: DB.counted, column: id, source: ids}]")
		w.Run(t, scripts, "DROP TABLE IF EXISTS counted",
			"CREATE TABLE counted (id BIGINT PRIMARY KEY, a INT, seq BIGINT AUTO_INCREMENT UNIQUE, parent BIGINT, u INT UNIQUE)")
	})
}
