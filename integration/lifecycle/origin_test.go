package lifecycle

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// elsewhere is where the clients of these tests are: an address that neither a balancer nor a proxy
// connects from.
const elsewhere = "127.0.0.9"

// from is a client that connects from an address to another.
func from(t *testing.T, c *mysql.Config, host, addr string) *sql.DB {
	t.Helper()
	c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}).DialContext(ctx, "tcp", addr)
	}
	pool := sql.OpenDB(assert.Of(mysql.NewConnector(c)).Must(t))
	t.Cleanup(func() { pool.Close() })
	return pool
}

// haproxy starts an HAProxy in front of an address that sends it what option says.
func haproxy(t *testing.T, addr, option string) (listens string) {
	t.Helper()
	listens = harness.FreeAddr(t)
	p := harness.HAProxy(t, fmt.Sprintf("defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\nlisten a\n  bind %s\n  server idproxy %s %s\n", listens, addr, option))
	assert.Until(t, "HAProxy listens", func() bool {
		conn, err := net.Dial("tcp", listens)
		return err == nil && conn.Close() == nil
	}, p.Log)
	return listens
}

// seenAt is where a server believes that a client is.
func seenAt(t *testing.T, pool *sql.DB) (host string) {
	t.Helper()
	assert.Must(t, pool.QueryRow("SELECT SUBSTRING_INDEX(HOST, ':', 1) FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()").Scan(&host))
	return host
}

// TestOrigin: behind HAProxy and idproxy the server sees where a client is, grants by host hold, and
// idproxy's log has it; without headers nobody does.
func TestOrigin(t *testing.T) {
	s := harness.StartServer(t, servers.MariaDB, servers.Options{Args: []string{"--proxy-protocol-networks=127.0.0.1/32", "--skip-name-resolve"}})
	db := harness.Database(t, s)
	root := harness.Open(t, s.Config(db), "")
	harness.MustExec(t, root, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE USER there@'"+elsewhere+"' IDENTIFIED BY 'pw'")
	for _, tt := range []struct{ option, accept, send, want string }{
		{"send-proxy", "[127.0.0.1/32]", "v1", elsewhere},
		{"send-proxy", "[10.0.0.0/8, 127.0.0.0/30]", "v2", elsewhere},
		{"send-proxy-v2", "[127.0.0.1/32]", "v1", elsewhere},
		{"send-proxy-v2 proxy-v2-options crc32c,unique-id", "[127.0.0.1/32]", "v2", elsewhere},
		{"", "[]", "v2", "127.0.0.1"},                        // HAProxy itself is the client
		{"send-proxy-v2", "[127.0.0.1/32]", "", "127.0.0.1"}, // negative control: the server is told nothing
	} {
		t.Run(fmt.Sprintf("%s to %s", tt.option, tt.send), func(t *testing.T) {
			send := ""
			if tt.send != "" {
				send = ", send: " + tt.send
			}
			p := harness.StartProxy(t, fmt.Sprintf("listeners: [{name: a, listen: '127.0.0.1:0', upstream: %q, proxy_protocol: {accept: %s%s}}]\n",
				s.Addr, tt.accept, send)+harness.OneRule(db+".t"))
			front := haproxy(t, p.Addr("a"), tt.option)
			pool := from(t, s.Config(db), elsewhere, front)
			assert.Equal(t, "the server sees", seenAt(t, pool), tt.want)
			harness.MustExec(t, pool, "INSERT INTO t (a) VALUES (1)")
			granted := s.Config(db)
			granted.User, granted.Passwd, granted.DBName = "there", "pw", ""
			if err := from(t, granted, elsewhere, front).Ping(); tt.want != elsewhere {
				harness.WantError(t, err, 1045) // the grant is for that host alone
			} else if err != nil {
				t.Errorf("a grant for %s: %v", elsewhere, err)
			}
			client := tt.accept != "[]"
			pool.Close()
			assert.Until(t, fmt.Sprintf("the log has %s as the client: %t", elsewhere, client), func() bool {
				log := p.Log()
				return strings.Contains(log, "client.address="+elsewhere+":") == client && strings.Contains(log, "session ended")
			}, p.Log)
		})
	}
}

// TestOriginRefused: from the networks of balancers nobody comes in without a header, and from no
// other is one believed.
func TestOriginRefused(t *testing.T) {
	s := harness.MariaDB(t)
	db := harness.Database(t, s)
	p := harness.Start(t, harness.Spec{Config: fmt.Sprintf("listeners:\n  - {name: a, listen: \"127.0.0.1:0\", upstream: %q, proxy_protocol: {accept: [%s/32]}}\n", s.Addr, elsewhere)})
	assert.Must(t, from(t, s.Config(db), "127.0.0.1", p.Addr("a")).Ping(), "control: without a header from where none is expected")
	header := "PROXY TCP4 192.0.2.1 192.0.2.2 1000 3306\r\n"
	for _, tt := range []struct{ name, host, sent, want string }{
		{"no header", elsewhere, "\x01\x00\x00\x01\x00", "there is no PROXY header"},
		{"a broken header", elsewhere, "PROXY TCP4 192.0.2.1\r\n", "PROXY header"},
		{"a header without an end", elsewhere, strings.Repeat("PROXY ", 40), "PROXY header"},
		{"more than a header", elsewhere, header + "\x01\x00\x00\x01\x00", "came before the greeting"},
		{"a stranger's header, version 2", "127.0.0.1", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", "a PROXY header from a network that proxy_protocol.accept does not have"},
		{"a stranger's header", "127.0.0.1", header, "a PROXY header from a network that proxy_protocol.accept does not have"},
	} {
		conn := assert.Of((&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(tt.host)}}).Dial("tcp", p.Addr("a"))).Must(t)
		assert.Of(conn.Write([]byte(tt.sent))).Must(t)
		assert.Must(t, conn.SetReadDeadline(time.Now().Add(assert.Patience)))
		var said strings.Builder
		_, _ = io.Copy(&said, conn) // it may be cut
		conn.Close()
		assert.True(t, strings.Contains(said.String(), tt.want), "%s: the client is told %q, want %q in it", tt.name, said.String(), tt.want)
	}
	assert.True(t, !strings.Contains(p.Log(), "192.0.2.1"), "an address that nobody may tell is believed")
}
