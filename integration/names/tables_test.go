package names

import (
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
)

const (
	insertOrder = "INSERT INTO orders (a) VALUES (7)"
	readOrders  = "SELECT id, a FROM orders"
)

// temporaryScripts make tables of the session's own, which take the name of orders from it: what a
// session writes there is no concern of the rule's.
var temporaryScripts = []pair.Script{
	{Name: "with AUTO_INCREMENT", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"},
		{Text: insertOrder},
		{Text: readOrders, Want: "1,7"},
		{Text: "SELECT LAST_INSERT_ID()", Want: "1"},
		{Text: "DROP TEMPORARY TABLE orders"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
		{Text: "SELECT LAST_INSERT_ID()", Want: "id"},
	}},
	{Name: "without the column", Steps: []pair.Step{
		{Text: "create /* mine */ temporary table if not exists orders (x INT, a INT)"},
		{Text: insertOrder},
		{Text: "INSERT INTO orders VALUES (1, 2)"},
		{Text: "SELECT x, a FROM orders ORDER BY a", Want: "1,2 NULL,7"},
		{Text: "DROP TABLE orders"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
	}},
	{Name: "named with its schema", Steps: []pair.Step{
		{Text: "USE DB_other"},
		{Text: "CREATE TEMPORARY TABLE DB.orders (x INT, a INT)"},
		{Text: "INSERT INTO DB.orders (a) VALUES (7)"},
		{Text: "SELECT x FROM DB.orders", Want: "NULL"},
		{Text: "USE DB"},
		{Text: insertOrder},
		{Text: "SELECT x FROM orders", Want: "NULL NULL"},
	}},
	{Name: "of another schema", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE DB_other.orders (x INT, a INT)"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
		{Text: "INSERT INTO DB_other.orders (a) VALUES (7)"},
		{Text: "SELECT x FROM DB_other.orders", Want: "NULL"},
	}},
	{Name: "of another name", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders2 (x INT, a INT)"}, {Text: insertOrder}, {Text: readOrders, Want: "id,7"},
	}},
	{Name: "LIKE another", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders LIKE DB_other.keyed"},
		{Text: insertOrder, Want: "!1364"},
		{Text: "INSERT INTO orders VALUES (5, 7)"},
		{Text: readOrders, Want: "5,7"},
	}},
	{Name: "from a SELECT", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders AS SELECT 1 AS id, 2 AS a"},
		{Text: "INSERT INTO orders VALUES (0, 7)"},
		{Text: "SELECT id, a FROM orders ORDER BY id", Want: "0,7 1,2"},
	}},
	{Name: "OR REPLACE", Only: "MariaDB", Steps: []pair.Step{
		{Text: "CREATE OR REPLACE TEMPORARY TABLE orders (x INT, a INT)"}, {Text: insertOrder}, {Text: "SELECT x FROM orders", Want: "NULL"},
	}},
	{Name: "that is not made", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders (x INT) ENGINE=NONE PARTITION BY", Want: "!1064"}, {Text: insertOrder}, {Text: readOrders, Want: "id,7"},
	}},
	{Name: "gone with a reset", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders (x INT, a INT)"}, {Text: "RESET"}, {Text: insertOrder}, {Text: readOrders, Want: "id,7"},
	}},
	{Name: "renamed away", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders (x INT, a INT)"},
		{Text: "ALTER TABLE orders RENAME TO o2"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
	}},
	{Name: "altered", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders (x INT, a INT)"},
		{Text: "ALTER TABLE orders ADD y INT"},
		{Text: insertOrder},
		{Text: "SELECT x FROM orders", Want: "NULL"},
	}},
	{Name: "in one text", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE orders (x INT, a INT); DO 1"},
		{Text: insertOrder},
		{Text: "SELECT x FROM orders", Want: "NULL"},
		{Text: "DO 1; DROP TABLE orders"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
	}},
	{Name: "kept behind a DROP of another", Steps: []pair.Step{ // the server is asked whether it is there
		{Text: "CREATE TEMPORARY TABLE orders (a INT, id BIGINT, x INT)"},
		{Text: "DROP TABLE IF EXISTS nothing"},
		{Text: "INSERT INTO orders VALUES (7, NULL, 1)"},
		{Text: readOrders, Want: "NULL,7"},
	}},
}

// TestTemporaryNames checks that a temporary table is let alone, and that it changes nothing for
// another session.
func TestTemporaryNames(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, "[{table: DB.orders, column: id, source: ids}]",
			"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.keyed (id BIGINT PRIMARY KEY, a INT)")
		w.Run(t, temporaryScripts, "DELETE FROM orders")

		w.Run(t, []pair.Script{{Name: "another session", Steps: []pair.Step{{Text: "INSERT INTO orders VALUES (NULL, 8)"}, {Text: readOrders, Want: "id,8"}}}}, "DELETE FROM orders")
	})
}

// schemaScripts change the default schema in every way.
var schemaScripts = []pair.Script{
	{Name: "named at login", Steps: []pair.Step{{Text: insertOrder}, {Text: readOrders, Want: "id,7"}}},
	{Name: "USE", Steps: []pair.Step{
		{Text: "USE DB_other"},
		{Text: insertOrder},
		{Text: readOrders, Want: "NULL,7"},
		{Text: "use `DB`"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
	}},
	{Name: "USE that fails", Steps: []pair.Step{
		{Text: "USE DB_none", Want: "!1049"}, {Text: insertOrder}, {Text: readOrders, Want: "id,7"},
	}},
	{Name: "init_db", Steps: []pair.Step{
		{Text: "SCHEMA DB_other"},
		{Text: insertOrder},
		{Text: readOrders, Want: "NULL,7"},
		{Text: "SCHEMA DB"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
		{Text: "SCHEMA DB_none", Want: "!1049"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7 id,7"},
	}},
	{Name: "reset", Steps: []pair.Step{ // it keeps the schema
		{Text: "USE DB_other"},
		{Text: "RESET"},
		{Text: insertOrder},
		{Text: readOrders, Want: "NULL,7"},
		{Text: "USE DB"},
		{Text: "RESET"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
	}},
	{Name: "inside one text", Steps: []pair.Step{
		{Text: "USE DB_other; " + insertOrder + "; USE DB; " + insertOrder},
		{Text: readOrders, Want: "id,7"},
		{Text: "SELECT id, a FROM DB_other.orders", Want: "NULL,7"},
		{Text: "SELECT 1; USE DB_other"},
		{Text: insertOrder},
		{Text: readOrders, Want: "NULL,7 NULL,7"},
	}},
	{Name: "inside one text, a USE that fails", Steps: []pair.Step{
		{Text: "USE DB_none; " + insertOrder, Want: "!1049"},
		{Text: readOrders},
		{Text: insertOrder + "; USE DB_none; " + insertOrder, Want: "!1049"},
		{Text: readOrders, Want: "id,7"},
	}},
	{Name: "names with their schema", Steps: []pair.Step{
		{Text: "USE DB_other"},
		{Text: "INSERT INTO DB.orders (a) VALUES (7)"},
		{Text: "INSERT INTO `DB` . `orders` VALUES (NULL, 8)"},
		{Text: "SELECT id, a FROM DB.orders ORDER BY a", Want: "id,7 id,8"},
		{Text: "INSERT INTO DB_other . orders (a) VALUES (7)"},
		{Text: readOrders, Want: "NULL,7"},
	}},
	{Name: "a schema that is dropped", Steps: []pair.Step{
		{Text: "CREATE DATABASE DB_gone; USE DB_gone; DROP DATABASE DB_gone"},
		{Text: insertOrder, Want: "!1046"},
		{Text: "USE DB"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
	}},
	{Name: "case counts", Steps: []pair.Step{
		{Text: "INSERT INTO Orders (a) VALUES (7)"}, {Text: "SELECT id, a FROM Orders", Want: "NULL,7"}, {Text: readOrders},
	}},
}

// TestSchemaNames checks that the rule is for the table of its own schema, however that is said.
func TestSchemaNames(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, "[{table: DB.orders, column: id, source: ids}]",
			"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.orders (id BIGINT, a INT)",
			"CREATE TABLE Orders (id BIGINT, a INT)")
		w.Run(t, schemaScripts, "DELETE FROM orders; DELETE FROM DB_other.orders; DELETE FROM Orders")
	})
}
