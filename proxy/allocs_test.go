//go:build !race

package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/idsource"
	"idproxy/proxy/wire"
)

// same is a source whose ids are all 77: what the fixed replies of a frugal server report.
type same struct{ numbers }

func (s *same) Series(string, string) (idsource.Series, error) { return s, nil }

func (*same) Standing() idsource.Standing { return idsource.Standing{} }

func (*same) Fill(_ context.Context, ids []uint64, _ uint64) error {
	for i := range ids {
		ids[i] = 77
	}
	return nil
}

func (*same) Admit(context.Context, string, uint64) error { return nil }

func (*same) Advance(context.Context, uint64) error { return nil }

// frugal is a server's end that, once the proxy's questions are over, answers each command itself,
// and allocates nothing for it.
type frugal struct {
	net.Conn
	buf  []byte
	n    int
	okay []byte
}

func (c *frugal) Read(b []byte) (int, error) {
	if !bytes.Contains(c.buf[:c.n], []byte("DO 'frugal'")) { // the text with which it begins
		n, err := c.Conn.Read(b)
		c.n = copy(c.buf, b[:n])
		return n, err
	}
	for c.n = 0; ; {
		n, err := c.Conn.Read(c.buf[c.n:])
		if err != nil {
			return 0, err
		}
		at := 0
		for c.n += n; c.n-at >= wire.HeaderLen; {
			size := wire.HeaderLen + wire.PayloadLen(c.buf[at:])
			if c.n-at < size {
				break
			}
			reply := c.okay
			if c.buf[at+wire.HeaderLen] == mysql.COM_STMT_PREPARE {
				reply = prepared(byte(bytes.Count(c.buf[at:at+size], []byte("?"))))
			}
			if _, err := c.Conn.Write(reply); err != nil {
				return 0, err
			}
			at += size
		}
		c.n = copy(c.buf, c.buf[at:c.n])
	}
}

// prepared is the reply to a PREPARE of a statement with parameters.
func prepared(parameters byte) []byte {
	reply := packet(1, []byte{0, 1, 0, 0, 0, 0, 0, parameters, 0, 0, 0, 0})
	for i := range parameters {
		reply = append(reply, packet(2+i, (&mysql.Field{Name: []byte("?"), Type: mysql.MYSQL_TYPE_VAR_STRING}).Dump())...)
	}
	return append(reply, packet(2+parameters, []byte{wire.EOFByte, 0, 0, 2, 0})...)
}

// TestNoAllocations: a statement allocates nothing, whether it is forwarded or filled, as a text or
// prepared, alone or one of several under way.
func TestNoAllocations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // else pools lose what they keep
	execution := func(value int64) []byte {
		return commandOf(binary.LittleEndian.AppendUint64([]byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x08\x00"), uint64(value))...)
	}
	for _, tt := range []struct {
		name, prepares string
		command        []byte
		asks           bool // LAST_INSERT_ID(), where others are under way
		allocates      bool
	}{
		{name: "text, forwarded", command: query("UPDATE orders SET a = 1 WHERE id = 5")},
		{name: "text, no rule", command: query("INSERT INTO other (a) VALUES (1)")},
		{name: "text, filled", command: query("INSERT INTO orders (a) VALUES (1)"), asks: true},
		{name: "text, three rows", command: query("INSERT INTO orders (a) VALUES (1), (2), (3)"), asks: true},
		{name: "prepared, forwarded", prepares: "UPDATE orders SET a = 1 WHERE id = ?", command: execution(5)},
		{name: "prepared, filled", prepares: "INSERT INTO orders (a) VALUES (?)", command: execution(5), asks: true},
		{name: "a reply that is not as expected", command: query("INSERT INTO orders (id, a) VALUES (78, 1)"), allocates: true},
	} {
		r := start(t, func(_ *Config, live *Settings) { live.Sources = map[string]idsource.Source{"s": &same{}} })
		r.server.set(func(f *fakeServer) {
			f.wrap = func(c net.Conn) net.Conn {
				return &frugal{Conn: c, buf: make([]byte, 64<<10), okay: packet(1, okPayload(1, 77, 2))}
			}
		})
		c := r.client()
		for _, sql := range []string{"INSERT INTO orders (a) VALUES (1)", "DO 'frugal'"} {
			if ok := c.query(sql); ok[0] != wire.OKByte {
				t.Fatalf("%s: %q", sql, ok)
			}
		}
		if tt.prepares != "" {
			c.write(commandOf(append([]byte{mysql.COM_STMT_PREPARE}, tt.prepares...)...))
			for range 3 { // what it is, its parameter and EOF
				c.read()
			}
		}
		for _, many := range []int{1, 5} {
			if many > 1 && tt.asks { // behind others LAST_INSERT_ID() is asked, which the replies here do not tell
				continue
			}
			sent, got := bytes.Repeat(tt.command, many), make([]byte, many*len(packet(1, okPayload(1, 77, 2))))
			roundTrip := func() {
				if _, err := c.conn.Write(sent); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(c.conn, got); err != nil || got[wire.HeaderLen] != wire.OKByte {
					t.Fatalf("%s: %q, %v", tt.name, got, err)
				}
			}
			for range 20 {
				roundTrip()
			}
			const rounds = 500
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range rounds {
				roundTrip()
			}
			runtime.ReadMemStats(&after)
			// A pool has a shelf for each processor, and whoever moves to another finds its empty.
			each := float64(after.Mallocs-before.Mallocs) / rounds / float64(many)
			if t.Logf("%s, %d at once: %.3f allocations", tt.name, many, each); each >= 0.5 != tt.allocates {
				t.Errorf("%s, %d at once: %.2f allocations for a statement; allocates: want %v", tt.name, many, each, tt.allocates)
			}
		}
	}
}
