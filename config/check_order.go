package config

import "net"

// leastOrderToken is how many characters the token has at least.
const leastOrderToken = 16

// checkOrder looks at what series in one order need: an etcd store, the same for all, and the section
// by which processes ask each other.
func checkOrder(d *document, c *Config) {
	first, wanted := "", false
	for i := range c.Sources {
		g := c.Sources[i].Segment
		if g == nil || g.Order == "" {
			continue
		}
		wanted = true
		path := "sources/" + c.Sources[i].Name + "/segment"
		at := d.vals[path+"/order"]
		s := c.Store(g.Store)
		switch {
		case d.failedAt(at) || s == nil:
		case s.Etcd == nil:
			d.fail(at, "\"order: global\" needs a store in etcd, where processes agree on who gives ids: store %s is none", quote(g.Store))
		case first != "" && g.Store != first:
			d.fail(at, "all sources with \"order: global\" have one store: name %s here, too", quote(first))
		case g.Scramble != nil:
			d.fail(at, "\"order: global\" and \"scramble\" exclude each other, for scrambled ids are in no order: remove one of them")
		case keyPlaceholder.MatchString(g.Key):
			d.fail(at, "\"order: global\" does not go with a series for each table: give each table that needs it a source of its own")
		case c.Order == nil && d.sound(path):
			d.fail(at, "\"order: global\" needs the section \"order\", by which processes ask each other: add order: {listen: host:port, token: ...}")
		default:
			first = g.Store
		}
	}
	checkOrderSection(d, c.Order, wanted)
	if c.IDs == nil || c.IDs.Redis == nil {
		return
	}
	r := c.IDs.Redis
	if at, ok := d.vals["ids/redis/moved"]; ok && r.Moved && !wanted && d.sound("sources") && !d.failedAt(at) {
		d.fail(at, "\"moved\" is for series in one order, and no source has \"order: global\": remove it")
	}
	for _, key := range []string{"announce", "members"} {
		if path := "ids/redis/" + key; d.has(path) && !r.Moved {
			d.fail(d.keys[path], "%q has no effect without \"moved: true\": remove it", key)
		}
	}
	for i, addr := range r.Members {
		if at := d.vals[item("ids/redis/members", i)]; !dialable(addr) && !d.failedAt(at) {
			d.fail(at, "%s is no address: write host:port", quote(addr))
		}
	}
	if r.Moved {
		checkAnnounced(d, r.Listen, r.Announce, "ids/redis")
	}
}

func checkOrderSection(d *document, o *Order, wanted bool) {
	if o == nil || !d.sound("order") {
		return
	}
	if !wanted && d.sound("sources") {
		d.fail(d.keys["order"], "no source has \"order: global\": remove \"order\"")
	}
	if at, given := d.vals["order/token"]; given && len(o.Token) < leastOrderToken && !d.failedAt(at) {
		d.fail(at, "\"token\" has %d characters: use %d or more, the same in all processes", len(o.Token), leastOrderToken)
	}
	checkAnnounced(d, o.Listen, o.Announce, "order")
}

// anyHost says whether an address is no host's own.
func anyHost(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	return host == "" || net.ParseIP(host).IsUnspecified()
}

// checkAnnounced asks for an address by which others reach this process.
func checkAnnounced(d *document, listen Addr, announce, path string) {
	at := d.vals[path+"/listen"]
	switch {
	case d.failedAt(at) || listen.Address == "":
	case announce != "":
		if at := d.vals[path+"/announce"]; !dialable(announce) && !d.failedAt(at) {
			d.fail(at, "%s is no address: write host:port", quote(announce))
		} else if anyHost(announce) && !d.failedAt(at) {
			d.fail(at, "%s names no host: write the host:port by which others reach this process", quote(announce))
		}
	case listen.Network != "tcp":
		d.fail(at, "%s is no address that other hosts reach: listen on host:port, or add \"announce\"", listen)
	case anyHost(listen.Address):
		d.fail(at, "%s names no host: add \"announce\", the host:port by which others reach this process", listen)
	}
}
