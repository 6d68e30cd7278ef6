package pages

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/process"
	"idproxy/integration/servers"
)

// world is the servers that pages name, at the addresses at which pages have them. Pages run as they stand.
type world struct {
	t            *testing.T
	shards       [2]*sql.DB
	redis        *servers.Redis
	certificates string
}

// secret is the password of accounts, and token that of programs.
const (
	secret = "secret"
	token  = "a-token-of-thirty-two-characters"
)

// variables are what pages have in the environment.
var variables = []string{
	"PW=" + secret, "IDPROXY_PASSWORD=" + secret, "IDPROXY_ADMIN_TOKEN=" + token, "ORDER_TOKEN=" + token, "APP=" + token,
	"BILLING_TOKEN=" + token, "REPORTS_TOKEN=other-" + token, "SCRAMBLE_KEY=0123456789abcdef0123456789abcdef",
	"LISTENER=shard0", "SOURCE=order_id",
}

// lookup returns one of them.
func lookup(name string) (string, bool) {
	for _, v := range variables {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// newWorld starts the servers.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, certificates: t.TempDir()}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	assert.Must(t, servers.WriteCertificates(w.certificates, "db1", "10.0.0.7"))
	file := func(name string) string { return filepath.Join(w.certificates, name) }
	args := []string{
		"--proxy-protocol-networks=*", "--ssl-ca=" + file("ca.pem"), "--ssl-cert=" + file("server.pem"), "--ssl-key=" + file("server.key"),
		"--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1",
	}
	var at [2]string
	for i := range at {
		s := harness.StartServer(t, servers.MariaDB, servers.Options{Args: args})
		w.shards[i], at[i] = harness.Open(t, s.Config(""), ""), s.Addr
		for _, account := range []string{"idproxy@'%' IDENTIFIED BY '" + secret + "'", "u@'%' IDENTIFIED BY 'p'"} {
			harness.MustExec(t, w.shards[i], "CREATE USER "+account)
			harness.MustExec(t, w.shards[i], "GRANT ALL ON *.* TO "+strings.Split(account, " ")[0])
		}
	}
	redis, err1 := servers.StartRedis(t.Context(), "--appendonly", "yes")
	etcd, err2 := servers.StartEtcd(t.Context())
	zookeeper, err3 := servers.StartZooKeeper(t.Context())
	assert.Must(t, errors.Join(err1, err2, err3))
	w.redis = redis
	t.Cleanup(func() { assert.NoError(t, errors.Join(redis.Stop(), etcd.Stop(), zookeeper.Stop())) })
	for server, addresses := range map[string]string{
		at[0]:          "127.0.0.1:3306 127.0.0.1:13769 10.0.0.5:3306 10.0.0.7:3306 10.0.0.9:3306 10.0.0.20:3306 10.0.0.23:8066",
		at[1]:          "10.0.0.6:3306 10.0.0.21:3306 10.0.0.22:3306",
		redis.Addr:     "127.0.0.1:6379",
		etcd.Addr:      "127.0.0.1:2379 10.0.0.1:2379 10.0.0.2:2379 10.0.0.3:2379",
		zookeeper.Addr: "10.0.0.1:2181 10.0.0.2:2181 10.0.0.3:2181",
	} {
		for address := range strings.FieldsSeq(addresses) {
			reach(t, address, server)
		}
	}
	return w
}

// databases are those that both shards have, with their tables.
var databases = []struct{ name, tables string }{
	{"idproxy", ""},
	{"shop", "CREATE TABLE shop.orders (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer VARCHAR(50), item VARCHAR(50), user_id BIGINT)"},
	{"leaf", `CREATE TABLE leaf.leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256),
		update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag));
		INSERT INTO leaf.leaf_alloc (biz_tag, max_id, step) VALUES ('order_id', 2001, 2000), ('orders', 2001, 2000), ('refunds', 77, 10)`},
	{"tinyid", `CREATE TABLE tinyid.tiny_id_info (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_type VARCHAR(63) NOT NULL DEFAULT '', begin_id BIGINT NOT NULL DEFAULT 0,
		max_id BIGINT NOT NULL DEFAULT 0, step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0, version BIGINT NOT NULL DEFAULT 0);
		INSERT INTO tinyid.tiny_id_info (biz_type, begin_id, max_id, step) VALUES ('test', 1, 100000, 100000)`},
	{"t", `CREATE TABLE t.Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, stub CHAR(1) NOT NULL DEFAULT '', PRIMARY KEY (id), UNIQUE KEY stub (stub));
		REPLACE INTO t.Tickets64 (stub) VALUES ('a')`},
}

// renew makes all databases anew, and forgets what Redis has.
func (w *world) renew() {
	w.t.Helper()
	for _, shard := range w.shards {
		for _, d := range databases {
			harness.MustExec(w.t, shard, "DROP DATABASE IF EXISTS "+d.name)
			harness.MustExec(w.t, shard, "CREATE DATABASE "+d.name)
			for statement := range strings.SplitSeq(d.tables, ";") {
				if statement != "" {
					harness.MustExec(w.t, shard, statement)
				}
			}
		}
	}
	assert.Of(w.redis.Do("FLUSHALL")).Must(w.t)
}

// installed is the configuration of a host on which idproxy is installed, and installedAt where it is.
const installedAt = "/etc/idproxy/idproxy.yaml"

const installed = `listeners:
  - {name: shard0, listen: 127.0.0.1:3307, upstream: "db0:3306", account: {user: idproxy, password: "${PW}"}}
  - {name: shard1, listen: 127.0.0.1:3308, upstream: "db1:3306", account: {user: idproxy, password: "${PW}"}}
admin: {listen: 127.0.0.1:9307, socket: unix:/etc/idproxy/admin.sock}
stores:
  main: {mysql: {dsn: "idproxy:${PW}@tcp(10.0.0.9:3306)/idproxy"}}
  leases: {redis: {addrs: ["127.0.0.1:6379"]}}
ids: {users_in: main, http: {listen: 127.0.0.1:9308}}
sources:
  order_id: {segment: {store: main}}
  ticket_id: {segment: {store: main}}
  event_id: {snowflake: {workers: leases}}
rules:
  - {table: shop.orders, column: id, source: order_id}
`

// scene is a reader's host, in a section of a page. Commands run in a folder of their own; as long as that
// has no idproxy.yaml they find the one of /etc/idproxy.
type scene struct {
	*world
	dir     string
	changed bool // the host is not as it was at first, which an idproxy.yaml in the folder says as well
	running []*process.Process
	last    string // what the last command printed

	commands, configurations int // that were run
}

func (s *scene) isChanged() bool { return s.changed || s.file() != installedAt }

// begin makes the host as it is at first. Nothing runs on it.
func (s *scene) begin() error {
	s.t.Helper()
	if err := s.end(); err != nil {
		return err
	}
	s.renew()
	s.dir, s.changed = s.t.TempDir(), false
	err := errors.Join(
		os.RemoveAll("/etc/idproxy"), os.Mkdir("/etc/idproxy", 0o755), os.Mkdir(filepath.Join(s.dir, "bin"), 0o755),
		os.WriteFile(installedAt, []byte(installed), 0o600), os.WriteFile("/etc/idproxy/password", []byte(secret), 0o600),
		os.Symlink(program(), filepath.Join(s.dir, "bin/idproxy")), os.WriteFile(filepath.Join(s.dir, "password"), []byte(secret), 0o600),
	)
	for name, from := range map[string]string{
		"ca.pem": "ca.pem", "clients.pem": "ca.pem", "server.pem": "server.pem", "server.key": "server.key", "ids.pem": "server.pem", "ids.key": "server.key",
		"client.pem": "client.pem", "client.key": "client.key",
	} {
		err = errors.Join(err, os.Symlink(filepath.Join(s.certificates, from), filepath.Join(s.dir, name)))
	}
	return err
}

// end stops what runs.
func (s *scene) end() (err error) {
	for _, p := range s.running {
		err = errors.Join(err, p.Stop(time.Minute))
	}
	s.running = nil
	return err
}

// stop ends what runs at the end of a test.
func (s *scene) stop() { assert.NoError(s.t, s.end()) }

// bash runs a line in the reader's folder, and returns an error when it fails.
func (s *scene) bash(line string) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = s.dir, s.environment()
	out, err := cmd.CombinedOutput()
	s.last = string(out)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (s *scene) environment() []string {
	tools := filepath.Join(s.repository(), ".tools")
	path := fmt.Sprintf("PATH=%s:%s:%s/etcd-client:%s/prometheus:/usr/sbin", filepath.Join(s.dir, "bin"), os.Getenv("PATH"), tools, tools)
	return append(os.Environ(), path)
}

// repository is its folder.
func (s *scene) repository() string {
	folder := assert.Of(filepath.Abs(root)).Must(s.t)
	return folder
}

// file is the configuration that commands find.
func (s *scene) file() string {
	if _, err := os.Stat(filepath.Join(s.dir, "idproxy.yaml")); err == nil {
		return filepath.Join(s.dir, "idproxy.yaml")
	}
	return installedAt
}

// started has idproxy run, unless it does, and give ids.
func (s *scene) started() error {
	if len(s.running) > 0 {
		return nil
	}
	if err := s.pools(s.file()); err != nil {
		return err
	}
	if err := s.serve(s.file()); err != nil {
		return err
	}
	return s.insert()
}

// pools makes the pools of worker numbers that are not there.
func (s *scene) pools(file string) error {
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	for _, source := range c.Sources {
		if f := source.Snowflake; f != nil && f.Workers != "" && s.bash("idproxy worker list --config "+file+" --source "+source.Name) != nil {
			n := 16
			if f.Disposable {
				n = 0
			}
			if err := s.bash(fmt.Sprintf("idproxy worker add %d --new-pool --config %s --source %s", n, file, source.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve starts idproxy and waits until it is ready.
func (s *scene) serve(file string) error {
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	if err := s.bash("idproxy source create --all --config " + file + " || true"); err != nil { // what it cannot open is refused
		return err
	}
	p, err := process.Start(process.Spec{
		Path: program(), Args: []string{"serve", "--config", file}, Dir: s.dir, Log: filepath.Join(s.t.TempDir(), "idproxy.log"),
	})
	if err != nil {
		return err
	}
	ready := "true"
	if c.Admin != nil {
		ready = "idproxy status --config " + file
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	err = p.Poll(ctx, func() bool {
		return strings.Count(p.Log(), "msg=listening") >= len(c.Listeners) && s.bash(ready) == nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%w\n%s%s", err, s.last, p.Log()), p.Kill())
	}
	s.running = append(s.running, p)
	return nil
}

// columns are the types that hold ids of a source.
func columns(source config.Source) string {
	switch {
	case source.UUIDv7 != nil:
		return "CHAR(36)"
	case source.ObjectID != nil:
		return "CHAR(24)"
	}
	return "BIGINT"
}

// configure has a reader write a configuration, with what the page does not show: accounts, an admin
// listener, and a rule for each source. It makes the tables, checks and serves it, and inserts a row into
// each table.
//
// Commands that come first, which make what it needs, are run before it is checked.
func (s *scene) configure(text string, first []string) error {
	if err := s.begin(); err != nil {
		return err
	}
	s.changed = true
	text, err := whole(text)
	if err != nil {
		return err
	}
	var sections map[string]any
	if err := yaml.Unmarshal([]byte(text), &sections); err != nil {
		return err
	}
	listeners, _ := sections["listeners"].([]any)
	for _, l := range listeners {
		if l, ok := l.(map[string]any); ok && l["account"] == nil {
			l["account"] = map[string]any{"user": "idproxy", "password": secret}
		}
	}
	if sections["admin"] == nil {
		sections["admin"] = map[string]any{"listen": "127.0.0.1:9307"}
	}
	if sources, ok := sections["sources"].(map[string]any); ok && sections["rules"] == nil {
		var rules []any
		for name := range sources {
			rules = append(rules, map[string]any{"table": "shop." + name, "column": "id", "source": name})
		}
		sections["rules"] = rules
	}
	written, err := yaml.Marshal(sections)
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "idproxy.yaml")
	if err := os.WriteFile(file, written, 0o600); err != nil {
		return err
	}
	c, err := config.Load(file)
	if err != nil {
		return fmt.Errorf("%w in\n%s", err, written)
	}
	kind := map[string]string{}
	for _, source := range c.Sources {
		kind[source.Name] = columns(source)
	}
	for _, r := range c.Rules {
		for _, shard := range s.shards {
			harness.MustExec(s.t, shard, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s.%s (%s %s NOT NULL PRIMARY KEY)", r.Schema, r.Table, r.Column, kind[r.Source]))
		}
	}
	if c.IDs != nil { // what programs ask for has begun
		for _, source := range c.Sources {
			if source.Segment != nil {
				if err := s.bash(fmt.Sprintf("idproxy source set %s %d", source.Name, max(source.Segment.Start, 1))); err != nil {
					return err
				}
			}
		}
	}
	for _, line := range first {
		if err := s.bash(line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	if err := s.pools(file); err != nil {
		return err
	}
	if err := s.bash("idproxy check --online"); err != nil {
		return fmt.Errorf("idproxy check --online: %w of\n%s", err, written)
	}
	if err := s.started(); err != nil {
		return fmt.Errorf("idproxy serve: %w of\n%s", err, written)
	}
	return nil
}

// insert has a client insert a row into each table of a rule.
func (s *scene) insert() error {
	c, err := config.Load(s.file())
	if err != nil {
		return err
	}
	for _, r := range c.Rules {
		values := "() VALUES ()"
		if r.Gene != nil {
			values = "(" + r.Gene.Column + ") VALUES (17)"
		}
		if err := s.client(fmt.Sprintf("INSERT INTO %s.%s %s", r.Schema, r.Table, values)); err != nil {
			return err
		}
	}
	return nil
}

// client has the application's client run a statement through the first listener, over TLS where that has it.
func (s *scene) client(statement string) error {
	c, err := config.Load(s.file())
	if err != nil {
		return err
	}
	options := ""
	if c.Listeners[0].TLS != nil {
		options = " --ssl-ca=ca.pem --ssl-cert=client.pem --ssl-key=client.key"
	}
	return s.bash("mysql -h 127.0.0.1 -P 3307 -u app -papp" + options + " shop -e " + quote(statement))
}

var apostrophe = regexp.MustCompile(`'`)

// quote is a word of a shell.
func quote(text string) string { return "'" + apostrophe.ReplaceAllString(text, `'\''`) + "'" }
