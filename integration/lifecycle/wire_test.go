package lifecycle

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// TestVanishingClient breaks off in the middle of a packet; the server's side must end too.
func TestVanishingClient(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
		db := harness.Open(t, server.Config(""), "")
		for name, cut := range map[string]func(c *replay.Conn){
			"in a header":       func(c *replay.Conn) { c.Write([]byte{9, 0}) },
			"in a packet":       func(c *replay.Conn) { c.Write([]byte("\x40\x00\x00\x00\x03SELECT")) },
			"in a held one":     func(c *replay.Conn) { c.Write([]byte("\x40\x00\x00\x00\x03EXECUTE IMMEDIATE")) },
			"in a large packet": func(c *replay.Conn) { c.Write(append([]byte("\xff\xff\xff\x00\x03SELECT "), make([]byte, 1<<20)...)) },
			"in a query":        func(c *replay.Conn) { c.SendQuery("SELECT SLEEP(0.2)") },
			"in a reset": func(c *replay.Conn) {
				c.Write([]byte{9, 0})
				_ = c.Conn.(*net.TCPConn).SetLinger(0) // the close then sends RST
			},
		} {
			c := openRaw(t, server, p.Addr("a"))
			assert.NoError(t, replay.Do(func() { cut(c) }), name)
			c.Close()
			assert.NoError(t, threadEnds(t.Context(), db, c.Greeting.Thread), server.Kind, "client vanishes", name)
		}
		assert.NoError(t, serves(server, p.Addr("a")), server.Kind)
	}
}

// threadEnds waits until the server has no such connection any more.
func threadEnds(ctx context.Context, db *sql.DB, thread uint32) error {
	for range 9000 {
		var n int
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", thread).Scan(&n); err != nil || n == 0 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("connection %d is still there", thread)
}

// TestHalfClose stops sending behind a statement and still gets its reply.
func TestHalfClose(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
		for _, addr := range []string{server.Addr, p.Addr("a")} {
			c := openRaw(t, server, addr)
			if err := replay.Do(func() {
				c.SendQuery("SELECT SLEEP(0.3); SELECT REPEAT('x', 1000000)")
				if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
					replay.Fail("half close: %w", err)
				}
				replay.Check(c.Result())
				c.Drain()
			}); err != nil {
				t.Errorf("%s at %s: %v", server.Kind, addr, err)
			}
		}
	}
}

// TestUnsolicited compares what servers say to a client that did not ask: at the end of
// wait_timeout, and when another session kills it.
func TestUnsolicited(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
		db := harness.Open(t, server.Config(""), "")
		for name, run := range map[string]func(c *replay.Conn){
			"wait_timeout": func(c *replay.Conn) {
				c.Must("SET SESSION wait_timeout = 1")
				c.Drain()
			},
			"killed while idle": func(c *replay.Conn) {
				if _, err := db.Exec(fmt.Sprintf("KILL %d", c.Greeting.Thread)); err != nil {
					replay.Fail("kill: %w", err)
				}
				c.Drain()
			},
			"killed in a statement": func(c *replay.Conn) {
				c.SendQuery("SELECT SLEEP(30)")
				replay.Check(running(t, db, "SLEEP(30)"))
				if _, err := db.Exec(fmt.Sprintf("KILL %d", c.Greeting.Thread)); err != nil {
					replay.Fail("kill: %w", err)
				}
				c.Drain()
			},
		} {
			s := replay.Session{Name: name, Run: func(c *replay.Conn) {
				run(c)
				c.Ended = true
			}}
			cfg := replay.Config{Addr: server.Addr, User: servers.AppUser, Password: servers.AppPassword}
			direct := replay.Run(cfg, s)
			cfg.Addr = p.Addr("a")
			assert.NoError(t, replay.Differ(direct, replay.Run(cfg, s)), server.Kind, name)
			if name == "wait_timeout" && server.Kind == servers.MySQL {
				if b := direct.C.Got.Bytes(); len(b) < 60 || binary.LittleEndian.Uint16(lastFrame(b)[1:]) != 4031 {
					t.Errorf("MySQL says %q when wait_timeout ends, want error 4031", b[max(0, len(b)-60):])
				}
			}
		}
	}
}

// lastFrame returns the payload of the last frame.
func lastFrame(b []byte) []byte {
	for {
		n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		if len(b) <= 4+n {
			return b[4:]
		}
		b = b[4+n:]
	}
}

// TestBinlogDump follows a server's binlog through the proxy, as a replica does, and compares the
// bytes of a dump that ends with direct ones.
func TestBinlogDump(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			server := private(t, kind)
			p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
			db := harness.Open(t, server.Config(""), "")
			for _, text := range []string{"CREATE DATABASE b", "CREATE TABLE b.t (a INT, b LONGTEXT)", "INSERT INTO b.t VALUES (1, 'one'), (2, '" + strings.Repeat("x", 300000) + "')"} {
				assert.Of(db.Exec(text)).Must(t)
			}
			cfg := replay.Config{Addr: server.Addr, User: servers.AppUser, Password: servers.AppPassword}
			direct := replay.Run(cfg, replay.Session{Name: "dump", Run: dumpSession})
			cfg.Addr = p.Addr("a")
			assert.NoError(t, replay.Differ(direct, replay.Run(cfg, replay.Session{Name: "dump", Run: dumpSession})))
			n := direct.C.Got.Len()
			assert.True(t, n >= 300000, "the dump is of %d bytes", n)
			follow(t, server, p.Addr("a"))
		})
	}
}

// dumpSession asks for the first binlog up to its end.
func dumpSession(c *replay.Conn) {
	c.Must("SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE', @mariadb_slave_capability = 4")
	b := binary.LittleEndian.AppendUint32(nil, 4)
	b = binary.LittleEndian.AppendUint16(b, 1) // BINLOG_DUMP_NON_BLOCK
	b = binary.LittleEndian.AppendUint32(b, 77)
	c.Command(mysql.COM_BINLOG_DUMP, append(b, "binlog.000001"...)...)
	for {
		p := c.Packet()
		if p[0] == mysql.ERR_HEADER {
			replay.Fail("%w", replay.ServerError(p))
		}
		if p[0] == mysql.EOF_HEADER && len(p) < 9 {
			c.Ended = true
			return
		}
	}
}

// follow runs a replica of go-mysql's until it has seen a row that is written while it waits.
func follow(t *testing.T, server *servers.Server, addr string) {
	t.Helper()
	events := replicate(t, server, addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := harness.Open(t, server.Config("b"), addr)
	assert.Of(db.ExecContext(ctx, "SET GLOBAL binlog_format = 'ROW'")).Must(t)
	fresh := harness.Open(t, server.Config("b"), addr)
	assert.Of(fresh.ExecContext(ctx, "INSERT INTO t VALUES (3, 'written while it waits')")).Must(t)
	for {
		event := assert.Of(events.GetEvent(ctx)).Must(t, "the row does not come")
		if rows, ok := event.Event.(*replication.RowsEvent); ok && fmt.Sprint(rows.Rows[0][0]) == "3" {
			return
		}
	}
}
