package ids

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestViewsShareSeries: with a series for each table, an INSERT through a view takes its id from
// the series of the table that the view shows.
func TestViewsShareSeries(t *testing.T) {
	for _, server := range harness.Servers(t) {
		for _, account := range []string{"", ", account: {user: app, password: app}"} {
			t.Run(fmt.Sprintf("%s, account %v", server.Kind, account != ""), func(t *testing.T) {
				name := harness.Database(t, server)
				root := server.Config(name)
				root.User, root.Passwd = servers.RootUser, servers.RootPassword
				direct := harness.Open(t, root, "")
				for _, sql := range []string{
					"CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(10))", "CREATE TABLE users (uid BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (40, 'a')",
					"CREATE VIEW shown AS SELECT * FROM orders WHERE id < 10", "CREATE VIEW named (k, note) AS SELECT id, note FROM orders o", "CREATE VIEW nested AS SELECT k AS id, note FROM named",
					"CREATE VIEW joined AS SELECT o.id, o.note FROM orders o JOIN users ON uid = o.id",
					fmt.Sprintf("CREATE USER '%s_u'@'%%' IDENTIFIED BY 'p'", name), fmt.Sprintf("GRANT SELECT, INSERT ON %s.shown TO '%[1]s_u'@'%%'", name),
				} {
					harness.MustExec(t, direct, sql)
				}
				t.Cleanup(func() { harness.MustExec(t, direct, fmt.Sprintf("DROP USER '%s_u'@'%%'", name)) })
				proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q%s}]
sources:   {ids: {segment: {key: "ids_{schema}.{table}", step: 10}}}
rules:     [{table: %[3]s.named, column: k, source: ids}, {table: "%[3]s.*", column: id, source: ids}]
`, server.Addr, account, name))
				unseeing := server.Config(name) // nobody has told the proxy of the view yet
				unseeing.User, unseeing.Passwd = name+"_u", "p"
				first := int64(41)
				_, err := harness.Open(t, unseeing, proxy.Addr("a")).Exec("INSERT INTO shown (note) VALUES ('x')")
				if account == "" {
					harness.WantError(t, err, 1142, "grant SHOW VIEW, or give the listener an account")
				} else {
					first++
					assert.Must(t, err)
				}
				db := harness.Open(t, server.Config(name), proxy.Addr("a"))
				for i, table := range []string{"orders", "shown", "named", "nested", "shown", "orders"} {
					id := insert(t, db, table)
					assert.Equal(t, "INSERT into "+table, id, first+int64(i))
				}
				prepared := assert.Of(db.Prepare("INSERT INTO nested (note) VALUES (?)")).Must(t)
				defer prepared.Close()
				for i := range 2 {
					r := assert.Of(prepared.Exec("x")).Must(t)
					id, _ := r.LastInsertId()
					assert.True(t, id == first+int64(6+i), "prepared, the id is %d, want %d", id, first+int64(6+i))
				}
				for i := range 3 { // by position: the columns are asked for each time
					r := assert.Of(db.Exec("INSERT INTO nested VALUES (NULL, 'x')")).Must(t)
					id, _ := r.LastInsertId()
					assert.True(t, id == first+int64(8+i), "by position, the id is %d, want %d", id, first+int64(8+i))
				}
				_, err = db.Exec("INSERT INTO joined (note) VALUES ('x')")
				harness.WantError(t, err, 1467, "no single table")
			})
		}
	}
}
