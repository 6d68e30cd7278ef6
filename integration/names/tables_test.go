package names

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
	"idproxy/pattern"
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
	{Name: "USE that fails", Steps: []pair.Step{{Text: "USE DB_none", Want: "!1049"}, {Text: insertOrder}, {Text: readOrders, Want: "id,7"}}},
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

// caseScripts run where names compare without regard to case. The rule is for Shop.Orders.
var caseScripts = []pair.Script{
	{Name: "a temporary table, before anything else", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE ORDERS (x INT, a INT)"},
		{Text: insertOrder},
		{Text: "SELECT x, a FROM Orders", Want: "NULL,7"},
		{Text: "DROP TEMPORARY TABLE oRDERS"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
	}},
	{Name: "a temporary table of the schema in another case", Steps: []pair.Step{
		{Text: "CREATE TEMPORARY TABLE SHOP.orders (x INT, a INT)"},
		{Text: insertOrder},
		{Text: "INSERT INTO shop.ORDERS (a) VALUES (8)"},
		{Text: "SELECT x, a FROM Orders ORDER BY a", Want: "NULL,7 NULL,8"},
	}},
	{Name: "as the rule", Steps: []pair.Step{{Text: "INSERT INTO Shop.Orders (a) VALUES (7)"}, {Text: readOrders, Want: "id,7"}}},
	{Name: "in capitals", Steps: []pair.Step{{Text: "INSERT INTO SHOP.ORDERS (A) VALUES (7), (8)"}, {Text: readOrders + " ORDER BY a", Want: "id,7 id,8"}}},
	{Name: "in small letters, without a list", Steps: []pair.Step{{Text: "insert into orders values (null, 7)"}, {Text: readOrders, Want: "id,7"}}},
	{Name: "USE in capitals", Steps: []pair.Step{
		{Text: "USE INFORMATION_SCHEMA"},
		{Text: "USE SHOP"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7"},
		{Text: "SCHEMA sHOP"},
		{Text: insertOrder},
		{Text: readOrders, Want: "id,7 id,7"},
	}},
	{Name: "a view without the column", Steps: []pair.Step{
		{Text: "INSERT INTO V_SHORT (a) VALUES (7)", Want: "!1235", Says: "view"}, {Text: "INSERT INTO v_Table (a) VALUES (7)"}, {Text: readOrders},
	}},
	{Name: "the column in capitals", Steps: []pair.Step{{Text: "INSERT INTO orders (ID, A) VALUES (NULL, 7)"}, {Text: readOrders, Want: "id,7"}}},
}

// foldedNames are tables, how an INSERT writes them, and whether that is the same name where case
// does not count.
var foldedNames = []struct {
	table, written string
	same           bool
}{
	{"ÄÖÜ", "äöü", true},
	{"заказы", "ЗАКАЗЫ", true},
	{"İzmir", "izmir", true},
	{"ılık", "ILIK", false},
	{"Straße", "STRAßE", true},
	{"maße", "MASSE", false},
	{"Σας", "σας", true},
	{"Σος", "ΣΟΣ", false},
	{"\u10a0", "\u2d00", false}, // letters of which one came to Unicode later
	{"\u04c0", "\u04cf", false},
	{"\u1e9e", "ß", false},
}

// foldsAsServer compares small letters with the server's, and fills tables by rules that are
// written as the tables are.
func foldsAsServer(t *testing.T, server *servers.Server) {
	direct := wireclient.Open(t, server.Addr, "")
	direct.Must(t, "SET NAMES utf8mb4", "CREATE DATABASE folded", "USE folded")
	for from := rune(0); from < 0x10000; from += 0x800 {
		var b strings.Builder
		for r := from; r < from+0x800 && !utf16.IsSurrogate(r); r++ {
			b.WriteRune(r)
		}
		lower := fmt.Sprintf("SELECT HEX(LOWER(_utf8mb3 X'%x' COLLATE utf8mb3_general_ci))", b.String())
		assert.Equal(t, fmt.Sprintf("small letters from %U", from), fmt.Sprintf("%X", pattern.Fold(b.String())), direct.Value(t, lower))
	}
	rules := ""
	for _, n := range foldedNames {
		direct.Must(t, "CREATE TABLE `"+n.table+"` (id BIGINT PRIMARY KEY, a INT)")
		if !n.same {
			direct.Must(t, "CREATE TABLE `"+n.written+"` (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
		}
		rules += fmt.Sprintf("{table: %q, column: id, source: ids}, ", "folded."+n.table)
	}
	proxy := harness.StartWith(t, server.Addr, fmt.Sprintf("ids: {segment: {start: %d}}", pair.SourceStart), rules)
	s := wireclient.Open(t, proxy.Addr("a"), "folded")
	s.Must(t, "SET NAMES utf8mb4")
	for _, n := range foldedNames {
		id := s.Must(t, "INSERT INTO `"+n.table+"` (a) VALUES (1)").InsertID
		assert.True(t, id >= pair.SourceStart, "%s: id %d, want one of the source", n.table, id)
		id = s.Must(t, "INSERT INTO `"+n.written+"` (a) VALUES (2)").InsertID
		assert.True(t, id >= pair.SourceStart == n.same, "rule for %s: %s gets id %d", n.table, n.written, id)
	}
}

// TestNamesWithoutCase runs against servers with lower_case_table_names=1, each script behind a
// proxy that knows nothing of its server yet. The value 2 is for file systems without regard to
// case, which this one is not: both servers make 0 of it here. A unit test of the proxy has it.
func TestNamesWithoutCase(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			server := harness.StartServer(t, kind, servers.Options{LowerCase: 1})
			wireclient.Open(t, server.Addr, "").Must(t, "CREATE DATABASE Shop", "CREATE TABLE Shop.Orders (Id BIGINT PRIMARY KEY, a INT)",
				"CREATE VIEW Shop.v_short AS SELECT a FROM Shop.Orders", "CREATE TABLE Shop.v_table (a INT)")
			foldsAsServer(t, server)
			for _, sc := range caseScripts {
				w := &pair.World{Server: server, DB: "shop", Addr: harness.StartWith(t, server.Addr, fmt.Sprintf("ids: {segment: {start: %d}}", pair.SourceStart),
					`{table: Shop.Orders, column: id, source: ids}, {table: "shop.V_*", column: id, source: ids}`).Addr("a")}
				w.Run(t, []pair.Script{sc}, "DELETE FROM orders")
			}
		})
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
