package config

import (
	"net/netip"
	"strings"
)

func checkListeners(d *document, c *Config) {
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
		checkUpstreams(d, l, path)
		checkTLS(d, l, path)
		checkProxyProtocol(d, l, path)
		checkNetworks(d, path+"/allow", l.Allow)
		if d.has(path+"/allow") && len(l.Allow) == 0 && d.sound(path+"/allow") {
			d.fail(d.vals[path+"/allow"], "\"allow\" is empty, so no client could connect: add networks, or remove it")
		}
		checkNetwork(d, path+"/limits/sessions_per_network", l.Limits.SessionsPerNetwork)
		checkShard(d, l.Shard, path)
	}
}

func checkUpstreams(d *document, l *Listener, path string) {
	const itself = "%q is the address of this listener itself: name the server's address"
	if l.Listen.Address != "" && l.Listen == l.Upstream {
		d.fail(d.vals[path+"/upstream"], itself, "upstream")
	}
	list := path + "/upstreams"
	switch {
	case d.has(path+"/upstream") && d.has(list):
		d.fail(d.keys[list], "\"upstreams\" stands beside \"upstream\": put all servers into \"upstreams\", and remove the other")
	case d.sound(list) && len(l.Upstreams) == 0:
		d.fail(d.vals[list], "\"upstreams\" is empty: add at least one")
	}
	first := map[Addr]int{}
	for i, a := range l.Upstreams {
		at := d.vals[item(list, i)]
		if a.Address == "" {
			continue
		}
		if line, twice := first[a]; twice {
			d.fail(at, "%s is already named in line %d: remove one of them", a, line)
		}
		first[a] = at.Line
		if l.Listen == a {
			d.fail(at, itself, "upstreams")
		}
	}
	if l.Writable && l.Account == nil && !d.has(path+"/account") {
		d.fail(d.keys[path+"/writable"], "\"writable\" needs an account to ask the servers with whether they are read-only: add account: {user: ..., password: ...}")
	}
}

func checkTLS(d *document, l *Listener, path string) {
	u := path + "/upstream_tls"
	switch {
	case l.UpstreamTLS.Mode == TLSDisabled:
		for _, key := range []string{"ca", "server_name"} {
			if d.has(u + "/" + key) {
				d.fail(d.keys[u+"/"+key], "%q has no effect when \"mode\" is disabled: remove one of the two", key)
			}
		}
	case l.UpstreamTLS.CA != "" && l.UpstreamTLS.ServerName == "" && l.reaches("unix"):
		d.fail(d.keys[u+"/ca"], "\"ca\" needs \"server_name\" where the server is reached by a unix socket: add the name that the server's certificate has, or remove \"ca\"")
	}
}

func checkProxyProtocol(d *document, l *Listener, path string) {
	if l.ProxyProtocol != nil {
		checkNetworks(d, path+"/proxy_protocol/accept", l.ProxyProtocol.Accept)
	}
}

// checkNetworks looks at a list of networks.
func checkNetworks(d *document, path string, all []string) {
	for i, network := range all {
		if p, err := netip.ParsePrefix(network); (err != nil || p.Addr().Is4In6()) && network != "" {
			d.fail(d.vals[item(path, i)], "%s is no network: write it like 10.0.0.0/8 or fd00::/8", quote(network))
		}
	}
}

// checkNetwork looks at what tells networks of clients apart.
func checkNetwork(d *document, path string, n *Network) {
	if n == nil || !d.sound(path) {
		return
	}
	if n.Limit == 0 {
		d.fail(d.vals[path+"/limit"], "\"limit\" must be at least 1, got 0")
	}
	for key, bits := range map[string][2]uint64{"ipv4": {n.IPv4, 32}, "ipv6": {n.IPv6, 128}} {
		if bits[0] == 0 || bits[0] > bits[1] {
			d.fail(d.vals[path+"/"+key], "%q must be from 1 to %d bits, got %d", key, bits[1], bits[0])
		}
	}
}
