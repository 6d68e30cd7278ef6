package fleet

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// shards are schemas of a few servers. Each has a user of its own, who sees nothing else, and a
// socket of its own, so that to an idproxy each is a server.
type shards struct {
	dir     string
	servers []*servers.Server
	tables  int
	n       int
	first   int // that the fleet began with
}

// newShards makes the shards of a fleet.
func newShards(t *testing.T, s size) *shards {
	t.Helper()
	all := &shards{dir: shortDir(t), tables: s.tables, first: s.shards}
	for range s.servers {
		all.servers = append(all.servers, harness.StartServer(t, servers.MariaDB, servers.Options{Args: []string{
			"--max-connections=6000", "--performance-schema=OFF", "--table-open-cache=2000", "--thread-cache-size=256",
		}}))
	}
	for range s.shards {
		all.add(t)
	}
	return all
}

// shortDir is a folder whose name leaves room for the names of sockets, which have 107 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir := assert.Of(os.MkdirTemp("", "fleet")).Must(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// columns have no unique key: an id that comes twice shall be seen, not refused.
const columns = "(id BIGINT NOT NULL, a INT, KEY (id)) ENGINE=MyISAM"

// name is that of a table.
func name(table int) string { return fmt.Sprintf("t%03d", table) }

// names are those of all tables.
func (s *shards) names() (all []string) {
	for table := range s.tables {
		all = append(all, name(table))
	}
	return all
}

func (s *shards) server(shard int) *servers.Server { return s.servers[shard%len(s.servers)] }

func (s *shards) socket(shard int) string {
	return filepath.Join(s.dir, fmt.Sprintf("shard%02d.sock", shard))
}

// add makes one more shard.
func (s *shards) add(t *testing.T) {
	t.Helper()
	shard := s.n
	assert.Must(t, os.Symlink(s.server(shard).Socket, s.socket(shard)))
	var text strings.Builder
	fmt.Fprintf(&text, "CREATE DATABASE s%02d; CREATE USER u%02[1]d@'%%' IDENTIFIED BY 'app'; GRANT ALL ON s%02[1]d.* TO u%02[1]d@'%%'", shard)
	for table := range s.tables {
		fmt.Fprintf(&text, "; CREATE TABLE s%02d.%s "+columns, shard, name(table))
	}
	exec(t, s.server(shard), text.String())
	s.n++
}

func exec(t *testing.T, s *servers.Server, text string) {
	t.Helper()
	c := s.Config("")
	c.MultiStatements = true
	db := sql.OpenDB(assert.Of(mysql.NewConnector(c)).Must(t))
	defer db.Close()
	assert.Of(db.Exec(text)).Must(t, fmt.Sprintf("%.100s", text))
}

// twice counts the rows of tables, and those whose id another row of the table has on any shard.
func (s *shards) twice(t *testing.T, tables []string) (rows, repeated int) {
	t.Helper()
	var dbs []*sql.DB
	for _, server := range s.servers {
		dbs = append(dbs, harness.Open(t, server.Config(""), ""))
	}
	for _, table := range tables {
		seen := map[uint64]bool{}
		for i, db := range dbs {
			var selects []string
			for shard := i; shard < s.n; shard += len(dbs) {
				selects = append(selects, fmt.Sprintf("SELECT id FROM s%02d.%s", shard, table))
			}
			found := assert.Of(db.Query(strings.Join(selects, " UNION ALL "))).Must(t)
			for found.Next() {
				var id uint64
				assert.Must(t, found.Scan(&id))
				if rows++; seen[id] {
					repeated++
				}
				seen[id] = true
			}
			assert.Must(t, found.Err())
		}
	}
	return rows, repeated
}

// store keeps the positions of the series.
type store interface {
	config() string              // in the section stores
	statements(t *testing.T) int // it was asked so far
	// use has series stand where one stands that was used, as if they had been used, too.
	use(t *testing.T, as string, series []string)
	kill() error
	start(t *testing.T)
}

type mysqlStore struct {
	server *servers.Server
	db     *sql.DB
}

func newMySQLStore(t *testing.T) store {
	t.Helper()
	server := harness.StartServer(t, servers.MariaDB, servers.Options{Args: []string{"--innodb-flush-log-at-trx-commit=1", "--performance-schema=OFF"}})
	exec(t, server, "CREATE DATABASE ids")
	return &mysqlStore{server, harness.Open(t, server.Config(""), "")}
}

func (s *mysqlStore) config() string {
	return fmt.Sprintf("{mysql: {dsn: %q}}", harness.StoreDSN(s.server, "ids"))
}

func (s *mysqlStore) statements(t *testing.T) int {
	t.Helper()
	var name string
	var n int
	assert.Must(t, s.db.QueryRow("SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n))
	return n
}

func (s *mysqlStore) use(t *testing.T, as string, series []string) {
	t.Helper()
	for _, name := range series {
		exec(t, s.server, fmt.Sprintf("INSERT INTO ids.idproxy_segment (biz_tag, max_id, step) SELECT '%s', max_id, step FROM ids.idproxy_segment WHERE biz_tag = '%s'", name, as))
	}
}

func (s *mysqlStore) kill() error { return s.server.Kill() }

func (s *mysqlStore) start(t *testing.T) {
	t.Helper()
	assert.Must(t, s.server.Start(t.Context()))
}

type etcdStore struct{ server *servers.Etcd }

func newEtcdStore(t *testing.T) store {
	t.Helper()
	server := assert.Of(servers.StartEtcd(t.Context())).Must(t)
	t.Cleanup(func() { _ = server.Stop() })
	return &etcdStore{server}
}

func (s *etcdStore) config() string { return fmt.Sprintf("{etcd: {endpoints: [%q]}}", s.server.Addr) }

var handled = regexp.MustCompile(`(?m)^grpc_server_started_total\{[^}]*grpc_service="etcdserverpb\.KV"[^}]*\} (\S+)$`)

func (s *etcdStore) statements(t *testing.T) (n int) {
	t.Helper()
	answer := assert.Of(http.Get("http://" + s.server.Addr + "/metrics")).Must(t)
	defer answer.Body.Close()
	for _, m := range handled.FindAllSubmatch(assert.Of(io.ReadAll(answer.Body)).Must(t), -1) {
		n += int(assert.Of(strconv.ParseFloat(string(m[1]), 64)).Must(t))
	}
	return n
}

func (s *etcdStore) use(t *testing.T, as string, series []string) {
	t.Helper()
	const prefix = "/idproxy/segment/"
	was := s.ask(t, "range", map[string][]byte{"key": []byte(prefix + as)})
	assert.MustTrue(t, len(was.Values) == 1, "etcd has %d keys %s", len(was.Values), as)
	for _, name := range series {
		s.ask(t, "put", map[string][]byte{"key": []byte(prefix + name), "value": was.Values[0].Value})
	}
}

// values are what etcd answers over HTTP.
type values struct {
	Values []struct{ Value []byte } `json:"kvs"`
}

func (s *etcdStore) ask(t *testing.T, what string, question map[string][]byte) (answer values) {
	t.Helper()
	body := assert.Of(json.Marshal(question)).Must(t)
	r := assert.Of(http.Post("http://"+s.server.Addr+"/v3/kv/"+what, "application/json", bytes.NewReader(body))).Must(t)
	defer r.Body.Close()
	assert.Must(t, json.NewDecoder(r.Body).Decode(&answer))
	return answer
}

func (s *etcdStore) kill() error { return s.server.Kill() }

func (s *etcdStore) start(t *testing.T) {
	t.Helper()
	assert.Must(t, s.server.Start(t.Context()))
}
