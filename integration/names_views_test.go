package integration

import (
	"testing"

	"idproxy/integration/harness"
)

// viewScripts write through views of orders (id, a). The rules are for orders, for v_* and, in another column, for named.
var viewScripts = []nameScript{
	{"with the column", "", []nameStep{
		{text: "INSERT INTO v_all (a) VALUES (7), (8)"},
		{text: "INSERT INTO v_all VALUES (NULL, 9)"},
		{text: readOrders + " ORDER BY a", want: "id,7 id,8 id,9"},
		{text: "SELECT LAST_INSERT_ID() = MAX(id) FROM orders", want: "1"},
	}},
	{"of a view", "", []nameStep{{text: "INSERT INTO v_again (a) VALUES (7)"}, {text: readOrders, want: "id,7"}}},
	{"with CHECK OPTION", "", []nameStep{
		{text: "INSERT INTO v_checked (a) VALUES (5)"}, {text: "INSERT INTO v_checked (a) VALUES (50)", want: "!1369"}, {text: readOrders, want: "id,5"},
	}},
	{"under a name of its own", "", []nameStep{
		{text: "INSERT INTO named (b) VALUES (7)"},
		{text: "INSERT INTO named VALUES (8, DEFAULT)"},
		{text: readOrders + " ORDER BY a", want: "id,7 id,8"},
	}},
	{"without the column", "", []nameStep{
		{text: "INSERT INTO v_short (a) VALUES (7)", want: "!1235", says: "view without column id"},
		{text: "INSERT INTO v_short VALUES (7)", want: "!1235", says: "view without column id"},
		{text: "SET sql_mode=''"},
		{text: "REPLACE v_short (a) VALUES (7)", want: "!1235", says: "DB.v_*.id"},
		{text: readOrders},
	}},
	{"without the column, of a view", "", []nameStep{{text: "INSERT INTO v_shorter VALUES (7)", want: "!1235", says: "view"}, {text: readOrders}}},
	{"without the column, named", "", []nameStep{
		{text: "INSERT INTO exact VALUES (7)", want: "!1054", says: "Unknown column 'id'"}, {text: readOrders},
	}},
	{"without the column, forwarded", "", []nameStep{
		{text: "INSERT INTO f_short VALUES (7)", want: "!1423"},
		{text: "SET sql_mode=''"},
		{text: "INSERT INTO f_short VALUES (7)", want: "!1235", says: "store 0"},
		{text: readOrders},
	}},
	{"a table without the column", "", []nameStep{ // is none of the rule's
		{text: "INSERT INTO v_table VALUES (7)"}, {text: "SELECT a FROM v_table", want: "7"},
	}},
	{"that cannot be written to", "", []nameStep{
		{text: "INSERT INTO v_copy (a) VALUES (7)", want: "!1471"}, {text: readOrders},
	}},
	{"named by no rule", "", []nameStep{ // documented: it is forwarded as it is
		{text: "INSERT INTO other (a) VALUES (7)", want: "!1423"}, {text: readOrders},
	}},
}

// TestViews checks that no INSERT through a view that a rule names goes without its id.
func TestViews(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			w := newNameWorld(t, server, `
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
			w.run(t, viewScripts, "DELETE FROM orders", "DELETE FROM v_table")
		})
	}
}

// invisibleScripts write to tables whose id SELECT * does not show.
var invisibleScripts = []nameScript{
	{"with a list", "", []nameStep{
		{text: "INSERT INTO inv (a) VALUES (7), (8)"},
		{text: "SELECT id, a FROM inv ORDER BY a", want: "id,7 id,8"},
		{text: "SELECT LAST_INSERT_ID() = MIN(id) FROM inv", want: "1"},
	}},
	{"in the list", "", []nameStep{
		{text: "INSERT INTO inv (a, id) VALUES (7, NULL), (8, 5), (9, 0)"}, {text: "SELECT id, a FROM inv ORDER BY a", want: "id,7 5,8 id,9"},
	}},
	{"without a list", "", []nameStep{
		{text: "INSERT INTO inv VALUES (7)"},
		{text: "REPLACE inv VALUES (8), (LAST_INSERT_ID() > 0)"},
		{text: "SELECT id, a FROM inv ORDER BY a", want: "id,1 id,7 id,8"},
		{text: "INSERT INTO inv VALUES (1, 2)", want: "!1136"},
	}},
	{"made visible", "", []nameStep{
		{text: "INSERT INTO inv VALUES (7)"},
		{text: "ALTER TABLE inv MODIFY id BIGINT NOT NULL"},
		{text: "INSERT INTO inv VALUES (NULL, 8)"},
		{text: "SELECT id, a FROM inv ORDER BY a", want: "id,7 id,8"},
	}},
	{"a generated primary key with the rule", "MySQL", []nameStep{
		{text: "INSERT INTO gipk (a) VALUES (7)"},
		{text: "INSERT INTO gipk VALUES (8, 3)"},
		{text: "SELECT my_row_id, a FROM gipk ORDER BY a", want: "id,7 id,8"},
		{text: "SELECT LAST_INSERT_ID() = MAX(my_row_id) FROM gipk", want: "1"},
	}},
	{"a generated primary key beside the rule's", "MySQL", []nameStep{
		{text: "INSERT INTO gipk2 (a) VALUES (7)"},
		{text: "INSERT INTO gipk2 VALUES (NULL, 8)"},
		{text: "SELECT my_row_id, id, a FROM gipk2 ORDER BY a", want: "1,id,7 2,id,8"},
		{text: "SELECT LAST_INSERT_ID() = MAX(id) FROM gipk2", want: "1"},
	}},
}

// TestInvisibleColumns checks that a column is found that SELECT * does not show.
func TestInvisibleColumns(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			reset := []string{"DROP TABLE IF EXISTS inv", "CREATE TABLE inv (id BIGINT NOT NULL DEFAULT 0 INVISIBLE PRIMARY KEY, a INT)"}
			if server.Kind.String() == "MySQL" {
				reset = append(reset[:1], "CREATE TABLE inv (id BIGINT NOT NULL PRIMARY KEY INVISIBLE, a INT)",
					"DROP TABLE IF EXISTS gipk", "DROP TABLE IF EXISTS gipk2", "SET sql_generate_invisible_primary_key=1",
					"CREATE TABLE gipk (a INT, b INT)", "CREATE TABLE gipk2 (id BIGINT NOT NULL, a INT)")
			}
			w := newNameWorld(t, server, `
  - {table: DB.inv, column: id, source: ids}
  - {table: DB.gipk, column: my_row_id, source: ids}
  - {table: DB.gipk2, column: id, source: ids}`)
			w.run(t, invisibleScripts, reset...)
		})
	}
}

// TestOtherCounter writes to tables in which the server counts in a column of its own beside the rule's. The last insert
// id is that of the rule's column.
func TestOtherCounter(t *testing.T) {
	const lastIsID = "SELECT LAST_INSERT_ID() = MIN(id), LAST_INSERT_ID() >= 1000 FROM counted WHERE a = 7"
	scripts := []nameScript{
		{"beside", "", []nameStep{
			{text: "INSERT INTO counted (a) VALUES (7), (8)"},
			{text: lastIsID, want: "1,1"},
			{text: "INSERT INTO counted (a, parent) VALUES (9, LAST_INSERT_ID())"},
			{text: "SELECT seq, id, a, parent FROM counted ORDER BY a", want: "1,id,7,NULL 2,id,8,NULL 3,id,9,id"},
		}},
		{"a failure", "", []nameStep{
			{text: "INSERT INTO counted (a) VALUES (7)"}, {text: "INSERT INTO counted (a, u) VALUES (8, 1), (9, 1)", want: "!1062"}, {text: lastIsID, want: "1,1"},
		}},
	}
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			w := newNameWorld(t, server, "[{table: DB.counted, column: id, source: ids}]")
			w.run(t, scripts, "DROP TABLE IF EXISTS counted",
				"CREATE TABLE counted (id BIGINT PRIMARY KEY, a INT, seq BIGINT AUTO_INCREMENT UNIQUE, parent BIGINT, u INT UNIQUE)")
		})
	}
}
