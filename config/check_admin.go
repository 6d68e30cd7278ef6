package config

import (
	"net/netip"
	"strings"
)

// checkAdmin looks at who could reach the admin listener.
func checkAdmin(d *document, a *Admin) {
	if a == nil || !d.sound("admin") {
		return
	}
	switch {
	case a.Listen.Address == "" && a.Socket.Address == "":
		d.fail(d.keys["admin"], "\"admin\" has no address: add \"listen\" such as 127.0.0.1:9307, or \"socket\" such as unix:/run/idproxy/admin.sock")
	case a.Socket.Address != "" && a.Socket.Network != "unix":
		d.fail(d.vals["admin/socket"], "\"socket\" must be a unix socket such as unix:/run/idproxy/admin.sock: move %s to \"listen\"", a.Socket)
	case a.Token == "" && a.Listen.Network == "tcp" && !loopback(a.Listen.Address):
		d.fail(d.vals["admin/listen"], "%s can be reached from other hosts, which needs a \"token\": add one, or listen on a loopback address such as 127.0.0.1:9307", a.Listen)
	case a.Token != "" && a.Listen.Address == "":
		d.fail(d.vals["admin/token"], "\"token\" has no effect on a unix socket: remove it, or add \"listen\"")
	case a.TLS != nil && a.Listen.Network != "tcp":
		d.fail(d.keys["admin/tls"], "\"tls\" has no effect on a unix socket: remove it, or add \"listen\" with host:port")
	}
}

// loopback reports whether a host:port can be reached from this host alone.
func loopback(address string) bool {
	host := address[:max(0, strings.LastIndexByte(address, ':'))]
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}
