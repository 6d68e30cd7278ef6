package fleet

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

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
	page := assert.Of(io.ReadAll(answer.Body)).Must(t)
	for _, m := range handled.FindAllSubmatch(page, -1) {
		calls := assert.Of(strconv.ParseFloat(string(m[1]), 64)).Must(t)
		n += int(calls)
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
	Values []struct {
		Value []byte `json:"value"`
	} `json:"kvs"`
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
