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
		want, got := direct.Value(t, lower), fmt.Sprintf("%X", pattern.Fold(b.String()))
		assert.True(t, got == want, "small letters from %U: %s, the server has %s", from, got, want)
	}
	rules := ""
	for _, n := range foldedNames {
		direct.Must(t, "CREATE TABLE `"+n.table+"` (id BIGINT PRIMARY KEY, a INT)")
		if !n.same {
			direct.Must(t, "CREATE TABLE `"+n.written+"` (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
		}
		rules += fmt.Sprintf("\n  - {table: %q, column: id, source: ids}", "folded."+n.table)
	}
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: %s
`, server.Addr, pair.SourceStart, rules))
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
				w := &pair.World{Server: server, DB: "shop", Addr: harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: [{table: Shop.Orders, column: id, source: ids}, {table: "shop.V_*", column: id, source: ids}]
`, server.Addr, pair.SourceStart)).Addr("a")}
				w.Run(t, []pair.Script{sc}, "DELETE FROM orders")
			}
		})
	}
}
