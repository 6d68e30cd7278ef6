package proxy

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// insertIDOf returns the insert id of an OK packet.
func insertIDOf(t *testing.T, payload []byte) uint64 {
	t.Helper()
	ok, valid := wire.ParseOK(payload, 0)
	if !valid || payload[0] != wire.OKByte {
		t.Fatalf("not an OK: %q", payload)
	}
	return ok.InsertID
}

func TestSessionFills(t *testing.T) {
	counts := &rule.Counts{}
	r := start(t, func(_ *Config, live *Settings) { live.Rules = countedRules(counts) })
	c := r.client()
	// The server's OK says 0, as behind a trigger: the client sees its first id.
	if id := insertIDOf(t, c.query("INSERT INTO orders (a) VALUES (1), (2)")); id != 100 {
		t.Errorf("insert id %d; want 100", id)
	}
	if id := insertIDOf(t, c.query("INSERT INTO orders (id, a) VALUES (7, 1)")); id != 7 {
		t.Errorf("insert id %d; want 7", id)
	}
	c.query("UPDATE orders SET a = 1")
	want := []string{
		"INSERT INTO orders (a,`id`) VALUES (1,100), (2,LAST_INSERT_ID(100)+1)",
		"INSERT INTO orders (id, a) VALUES (7, 1)",
		"UPDATE orders SET a = 1",
	}
	if got := r.server.queries(); !slices.Equal(got, want) {
		t.Errorf("the server saw\n%q\nwant\n%q", got, want)
	}
	filled, sessions := r.srv.Stats.Filled.Load(), len(r.srv.Sessions())
	if ids, _, _ := counts.Load(); filled != 1 || ids != 2 || sessions != 1 {
		t.Errorf("counted %d statements, %d ids, %d sessions", filled, ids, sessions)
	}
}

// What the proxy refuses never runs on the server, and the session goes on. A form that
// is not filled is prepared there first, for the server's own error if it has one.
func TestSessionRefuses(t *testing.T) {
	r := start(t, func(_ *Config, live *Settings) { live.Statement = 200 })
	c := r.client()
	c.wantError(c.query(refusedText), mysql.ER_NOT_SUPPORTED_YET, "shop.orders.id")
	c.wantError(c.query(brokenText), mysql.ER_PARSE_ERROR, "near ''")
	c.wantError(c.query("INSERT INTO orders (a) VALUES ('"+strings.Repeat("x", 200)+"')"), mysql.ER_NET_PACKET_TOO_LARGE, "limits.statement")
	r.ids.set(errors.New("store is down"), false)
	c.wantError(c.query("INSERT INTO orders (a) VALUES (1)"), mysql.ER_AUTOINC_READ_FAILED, "store is down")
	if got := r.server.queries(); len(got) != 0 {
		t.Errorf("the server saw %q", got)
	}
	r.ids.set(nil, false)
	if id := insertIDOf(t, c.query("INSERT INTO orders (a) VALUES (1)")); id != 100 {
		t.Errorf("insert id %d; want 100", id)
	}
}

// After an INSERT with ids has failed, LAST_INSERT_ID() is set right before it
// is read, once.
func TestSessionPaysLastID(t *testing.T) {
	r := start(t, nil)
	handle := func(sql string) ([][]byte, bool) {
		if strings.Contains(sql, "(2,") {
			return [][]byte{clienterr.Payload(testError(1062))}, true
		}
		return [][]byte{okPayload(1, 0, 2)}, true
	}
	r.server.set(func(f *fakeServer) { f.handle = handle })
	c := r.client()
	c.query("INSERT INTO orders (a) VALUES (1)")
	c.wantError(c.query("INSERT INTO orders (a) VALUES (2)"), 1062, "")
	c.query("DELETE FROM t")
	c.query("DO LAST_INSERT_ID()")
	c.query("DO LAST_INSERT_ID()")
	got := r.server.queries()
	want := []string{"DELETE FROM t", "SET last_insert_id=100", "DO LAST_INSERT_ID()", "DO LAST_INSERT_ID()"}
	if len(got) != 6 || !slices.Equal(got[2:], want) {
		t.Errorf("the server saw %q; want the last to be %q", got, want)
	}
}

// panicking is a log handler that panics on a message with the given beginning.
type panicking struct {
	slog.Handler
	on string
}

func (h panicking) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.on) {
		panic("log of a test")
	}
	return nil
}
func (h panicking) Enabled(context.Context, slog.Level) bool { return true }
func (h panicking) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h panicking) WithGroup(string) slog.Handler            { return h }

// A panic in either direction ends its own session, is counted, and harms no
// other.
func TestPanicContained(t *testing.T) {
	for name, provoke := range map[string]func(r *running){
		"to the server": func(r *running) { r.ids.set(nil, true) },
		"to the client": func(r *running) {
			r.server.set(func(f *fakeServer) {
				f.handle = func(sql string) ([][]byte, bool) {
					return [][]byte{okPayload(1, 0, 2)}, strings.HasPrefix(sql, "UPDATE")
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(cfg *Config, _ *Settings) {
				cfg.Logger = slog.New(panicking{Handler: slog.DiscardHandler, on: "server lost"})
			})
			healthy := r.client()
			provoke(r)
			c := r.client()
			c.write(query("INSERT INTO orders (a) VALUES (1)"))
			c.wantClosed()
			waitFor(t, func() bool { return len(r.srv.Sessions()) == 1 })
			if n := r.srv.Stats.Panics.Load(); n != 1 {
				t.Errorf("%d panics counted; want 1", n)
			}
			if ok := healthy.query("UPDATE t SET a = 1"); ok[0] != wire.OKByte {
				t.Errorf("another session got %q", ok)
			}
		})
	}
}

// When the server goes away with an INSERT in flight, the client is told which
// ids it may find; otherwise it sees what it would have seen without a proxy.
func TestServerLost(t *testing.T) {
	r := start(t, nil)
	r.server.set(func(f *fakeServer) { f.handle = func(string) ([][]byte, bool) { return nil, false } })
	c := r.client()
	c.wantError(c.query("INSERT INTO orders (a) VALUES (1), (2)"), mysql.ER_NET_READ_ERROR, "ids 100 to 101 were assigned in shop.orders")
	c.wantClosed()
	c = r.client()
	c.write(query("UPDATE orders SET a = 1"))
	c.wantClosed()
	c = r.client()
	c.write(query("INSERT INTO orders (id, a) VALUES (7, 1)"))
	c.wantError(c.read(), mysql.ER_NET_READ_ERROR, "")
	c.wantClosed()
}

func TestDrain(t *testing.T) {
	release := make(chan struct{})
	r := start(t, nil)
	reached := make(chan struct{}, 2)
	handle := func(sql string) ([][]byte, bool) {
		status := uint16(mysql.SERVER_STATUS_AUTOCOMMIT)
		switch {
		case sql == "slow":
			reached <- struct{}{}
			<-release
		case sql == "BEGIN":
			status = mysql.SERVER_STATUS_IN_TRANS
		}
		return [][]byte{okPayload(0, 0, status)}, true
	}
	r.server.set(func(f *fakeServer) { f.handle = handle })
	idle, busy, inTrans := r.client(), r.client(), r.client()
	inTrans.query("BEGIN")
	busy.write(query("slow"))
	<-reached
	r.drain()
	idle.wantClosed()
	if ok := inTrans.query("COMMIT"); ok[0] != wire.OKByte {
		t.Errorf("COMMIT while draining: %q", ok)
	}
	inTrans.wantClosed()
	select {
	case <-r.done:
		t.Error("Serve returned while a statement was at work")
	default:
	}
	close(release)
	if ok := busy.read(); ok[0] != wire.OKByte {
		t.Errorf("reply while draining: %q", ok)
	}
	busy.wantClosed()
	<-r.done
}

// A login that ends while the server drains leaves no session behind.
func TestDrainDuringLogin(t *testing.T) {
	r := start(t, nil)
	login := make(chan struct{})
	r.server.set(func(f *fakeServer) { f.login = login })
	c := r.dial()
	c.login()
	if got := r.server.users(1); len(got) != 1 {
		t.Fatalf("logins %q", got)
	}
	r.drain()
	waitFor(t, func() bool {
		r.srv.mu.Lock()
		defer r.srv.mu.Unlock()
		return r.srv.phase >= Closing
	})
	begun := time.Now()
	close(login)
	c.read()
	c.wantClosed()
	<-r.done
	if d := time.Since(begun); d > patience/2 {
		t.Errorf("the session took %v to end", d)
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

func TestDrainCuts(t *testing.T) {
	r := start(t, nil)
	handle := func(string) ([][]byte, bool) {
		return [][]byte{okPayload(0, 0, mysql.SERVER_STATUS_IN_TRANS)}, true
	}
	r.server.set(func(f *fakeServer) { f.handle = handle })
	c := r.client()
	c.query("BEGIN")
	live := *r.srv.settings()
	live.ShutdownTimeout = 20 * time.Millisecond // as after a reload
	r.srv.Set(&live)
	r.drain()
	c.wantClosed()
	<-r.done
}

func TestTooManySessions(t *testing.T) {
	r := start(t, func(_ *Config, live *Settings) { live.Sessions = 1 })
	first := r.client()
	second := r.dial()
	second.wantError(second.read(), mysql.ER_CON_COUNT_ERROR, "limits.sessions")
	second.wantClosed()
	first.conn.Close()
	waitFor(t, func() bool { return len(r.srv.Sessions()) == 0 })
	r.client()
}

// Every login that comes to nothing is ended towards the server as one of a
// user that does not exist, lest the server block the proxy's address.
func TestLoginFails(t *testing.T) {
	tests := []struct {
		name  string
		send  []byte
		code  uint16 // of the ERR; 0: none
		close bool
	}{
		{name: "the client leaves", close: true},
		{name: "the client is silent"},
		{name: "garbage", send: packet(1, []byte("GET /")), code: mysql.ER_HANDSHAKE_ERROR},
		{name: "response that makes no sense", send: packet(1, append(make([]byte, 32), "no end"...)), code: mysql.ER_HANDSHAKE_ERROR},
		{name: "too large", send: []byte{0, 0, 0x50, 1, 'x'}},
		{name: "TLS that was not offered", send: packet(1, append([]byte{0, 0xaa, 0, 0}, make([]byte, 28)...)), code: mysql.ER_HANDSHAKE_ERROR},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(_ *Config, live *Settings) { live.Handshake = 2 * time.Second })
			c := r.dial()
			c.read()
			if tt.send != nil {
				c.write(tt.send)
			}
			if tt.code != 0 {
				c.wantError(c.read(), tt.code, "")
			}
			if tt.close {
				c.conn.Close()
			}
			if got := r.server.users(1); !slices.Equal(got, []string{"idproxy-abandoned-login"}) {
				t.Errorf("logins at the server: %q", got)
			}
			if !tt.close {
				c.wantClosed()
			}
		})
	}
}

// A server without a greeting is named to the client, and its own refusal is
// passed on.
func TestServerRefuses(t *testing.T) {
	r := start(t, nil)
	r.server.set(func(f *fakeServer) { f.greeting = append([]byte{0xff, 0x10, 0x04}, "Too many connections"...) })
	c := r.dial()
	c.wantError(c.read(), 1040, "Too many connections")
	c.wantClosed()
	r.server.set(func(f *fakeServer) { f.greeting = []byte("\x09old") })
	c = r.dial()
	c.wantError(c.read(), mysql.ER_BAD_HOST_ERROR, "protocol 10")
	c.wantClosed()
	r.server.stop()
	c = r.dial()
	c.wantError(c.read(), mysql.ER_BAD_HOST_ERROR, "connect")
	c.wantClosed()
}

// Listen opens all addresses or none.
func TestListen(t *testing.T) {
	taken := newFakeServer(t).ln.Addr()
	free := Address{Net: "tcp", Addr: "127.0.0.1:0"}
	srv := New(Config{Listeners: []Listener{{Name: "a", Listen: free, Upstreams: []Upstream{{Addr: free}}}, {Name: "b", Listen: taken, Upstreams: []Upstream{{Addr: free}}}}}, &Settings{})
	if err := srv.Listen(); !says(err, "listener b") {
		t.Errorf("Listen: %v", err)
	}
	if _, err := srv.listeners[0].door.Accept(); err == nil {
		t.Error("the first listener is still open")
	}
}

// What may write to a table with a rule out of the proxy's sight is forwarded, and
// counted.
func TestSessionCountsUnseen(t *testing.T) {
	r := start(t, nil)
	c := r.client()
	seen := int64(0)
	for _, tt := range []struct {
		text   string
		counts int64
	}{
		{"CALL p()", 1},
		{"SELECT 1", 0},
		{"EXECUTE s", 1},
		{"BEGIN NOT ATOMIC INSERT INTO other (a) VALUES (1); END", 0},
		{"BEGIN NOT ATOMIC EXECUTE IMMEDIATE @a; END", 1},
		{"SET STATEMENT max_statement_time=1 FOR PREPARE s FROM CONCAT(@a, 'x')", 1},
		{"PREPARE s FROM 'BEGIN NOT ATOMIC EXECUTE IMMEDIATE @a; END'", 0},
		{"EXECUTE s", 1},
		{"PREPARE s FROM 'SELECT 1'", 0},
		{"EXECUTE s", 0},
	} {
		if reply := c.query(tt.text); reply[0] != wire.OKByte {
			t.Errorf("%s: %q", tt.text, reply)
		}
		if seen += tt.counts; r.srv.Stats.Unseen.Load() != seen {
			t.Errorf("%s: counted %d, want %d", tt.text, r.srv.Stats.Unseen.Load(), seen)
			seen = r.srv.Stats.Unseen.Load()
		}
	}
}
