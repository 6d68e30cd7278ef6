package failover

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// store puts a row into a server, past idproxy.
func (p *pair) store(t *testing.T, s *servers.Server, id int) {
	t.Helper()
	harness.MustExec(t, p.roots[s], fmt.Sprintf("INSERT INTO shop.orders VALUES (%d, 0)", id))
}

// greatest is the greatest id at a server.
func (p *pair) greatest(t *testing.T, s *servers.Server) int64 {
	t.Helper()
	return harness.Count(t, p.roots[s], "SELECT MAX(id) FROM shop.orders")
}

// kill ends a server, and start brings it back as it was.
func (p *pair) kill(t *testing.T, s *servers.Server) (start func()) {
	t.Helper()
	assert.Must(t, s.Kill())
	return func() {
		t.Helper()
		assert.Must(t, s.Start(t.Context()))
		p.setReadOnly(t, s, map[bool]string{true: on, false: off}[s == p.second])
	}
}

// TestLaggingReplica: a replica lags behind the server that takes writes, and sessions come to it
// before the series has begun. The series does not begin above what the replica has.
func TestLaggingReplica(t *testing.T) {
	const account = "account: {user: app, password: app}"
	for _, kind := range aMySQL {
		t.Run(kind.String(), func(t *testing.T) {
			p := newPair(t, kind)
			p.store(t, p.first, 900)
			p.store(t, p.second, 100)

			for _, tt := range []struct {
				name, listener string
				order          []*servers.Server
				down           *servers.Server // at first
				code           uint16
				says           string
			}{
				{"the other is asked", account, []*servers.Server{p.second, p.first}, nil, 1290, "read-only"},
				{"the other is down", account, []*servers.Server{p.first, p.second}, p.first, 1467, "no server takes writes"},
				{"there is no account", "writable: false", []*servers.Server{p.first, p.second}, p.first, 1467, "may lag behind"},
			} {
				t.Run(tt.name, func(t *testing.T) {
					var start func()
					before := p.greatest(t, p.first)
					if tt.down != nil {
						start = p.kill(t, tt.down)
					}
					p.serveWith(t, []string{tt.order[0].Addr, tt.order[1].Addr}, tt.listener, "{connect_timeout: 2s}")
					db := p.open(t)
					db.SetMaxIdleConns(0)
					for range 2 {
						port, err := insert(t.Context(), db)
						assert.MustTrue(t, strings.HasSuffix(p.second.Addr, ":"+port), "the session went to %s", port)
						harness.WantError(t, err, tt.code, tt.says)
					}
					if start != nil {
						if tt.listener == account {
							holds(t, p.check(t), "no server takes writes: "+p.second.Addr+" is read-only", "NOT asked: listener a")
						}
						start()
					} else {
						defer p.kill(t, p.second)()
					}
					assert.Until(t, "a row at the first server", func() bool {
						port, err := insert(t.Context(), db)
						assert.True(t, err != nil || strings.HasSuffix(p.first.Addr, ":"+port), "a row went to %s", port)
						return err == nil
					})
					n := p.greatest(t, p.first)
					assert.True(t, n > before, "the greatest id is %d, and was %d", n, before)
				})
			}
		})
	}
}

// TestOwnServer: what the greatest id is, a session's own server is asked, though new sessions go to
// another and that one was asked before.
func TestOwnServer(t *testing.T) {
	p := newPair(t, servers.MariaDB)
	p.setReadOnly(t, p.second, off)
	p.serve(t, []string{p.first.Addr, p.second.Addr}, "writable: false")
	db := p.open(t)
	db.SetMaxIdleConns(0)
	assert.Of(insert(t.Context(), db)).Must(t)
	p.store(t, p.second, 5000)

	start := p.kill(t, p.first)
	atSecond := connectedTo(t, db, p.second)
	start()
	assert.Until(t, "new sessions go to the first server", func() bool {
		c, err := db.Conn(t.Context())
		if err != nil {
			return false
		}
		defer c.Close()
		return portOf(t, c) == p.first.Addr[strings.LastIndexByte(p.first.Addr, ':')+1:]
	})
	_, err := atSecond.ExecContext(t.Context(), "INSERT INTO orders (worker) VALUES (1)")
	harness.WantError(t, err, 1467, "holds 5000 already")
	assert.Of(insert(t.Context(), db)).NoError(t, "at the first server")
}

func portOf(t *testing.T, c *sql.Conn) (port string) {
	t.Helper()
	assert.Must(t, c.QueryRowContext(t.Context(), "SELECT @@port").Scan(&port))
	return port
}

// connectedTo returns a connection that is at a server.
func connectedTo(t *testing.T, db *sql.DB, to *servers.Server) *sql.Conn {
	t.Helper()
	c := assert.Of(db.Conn(t.Context())).Must(t)
	t.Cleanup(func() { c.Close() })
	port := portOf(t, c)
	assert.MustTrue(t, strings.HasSuffix(to.Addr, ":"+port), "the session is at %s", port)
	return c
}

// TestSilentFirst: the first server accepts and says nothing, and limits.connect_timeout is as long as
// limits.handshake. A client gets to the second one in time.
func TestSilentFirst(t *testing.T) {
	p := newPair(t, servers.MariaDB)
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	p.serveWith(t, []string{ln.Addr().String(), p.first.Addr}, "writable: false", "{handshake: 12s, connect_timeout: 12s}")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	port, err := insert(ctx, p.open(t))
	assert.True(t, err == nil && strings.HasSuffix(p.first.Addr, ":"+port), "at %q: %v", port, err)
}
