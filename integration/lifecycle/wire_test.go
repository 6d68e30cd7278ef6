package lifecycle

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/go-cmp/cmp"

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
			assert.Until(t, fmt.Sprintf("%s has no connection of a client that vanishes %s", server.Kind, name), func() bool {
				return harness.Count(t, db, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d", c.Greeting.Thread)) == 0
			})
		}
		assert.NoError(t, serves(server, p.Addr("a")), server.Kind)
	}
}

// TestHalfClose stops sending behind a statement and still gets its reply.
func TestHalfClose(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
		for _, addr := range []string{server.Addr, p.Addr("a")} {
			c := openRaw(t, server, addr)
			assert.NoError(t, replay.Do(func() {
				c.SendQuery("SELECT SLEEP(0.3); SELECT REPEAT('x', 1000000)")
				replay.Check(c.Conn.(*net.TCPConn).CloseWrite())
				replay.Check(c.Result())
				c.Drain()
			}), server.Kind, "at", addr)
		}
	}
}

// TestUnsolicited compares what servers say to a client that did not ask: at the end of
// wait_timeout, and when another session kills it.
func TestUnsolicited(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
		db := harness.Open(t, server.Config(""), "")
		kill := func(c *replay.Conn) { harness.MustExec(t, db, fmt.Sprintf("KILL %d", c.Greeting.Thread)) }
		for name, run := range map[string]func(c *replay.Conn){
			"wait_timeout": func(c *replay.Conn) {
				c.Must("SET SESSION wait_timeout = 1")
				c.Drain()
			},
			"killed while idle": func(c *replay.Conn) {
				kill(c)
				c.Drain()
			},
			"killed in a statement": func(c *replay.Conn) {
				c.SendQuery("SELECT SLEEP(30)")
				runs(t, db, "SLEEP(30)")
				kill(c)
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
				b := direct.C.Got.Bytes()
				assert.True(t, len(b) >= 60 && binary.LittleEndian.Uint16(lastFrame(b)[1:]) == 4031, "MySQL says %q when wait_timeout ends, want error 4031", b[max(0, len(b)-60):])
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
	eachKind(t, func(t *testing.T, kind servers.Kind) {
		server := private(t, kind)
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
		db := harness.Open(t, server.Config(""), "")
		harness.MustExec(t, db, "CREATE DATABASE b", "CREATE TABLE b.t (a INT, b LONGTEXT)", "INSERT INTO b.t VALUES (1, 'one'), (2, '"+strings.Repeat("x", 300000)+"')")
		cfg := replay.Config{Addr: server.Addr, User: servers.AppUser, Password: servers.AppPassword}
		direct := replay.Run(cfg, replay.Session{Name: "dump", Run: dumpSession})
		cfg.Addr = p.Addr("a")
		assert.NoError(t, replay.Differ(direct, replay.Run(cfg, replay.Session{Name: "dump", Run: dumpSession})))
		n := direct.C.Got.Len()
		assert.True(t, n >= 300000, "the dump is of %d bytes", n)
		follow(t, server, p.Addr("a"))
	})
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
	harness.MustExec(t, db, "SET GLOBAL binlog_format = 'ROW'")
	harness.MustExec(t, harness.Open(t, server.Config("b"), addr), "INSERT INTO t VALUES (3, 'written while it waits')")
	for {
		event := assert.Of(events.GetEvent(ctx)).Must(t, "the row does not come")
		if rows, ok := event.Event.(*replication.RowsEvent); ok && fmt.Sprint(rows.Rows[0][0]) == "3" {
			return
		}
	}
}

// TestGoMySQLBinlog has a replica of go-mysql's read, through the proxy, the rows that were inserted
// through the proxy: it sees the ids that applications see, whichever way they sent the rows.
func TestGoMySQLBinlog(t *testing.T) {
	eachKind(t, func(t *testing.T, kind servers.Kind) {
		server := harness.StartServer(t, kind, servers.Options{Args: []string{"--log-bin=binlog", "--server-id=1", "--binlog-format=ROW"}})
		db := harness.Database(t, server)
		harness.MustExec(t, harness.Open(t, server.Config(db), ""), "CREATE TABLE orders (a VARCHAR(20), id BIGINT UNSIGNED NOT NULL PRIMARY KEY)")
		addr := harness.StartProxy(t, harness.OneListener(server.Addr)+harness.OneRule(db+".orders")).Addr("a")
		events := replicate(t, server, addr)
		app := harness.Open(t, server.Config(db), addr)
		var want []string
		for _, insert := range []struct {
			text string
			args []any
			rows []string
		}{
			{"INSERT INTO orders (a) VALUES ('text')", nil, []string{"text"}},
			{"INSERT INTO orders (a) VALUES ('two'), ('rows')", nil, []string{"two", "rows"}},
			{"INSERT INTO orders (a) VALUES (?)", []any{"prepared"}, []string{"prepared"}},
			{"INSERT INTO orders (a) VALUES (?), (?)", []any{"both", "prepared"}, []string{"both", "prepared"}},
			{"INSERT INTO orders (a, id) VALUES (?, ?)", []any{"explicit", 1 << 40}, []string{"explicit"}},
			{"INSERT INTO orders (a, id) VALUES (?, ?)", []any{"given as NULL", nil}, []string{"given as NULL"}},
		} {
			result := assert.Of(app.Exec(insert.text, insert.args...)).Must(t, insert.text)
			first := assert.Of(result.LastInsertId()).Must(t)
			for i, row := range insert.rows {
				want = append(want, fmt.Sprintf("%s %d", row, first+int64(i)))
			}
		}
		assert.Equal(t, "rows (-as inserted, +in the binlog)", cmp.Diff(want, inserted(t, events, "orders", len(want))), "")
	})
}

// replicate starts a replica at an address that leads to the server. It reads all binlogs.
func replicate(t *testing.T, server *servers.Server, addr string) *replication.BinlogStreamer {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	assert.Must(t, err)
	port := assert.Of(strconv.ParseUint(text, 10, 16)).Must(t)
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 78, Flavor: map[servers.Kind]string{servers.MariaDB: "mariadb", servers.MySQL: "mysql"}[server.Kind],
		Host: host, Port: uint16(port), User: servers.AppUser, Password: servers.AppPassword,
		VerifyChecksum: true, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(syncer.Close)
	return assert.Of(syncer.StartSync(mysql.Position{Name: "binlog.000001", Pos: 4})).Must(t)
}

// inserted reads the binlog until n rows were inserted into the table.
func inserted(t *testing.T, events *replication.BinlogStreamer, table string, n int) (rows []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(rows) < n {
		event := assert.Of(events.GetEvent(ctx)).Must(t, fmt.Sprintf("after %q", rows))
		written, ok := event.Event.(*replication.RowsEvent)
		if !ok || string(written.Table.Table) != table {
			continue
		}
		for _, row := range written.Rows {
			rows = append(rows, fmt.Sprintf("%s %d", row...))
		}
	}
	return rows
}
