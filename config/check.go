package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// check looks at what single values cannot show. Values that were refused before
// stand at zero and are passed over: one mistake gives one message.
func (d *decoder) check(c *Config) {
	d.splitTables(c)
	c.complete()
	d.checkListeners(c)
	for i := range c.Stores {
		d.checkStore(c, i)
	}
	d.sources = map[string]*Source{}
	for i := range c.Sources {
		d.sources[c.Sources[i].Name] = &c.Sources[i]
		d.sourceNames = append(d.sourceNames, c.Sources[i].Name)
	}
	for i := range c.Sources {
		d.checkSource(c, &c.Sources[i])
	}
	d.checkSeries(c)
	d.checkRules(c)
	d.checkIDs(c)
	if at, ok := d.vals["limits/sessions"]; ok && c.Limits.Sessions == 0 && !d.failedAt(at) {
		d.fail(at, "\"sessions\" must be at least 1, got 0")
	}
}

// has reports whether the file names the key.
func (d *decoder) has(path string) bool {
	_, ok := d.keys[path]
	return ok
}

func (d *decoder) checkListeners(c *Config) {
	names := map[string]int{}
	addrs := map[Addr]*Listener{}
	for i := range c.Listeners {
		l, path := &c.Listeners[i], item("listeners", i)
		at := l.Pos
		if d.has(path + "/name") {
			at = d.vals[path+"/name"]
			if !validName(l.Name) {
				d.fail(at, "%s is not a name: use up to 64 letters, digits, \"_\", \"-\" and \".\", starting with a letter or digit", quote(l.Name))
			}
		}
		if first, twice := names[l.Name]; twice {
			d.fail(at, "listener name %s is already used in line %d: give each listener its own name", quote(l.Name), first)
		} else {
			names[l.Name] = at.Line
		}
		if first := addrs[l.Listen]; first != nil {
			d.fail(d.vals[path+"/listen"], "%s is already listened on by %s in line %d: choose another port", l.Listen, quote(first.Name), first.Pos.Line)
		} else if l.Listen.Address != "" && !strings.HasSuffix(l.Listen.Address, ":0") {
			addrs[l.Listen] = l
		}
		if l.Listen.Address != "" && l.Listen == l.Upstream {
			d.fail(d.vals[path+"/upstream"], "\"upstream\" is the address of this listener itself: name the server's address")
		}
		d.checkTLS(l, path)
		d.checkProxyProtocol(l, path)
	}
}

func (d *decoder) checkTLS(l *Listener, path string) {
	u := path + "/upstream_tls"
	if l.UpstreamTLS.Mode == TLSDisabled {
		if l.TLS != nil {
			d.later(d.vals[u+"/mode"], "mode: disabled together with \"tls\" (TLS from clients, none to the server) is not available yet: use as_client or required, or remove \"tls\"")
		}
		for _, key := range []string{"ca", "server_name"} {
			if d.has(u + "/" + key) {
				d.fail(d.keys[u+"/"+key], "%q has no effect when \"mode\" is disabled: remove one of the two", key)
			}
		}
	}
}

func (d *decoder) checkProxyProtocol(l *Listener, path string) {
	if l.ProxyProtocol == nil {
		return
	}
	for i, network := range l.ProxyProtocol.Accept {
		if _, err := netip.ParsePrefix(network); err != nil && network != "" {
			d.fail(d.vals[item(path+"/proxy_protocol/accept", i)], "%s is no network: write it like 10.0.0.0/8 or fd00::/8", quote(network))
		}
	}
}

func (d *decoder) checkStore(c *Config, i int) {
	s := &c.Stores[i]
	path := "stores/" + s.Name
	if s.Name == DefaultStore {
		return
	}
	d.oneKind(s.Pos, path, []string{"mysql", "file", "redis", "etcd"})
	if s.MySQL != nil {
		d.checkDSN(s.MySQL, path+"/mysql")
	}
	if s.Redis != nil {
		d.checkRedis(s.Redis, path+"/redis")
	}
	if s.Etcd != nil {
		d.checkEtcd(s.Etcd, path+"/etcd")
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

func (d *decoder) checkEtcd(e *EtcdStore, path string) {
	for j, endpoint := range e.Endpoints {
		if at := d.vals[item(path+"/endpoints", j)]; !dialable(endpoint) && !d.failedAt(at) {
			d.fail(at, "%s is no endpoint: write host:port such as 127.0.0.1:2379", quote(endpoint))
		}
	}
	if (e.Username == "") != (e.Password == "") && d.sound(path) {
		d.fail(d.keys[path], "\"username\" and \"password\" go together: add the other one, or remove both and let the certificate of \"tls\" say who idproxy is")
	}
	d.checkStoreTLS(e.TLS, path+"/tls")
}

// checkDSN asks for a shape only: the driver knows the rest, and this package
// does not import it.
func (d *decoder) checkDSN(m *MySQLStore, path string) {
	one, many := d.has(path+"/dsn"), d.has(path+"/dsns")
	switch {
	case one && many:
		d.fail(d.keys[path+"/dsns"], "\"dsn\" and \"dsns\" exclude each other: remove one of them")
	case !one && !many && d.sound(path):
		d.fail(d.keys[path], "\"dsn\" is missing and has no default: add it to \"mysql\"")
	}
	if one && m.DSN != "" {
		d.dsnShape(d.vals[path+"/dsn"], string(m.DSN))
	}
	if many && !one && len(m.DSNs) == 1 {
		d.fail(d.vals[path+"/dsns"], "\"dsns\" names one server: write it as \"dsn\", or add another that stands in for it")
	}
	for i, dsn := range m.DSNs {
		at := d.vals[item(path+"/dsns", i)]
		d.dsnShape(at, string(dsn))
		if dsn != "" && slices.Contains(m.DSNs[:i], dsn) {
			d.fail(at, "\"dsns\" names a server twice: remove one")
		}
	}
}

// sound reports whether the file names the key and nothing was wrong with its value:
// what is missing behind it is worth a message then.
func (d *decoder) sound(path string) bool { return d.has(path) && !d.failedAt(d.vals[path]) }

// url is how a DSN of another kind begins.
var url = regexp.MustCompile(`^[a-z0-9+]+://`)

// dsnShape finds the database as the driver does, behind the last slash: a password
// may hold anything.
func (d *decoder) dsnShape(at Pos, dsn string) {
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 || url.MatchString(dsn) {
		d.fail(at, "\"dsn\" must have the form user:password@tcp(host:3306)/database")
		return
	}
	server := dsn[strings.LastIndexByte(dsn[:slash], '@')+1 : slash]
	if strings.Contains(server, "(") && !strings.HasSuffix(server, ")") {
		d.fail(at, "\"dsn\" must have the form user:password@tcp(host:3306)/database; a \"/\" in a parameter is written %%2F")
	} else if database, _, _ := strings.Cut(dsn[slash+1:], "?"); database == "" {
		d.fail(at, "\"dsn\" names no database: it must have the form user:password@tcp(host:3306)/database")
	}
}

// oneKind asks for exactly one of the keys that say what a store or source is.
func (d *decoder) oneKind(at Pos, path string, all []string) {
	var there []string
	for _, k := range all {
		if d.has(path + "/" + k) {
			there = append(there, k)
		}
	}
	what, name, _ := strings.Cut(path, "s/") // stores/... or sources/...
	switch {
	case len(there) == 0 && d.sound(path):
		d.fail(at, "%s %s has no kind: give it %s", what, quote(name), listOf(all))
	case len(there) > 1:
		d.fail(at, "%s %s has more than one kind, %s: keep one of them", what, quote(name), strings.Join(there, " and "))
	}
}

// checkIDs asks for something to serve, and for passwords that are some.
func (d *decoder) checkIDs(c *Config) {
	if c.IDs == nil || !d.sound("ids") {
		return
	}
	if !d.has("ids/redis") && !d.has("ids/http") {
		d.fail(d.keys["ids"], "\"ids\" serves nothing: add \"redis\" to it")
	}
	if c.IDs.Redis == nil {
		return
	}
	for i := range c.Listeners {
		if l := &c.Listeners[i]; l.Listen == c.IDs.Redis.Listen && l.Listen.Address != "" && !strings.HasSuffix(l.Listen.Address, ":0") {
			d.fail(d.vals["ids/redis/listen"], "%s is already listened on by %s in line %d: choose another port", l.Listen, quote(l.Name), l.Pos.Line)
		}
	}
	d.checkMaxIncrBy(c.IDs.Redis.MaxIncrBy, "ids/redis/max_incrby")
	for i := range c.IDs.Redis.Users {
		u := &c.IDs.Redis.Users[i]
		path := "ids/redis/users/" + u.Name
		if d.checkMaxIncrBy(u.MaxIncrBy, path+"/max_incrby"); u.MaxIncrBy == 0 {
			u.MaxIncrBy = c.IDs.Redis.MaxIncrBy
		}
		if at, ok := d.vals[path+"/password"]; ok && u.Password == "" && !d.failedAt(at) {
			d.fail(at, "\"password\" is empty: anyone could be %s", u.Name)
		}
		if d.has(path+"/sources") && len(u.Sources) == 0 && d.sound(path+"/sources") {
			d.fail(d.vals[path+"/sources"], "\"sources\" is empty: name at least one, or remove the key for all")
		}
		for j, name := range u.Sources {
			if s := d.sources[name]; s != nil && s.Wide() {
				d.fail(d.vals[item(path+"/sources", j)], "source %s gives no numbers, and others are not served here: remove it", quote(name))
			}
		}
	}
}

func (d *decoder) checkMaxIncrBy(n uint64, path string) {
	if at, ok := d.vals[path]; ok && n == 0 && !d.failedAt(at) {
		d.fail(at, "\"max_incrby\" must be at least 1: who may have no ids is no user")
	}
}

func item(path string, i int) string { return join(path, strconv.Itoa(i)) }
