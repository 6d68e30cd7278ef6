package config

import (
	"regexp"
	"slices"
	"strings"
)

func checkStore(d *document, c *Config, i int) {
	s := &c.Stores[i]
	path := "stores/" + s.Name
	if s.Name == DefaultStore {
		return
	}
	var kinds []string
	for _, k := range storeKinds {
		kinds = append(kinds, k.Name)
	}
	oneKind(d, s.Pos, path, slices.Compact(kinds))
	if s.MySQL != nil {
		checkDSN(d, s.MySQL, path+"/mysql")
		checkTable(d, s.MySQL, path+"/mysql")
	}
	if s.Redis != nil {
		checkRedis(d, s.Redis, path+"/redis")
	}
	if s.Etcd != nil {
		checkEtcd(d, s.Etcd, path+"/etcd")
	}
	if s.ZooKeeper != nil {
		checkZooKeeper(d, s.ZooKeeper, path+"/zookeeper")
	}
	if s.File == nil || s.File.Dir == "" {
		return
	}
	for _, other := range c.Stores[:i] {
		if other.File != nil && other.File.Dir == s.File.Dir {
			d.fail(d.vals[path+"/file/dir"], "store %s in line %d has the same folder: use one store for both", quote(other.Name), other.Pos.Line)
		}
	}
}

func checkEtcd(d *document, e *EtcdStore, path string) {
	for j, endpoint := range e.Endpoints {
		if at := d.vals[item(path+"/endpoints", j)]; !dialable(endpoint) && !d.failedAt(at) {
			d.fail(at, "%s is no endpoint: write host:port such as 127.0.0.1:2379", quote(endpoint))
		}
	}
	if (e.Username == "") != (e.Password == "") && d.sound(path) {
		d.fail(d.keys[path], "\"username\" and \"password\" go together: add the other one, or remove both and let the certificate of \"tls\" say who idproxy is")
	}
	checkStoreTLS(d, e.TLS, path+"/tls")
}

func checkZooKeeper(d *document, z *ZooKeeperStore, path string) {
	for j, server := range z.Servers {
		if at := d.vals[item(path+"/servers", j)]; !dialable(server) && !d.failedAt(at) {
			d.fail(at, "%s is no server: write host:port such as 127.0.0.1:2181", quote(server))
		}
	}
	if (z.Username == "") != (z.Password == "") && d.sound(path) {
		d.fail(d.keys[path], "\"username\" and \"password\" go together: add the other one, or remove both")
	}
	checkStoreTLS(d, z.TLS, path+"/tls")
}

// checkDSN asks for a shape only: the driver knows the rest, and this package
// does not import it.
func checkDSN(d *document, m *MySQLStore, path string) {
	one, many := d.has(path+"/dsn"), d.has(path+"/dsns")
	if one && many {
		d.fail(d.keys[path+"/dsns"], "\"dsn\" and \"dsns\" exclude each other: remove one of them")
	}
	if one && m.DSN != "" {
		dsnShape(d, d.vals[path+"/dsn"], string(m.DSN))
	}
	if many && !one && len(m.DSNs) == 1 {
		d.fail(d.vals[path+"/dsns"], "\"dsns\" names one server: write it as \"dsn\", or add another that stands in for it")
	}
	for i, dsn := range m.DSNs {
		at := d.vals[item(path+"/dsns", i)]
		dsnShape(d, at, string(dsn))
		if dsn != "" && slices.Contains(m.DSNs[:i], dsn) {
			d.fail(at, "\"dsns\" names a server twice: remove one")
		}
	}
}

// tableName is the name of a table, with its database or without.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_$]+(\.[A-Za-z0-9_$]+)?$`)

// checkTable looks at the table of another system, if the store is one.
func checkTable(d *document, m *MySQLStore, path string) {
	switch {
	case m.Table == nil:
	case d.has(path + "/dsns"):
		d.fail(d.keys[path+"/table"], "\"table\" goes with one server: write it as \"dsn\", or remove \"table\"; the other system knows nothing of blocks")
	case m.Table.Name != "" && !tableName.MatchString(m.Table.Name):
		d.fail(d.vals[path+"/table/name"], "%s is not the plain name of a table, with its database or without", quote(m.Table.Name))
	}
}

// url is how a DSN of another kind begins.
var url = regexp.MustCompile(`^[a-z0-9+]+://`)

// dsnShape finds the database as the driver does, behind the last slash: a password
// may hold anything.
func dsnShape(d *document, at Pos, dsn string) {
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 || url.MatchString(dsn) {
		d.fail(at, "\"dsn\" must have the form user:password@tcp(host:3306)/database")
		return
	}
	server := dsn[strings.LastIndexByte(dsn[:slash], '@')+1 : slash]
	if strings.Contains(server, "(") && !strings.HasSuffix(server, ")") {
		d.fail(at, "\"dsn\" must have the form user:password@tcp(host:3306)/database; a \"/\" in a parameter is written %%2F")
	} else if host, tcp := strings.CutPrefix(strings.TrimSuffix(server, ")"), "tcp("); tcp && strings.Contains(host, ":") && !strings.HasSuffix(host, "]") && !dialable(host) {
		d.fail(at, "\"dsn\" names no host:port with a port from 1 to 65535: it must have the form user:password@tcp(host:3306)/database")
	} else if database, _, _ := strings.Cut(dsn[slash+1:], "?"); database == "" {
		d.fail(at, "\"dsn\" names no database: it must have the form user:password@tcp(host:3306)/database")
	}
}

func checkRedis(d *document, r *RedisStore, path string) {
	for i, addr := range r.Addrs {
		at := d.vals[item(path+"/addrs", i)]
		if !dialable(addr) && !d.failedAt(at) {
			d.fail(at, "%s is no address: write host:port", quote(addr))
		}
	}
	switch {
	case r.Master != "" && r.Cluster:
		d.fail(d.keys[path+"/cluster"], "\"master\" (addrs are Sentinels) and \"cluster\" exclude each other: remove one of them")
	case r.Cluster && r.DB != 0:
		d.fail(d.vals[path+"/db"], "a cluster has no databases but 0: remove \"db\"")
	case len(r.Addrs) > 1 && r.Master == "" && !r.Cluster && d.sound(path+"/addrs"):
		d.fail(d.vals[path+"/addrs"], "several \"addrs\" need \"master\" (they are Sentinels) or \"cluster: true\"")
	}
	checkStoreTLS(d, r.TLS, path+"/tls")
}

// checkStoreTLS looks at how a store is spoken to over TLS, if it is.
func checkStoreTLS(d *document, t *StoreTLS, path string) {
	if t != nil && (t.Cert == "") != (t.Key == "") {
		d.fail(d.keys[path], "\"cert\" and \"key\" go together: add the other one")
	}
}

// store resolves the name of a store that the file gives. It is nil after an error, and where the
// store has no kind.
func store(d *document, c *Config, path, name string) *Store {
	if !d.has(path) || d.failedAt(d.vals[path]) {
		return nil
	}
	s := c.Store(name)
	if s == nil || name == DefaultStore {
		d.fail(d.vals[path], "there is no store %s: %s", quote(name), available("stores", storeNames(c)))
		return nil
	}
	if s.Kind().Name == "" {
		return nil
	}
	return s
}

func storeNames(c *Config) []string {
	var names []string
	for _, s := range c.Stores {
		if s.Name != DefaultStore {
			names = append(names, s.Name)
		}
	}
	return names
}
