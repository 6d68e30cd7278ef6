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
		if l.Listen.Address != "" && l.Listen == l.Upstream {
			d.fail(d.vals[path+"/upstream"], "\"upstream\" is the address of this listener itself: name the server's address")
		}
		checkTLS(d, l, path)
		checkProxyProtocol(d, l, path)
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
	case l.UpstreamTLS.CA != "" && l.UpstreamTLS.ServerName == "" && l.Upstream.Network == "unix":
		d.fail(d.keys[u+"/ca"], "\"ca\" needs \"server_name\" where \"upstream\" is a unix socket: add the name that the server's certificate has, or remove \"ca\"")
	}
}

func checkProxyProtocol(d *document, l *Listener, path string) {
	if l.ProxyProtocol == nil {
		return
	}
	for i, network := range l.ProxyProtocol.Accept {
		if p, err := netip.ParsePrefix(network); (err != nil || p.Addr().Is4In6()) && network != "" {
			d.fail(d.vals[item(path+"/proxy_protocol/accept", i)], "%s is no network: write it like 10.0.0.0/8 or fd00::/8", quote(network))
		}
	}
}
