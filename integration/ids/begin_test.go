package ids

import (
	"database/sql"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// shards are two servers with the same schema: MariaDB and MySQL, either of them the first.
type shards struct {
	servers [2]*servers.Server
	direct  [2]*sql.DB
	name    string // of the schema
}

// onShards runs a test with either server as the first shard.
func onShards(t *testing.T, test func(*testing.T, *shards)) {
	both := harness.Servers(t)
	for i, first := range both {
		t.Run(first.Kind.String(), func(t *testing.T) {
			s := &shards{servers: [2]*servers.Server{first, both[1-i]}, name: harness.Database(t, first)}
			admin := harness.Open(t, s.servers[1].Config(""), "")
			harness.MustExec(t, admin, "CREATE DATABASE "+s.name)
			t.Cleanup(func() { harness.MustExec(t, admin, "DROP DATABASE "+s.name) })
			for k, server := range s.servers {
				s.direct[k] = harness.Open(t, server.Config(s.name), "")
			}
			test(t, s)
		})
	}
}

// exec runs statements on both shards.
func (s *shards) exec(t *testing.T, queries ...string) {
	t.Helper()
	for _, db := range s.direct {
		harness.MustExec(t, db, queries...)
	}
}

// listeners is the beginning of a configuration whose listeners have accounts.
func (s *shards) listeners() string {
	return fmt.Sprintf(`
listeners:
  - {name: shard0, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}
  - {name: shard1, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}
`, s.servers[0].Addr, s.servers[1].Addr)
}

// open opens a shard by its listener.
func (s *shards) open(t *testing.T, p *harness.Proxy, shard int) *sql.DB {
	t.Helper()
	return harness.Open(t, s.servers[shard].Config(s.name), p.Addr(fmt.Sprintf("shard%d", shard)))
}

// insert inserts a row by a listener and returns its id.
func insert(t *testing.T, db *sql.DB, table string) int64 {
	t.Helper()
	return assert.Of(harness.MustExec(t, db, "INSERT INTO "+table+" (note) VALUES ('x')").LastInsertId()).Must(t)
}

const beginTable = " (id BIGINT PRIMARY KEY, note VARCHAR(10))"

// TestBeginsAboveAllShards: a series that was never used begins above what its rules name on every
// listener, whichever listener is the first to ask.
func TestBeginsAboveAllShards(t *testing.T) {
	for _, tt := range []struct {
		name, source, rule string // rule has a verb for the schema
		most               string // table with the greatest id, on the second shard
		others             string // one with a greater one that has another series
	}{
		{"exact rule", "segment: {step: 10}", "table: %s.orders, column: id", "orders", "items"},
		{"wildcard", "segment: {step: 10, start: 1}", "table: %q, column: id", "items", ""},
		{"a series for each table", `segment: {key: "ids_{schema}.{table}", step: 10}`, "table: %q, column: id", "orders", "items"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onShards(t, func(t *testing.T, s *shards) {
				s.exec(t, "CREATE TABLE orders"+beginTable, "CREATE TABLE items"+beginTable)
				harness.MustExec(t, s.direct[0], "INSERT INTO orders VALUES (131072, 'a')")
				harness.MustExec(t, s.direct[1], "INSERT INTO "+tt.most+" VALUES (196607, 'a')")
				if tt.others != "" {
					harness.MustExec(t, s.direct[1], "INSERT INTO "+tt.others+" VALUES (500000, 'a')")
				}
				schema := s.name
				if strings.Contains(tt.rule, "%q") {
					schema += ".*"
				}
				p := harness.StartProxy(t, s.listeners()+fmt.Sprintf("sources: {ids: {%s}}\nrules: [{"+tt.rule+", source: ids}]\n", tt.source, schema))
				assert.Equal(t, "the series began at", insert(t, s.open(t, p, 0), "orders"), 196608)
			})
		})
	}
}

// TestBeginsQuestions: before the first id of a series a server is asked at most four questions, however many schemas it has, also for
// a name that a key writes otherwise.
func TestBeginsQuestions(t *testing.T) {
	t.Parallel()
	for _, first := range harness.Servers(t) {
		t.Run(first.Kind.String(), func(t *testing.T) {
			t.Parallel()
			second := harness.StartServer(t, first.Kind, servers.Options{})
			prefix := harness.Database(t, first)
			root := second.Config("")
			root.User, root.Passwd = servers.RootUser, servers.RootPassword
			admin, direct := harness.Open(t, root, ""), harness.Open(t, first.Config(""), "")
			schemas := width.Of(30, 300)
			for i := range schemas {
				harness.MustExec(t, admin, fmt.Sprintf("CREATE DATABASE %s_%d", prefix, i), fmt.Sprintf("CREATE TABLE %s_%d.`my orders`%s", prefix, i, beginTable))
				harness.MustExec(t, admin, fmt.Sprintf("INSERT INTO %s_%d.`my orders` VALUES (%d, 'a')", prefix, i, 1000+i))
			}
			p := harness.StartProxy(t, (&shards{servers: [2]*servers.Server{first, second}}).listeners()+fmt.Sprintf(
				"sources: {ids: {segment: {key: \"{schema}.{table}\", step: 10}}}\nrules: [{table: \"%s_*.my orders\", column: id, source: ids}]\n", prefix))
			db := harness.Open(t, first.Config(""), p.Addr("shard0"))
			harness.MustExec(t, admin, "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = ON")
			for i := range 3 {
				harness.MustExec(t, direct, fmt.Sprintf("CREATE DATABASE %s_%d", prefix, i), fmt.Sprintf("CREATE TABLE %s_%d.`my orders`%s", prefix, i, beginTable))
				t.Cleanup(func() { harness.MustExec(t, direct, fmt.Sprintf("DROP DATABASE %s_%d", prefix, i)) })
				harness.MustExec(t, admin, "TRUNCATE mysql.general_log")
				assert.Equal(t, "the series began at", insert(t, db, fmt.Sprintf("%s_%d.`my orders`", prefix, i)), int64(1001+i))
				var asked []string
				rows := assert.Of(admin.Query("SELECT argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') AND user_host LIKE 'app%'")).Must(t)
				for rows.Next() {
					var text string
					assert.Must(t, rows.Scan(&text))
					asked = append(asked, text)
				}
				assert.Must(t, rows.Err())
				t.Logf("compared: %d questions", len(asked))
				assert.LessOrEqual(t, fmt.Sprintf("questions %q", asked), len(asked), 4)
			}
		})
	}
}

// TestBeginsNotUnasked: what cannot be asked keeps a series from beginning, until someone says
// where it begins.
func TestBeginsNotUnasked(t *testing.T) {
	t.Parallel()
	silent := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t) // it takes connections and says nothing
	defer silent.Close()                                          //nolint:errcheck // it has nothing to lose
	for _, tt := range []struct {
		name string
		edit func(*shards) (old, new string)
		want []string
	}{
		{"no account", func(s *shards) (string, string) {
			return fmt.Sprintf("upstream: %q, account: {user: app, password: app}}", s.servers[1].Addr), fmt.Sprintf("upstream: %q}", s.servers[1].Addr)
		}, []string{"listener shard1 cannot be asked: it has no account", "source set ids NEXT"}},
		{
			"down", func(s *shards) (string, string) { return s.servers[1].Addr, "127.0.0.1:1" },
			[]string{"listener shard1 cannot be asked", "connection refused", "source set ids NEXT"},
		},
		{
			"silent", func(s *shards) (string, string) { return s.servers[1].Addr, silent.Addr().String() },
			[]string{"no answer yet from listener shard1", "source set ids NEXT"},
		},
		{"wrong password", func(s *shards) (string, string) {
			return fmt.Sprintf("%q, account: {user: app, password: app}", s.servers[1].Addr), fmt.Sprintf("%q, account: {user: app, password: no}", s.servers[1].Addr)
		}, []string{"listener shard1 cannot be asked", "Access denied"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onShards(t, func(t *testing.T, s *shards) {
				s.exec(t, "CREATE TABLE orders"+beginTable)
				harness.MustExec(t, s.direct[0], "INSERT INTO orders VALUES (7, 'a')")
				old, new := tt.edit(s)
				listeners := strings.Replace(s.listeners(), old, new, 1)
				assert.MustTrue(t, listeners != s.listeners(), "no %s in %s", old, listeners)
				config := listeners + "limits: {id_wait: 300ms, handshake: 3s}\nsources: {ids: {segment: {step: 10%s}}}\nrules: [{table: " + s.name + ".orders, column: id, source: ids}]\n"
				db := s.open(t, harness.StartProxy(t, fmt.Sprintf(config, "")), 0)
				var err error
				assert.Until(t, "the INSERT says why", func() bool { // not before the other shard has answered
					_, err = db.Exec("INSERT INTO orders (note) VALUES ('x')")
					harness.WantError(t, err, 1467)
					return !slices.ContainsFunc(tt.want, func(word string) bool { return !strings.Contains(err.Error(), word) })
				}, func() string { return err.Error() })
				told := s.open(t, harness.StartProxy(t, fmt.Sprintf(config, ", start: 5000")), 0)
				assert.Until(t, "the series begins", func() bool {
					_, err := told.Exec("INSERT INTO orders (note) VALUES ('x')")
					assert.MustTrue(t, err == nil || strings.Contains(err.Error(), "no answer yet"), "%v", err)
					return err == nil
				})
				assert.Equal(t, "with start the series began at", harness.Count(t, s.direct[0], "SELECT MAX(id) FROM orders"), 5000)
			})
		})
	}
}

// TestShardsShareNoID: applications that insert on both shards at once, into rows that are there,
// get no id that the other shard has. Without the guard they do.
func TestShardsShareNoID(t *testing.T) {
	t.Parallel()
	program := assert.Of(harness.BuildFaults()).Must(t)
	const there, clients, each = 2000, 4, 500
	for _, guard := range []bool{true, false} {
		t.Run(fmt.Sprintf("guard %v", guard), func(t *testing.T) {
			onShards(t, func(t *testing.T, s *shards) {
				s.exec(t, "CREATE TABLE orders"+beginTable)
				for i, from := range []int{0, there} {
					var rows []string
					for id := range there {
						rows = append(rows, fmt.Sprintf("(%d)", from+id+1))
					}
					harness.MustExec(t, s.direct[i], "INSERT INTO orders (id) VALUES "+strings.Join(rows, ","))
				}
				faults := harness.NewFaults(t, t.TempDir()+"/faults")
				if !guard {
					faults.NoBegin()
				}
				spec := harness.Spec{Dir: t.TempDir(), Env: []string{faults.Env()}, Config: s.listeners() +
					fmt.Sprintf("sources: {ids: {segment: {step: 10}}}\nrules: [{table: %s.orders, column: id, source: ids}]\n", s.name)}
				p := assert.Of(harness.Launch(t.Context(), program, spec)).Must(t)
				defer p.Stop(time.Minute) //nolint:errcheck // what counts is in the tables
				var wg sync.WaitGroup
				for c := range clients {
					shard := 0
					if guard {
						shard = c % 2
					}
					db := s.open(t, p, shard)
					wg.Go(func() {
						for range each {
							assert.Of(db.Exec("INSERT INTO orders (note) VALUES ('x')")).NoError(t)
						}
					})
				}
				wg.Wait()
				twice := s.shared(t)
				t.Logf("%d ids are on both shards", twice)
				assert.True(t, (twice > 0) != guard, "%d ids on both shards", twice)
			})
		})
	}
}

// shared counts the ids of orders that both shards have.
func (s *shards) shared(t *testing.T) (n int) {
	t.Helper()
	on := map[int64]bool{}
	for _, db := range s.direct {
		for _, id := range rowIDs(t, db, "SELECT id FROM orders") {
			if on[id] {
				n++
			}
			on[id] = true
		}
	}
	return n
}

// TestBeginsWith looks at single servers, and at what must not keep a series from beginning.
func TestBeginsWith(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		listener := func(name, more string) string {
			return fmt.Sprintf("  - {name: %s, listen: \"127.0.0.1:0\", upstream: %q%s}\n", name, server.Addr, more)
		}
		const account = ", account: {user: app, password: app}"
		for _, tt := range []struct {
			name, listeners string
			rows            []string // statements
			want            int64    // 0: 1467
			lacks           string
		}{
			{"one listener without account", listener("a", ""), []string{"INSERT INTO orders VALUES (9, 'a')"}, 10, ""},
			{"an account", listener("a", account), []string{"INSERT INTO items VALUES (70, 'a')"}, 71, ""},
			{"two listeners of one server, one account", listener("a", "") + listener("b", account), []string{"INSERT INTO items VALUES (70, 'a')"}, 71, ""},
			{"two listeners of one server, no account", listener("a", "") + listener("b", ""), []string{"INSERT INTO orders VALUES (9, 'a')"}, 10, ""},
			{"a view that nothing is inserted through", listener("a", account), []string{"CREATE VIEW totals AS SELECT COUNT(*) AS id FROM orders"}, 1, ""},
			{"a view of what is gone", listener("a", account), []string{"CREATE TABLE old (id INT)", "CREATE VIEW older AS SELECT * FROM old", "DROP TABLE old"}, 1, ""},
			{"ids that are no numbers", listener("a", account), []string{
				"CREATE TABLE days (id DATE)", "INSERT INTO days VALUES ('2026-01-01')",
				"CREATE TABLE names (id VARCHAR(20))", "INSERT INTO names VALUES ('12x'), ('44')",
			}, 1, ""},
			{"columns that a wildcard leaves alone", listener("a", account), []string{
				"CREATE TABLE codes (id INT)", "INSERT INTO codes VALUES (2147483647)",
				"CREATE TABLE fixed (id INT NOT NULL DEFAULT 7)", "INSERT INTO fixed VALUES (2147483646)",
			}, 1, ""},
			{"small columns at their end", listener("a", account), []string{"CREATE TABLE kinds (id TINYINT PRIMARY KEY)", "INSERT INTO kinds VALUES (127)"}, 128, ""},
			{"a column at its end", listener("a", account), []string{
				"CREATE TABLE dummies (id INT PRIMARY KEY)", "INSERT INTO dummies VALUES (2147483647)",
			}, 0, "dummies.id of listener a: it holds 2147483647"},
		} {
			t.Run(server.Kind.String()+", "+tt.name, func(t *testing.T) {
				name, direct := harness.Tables(t, server, "CREATE TABLE orders"+beginTable, "CREATE TABLE items"+beginTable)
				harness.MustExec(t, direct, tt.rows...)
				p := harness.StartProxy(t, "listeners:\n"+tt.listeners+fmt.Sprintf("sources: {ids: {segment: {step: 10}}}\nrules: [{table: %q, column: id, source: ids}]\n", name+".*"))
				db := harness.Open(t, server.Config(name), p.Addr("a"))
				if tt.want == 0 {
					_, err := db.Exec("INSERT INTO orders (note) VALUES ('x')")
					harness.WantError(t, err, 1467, tt.lacks, "source set ids NEXT")
					return
				}
				assert.Equal(t, "the series began at", insert(t, db, "orders"), tt.want)
			})
		}
	}
}

// TestBeginsUnderLocks: a client that has locked the table it fills, as a dump does, is no reason
// to wait for; another table that is locked is.
func TestBeginsUnderLocks(t *testing.T) {
	t.Parallel()
	onShards(t, func(t *testing.T, s *shards) {
		s.exec(t, "CREATE TABLE orders"+beginTable)
		harness.MustExec(t, s.direct[1], "INSERT INTO orders VALUES (50, 'a')")
		db := s.open(t, harness.StartProxy(t, s.listeners()+fmt.Sprintf("sources: {ids: {segment: {step: 10}}}\nrules: [{table: %s.orders, column: id, source: ids}]\n", s.name)), 0)
		other := assert.Of(s.direct[1].Conn(t.Context())).Must(t)
		defer other.Close()
		client := assert.Of(db.Conn(t.Context())).Must(t)
		defer client.Close()
		exec := func(on *sql.Conn, query string) error {
			_, err := on.ExecContext(t.Context(), query)
			return err
		}
		assert.Must(t, exec(other, "LOCK TABLES orders WRITE"))
		assert.Must(t, exec(client, "LOCK TABLES orders WRITE"))
		harness.WantError(t, exec(client, "INSERT INTO orders (note) VALUES ('x')"), 1467, "orders.id of listener shard1", "locked")
		assert.Must(t, exec(other, "UNLOCK TABLES"))
		assert.Until(t, "the series begins", func() bool { return exec(client, "INSERT INTO orders (note) VALUES ('x')") == nil })
		assert.Must(t, exec(client, "UNLOCK TABLES"))
		assert.Equal(t, "the series began at", harness.Count(t, s.direct[0], "SELECT MIN(id) FROM orders"), 51)
	})
}

// TestBeginsWhereTold: a key that source set has made begins there, though a listener cannot be
// asked; and a table that the account may not read is one.
func TestBeginsWhereTold(t *testing.T) {
	t.Parallel()
	onShards(t, func(t *testing.T, s *shards) {
		s.exec(t, "CREATE TABLE orders"+beginTable)
		harness.MustExec(t, s.direct[1], "INSERT INTO orders VALUES (50, 'a')")
		root := s.servers[1].Config("")
		root.User, root.Passwd = servers.RootUser, servers.RootPassword
		admin := harness.Open(t, root, "")
		user := s.name + "_reader"
		harness.MustExec(t, admin, "CREATE USER '"+user+"'@'%' IDENTIFIED BY 'p'")
		t.Cleanup(func() { harness.MustExec(t, admin, "DROP USER '"+user+"'@'%'") })
		config := strings.Replace(s.listeners(), fmt.Sprintf("%q, account: {user: app, password: app}", s.servers[1].Addr), fmt.Sprintf("%q, account: {user: %s, password: p}", s.servers[1].Addr, user), 1) +
			fmt.Sprintf("stores: {main: {mysql: {dsn: %q}}}\nsources: {ids: {segment: {store: main, key: \"ids_{table}\", step: 10}}}\nrules: [{table: %s.orders, column: id, source: ids}]\n", harness.StoreDSN(s.servers[0], s.name), s.name)
		p := harness.StartProxy(t, config)
		db := s.open(t, p, 0)
		_, err := db.Exec("INSERT INTO orders (note) VALUES ('x')")
		harness.WantError(t, err, 1467, "listener shard1 cannot be asked", "orders", "denied", "source set ids NEXT --key ids_orders")
		out, err := harness.Command(t, "source", "set", "ids", "700", "--key", "ids_orders", "--config", p.ConfigPath)
		assert.Must(t, err, out)
		assert.Equal(t, "the series began at", insert(t, db, "orders"), 700)
	})
}

// TestBeginsBehindViews: a series that is filled through a view is that of the view's table, on the
// other shards, too.
func TestBeginsBehindViews(t *testing.T) {
	onShards(t, func(t *testing.T, s *shards) {
		s.exec(t, "CREATE TABLE orders"+beginTable, "CREATE VIEW shown AS SELECT id AS nr, note FROM orders WHERE id < 5000 OR id > 200000")
		harness.MustExec(t, s.direct[1], "INSERT INTO orders VALUES (50, 'a'), (196607, 'a')")
		p := harness.StartProxy(t, s.listeners()+fmt.Sprintf("sources: {ids: {segment: {key: \"ids_{table}\", step: 10}}}\nrules: [{table: %s.shown, column: nr, source: ids}]\n", s.name))
		assert.Equal(t, "the series began at", insert(t, s.open(t, p, 0), "shown"), 196608)
	})
}

// joined is a proxy in front of two shards whose series has begun when a reload brings it a table.
type joined struct {
	*shards
	*harness.Proxy
	config string
}

func startJoined(t *testing.T, s *shards, listeners string) *joined {
	t.Helper()
	s.exec(t, "CREATE TABLE orders"+beginTable, "CREATE TABLE late"+beginTable)
	harness.MustExec(t, s.direct[1], "INSERT INTO late VALUES (50000, 'a')")
	j := &joined{shards: s, config: listeners + "sources: {ids: {segment: {step: 100, start: 1}}}\nrules:\n" + ruleFor(s, "orders")}
	j.Proxy = harness.StartProxy(t, j.config)
	assert.MustEqual(t, "the series began at", insert(t, s.open(t, j.Proxy, 0), "orders"), 1)
	return j
}

func ruleFor(s *shards, table string) string {
	return fmt.Sprintf("  - {table: %s.%s, column: id, source: ids}\n", s.name, table)
}

// reload adds rules to those that the proxy started with.
func (j *joined) reload(t *testing.T, more string) {
	t.Helper()
	from := strings.Count(j.Log(), "configuration reloaded")
	assert.Must(t, j.Reload(j.config+more))
	assert.Until(t, "it has reloaded", func() bool { return strings.Count(j.Log(), "configuration reloaded") > from })
}

// TestReloadJoins: a table with higher ids that a reload brings to a series which has begun gets
// ids above them, whichever shard has them, and again when its rule was gone for a while.
func TestReloadJoins(t *testing.T) {
	onShards(t, func(t *testing.T, s *shards) {
		j := startJoined(t, s, s.listeners())
		want := func(shard int, table string, id int64) {
			t.Helper()
			assert.Equal(t, fmt.Sprintf("%s on shard %d: id", table, shard), insert(t, s.open(t, j.Proxy, shard), table), id)
		}
		j.reload(t, ruleFor(s, "late"))
		want(0, "late", 50001)
		want(1, "late", 50002)
		want(0, "orders", 50003)
		j.reload(t, "")
		harness.MustExec(t, s.direct[1], "INSERT INTO late VALUES (50050, 'a')") // as the application does without the rule
		j.reload(t, ruleFor(s, "late"))
		want(0, "late", 50051)
	})
}

// TestReloadJoinsNotUnasked: where the ids of a table that joins a series are not known, it gets
// none; others do.
func TestReloadJoinsNotUnasked(t *testing.T) {
	onShards(t, func(t *testing.T, s *shards) {
		account := fmt.Sprintf("%q, account: {user: app, password: ", s.servers[1].Addr)
		j := startJoined(t, s, strings.Replace(s.listeners(), account+"app", account+"no", 1))
		j.reload(t, ruleFor(s, "late"))
		db := s.open(t, j.Proxy, 0)
		_, err := db.Exec("INSERT INTO late (note) VALUES ('x')")
		harness.WantError(t, err, 1467, "a reload brought tables to the series", "listener shard1 cannot be asked", "source set ids NEXT")
		assert.Equal(t, "the id for a table that was there", insert(t, db, "orders"), 2)
	})
}
