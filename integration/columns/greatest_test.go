package columns

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/wireclient"
)

// TestGreatestOfColumn checks, for every type of column that holds ids, that a source which is
// behind what the column holds gives no id, and that one which is ahead does.
func TestGreatestOfColumn(t *testing.T) {
	tests := []struct {
		column string
		values string // the greatest id among them is 1000
	}{
		{"BIGINT", "(-5), (9), (1000)"},
		{"BIGINT UNSIGNED", "(9), (1000)"},
		{"INT(5) ZEROFILL", "(9), (1000)"},
		{"DECIMAL(30)", "(-5), (9), (1000), (123456789012345678901234567890)"},
		{"DECIMAL(10,2)", "(9.25), (999.99)"},
		{"CHAR(20)", "(9), (999), (1000)"},
		{"VARCHAR(40) COLLATE utf8mb4_bin", "('9'), ('999'), (' 1000 '), ('abc'), ('2abc'), ('-7'), ('123e4567-e89b'), ('20000000000000000000')"},
		{"VARBINARY(20)", "(9), (999), (1000)"},
	}
	for _, server := range harness.Servers(t) {
		for i, account := range []string{"", "account: {user: app, password: app}"} {
			t.Run(fmt.Sprintf("%s, account %v", server.Kind, i == 1), func(t *testing.T) {
				db := harness.Database(t, server)
				direct := wireclient.Open(t, server.Addr, db)
				var rules []string // a wildcard leaves columns of text alone
				for i := range tests {
					rules = append(rules, fmt.Sprintf("{table: %s.behind%d, column: id, source: behind}, {table: %[1]s.ahead%[2]d, column: id, source: ahead}", db, i))
				}
				makeTables := func(i int) {
					tt := tests[i]
					direct.Must(t, "SET NAMES utf8mb4", fmt.Sprintf("CREATE TABLE behind%d (id %s PRIMARY KEY, a INT) CHARSET utf8mb4", i, tt.column),
						fmt.Sprintf("INSERT INTO behind%d (id) VALUES %s", i, tt.values), fmt.Sprintf("CREATE TABLE ahead%d LIKE behind%[1]d", i),
						fmt.Sprintf("INSERT INTO ahead%d SELECT * FROM behind%[1]d", i))
				}
				proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, %s}]
sources: {behind: {segment: {start: 999}}, ahead: {segment: {start: 1001}}}
rules: [{table: "%[3]s.*_behind", column: id, source: behind}, {table: "%[3]s.*_ahead", column: id, source: ahead}, %s]
`, server.Addr, account, db, strings.Join(rules, ", ")))
				direct.Must(t, "CREATE TABLE first_behind (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE first_ahead (id BIGINT PRIMARY KEY, a INT)")
				s := wireclient.Open(t, proxy.Addr("a"), db)
				s.Must(t, "INSERT INTO first_behind (a) VALUES (1)", "INSERT INTO first_ahead (a) VALUES (1)") // 1000 and 1002 are next
				for i, tt := range tests {
					makeTables(i) // only now: a series begins above all tables
					e := s.Fails(t, fmt.Sprintf("INSERT INTO behind%d (a) VALUES (1)", i))
					assert.True(t, e.Code == 1467, "%s: %v; want 1467, for the source is behind", tt.column, e)
					s.Must(t, fmt.Sprintf("INSERT INTO ahead%d (a) VALUES (1)", i))
				}
			})
		}
	}
}

// TestGreatestOfTransaction: ids that the open transaction has written itself count, also where the
// listener's account is asked, which does not see them.
func TestGreatestOfTransaction(t *testing.T) {
	server := harness.MariaDB(t)
	for i, account := range []string{"", "account: {user: app, password: app}"} {
		t.Run(fmt.Sprintf("account %v", i == 1), func(t *testing.T) {
			db := harness.Database(t, server)
			direct := wireclient.Open(t, server.Addr, db)
			direct.Must(t, "CREATE TABLE t (id BIGINT NOT NULL, KEY (id))")
			proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, %s}]
sources: {ids: {segment: {start: 1}}}
rules: [{table: "%s.t", column: id, source: ids, explicit: keep}]
`, server.Addr, account, db))
			s := wireclient.Open(t, proxy.Addr("a"), db)
			s.Must(t, "BEGIN", "INSERT INTO t (id) VALUES (1), (2), (300)", "INSERT INTO t VALUES (NULL)", "COMMIT")
			assert.Equal(t, "the id behind 300", direct.Must(t, "SELECT MAX(id) FROM t").Rows[0][0], "301")
		})
	}
}
