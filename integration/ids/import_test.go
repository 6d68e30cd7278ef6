package ids

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// idproxyCommand runs a command of the program on a configuration and returns what it prints.
func idproxyCommand(t *testing.T, config string, args ...string) (out []byte, err error) {
	t.Helper()
	program := assert.Of(harness.Build()).Must(t)
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	assert.Must(t, os.WriteFile(path, []byte(config), 0o600))
	return exec.Command(program, append(args, "--config", path)...).CombinedOutput()
}

// TestImport takes over the tables of Leaf, of tinyid and of two ticket servers: the first id is
// the next one those would have given, and a second import moves nothing.
func TestImport(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	old, odd, even, store := harness.Database(t, s), harness.Database(t, s), harness.Database(t, s), harness.Database(t, s)
	db := harness.Open(t, s.Config(old), "")
	for _, q := range []string{
		"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, " +
			"description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 2000), ('unknown', 77, 10)",
		"UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'orders'", // Leaf gives 1 to 2000 now
		"CREATE TABLE tiny_id_info (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_type VARCHAR(63) NOT NULL DEFAULT '', begin_id BIGINT NOT NULL DEFAULT 0, " +
			"max_id BIGINT NOT NULL DEFAULT 0, step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0, version BIGINT NOT NULL DEFAULT 0)",
		"INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step) VALUES ('test', 1, 100000, 100000)",
	} {
		harness.MustExec(t, db, q)
	}
	for offset, name := range map[int]string{1: odd, 2: even} {
		db := harness.Open(t, s.Config(name), "")
		db.SetMaxOpenConns(1)
		harness.MustExec(t, db, "CREATE TABLE Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, stub CHAR(1) NOT NULL DEFAULT '', PRIMARY KEY (id), UNIQUE KEY stub (stub))")
		harness.MustExec(t, db, fmt.Sprintf("SET auto_increment_increment = 2, auto_increment_offset = %d", offset))
		for range 20 * offset {
			harness.MustExec(t, db, "REPLACE INTO Tickets64 (stub) VALUES ('a')")
		}
	}
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
stores:    {main: {mysql: {dsn: %q}}}
sources:
  order_id:  {segment: {store: main, key: orders}}
  test_id:   {segment: {store: main}}
  ticket_id: {segment: {store: main}}
rules:
  - {table: "%[3]s.t", column: a, source: order_id}
  - {table: "%[3]s.t", column: b, source: test_id}
  - {table: "%[3]s.t", column: c, source: ticket_id}
`, s.Addr, harness.StoreDSN(s, store), old)
	for round := range 2 {
		for _, args := range [][]string{
			{"--format", "leaf", "--from", s.DSN(old)},
			{"--format", "tinyid", "--from", s.DSN(old), "test=test_id"},
			{"--format", "tickets64", "--from", s.DSN(odd), "--from", s.DSN(even), "ticket_id"},
		} {
			dry, err := idproxyCommand(t, config, append([]string{"source", "import", "--dry-run"}, args...)...)
			assert.Must(t, err, "import --dry-run", string(dry))
			out, err := idproxyCommand(t, config, append([]string{"source", "import", "--json"}, args...)...)
			var got struct {
				Tags []struct{ Tag, Source, Result string }
			}
			jerr := json.Unmarshal(out, &got)
			assert.MustTrue(t, err == nil && jerr == nil, "%q: %v: %s", args, err, out)
			want := []string{"moved from 0", "stays: it is there already"}[round]
			assert.True(t, got.Tags[0].Result == want, "round %d, %q: %+v, want %q", round, args, got.Tags[0], want)
		}
	}
	proxy := harness.StartProxy(t, config)
	harness.MustExec(t, db, "CREATE TABLE t (a BIGINT, b BIGINT, c BIGINT, n INT)")
	harness.MustExec(t, harness.Open(t, s.Config(old), proxy.Addr("a")), "INSERT INTO t (n) VALUES (1)")
	var a, b, c int
	assert.Must(t, db.QueryRow("SELECT a, b, c FROM t").Scan(&a, &b, &c))
	assert.True(t, a == 2001 && b == 100001 && c == 81, "first ids %d, %d, %d, want 2001 after Leaf's, 100001 after tinyid's, 81 after ticket 80", a, b, c)
	out, err := idproxyCommand(t, config, "source", "import", "--format", "leaf", "--from", s.DSN(old), "gone=order_id")
	assert.True(t, err != nil, "a tag that is not there was imported: %s", out)
}

// TestSeveralStores writes through two proxies whose ids come from a MariaDB and a MySQL server,
// and kills one of these after the other: no INSERT fails, and no id comes twice.
func TestSeveralStores(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	direct := harness.Open(t, s.Config(name), "")
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	stores := []*servers.Server{harness.StartServer(t, servers.MariaDB, servers.Options{}), harness.StartServer(t, servers.MySQL, servers.Options{})}
	var dsns []string
	for _, st := range stores {
		dsns = append(dsns, harness.StoreDSN(st, harness.Database(t, st)))
	}
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
stores:    {tickets: {mysql: {dsns: [%q, %q]}}}
limits:    {id_wait: 1m} # a server of a busy machine may take longer than its second
sources:   {ids: {segment: {store: tickets, step: 20, max_step: 20}}}
rules:     [{table: "*.t", column: id, source: ids}]
`, s.Addr, dsns[0], dsns[1])
	insert := func(p *harness.Proxy, n int) {
		t.Helper()
		db := harness.Open(t, s.Config(name), p.Addr("a"))
		for range n {
			assert.Of(db.Exec("INSERT INTO t (a) VALUES (1), (2), (3)")).Must(t, "INSERT")
		}
	}
	first := harness.StartProxy(t, config)
	insert(first, 50)
	for i, st := range stores {
		assert.Must(t, st.Kill())
		insert(first, 50)
		insert(harness.StartProxy(t, config), 50) // one that starts while a store is down
		assert.Must(t, st.Start(t.Context()))
		insert(first, 50)
		within(t, "source show", func() error {
			out, err := idproxyCommand(t, config, "source", "show", "ids", "--json")
			var shown struct {
				Servers []struct {
					Next, Seen uint64
					Error      string
				}
			}
			if jerr := json.Unmarshal(out, &shown); err != nil || jerr != nil || len(shown.Servers) != 2 || shown.Servers[i].Error != "" {
				return fmt.Errorf("%v: %s", err, out)
			}
			return nil
		})
	}
	rows, blocks := harness.Count(t, direct, "SELECT COUNT(*) FROM t"), harness.Count(t, direct, "SELECT COUNT(DISTINCT id DIV 1000000 % 2) FROM t")
	assert.True(t, rows == 3*(50+2*150) && blocks == 2, "%d rows with ids of %d servers, want 1050 of both", rows, blocks)
}
