package proxy

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/limit"
	"idproxy/proxy/wire"
)

// bounded has the listener of a test bounded.
func bounded(b *limit.Bounds) func(cfg *Config, live *Settings) {
	return func(_ *Config, live *Settings) { live.Bounds = map[string]*limit.Bounds{"l": b} }
}

// rebound puts other bounds in force.
func (r *running) rebound(b *limit.Bounds) {
	live := *r.srv.settings()
	live.Bounds = map[string]*limit.Bounds{"l": b}
	r.srv.Set(&live)
}

// wantLimited waits until a limit was reached n times.
func (r *running) wantLimited(key limit.Key, n uint64) {
	r.t.Helper()
	for end := time.Now().Add(patience); r.srv.Listeners()[0].Limited[key] != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s was reached %d times, want %d", key, r.srv.Listeners()[0].Limited[key], n)
		}
	}
}

// wantOpen waits until n sessions are open.
func (r *running) wantOpen(n int) {
	r.t.Helper()
	for end := time.Now().Add(patience); len(r.srv.Sessions()) != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%d sessions are open, want %d", len(r.srv.Sessions()), n)
		}
	}
}

// TestAllow: who comes from elsewhere is told so, and no server hears of it.
func TestAllow(t *testing.T) {
	r := start(t, bounded(&limit.Bounds{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}))
	p := r.dial()
	p.wantError(p.read(), mysql.ER_HOST_NOT_PRIVILEGED, "Host '127.0.0.1' is not allowed to connect")
	p.wantClosed()
	r.wantLimited(limit.Allow, 1)
	r.server.set(func(f *fakeServer) {
		if len(f.conns) != 0 {
			t.Errorf("the server was connected to %d times", len(f.conns))
		}
	})
	r.rebound(&limit.Bounds{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	r.client()
}

// TestSessionsOfAListener, of a network and of a user: the next one is refused, and served when one
// has left. A reload changes them.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		key   limit.Key
		bound limit.Bounds
		code  uint16
		text  string
	}{
		{limit.PerListener, limit.Bounds{Sessions: 2}, mysql.ER_CON_COUNT_ERROR, "2 sessions at most on this listener"},
		{limit.PerNetwork, limit.Bounds{PerNetwork: 2, IPv4: 8}, mysql.ER_CON_COUNT_ERROR, "2 sessions at most from 127.0.0.0/8 (limits.sessions_per_network)"},
		{limit.PerUser, limit.Bounds{PerUser: 2}, mysql.ER_TOO_MANY_USER_CONNECTIONS, "(limits.sessions_per_user)"},
	} {
		t.Run(tt.key.String(), func(t *testing.T) {
			r := start(t, bounded(&tt.bound))
			first := r.client()
			r.client()
			p := r.dial()
			if tt.key == limit.PerUser {
				p.login()
			}
			p.wantError(p.read(), tt.code, tt.text)
			p.wantClosed()
			r.wantLimited(tt.key, 1)
			first.conn.Close()
			r.wantOpen(1)
			r.client()
			r.rebound(&limit.Bounds{})
			r.client()
		})
	}
}

// TestUserAtOnce: of two who log in as the same user at once, and of whom one may, the second gets an
// error where the server said OK.
func TestUserAtOnce(t *testing.T) {
	r := start(t, bounded(&limit.Bounds{PerUser: 1}))
	said := make(chan struct{})
	r.server.set(func(f *fakeServer) { f.login = said })
	first, second := r.dial(), r.dial()
	first.login()
	second.login()
	r.server.users(2)
	close(said)
	one, other := first.read(), second.read()
	if one[0] != wire.OKByte {
		first, second, one, other = second, first, other, one
	}
	second.wantError(other, mysql.ER_TOO_MANY_USER_CONNECTIONS, "(limits.sessions_per_user)")
	second.wantClosed()
	if one[0] != wire.OKByte {
		t.Errorf("the first is told %q", one)
	}
	if reply := first.query("SELECT 1"); reply[0] != wire.OKByte {
		t.Errorf("the first reads %q", reply)
	}
}

// TestInPlaceOfOK: the error has the number of the OK, and what is in front of that goes as it came.
func TestInPlaceOfOK(t *testing.T) {
	e := &mysql.MyError{Code: 1203, State: "42000", Message: "m"}
	more, ok := packet(2, []byte{1, 3}), packet(3, okPayload(0, 0, 2))
	if got, want := inPlaceOfOK(append(bytes.Clone(more), ok...), e), append(bytes.Clone(more), wire.AppendERR(nil, 3, e)...); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := inPlaceOfOK(more, e); got != nil {
		t.Errorf("without an OK: %q", got)
	}
}

// TestLogins: clients that connect and say nothing do not keep others out, and those whose server
// has to speak are left alone.
func TestLogins(t *testing.T) {
	r := start(t, func(_ *Config, live *Settings) { live.Logins = 3 })
	old := r.client()
	old.query("SELECT 1") // it has logged in, and is not counted
	var silent []*peer
	for range 3 {
		p := r.dial()
		p.read()
		silent = append(silent, p)
	}
	for range 3 {
		r.client().query("SELECT 1")
	}
	silent[0].wantClosed()
	old.query("SELECT 1")
	r.wantLimited(limit.Pending, 1) // what has logged in has made room for the others
	silent[1].conn.Close()
	silent[2].conn.Close()
	r.wantOpen(4)

	said := make(chan struct{})
	r.server.set(func(f *fakeServer) { f.login = said })
	var waiting []*peer
	for range 3 {
		p := r.dial()
		p.login()
		waiting = append(waiting, p)
	}
	r.server.users(10) // logins that were given up are ended in the name of nobody
	p := r.dial()
	p.wantError(p.read(), mysql.ER_CON_COUNT_ERROR, "limits.logins")
	close(said)
	for _, p := range waiting {
		if p.read()[0] != wire.OKByte {
			t.Error("a login that waited for the server was ended")
		}
	}
}

// TestLoggedInIsNoLogin: a client that knows that it is logged in is not ended for another login.
func TestLoggedInIsNoLogin(t *testing.T) {
	r := start(t, func(_ *Config, live *Settings) { live.Logins = 1 })
	for range 500 {
		first, second := r.client(), r.client()
		if ok := first.query("UPDATE t SET a = 1"); ok[0] != wire.OKByte {
			t.Fatalf("%q", ok)
		}
		first.conn.Close()
		second.conn.Close()
	}
	r.wantLimited(limit.Pending, 0)
}

// TestSilent: a session without a command is closed after idle_timeout, one in a transaction after
// transaction_timeout, and the client reads why. One that is busy stays.
func TestSilent(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	r := start(t, bounded(&limit.Bounds{Idle: 3 * time.Second}))
	r.server.set(func(f *fakeServer) {
		f.handle = func(sql string) ([][]byte, bool) {
			switch sql {
			case "BEGIN":
				return [][]byte{okPayload(0, 0, 3)}, true
			case "SELECT SLEEP(9)":
				<-answer
			}
			return [][]byte{okPayload(1, 0, 2)}, true
		}
	})
	idle, open, busy := r.client(), r.client(), r.client()
	open.query("BEGIN")
	busy.write(query("SELECT SLEEP(9)"))
	idle.wantError(idle.read(), 4031, "no command came for 3s (limits.idle_timeout)")
	idle.wantClosed()
	if reply := open.query("SELECT 1"); reply[0] != wire.OKByte {
		t.Errorf("a session in a transaction reads %q", reply)
	}
	open.query("BEGIN")
	r.rebound(&limit.Bounds{Transaction: time.Second})
	open.wantError(open.read(), 4031, "no command came for 1s (limits.transaction_timeout)")
	open.wantClosed()
	r.wantLimited(limit.Idle, 1)
	r.wantLimited(limit.Transaction, 1)
	close(answer)
	if reply := busy.read(); reply[0] != wire.OKByte {
		t.Errorf("a session that was busy reads %q", reply)
	}
}

// TestHeld: statements that are not whole take memory within limits.held. The one that finds no room
// is refused when all of it has come, the session goes on, and so do others. In the end nothing is
// taken.
func TestHeld(t *testing.T) {
	const most = 3 << 19
	r := start(t, func(_ *Config, live *Settings) { live.Statement, live.Held = 8<<20, most })
	large := query("INSERT INTO orders (a) VALUES ('" + strings.Repeat("x", 400<<10) + "')")
	first, second, small := r.client(), r.client(), r.client()
	first.write(large[:len(large)-1]) // it takes a buffer of 1 MiB, and half of that before
	for end := time.Now().Add(patience); r.srv.Held() < 400<<10; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held", r.srv.Held())
		}
	}
	second.write(bytes.Join([][]byte{large, large, query("SELECT 1")}, nil))
	for range 2 {
		second.wantError(second.read(), mysql.ER_OUT_OF_RESOURCES, "limits.held")
	}
	if reply := second.read(); reply[0] != wire.OKByte {
		t.Errorf("what comes behind: %q", reply)
	}
	if n := r.srv.Held(); n > most {
		t.Errorf("%d bytes are held, want %d at most", n, most)
	}
	if reply := small.query("INSERT INTO orders (a) VALUES (1)"); reply[0] != wire.OKByte {
		t.Errorf("a small statement: %q", reply)
	}
	first.conn.Close()
	r.wantOpen(2)
	r.wantNothingHeld()
	if reply := second.query(string(large[5:])); reply[0] != wire.OKByte {
		t.Errorf("when there is room again: %q", reply)
	}
	r.wantNothingHeld()
}

func (r *running) wantNothingHeld() {
	r.t.Helper()
	for end := time.Now().Add(patience); r.srv.Held() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%d bytes are held by nobody", r.srv.Held())
		}
	}
}
