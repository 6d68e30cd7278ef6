package proxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/choice"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// accepting is a server that does something with each connection in place of a greeting.
func accepting(t *testing.T, do func(net.Conn)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			do(c)
		}
	}()
	return l.Addr()
}

// TestNextUpstream: what accepts and does not greet is passed over, as is one that refuses in place of
// the greeting; where none greets, the client gets what that one said.
func TestNextUpstream(t *testing.T) {
	t.Parallel()
	silent := accepting(t, func(c net.Conn) { t.Cleanup(func() { c.Close() }) })
	closes := accepting(t, func(c net.Conn) { c.Close() })
	full := accepting(t, func(c net.Conn) {
		_, _ = c.Write(wire.AppendERR(nil, 0, clienterr.New(1040, "", "Too many connections"))) // it has come to an end then
		c.Close()
	})
	before := func(all ...net.Addr) func(*Config, *Settings) {
		return func(cfg *Config, live *Settings) {
			live.Connect = map[string]time.Duration{"l": 2 * time.Second}
			l := &cfg.Listeners[0]
			for _, a := range slices.Backward(all) {
				l.Upstreams = slices.Insert(l.Upstreams, 0, Upstream{Addr: a})
			}
		}
	}
	r := start(t, before(silent, closes, full))
	r.client()
	began := time.Now()
	r.client() // nobody waits for those any more
	t.Logf("the second session after %v", time.Since(began))
	at := r.srv.Listeners()[0]
	if at.Upstream != r.server.ln.Addr().String() || at.Problem != nil || len(at.Servers) != 4 || !at.Servers[3].Used || at.Servers[0].Problem == nil {
		t.Errorf("status %+v", at)
	}

	only := func(all ...net.Addr) []byte {
		r := start(t, func(cfg *Config, live *Settings) {
			before(all...)(cfg, live)
			cfg.Listeners[0].Upstreams = cfg.Listeners[0].Upstreams[:len(all)]
		})
		return r.dial().read()
	}
	fullToo := accepting(t, func(c net.Conn) {
		_, _ = c.Write(wire.AppendERR(nil, 0, clienterr.New(1040, "", "Too many connections")))
		c.Close()
	})
	blocked := accepting(t, func(c net.Conn) {
		_, _ = c.Write(wire.AppendERR(nil, 0, clienterr.New(1129, "", "Host is blocked")))
		c.Close()
	})
	for _, tt := range []struct {
		servers []net.Addr
		code    uint16
		says    []string
	}{
		{[]net.Addr{full}, 1040, []string{"Too many connections"}},
		{[]net.Addr{full, fullToo}, 1040, []string{"Too many connections"}},
		{[]net.Addr{closes, full}, 1042, []string{full.String() + ": server refused the connection: 1040 Too many connections", closes.String() + ": no greeting"}},
		{[]net.Addr{full, blocked}, 1042, []string{full.String() + ": server refused the connection: 1040", blocked.String() + ": server refused the connection: 1129 Host is blocked"}},
		{[]net.Addr{closes, silent}, 1042, []string{silent.String() + ": no greeting: no answer within 2s"}},
	} {
		p := only(tt.servers...)
		if wire.ErrCode(p) != tt.code {
			t.Errorf("got %q, want %d", p, tt.code)
		}
		for _, text := range tt.says {
			if !strings.Contains(wire.ErrMessage(p), text) {
				t.Errorf("%q is not in %q", text, wire.ErrMessage(p))
			}
		}
	}
}

// TestLateGreeting: a login is ended at a server that greets when nobody waits for it any more.
func TestLateGreeting(t *testing.T) {
	t.Parallel()
	late, elsewhere := make(chan string, 10), make(chan struct{})
	slow := accepting(t, func(c net.Conn) {
		go func() {
			defer c.Close()
			<-elsewhere
			user := "closed"
			if _, err := c.Write(packet(0, fakeGreeting())); err == nil {
				if payload, _, err := wire.ReadPacket(c, 1<<16); err == nil {
					user, _, _ = strings.Cut(string(payload[32:]), "\x00")
				}
			}
			late <- user
		}()
	})
	r := start(t, func(cfg *Config, live *Settings) {
		live.Connect = map[string]time.Duration{"l": 2 * time.Second}
		cfg.Listeners[0].Upstreams = slices.Insert(cfg.Listeners[0].Upstreams, 0, Upstream{Addr: slow})
	})
	r.client()
	close(elsewhere)
	select {
	case user := <-late:
		if user != "idproxy-abandoned-login" {
			t.Errorf("the server that was late saw %q", user)
		}
	case <-time.After(patience):
		t.Error("the server that was late was left alone")
	}
}

// fakeAccount is an account of a fake server.
type fakeAccount struct {
	mu       sync.Mutex
	readOnly error // choice.ErrReadOnly, or why it cannot say; nil: it takes writes
	asked    int   // whether it does
	greatest func(address net.Addr) uint64
}

func (a *fakeAccount) set(readOnly error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readOnly = readOnly
}

func (a *fakeAccount) ReadOnly(context.Context) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if a.readOnly == choice.ErrReadOnly { //nolint:errorlint // it is that very error
		return true, nil
	}
	return false, a.readOnly
}

func (a *fakeAccount) Ping(context.Context) error    { return nil }
func (a *fakeAccount) At(address net.Addr) Questions { return fakeQuestions{a, address} }

func (a *fakeAccount) questions() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

type fakeQuestions struct {
	*fakeAccount
	address net.Addr
}

func (q fakeQuestions) Greatest(context.Context, string, string, rule.Column, uint64) (uint64, error) {
	return q.greatest(q.address), nil
}

func (fakeQuestions) Held(context.Context, string, string, rule.Column, []uint64) (uint64, error) {
	return 0, nil
}

func (fakeQuestions) Definition(context.Context, string, string) ([]byte, error) { return nil, nil }

// TestAccountErrors: who has not logged in is not told what the account was told.
func TestAccountErrors(t *testing.T) {
	secret := errors.New("Error 1045 (28000): Access denied for user 'idproxy'@'10.0.0.7'")
	log := &lockedBuffer{}
	r := start(t, func(cfg *Config, _ *Settings) {
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		cfg.Listeners[0].Writable = true
		cfg.Listeners[0].Upstreams[0].Account = &fakeAccount{readOnly: secret}
	})
	p := r.dial().read()
	text := wire.ErrMessage(p)
	_, reference, _ := strings.Cut(text, "the log of idproxy says why, reference ")
	if wire.ErrCode(p) != 1042 || strings.Contains(text, "idproxy'@") || len(reference) != 8 {
		t.Errorf("got %q", p)
	}
	for end := time.Now().Add(patience); !strings.Contains(log.String(), "reference="+reference); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log has nothing of it:\n%s", log.String())
		}
	}
	if !strings.Contains(log.String(), "Access denied for user 'idproxy'") {
		t.Errorf("the log does not say why:\n%s", log.String())
	}
}

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestDoubt: servers are asked anew whether they take writes when one breaks a session off, and not
// when its client ends it.
func TestDoubt(t *testing.T) {
	account := &fakeAccount{}
	r := start(t, func(cfg *Config, _ *Settings) {
		cfg.Listeners[0].Writable = true
		cfg.Listeners[0].Upstreams[0].Account = account
	})
	r.server.set(func(f *fakeServer) {
		f.handle = func(string) ([][]byte, bool) { return nil, false }
	})
	began := time.Now()
	for _, end := range []func(p *peer){
		func(p *peer) { p.write(commandOf(mysql.COM_QUIT)); p.wantClosed() },
		func(p *peer) { p.conn.Close() },
	} {
		end(r.client())
		for end := time.Now().Add(patience); len(r.srv.Sessions()) > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	if n := account.questions(); n != 1 && time.Since(began) < time.Second {
		t.Errorf("asked %d times for sessions that clients ended", n)
	}
	before := account.questions()
	p := r.client()
	p.write(query("SELECT 1"))
	p.wantClosed()
	r.client()
	if account.questions() == before {
		t.Error("not asked when the server broke a session off")
	}
}

// TestQuestionsOfPlace: MAX(id) is asked of the server where the session is, at its address, though new
// sessions go to another, and each server is asked for itself.
func TestQuestionsOfPlace(t *testing.T) {
	second := newFakeServer(t)
	var mu sync.Mutex
	asked := map[string]int{}
	account := &fakeAccount{greatest: func(address net.Addr) uint64 {
		mu.Lock()
		defer mu.Unlock()
		asked[address.String()]++
		return 99
	}}
	const insert = "INSERT INTO orders (a) VALUES (1)"
	first := &fakeAccount{greatest: account.greatest, readOnly: choice.ErrReadOnly}
	r := start(t, func(cfg *Config, live *Settings) {
		l := &cfg.Listeners[0]
		l.Writable = true
		l.Upstreams[0].Account = first
		l.Upstreams = append(l.Upstreams, Upstream{Addr: Address{Net: "tcp", Addr: second.ln.Addr().String()}, Account: account})
	})
	wantAsked := func(when string, of *fakeServer, n int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if got := asked[of.ln.Addr().String()]; got != n {
			t.Errorf("%s: asked %d times at %s, want %d; all: %v", when, got, of.ln.Addr(), n, asked)
		}
	}
	atSecond := r.client()
	first.set(nil)
	var atFirst *peer
	for end := time.Now().Add(patience); r.srv.Listeners()[0].Upstream != r.server.ln.Addr().String(); time.Sleep(50 * time.Millisecond) {
		if atFirst = r.client(); time.Now().After(end) {
			t.Fatal("new sessions do not go to the first server")
		}
	}
	for _, p := range []*peer{atFirst, atSecond} {
		for range 2 {
			if got := p.query(insert); got[0] != wire.OKByte {
				t.Errorf("got %q", got)
			}
		}
	}
	wantAsked("two sessions", r.server, 1)
	wantAsked("two sessions", second, 1)

	// What a server holds that is read-only is asked anew for each statement.
	account.set(choice.ErrReadOnly)
	r.srv.listeners[0].servers[1].tables.Withdraw(rule.NewList(nil))
	for range 2 {
		atSecond.query(insert)
	}
	wantAsked("it is read-only", second, 3)
	account.set(nil)
	for range 2 {
		atSecond.query(insert)
	}
	wantAsked("it takes writes", second, 4)
}
