package ids

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestSeriesForEachTable gives every table a series of its own, in whatever letters an INSERT
// writes its name, and starts it above what the table holds.
func TestSeriesForEachTable(t *testing.T) {
	s := harness.MariaDB(t)
	const columns = " (id BIGINT PRIMARY KEY, n INT)"
	name, direct := harness.Tables(t, s, "CREATE TABLE a"+columns, "CREATE TABLE b"+columns, "CREATE TABLE c"+columns, "INSERT INTO c VALUES (500, 0)")
	proxy := harness.StartProxy(t, harness.OneListener(s.Addr)+fmt.Sprintf(`
sources:   {ids: {segment: {key: "ids_{table}", step: 10}}}
rules:     [{table: "%s.*", column: id, source: ids}]
`, name))
	db := harness.Open(t, s.Config(name), proxy.Addr("a"))
	for _, table := range []string{"a", "b", "a", name + ".b", "c", "b"} {
		harness.MustExec(t, db, "INSERT INTO "+table+" (n) VALUES (1), (2)")
	}
	for table, want := range map[string][3]int64{"a": {1, 4, 4}, "b": {1, 6, 6}, "c": {500, 502, 3}} {
		var got [3]int64
		assert.Must(t, direct.QueryRow("SELECT MIN(id), MAX(id), COUNT(*) FROM "+table).Scan(&got[0], &got[1], &got[2]))
		assert.Equal(t, table+": least id, greatest and rows", got, want)
	}
}

// TestSeriesOfQueriesAndFiles: rows of a query, lines of a file and ids that the application brings
// belong to the series of their table too.
func TestSeriesOfQueriesAndFiles(t *testing.T) {
	s := harness.MariaDB(t)
	name, _ := harness.Tables(t, s, "CREATE TABLE a (id BIGINT PRIMARY KEY, n INT)", "CREATE TABLE b (id BIGINT PRIMARY KEY, n INT)")
	proxy := harness.StartProxy(t, harness.OneListener(s.Addr)+fmt.Sprintf(`
sources:   {ids: {segment: {key: "ids_{table}", step: 10}}}
rules:     [{table: "%s.*", column: id, source: ids, explicit: advance}]
`, name))
	l := harness.NewLoader(t, s.Config(name), proxy.Addr("a"))
	l.Exec("INSERT INTO a (n) VALUES (1), (2), (3)")
	l.Exec("INSERT INTO b (n) SELECT n FROM a")
	l.Exec("INSERT INTO b (id, n) VALUES (50, 4)")
	got := l.Load("LOAD DATA LOCAL INFILE 'f' INTO TABLE b (n)", strings.NewReader("5\n6\n"))
	assert.True(t, strings.HasPrefix(got, "affected 2,"), "LOAD DATA: %s", got)
	got = l.Load("LOAD DATA LOCAL INFILE 'f' INTO TABLE b", strings.NewReader("100\t7\n"))
	assert.True(t, strings.HasPrefix(got, "affected 1,"), "LOAD DATA with ids: %s", got)
	l.Exec("INSERT INTO b (n) VALUES (8)")
	l.Exec("INSERT INTO a (n) SELECT n FROM b LIMIT 1")
	for table, want := range map[string]string{"a": "1 2 3 4", "b": "1 2 3 50 51 52 100 101"} {
		assert.Equal(t, "table "+table+" has ids", strings.Join(strings.Fields(strings.ReplaceAll(l.Rows("SELECT id FROM "+table+" ORDER BY id"), `"`, "")), " "), want)
	}
}

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
				harness.MustExec(t, direct,
					"CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(10))", "CREATE TABLE users (uid BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (40, 'a')",
					"CREATE VIEW shown AS SELECT * FROM orders WHERE id < 10", "CREATE VIEW named (k, note) AS SELECT id, note FROM orders o", "CREATE VIEW nested AS SELECT k AS id, note FROM named",
					"CREATE VIEW joined AS SELECT o.id, o.note FROM orders o JOIN users ON uid = o.id",
					fmt.Sprintf("CREATE USER '%s_u'@'%%' IDENTIFIED BY 'p'", name), fmt.Sprintf("GRANT SELECT, INSERT ON %s.shown TO '%[1]s_u'@'%%'", name))
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
					assert.Equal(t, "INSERT into "+table, insert(t, db, table), first+int64(i))
				}
				prepared := assert.Of(db.Prepare("INSERT INTO nested (note) VALUES (?)")).Must(t)
				defer prepared.Close()
				for i := range 2 {
					assert.Of(assert.Of(prepared.Exec("x")).Must(t).LastInsertId()).Equal(t, "prepared, the id", first+int64(6+i))
				}
				for i := range 3 { // by position: the columns are asked for each time
					assert.Equal(t, "by position, the id", lastID(t, db, "INSERT INTO nested VALUES (NULL, 'x')"), first+int64(8+i))
				}
				_, err = db.Exec("INSERT INTO joined (note) VALUES ('x')")
				harness.WantError(t, err, 1467, "no single table")
			})
		}
	}
}

// TestSeriesOfAnyName: a table has a series of its own, whatever its name is and in whatever character
// set the name comes.
func TestSeriesOfAnyName(t *testing.T) {
	names := []string{"my orders", "订单", "a-b", "it's", `say "so"`, "a/b", "größe", strings.Repeat("订", 40)}
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		var tables []string
		for _, name := range names {
			tables = append(tables, "CREATE TABLE `"+name+"` (id BIGINT PRIMARY KEY, note VARCHAR(10))")
		}
		schema, _ := harness.Tables(t, s, tables...)
		for _, source := range []string{`segment: {key: "file_{schema}.{table}", step: 10}`, `segment: {store: main, key: "{schema}.{table}", step: 10}`} {
			proxy := harness.StartProxy(t, harness.OneListener(s.Addr)+fmt.Sprintf(`
stores:  {main: {mysql: {dsn: %q}}}
sources: {ids: {%s}}
rules:   [{table: "%s.*", column: id, source: ids}]
`, harness.StoreDSN(s, schema), source, schema))
			db := wireclient.Open(t, proxy.Addr("a"), schema)
			inserted := func(charset, name string, want uint64) {
				id := db.Must(t, "SET NAMES "+charset, "INSERT INTO `"+name+"` (note) VALUES ('x')").InsertID
				assert.Equal(t, fmt.Sprintf("%s, the id in %q by %s", source, name, charset), id, want)
				db.Must(t, "DELETE FROM `"+name+"`")
			}
			for _, name := range names {
				inserted("utf8mb4", name, 1)
				inserted("utf8mb4", name, 2)
			}
			inserted("gbk", "\xb6\xa9\xb5\xa5", 3)
			inserted("latin1", "it's", 3)
		}
	})
}

// TestLayoutNotConsecutive fills ids that are not consecutive, since their sequence stands above
// the worker number: rows get ids of their own, ascending in row order, and the insert id is that
// of the first one.
func TestLayoutNotConsecutive(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		name, direct := harness.Tables(t, s, "CREATE TABLE a (id BIGINT PRIMARY KEY, n INT)", "CREATE TABLE b (id BIGINT PRIMARY KEY, n INT)")
		proxy := harness.StartProxy(t, harness.OneListener(s.Addr)+fmt.Sprintf(`
sources:   {ids: {snowflake: {worker: 7, layout: 39x10ms/8seq/16worker}}}
rules:     [{table: "%s.*", column: id, source: ids}]
`, name))
		db := harness.Open(t, s.Config(name), proxy.Addr("a"))
		db.SetMaxOpenConns(1)
		for i, insert := range []func() (first int64){
			func() int64 { return lastID(t, db, "INSERT INTO a (n) VALUES (0), (1), (2), (3)") },
			func() int64 { return lastID(t, db, "INSERT INTO a (n) VALUES (?), (?), (?), (?)", 0, 1, 2, 3) },
			func() int64 {
				harness.MustExec(t, db, "SET auto_increment_increment = 5")
				return lastID(t, db, "INSERT INTO a (id, n) VALUES (NULL, 0), (DEFAULT, 1), (0, 2), (NULL, 3)")
			},
		} {
			first := insert()
			ids := rowIDs(t, direct, fmt.Sprintf("SELECT id FROM a WHERE id >= %d ORDER BY n", first))
			assert.MustTrue(t, len(ids) == 4 && ids[0] == first, "insert %d: ids %d, the insert id is %d", i, ids, first)
			for k := range 3 {
				assert.True(t, ids[k+1] > ids[k] && ids[k+1] != ids[k]+1 && ids[k]%65536 == 7, "insert %d: ids %d", i, ids)
			}
		}
		harness.MustExec(t, db, "INSERT INTO b (n) SELECT x.n FROM a x, a y, a z")
		var count, workers int
		assert.Must(t, direct.QueryRow("SELECT COUNT(*), COUNT(DISTINCT id % 65536) FROM b").Scan(&count, &workers))
		assert.True(t, count == 12*12*12 && workers == 1, "%d rows of %d workers, want %d of one", count, workers, 12*12*12)
	})
}

// lastID inserts and returns the insert id.
func lastID(t *testing.T, db *sql.DB, text string, args ...any) int64 {
	t.Helper()
	return assert.Of(assert.Of(db.Exec(text, args...)).Must(t, text).LastInsertId()).Must(t)
}
