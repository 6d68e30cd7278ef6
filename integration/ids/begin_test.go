package ids

import (
	"database/sql"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
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

// exec runs a statement on both shards.
func (s *shards) exec(t *testing.T, query string) {
	t.Helper()
	for _, db := range s.direct {
		harness.MustExec(t, db, query)
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
	id := assert.Of(harness.MustExec(t, db, "INSERT INTO "+table+" (note) VALUES ('x')").LastInsertId()).Must(t)
	return id
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
				for _, table := range []string{"orders", "items"} {
					s.exec(t, "CREATE TABLE "+table+beginTable)
				}
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

// TestBeginsNotUnasked: what cannot be asked keeps a series from beginning, until someone says
// where it begins.
func TestBeginsNotUnasked(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and says nothing
	assert.Must(t, err)
	defer silent.Close() //nolint:errcheck // it has nothing to lose
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
				for range 2 {
					_, err := db.Exec("INSERT INTO orders (note) VALUES ('x')")
					harness.WantError(t, err, 1467, tt.want...)
				}
				told := s.open(t, harness.StartProxy(t, fmt.Sprintf(config, ", start: 5000")), 0)
				deadline := time.Now().Add(time.Minute)
				for {
					_, err := told.Exec("INSERT INTO orders (note) VALUES ('x')")
					if err == nil {
						break
					}
					assert.MustTrue(t, strings.Contains(err.Error(), "no answer yet") && !time.Now().After(deadline), "%v", err)
				}
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
							if _, err := db.Exec("INSERT INTO orders (note) VALUES ('x')"); err != nil {
								t.Error(err)
								return
							}
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
		rows := assert.Of(db.Query("SELECT id FROM orders")).Must(t)
		defer rows.Close()
		for rows.Next() {
			var id int64
			assert.Must(t, rows.Scan(&id))
			if on[id] {
				n++
			}
			on[id] = true
		}
		assert.Must(t, rows.Err())
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
			{
				"a column at its end", listener("a", account),
				[]string{"CREATE TABLE dummies (id INT PRIMARY KEY)", "INSERT INTO dummies VALUES (2147483647)"},
				0,
				"dummies.id of listener a: it holds 2147483647",
			},
		} {
			t.Run(server.Kind.String()+", "+tt.name, func(t *testing.T) {
				name := harness.Database(t, server)
				direct := harness.Open(t, server.Config(name), "")
				harness.MustExec(t, direct, "CREATE TABLE orders"+beginTable)
				harness.MustExec(t, direct, "CREATE TABLE items"+beginTable)
				for _, sql := range tt.rows {
					harness.MustExec(t, direct, sql)
				}
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
		other, err := s.direct[1].Conn(t.Context())
		assert.Must(t, err)
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
		deadline := time.Now().Add(time.Minute)
		for err = exec(client, "INSERT INTO orders (note) VALUES ('x')"); err != nil; err = exec(client, "INSERT INTO orders (note) VALUES ('x')") {
			assert.MustTrue(t, !time.Now().After(deadline), "%v", err)
		}
		assert.Must(t, exec(client, "UNLOCK TABLES"))
		assert.Equal(t, "the series began at", harness.Count(t, s.direct[0], "SELECT MIN(id) FROM orders"), 51)
	})
}

// TestBeginsWhereTold: a key that source set has made begins there, though a listener cannot be
// asked; and a table that the account may not read is one.
func TestBeginsWhereTold(t *testing.T) {
	t.Parallel()
	program := assert.Of(harness.Build()).Must(t)
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
		out, err := exec.Command(program, "source", "set", "ids", "700", "--key", "ids_orders", "--config", p.ConfigPath).CombinedOutput()
		assert.Must(t, err, string(out))
		assert.Equal(t, "the series began at", insert(t, db, "orders"), 700)
	})
}

// TestBeginsBehindViews: a series that is filled through a view is that of the view's table, on the
// other shards, too.
func TestBeginsBehindViews(t *testing.T) {
	onShards(t, func(t *testing.T, s *shards) {
		s.exec(t, "CREATE TABLE orders"+beginTable)
		s.exec(t, "CREATE VIEW shown AS SELECT id AS nr, note FROM orders WHERE id < 5000 OR id > 200000")
		harness.MustExec(t, s.direct[1], "INSERT INTO orders VALUES (50, 'a'), (196607, 'a')")
		p := harness.StartProxy(t, s.listeners()+fmt.Sprintf("sources: {ids: {segment: {key: \"ids_{table}\", step: 10}}}\nrules: [{table: %s.shown, column: nr, source: ids}]\n", s.name))
		assert.Equal(t, "the series began at", insert(t, s.open(t, p, 0), "shown"), 196608)
	})
}
