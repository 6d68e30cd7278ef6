package config

import "strings"

// checkIDs asks for something to serve, and for passwords that are some.
func checkIDs(d *document, c *Config) {
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
	checkMaxIncrBy(d, c.IDs.Redis.MaxIncrBy, "ids/redis/max_incrby")
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
		for j, name := range u.Sources {
			if s := c.Source(name); s != nil && s.Wide() {
				d.fail(d.vals[item(path+"/sources", j)], "source %s gives no numbers, and others are not served here: remove it", quote(name))
			}
		}
	}
}

func checkMaxIncrBy(d *document, n uint64, path string) {
	if at, ok := d.vals[path]; ok && n == 0 && !d.failedAt(at) {
		d.fail(at, "\"max_incrby\" must be at least 1: who may have no ids is no user")
	}
}
