package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/servers"
)

// site is the servers that the demo stands on.
type site struct {
	shards         []*shard
	redis          *servers.Redis // keeps the pool of worker numbers
	schema         string
	user, password string
	certificates   string // folder of that which clients are shown
}

// shard is one server and the listener in front of it.
type shard struct {
	name     string
	upstream string // the server's own address
	listen   string // idproxy's address for it
	server   *servers.Server
	touched  bool // its database is made, or may be
}

// passwordVariable carries the account's password into the configuration.
const passwordVariable = "IDPROXY_DEMO_PASSWORD"

// openSite takes the servers that UPSTREAM names, or starts two, and a Redis. The caller stops what
// it returns, also when there is an error.
func openSite(ctx context.Context, out io.Writer) (s site, err error) {
	if s, err = openShards(ctx, out); err != nil {
		return s, err
	}
	if s.redis, err = servers.StartRedis(ctx); err != nil {
		return s, err
	}
	fmt.Fprintf(out, "demo: worker numbers are in Redis on %s\n", s.redis.Addr)
	return s, nil
}

func openShards(ctx context.Context, out io.Writer) (site, error) {
	if upstream := os.Getenv("UPSTREAM"); upstream != "" {
		s := site{schema: "idproxy_demo", user: os.Getenv("UPSTREAM_USER"), password: os.Getenv("UPSTREAM_PASSWORD")}
		if s.user == "" {
			s.user = "root"
		}
		for i, addr := range strings.Split(upstream, ",") {
			s.shards = append(s.shards, &shard{name: fmt.Sprintf("shard%d", i), upstream: addr})
		}
		fmt.Fprintf(out, "demo: using %s as %s, in database %s\n", upstream, s.user, s.schema)
		return s, nil
	}
	s := site{schema: "shop", user: servers.AppUser, password: servers.AppPassword}
	s.shards = []*shard{{name: "shard0"}, {name: "shard1"}}
	fmt.Fprintln(out, "demo: starting two private MariaDB servers")
	failed := make([]error, len(s.shards))
	var wg sync.WaitGroup
	for i, sh := range s.shards {
		wg.Go(func() { sh.server, failed[i] = servers.StartMariaDB(ctx, servers.Options{}) })
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return s, err
	}
	for _, sh := range s.shards {
		sh.upstream = sh.server.Addr
		fmt.Fprintf(out, "demo: %s is MariaDB on %s\n", sh.name, sh.upstream)
	}
	return s, nil
}

// private reports whether the servers are the demo's own.
func (s *site) private() bool { return s.shards[0].server != nil }

// stop ends the servers that openSite started.
func (s *site) stop() error {
	var failed []error
	for _, sh := range s.shards {
		if sh.server != nil {
			failed = append(failed, sh.server.Stop())
		}
	}
	if s.redis != nil {
		failed = append(failed, s.redis.Stop())
	}
	return errors.Join(failed...)
}

// open connects to a shard's server itself, past idproxy.
func (s *site) open(sh *shard, schema string) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = s.user, s.password, "tcp", sh.upstream, schema
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// createTables makes the tables whose ids idproxy fills. Neither has AUTO_INCREMENT: two counters
// would give the same ids on both shards.
func (s *site) createTables(ctx context.Context, sh *shard) error {
	db, err := s.open(sh, "")
	if err != nil {
		return err
	}
	defer db.Close()
	sh.touched = true
	for _, text := range []string{
		"CREATE DATABASE IF NOT EXISTS " + s.schema,
		"CREATE TABLE IF NOT EXISTS " + s.schema + ".orders (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL, amount DECIMAL(8,2) NOT NULL DEFAULT 0)",
		"CREATE TABLE IF NOT EXISTS " + s.schema + ".events (id BIGINT PRIMARY KEY, what VARCHAR(40) NOT NULL)",
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("create tables on %s: %w", sh.upstream, err)
		}
	}
	return nil
}

// patience has statements and clients wait while the machine has much else to do. The first INSERT
// waits until both servers have said what the greatest id is.
const patience = "limits: {id_wait: 1m, handshake: 1m, connect_timeout: 1m}\n"

// config is idproxy's configuration: a listener per shard, orders numbered from one segment for all
// of them, events by snowflake with a worker number from Redis.
func (s *site) config() (string, error) {
	var b strings.Builder
	b.WriteString("listeners:\n")
	for i, sh := range s.shards {
		listen, err := listenAddr(3307 + i)
		if err != nil {
			return "", err
		}
		s.writeListener(&b, sh, listen)
	}
	fmt.Fprintf(&b, `stores:
  leases: {redis: {addrs: [%[2]q]}}
sources:
  order_id: {segment: {}}
  event_id: {snowflake: {workers: leases}}
rules:
  - {table: %[1]s.orders, column: id, source: order_id}
  - {table: %[1]s.events, column: id, source: event_id}
%[3]s`, s.schema, s.redis.Addr, patience)
	return b.String(), nil
}

// secondConfig is that of another idproxy in front of the first shard, which fills the ids of
// events alone: the file that order_id is kept in belongs to one process.
func (s *site) secondConfig(listen string) string {
	var b strings.Builder
	b.WriteString("listeners:\n")
	s.writeListener(&b, s.shards[0], listen)
	fmt.Fprintf(&b, `stores:
  leases: {redis: {addrs: [%[2]q]}}
sources:
  event_id: {snowflake: {workers: leases}}
rules:
  - {table: %[1]s.events, column: id, source: event_id}
%[3]s`, s.schema, s.redis.Addr, patience)
	return b.String()
}

// writeListener writes the listener for a shard.
func (s *site) writeListener(b *strings.Builder, sh *shard, listen string) {
	fmt.Fprintf(b, "  - {name: %s, listen: %q, upstream: %q, account: {user: %q, password: \"${%s}\"}, tls: {cert: %q, key: %q}, upstream_tls: {mode: preferred}}\n",
		sh.name, listen, sh.upstream, s.user, passwordVariable, s.certificates+"/server.pem", s.certificates+"/server.key")
}

// listenAddr is the loopback address with this port, or with any free one when another program has
// it.
func listenAddr(port int) (string, error) {
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	l, err := net.Listen("tcp", addr)
	if err == nil {
		return addr, l.Close()
	}
	fmt.Fprintf(os.Stderr, "demo: port %d is taken, using another\n", port)
	return "127.0.0.1:0", nil
}
