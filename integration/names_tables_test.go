package integration

import (
	"testing"

	"idproxy/integration/harness"
)

const (
	insertOrder = "INSERT INTO orders (a) VALUES (7)"
	readOrders  = "SELECT id, a FROM orders"
)

// temporaryScripts make tables of the session's own, which take the name of orders from it: what a session writes there
// is no concern of the rule's.
var temporaryScripts = []nameScript{
	{"with AUTO_INCREMENT", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"},
		{text: insertOrder},
		{text: readOrders, want: "1,7"},
		{text: "SELECT LAST_INSERT_ID()", want: "1"},
		{text: "DROP TEMPORARY TABLE orders"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
		{text: "SELECT LAST_INSERT_ID()", want: "id"},
	}},
	{"without the column", "", []nameStep{
		{text: "create /* mine */ temporary table if not exists orders (x INT, a INT)"},
		{text: insertOrder},
		{text: "INSERT INTO orders VALUES (1, 2)"},
		{text: "SELECT x, a FROM orders ORDER BY a", want: "1,2 NULL,7"},
		{text: "DROP TABLE orders"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
	}},
	{"named with its schema", "", []nameStep{
		{text: "USE DB_other"},
		{text: "CREATE TEMPORARY TABLE DB.orders (x INT, a INT)"},
		{text: "INSERT INTO DB.orders (a) VALUES (7)"},
		{text: "SELECT x FROM DB.orders", want: "NULL"},
		{text: "USE DB"},
		{text: insertOrder},
		{text: "SELECT x FROM orders", want: "NULL NULL"},
	}},
	{"of another schema", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE DB_other.orders (x INT, a INT)"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
		{text: "INSERT INTO DB_other.orders (a) VALUES (7)"},
		{text: "SELECT x FROM DB_other.orders", want: "NULL"},
	}},
	{"of another name", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders2 (x INT, a INT)"}, {text: insertOrder}, {text: readOrders, want: "id,7"},
	}},
	{"LIKE another", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders LIKE DB_other.keyed"},
		{text: insertOrder, want: "!1364"},
		{text: "INSERT INTO orders VALUES (5, 7)"},
		{text: readOrders, want: "5,7"},
	}},
	{"from a SELECT", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders AS SELECT 1 AS id, 2 AS a"},
		{text: "INSERT INTO orders VALUES (0, 7)"},
		{text: "SELECT id, a FROM orders ORDER BY id", want: "0,7 1,2"},
	}},
	{"OR REPLACE", "MariaDB", []nameStep{
		{text: "CREATE OR REPLACE TEMPORARY TABLE orders (x INT, a INT)"}, {text: insertOrder}, {text: "SELECT x FROM orders", want: "NULL"},
	}},
	{"that is not made", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders (x INT) ENGINE=NONE PARTITION BY", want: "!1064"}, {text: insertOrder}, {text: readOrders, want: "id,7"},
	}},
	{"gone with a reset", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders (x INT, a INT)"}, {text: "RESET"}, {text: insertOrder}, {text: readOrders, want: "id,7"},
	}},
	{"renamed away", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders (x INT, a INT)"},
		{text: "ALTER TABLE orders RENAME TO o2"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
	}},
	{"altered", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders (x INT, a INT)"},
		{text: "ALTER TABLE orders ADD y INT"},
		{text: insertOrder},
		{text: "SELECT x FROM orders", want: "NULL"},
	}},
	{"in one text", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE orders (x INT, a INT); DO 1"},
		{text: insertOrder},
		{text: "SELECT x FROM orders", want: "NULL"},
		{text: "DO 1; DROP TABLE orders"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
	}},
	{"kept behind a DROP of another", "", []nameStep{ // the server is asked whether it is there
		{text: "CREATE TEMPORARY TABLE orders (a INT, id BIGINT, x INT)"},
		{text: "DROP TABLE IF EXISTS nothing"},
		{text: "INSERT INTO orders VALUES (7, NULL, 1)"},
		{text: readOrders, want: "NULL,7"},
	}},
}

// TestTemporaryNames checks that a temporary table is let alone, and that it changes nothing for another session.
func TestTemporaryNames(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			w := newNameWorld(t, server, "[{table: DB.orders, column: id, source: ids}]",
				"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.keyed (id BIGINT PRIMARY KEY, a INT)")
			w.run(t, temporaryScripts, "DELETE FROM orders")

			w.run(t, []nameScript{{"another session", "", []nameStep{{text: "INSERT INTO orders VALUES (NULL, 8)"}, {text: readOrders, want: "id,8"}}}}, "DELETE FROM orders")
		})
	}
}

// schemaScripts change the default schema in every way.
var schemaScripts = []nameScript{
	{"named at login", "", []nameStep{{text: insertOrder}, {text: readOrders, want: "id,7"}}},
	{"USE", "", []nameStep{
		{text: "USE DB_other"},
		{text: insertOrder},
		{text: readOrders, want: "NULL,7"},
		{text: "use `DB`"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
	}},
	{"USE that fails", "", []nameStep{
		{text: "USE DB_none", want: "!1049"}, {text: insertOrder}, {text: readOrders, want: "id,7"},
	}},
	{"init_db", "", []nameStep{
		{text: "SCHEMA DB_other"},
		{text: insertOrder},
		{text: readOrders, want: "NULL,7"},
		{text: "SCHEMA DB"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
		{text: "SCHEMA DB_none", want: "!1049"},
		{text: insertOrder},
		{text: readOrders, want: "id,7 id,7"},
	}},
	{"reset", "", []nameStep{ // it keeps the schema
		{text: "USE DB_other"},
		{text: "RESET"},
		{text: insertOrder},
		{text: readOrders, want: "NULL,7"},
		{text: "USE DB"},
		{text: "RESET"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
	}},
	{"inside one text", "", []nameStep{
		{text: "USE DB_other; " + insertOrder + "; USE DB; " + insertOrder},
		{text: readOrders, want: "id,7"},
		{text: "SELECT id, a FROM DB_other.orders", want: "NULL,7"},
		{text: "SELECT 1; USE DB_other"},
		{text: insertOrder},
		{text: readOrders, want: "NULL,7 NULL,7"},
	}},
	{"inside one text, a USE that fails", "", []nameStep{
		{text: "USE DB_none; " + insertOrder, want: "!1049"},
		{text: readOrders},
		{text: insertOrder + "; USE DB_none; " + insertOrder, want: "!1049"},
		{text: readOrders, want: "id,7"},
	}},
	{"names with their schema", "", []nameStep{
		{text: "USE DB_other"},
		{text: "INSERT INTO DB.orders (a) VALUES (7)"},
		{text: "INSERT INTO `DB` . `orders` VALUES (NULL, 8)"},
		{text: "SELECT id, a FROM DB.orders ORDER BY a", want: "id,7 id,8"},
		{text: "INSERT INTO DB_other . orders (a) VALUES (7)"},
		{text: readOrders, want: "NULL,7"},
	}},
	{"a schema that is dropped", "", []nameStep{
		{text: "CREATE DATABASE DB_gone; USE DB_gone; DROP DATABASE DB_gone"},
		{text: insertOrder, want: "!1046"},
		{text: "USE DB"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
	}},
	{"case counts", "", []nameStep{
		{text: "INSERT INTO Orders (a) VALUES (7)"}, {text: "SELECT id, a FROM Orders", want: "NULL,7"}, {text: readOrders},
	}},
}

// TestSchemaNames checks that the rule is for the table of its own schema, however that is said.
func TestSchemaNames(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			w := newNameWorld(t, server, "[{table: DB.orders, column: id, source: ids}]",
				"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.orders (id BIGINT, a INT)",
				"CREATE TABLE Orders (id BIGINT, a INT)")
			w.run(t, schemaScripts, "DELETE FROM orders; DELETE FROM DB_other.orders; DELETE FROM Orders")
		})
	}
}
