package proxy

import (
	"net"
	"testing"

	"idproxy/proxy/wire"
	"idproxy/rule"
)

// dialAt connects to an address without logging in.
func (r *running) dialAt(address string) *peer {
	r.t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return &peer{t: r.t, conn: c}
}

// listenerTo is one in front of a server, at an address of its own.
func listenerTo(name, listen string, server *fakeServer) Listener {
	to := Address{Net: "tcp", Addr: server.ln.Addr().String()}
	return Listener{Name: name, Listen: Address{Net: "tcp", Addr: listen}, Upstreams: []Upstream{{Addr: to}}, UpstreamTLSMode: Disabled}
}

// change puts listeners in force.
func (r *running) change(gone []string, made ...Listener) {
	r.t.Helper()
	c, err := r.srv.Prepare(made, gone)
	if err != nil {
		r.t.Fatal(err)
	}
	c.Commit(r.srv.settings())
}

// at is where a listener listens.
func (r *running) at(name string) string {
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	return r.srv.named(name).door.Addr().String()
}

// TestListenerMoved: a listener that gets another server keeps its socket. Sessions that are there
// stay with their server, and new ones go to the new one.
func TestListenerMoved(t *testing.T) {
	r := start(t, nil)
	old, other := r.client(), newFakeServer(t)
	socket := r.at("l")
	gone := make(chan struct{})
	moved := listenerTo("l", "127.0.0.1:0", other)
	moved.OnGone = func() { close(gone) }
	r.change(nil, moved)
	if now := r.at("l"); now != socket {
		t.Errorf("it listens at %s, and was at %s", now, socket)
	}
	fresh := r.client()
	for _, c := range []*peer{old, fresh} {
		if ok := c.query("UPDATE t SET a = 1"); ok[0] != wire.OKByte {
			t.Fatalf("%q", ok)
		}
	}
	if was, is := len(r.server.users(1)), len(other.users(1)); was != 1 || is != 1 {
		t.Errorf("the old server has %d sessions, the new one %d; want one each", was, is)
	}
	status := r.srv.Listeners()
	if len(status) != 1 || status[0].Open != 2 || status[0].Accepted != 2 || status[0].Upstream != other.ln.Addr().String() {
		t.Errorf("status: %+v", status)
	}
	r.change(nil, listenerTo("l", "127.0.0.1:0", r.server)) // and back
	fresh.conn.Close()
	<-gone
	if ok := old.query("UPDATE t SET a = 1"); ok[0] != wire.OKByte {
		t.Fatalf("%q", ok)
	}
}

// TestListenersComeAndGo: one that comes serves; one that goes takes nobody any more, and its sessions
// end between two transactions.
func TestListenersComeAndGo(t *testing.T) {
	r := start(t, nil)
	stays := r.client()
	for range 3 {
		r.change(nil, listenerTo("m", "127.0.0.1:0", r.server))
		at := r.at("m")
		idle := r.dialAt(at)
		idle.login()
		idle.read()
		r.change([]string{"m"})
		idle.wantClosed()
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			t.Error("a listener that is gone takes a client")
		}
		if ok := stays.query("UPDATE t SET a = 1"); ok[0] != wire.OKByte {
			t.Fatalf("%q", ok)
		}
	}
	if n := len(r.srv.Listeners()); n != 1 {
		t.Errorf("%d listeners", n)
	}
}

// TestListenerRenamed: who takes the address of a listener that goes takes its socket.
func TestListenerRenamed(t *testing.T) {
	r := start(t, nil)
	free := newFakeServer(t)
	at := free.ln.Addr().String()
	free.stop()
	r.change(nil, listenerTo("m", at, r.server))
	r.change([]string{"m"}, listenerTo("n", at, r.server))
	r.dialAt(at).login()
	if status := r.srv.Listeners(); len(status) != 2 || status[1].Name != "n" || status[1].Accepted != 1 {
		t.Errorf("status: %+v", status)
	}
}

// TestChangeAddressTaken: where one of three addresses is taken, nothing changes.
func TestChangeAddressTaken(t *testing.T) {
	r := start(t, nil)
	c := r.client()
	r.change(nil, listenerTo("m", "127.0.0.1:0", r.server))
	taken := newFakeServer(t).ln.Addr().String()
	before, at := r.srv.inForce(), r.at("m")
	gone := 0
	first, third := listenerTo("l", "127.0.0.2:0", r.server), listenerTo("o", "127.0.0.1:0", r.server)
	first.OnGone = func() { gone++ }
	if _, err := r.srv.Prepare([]Listener{first, listenerTo("n", taken, r.server), third}, []string{"m"}); !says(err, "listener n") {
		t.Fatalf("Prepare: %v", err)
	}
	after := r.srv.inForce()
	if len(after) != 2 || after[0] != before[0] || after[1] != before[1] || gone != 1 {
		t.Errorf("listeners %v, then %v; told of %d that are gone", before, after, gone)
	}
	r.dialAt(at).login()
	r.client()
	if ok := c.query("UPDATE t SET a = 1"); ok[0] != wire.OKByte {
		t.Fatalf("%q", ok)
	}
}

// TestRulesOfSessionsThatStay: sessions that came before their listener changed get the rules that
// came since.
func TestRulesOfSessionsThatStay(t *testing.T) {
	r := start(t, func(_ *Config, live *Settings) { live.Rules = nil })
	c := r.client()
	change, err := r.srv.Prepare([]Listener{listenerTo("l", "127.0.0.1:0", r.server)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	live := *r.srv.settings()
	live.Rules = map[string]*rule.List{"l": theRules}
	change.Commit(&live)
	c.query("INSERT INTO orders (a) VALUES (1)")
	if n := r.srv.Stats.Filled.Load(); n != 1 {
		t.Errorf("%d statements got ids, want 1", n)
	}
}
