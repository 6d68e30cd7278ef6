package config

import (
	"slices"
	"strings"
)

// checkIDs asks for something to serve, and for passwords that are some.
func checkIDs(d *document, c *Config) {
	if c.IDs == nil || !d.sound("ids") {
		return
	}
	if !d.has("ids/redis") && !d.has("ids/http") {
		d.fail(d.keys["ids"], "\"ids\" serves nothing: add \"redis\" or \"http\" to it")
	}
	checkUsersIn(d, c)
	checkIDsHTTP(d, c)
	if c.IDs.Redis == nil {
		return
	}
	for i := range c.Listeners {
		if l := &c.Listeners[i]; l.Listen == c.IDs.Redis.Listen && l.Listen.Address != "" && !strings.HasSuffix(l.Listen.Address, ":0") {
			d.fail(d.vals["ids/redis/listen"], "%s is already listened on by %s in line %d: choose another port", l.Listen, quote(l.Name), l.Pos.Line)
		}
	}
	if c.IDs.Redis.TLS != nil && c.IDs.Redis.Listen.Network == "unix" {
		d.fail(d.keys["ids/redis/tls"], "\"tls\" has no effect on a unix socket: remove it, or listen on host:port")
	}
	checkMaxIncrBy(d, c.IDs.Redis.MaxIncrBy, "ids/redis/max_incrby")
	checkCreateIn(d, c)
	for i := range c.IDs.Redis.Users {
		u := &c.IDs.Redis.Users[i]
		path := "ids/redis/users/" + u.Name
		if checkMaxIncrBy(d, u.MaxIncrBy, path+"/max_incrby"); u.MaxIncrBy == 0 {
			u.MaxIncrBy = c.IDs.Redis.MaxIncrBy
		}
		if at, ok := d.vals[path+"/password"]; ok && u.Password == "" && !d.failedAt(at) {
			d.fail(at, "\"password\" is empty: anyone could be %s", u.Name)
		}
		if d.has(path+"/sources") && len(u.Sources) == 0 && d.sound(path+"/sources") {
			d.fail(d.vals[path+"/sources"], "\"sources\" is empty: name at least one, or remove the key for all")
		}
		if at, ok := d.vals[path+"/rate"]; ok && u.Rate == 0 && !d.failedAt(at) {
			d.fail(at, "\"rate\" must be at least 1: remove the key for as many ids as there are")
		}
		if u.Create && c.IDs.Redis.CreateIn == "" {
			d.fail(d.vals[path+"/create"], "\"create\" has no effect without a store for the keys: add \"create_in\" to \"redis\"")
		}
	}
}

// checkUsersIn asks for a store that keeps users.
func checkUsersIn(d *document, c *Config) {
	if c.IDs.UsersIn == "" || d.has("stores") && !d.sound("stores") {
		return
	}
	s, at := c.Store(c.IDs.UsersIn), d.vals["ids/users_in"]
	switch {
	case s == nil:
		d.fail(at, "there is no store %s: add it to \"stores\"", quote(c.IDs.UsersIn))
	case s.Etcd == nil && (s.MySQL == nil || len(s.MySQL.DSNs) > 0 || s.MySQL.Table != nil):
		d.fail(at, "store %s cannot keep users: name an etcd store, or a mysql store of one server (dsn)", quote(c.IDs.UsersIn))
	}
}

// checkCreateIn asks for a store that keeps series, and for somebody who may create some.
func checkCreateIn(d *document, c *Config) {
	r := c.IDs.Redis
	at := d.vals["ids/redis/create_in"]
	if r.CreateIn == "" || !d.sound("stores") {
		return
	}
	s := c.Store(r.CreateIn)
	switch {
	case s == nil:
		d.fail(at, "there is no store %s: add it to \"stores\"", quote(r.CreateIn))
	case s.MySQL == nil && s.Etcd == nil && s.File == nil:
		d.fail(at, "store %s cannot keep series: name a mysql, etcd or file store", quote(r.CreateIn))
	case s.MySQL != nil && s.MySQL.Table != nil:
		d.fail(at, "store %s is the table of %s: make its keys with \"idproxy source create\", or name another store", quote(r.CreateIn), s.MySQL.Table.Dialect)
	case c.IDs.UsersIn == "" && !slices.ContainsFunc(r.Users, func(u IDsUser) bool { return u.Create }):
		d.fail(d.keys["ids/redis/create_in"], "nobody may create keys: give \"create: true\" to one of \"users\", or remove \"create_in\"")
	}
}

func checkMaxIncrBy(d *document, n uint64, path string) {
	if at, ok := d.vals[path]; ok && n == 0 && !d.failedAt(at) {
		d.fail(at, "\"max_incrby\" must be at least 1: who may have no ids is no user")
	}
}
