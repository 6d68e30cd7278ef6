package integration

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/pattern"
)

// caseScripts run where names compare without regard to case. The rule is for Shop.Orders.
var caseScripts = []nameScript{
	{"a temporary table, before anything else", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE ORDERS (x INT, a INT)"},
		{text: insertOrder},
		{text: "SELECT x, a FROM Orders", want: "NULL,7"},
		{text: "DROP TEMPORARY TABLE oRDERS"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
	}},
	{"a temporary table of the schema in another case", "", []nameStep{
		{text: "CREATE TEMPORARY TABLE SHOP.orders (x INT, a INT)"},
		{text: insertOrder},
		{text: "INSERT INTO shop.ORDERS (a) VALUES (8)"},
		{text: "SELECT x, a FROM Orders ORDER BY a", want: "NULL,7 NULL,8"},
	}},
	{"as the rule", "", []nameStep{{text: "INSERT INTO Shop.Orders (a) VALUES (7)"}, {text: readOrders, want: "id,7"}}},
	{"in capitals", "", []nameStep{{text: "INSERT INTO SHOP.ORDERS (A) VALUES (7), (8)"}, {text: readOrders + " ORDER BY a", want: "id,7 id,8"}}},
	{"in small letters, without a list", "", []nameStep{{text: "insert into orders values (null, 7)"}, {text: readOrders, want: "id,7"}}},
	{"USE in capitals", "", []nameStep{
		{text: "USE INFORMATION_SCHEMA"},
		{text: "USE SHOP"},
		{text: insertOrder},
		{text: readOrders, want: "id,7"},
		{text: "SCHEMA sHOP"},
		{text: insertOrder},
		{text: readOrders, want: "id,7 id,7"},
	}},
	{"a view without the column", "", []nameStep{
		{text: "INSERT INTO V_SHORT (a) VALUES (7)", want: "!1235", says: "view"}, {text: "INSERT INTO v_Table (a) VALUES (7)"}, {text: readOrders},
	}},
	{"the column in capitals", "", []nameStep{{text: "INSERT INTO orders (ID, A) VALUES (NULL, 7)"}, {text: readOrders, want: "id,7"}}},
}

// foldedNames are tables, how an INSERT writes them, and whether that is the same name where case does not count.
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

// foldsAsServer compares small letters with the server's, and fills tables by rules that are written as the tables are.
func foldsAsServer(t *testing.T, server *servers.Server) {
	direct := openSession(t, server.Addr, "")
	direct.must(t, "SET NAMES utf8mb4", "CREATE DATABASE folded", "USE folded")
	for from := rune(0); from < 0x10000; from += 0x800 {
		var b strings.Builder
		for r := from; r < from+0x800 && !utf16.IsSurrogate(r); r++ {
			b.WriteRune(r)
		}
		lower := fmt.Sprintf("SELECT HEX(LOWER(_utf8mb3 X'%x' COLLATE utf8mb3_general_ci))", b.String())
		if want, got := direct.value(t, lower), fmt.Sprintf("%X", pattern.Fold(b.String())); got != want {
			t.Errorf("small letters from %U: %s, the server has %s", from, got, want)
		}
	}
	rules := ""
	for _, n := range foldedNames {
		direct.must(t, "CREATE TABLE `"+n.table+"` (id BIGINT PRIMARY KEY, a INT)")
		if !n.same {
			direct.must(t, "CREATE TABLE `"+n.written+"` (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
		}
		rules += fmt.Sprintf("\n  - {table: %q, column: id, source: ids}", "folded."+n.table)
	}
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: %s
`, server.Addr, nameSource, rules))
	s := openSession(t, proxy.Addr("a"), "folded")
	s.must(t, "SET NAMES utf8mb4")
	for _, n := range foldedNames {
		if id := s.must(t, "INSERT INTO `"+n.table+"` (a) VALUES (1)").insertID; id < nameSource {
			t.Errorf("%s: id %d, want one of the source", n.table, id)
		}
		if id := s.must(t, "INSERT INTO `"+n.written+"` (a) VALUES (2)").insertID; id >= nameSource != n.same {
			t.Errorf("rule for %s: %s gets id %d", n.table, n.written, id)
		}
	}
}

// TestNamesWithoutCase runs against servers with lower_case_table_names=1, each script behind a proxy that knows nothing
// of its server yet. The value 2 is for file systems without regard to case, which this one is not: both servers make 0 of
// it here. A unit test of the proxy has it.
func TestNamesWithoutCase(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			server := harness.StartServer(t, kind, servers.Options{LowerCase: 1})
			openSession(t, server.Addr, "").must(t, "CREATE DATABASE Shop", "CREATE TABLE Shop.Orders (Id BIGINT PRIMARY KEY, a INT)",
				"CREATE VIEW Shop.v_short AS SELECT a FROM Shop.Orders", "CREATE TABLE Shop.v_table (a INT)")
			foldsAsServer(t, server)
			for _, sc := range caseScripts {
				w := &nameWorld{server: server, db: "shop", addr: harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: [{table: Shop.Orders, column: id, source: ids}, {table: "shop.V_*", column: id, source: ids}]
`, server.Addr, nameSource)).Addr("a")}
				w.run(t, []nameScript{sc}, "DELETE FROM orders")
			}
		})
	}
}
