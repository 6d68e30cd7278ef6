package proxy

import (
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// A reply that has ended, and of which the client does not have all bytes yet,
// keeps the session open.
func TestDrainWaitsForTheClient(t *testing.T) {
	for _, sql := range []string{"UPDATE t SET a = 1", "INSERT INTO orders (a) VALUES (1)"} {
		r := start(t, nil)
		c, ours := net.Pipe() // a write to it lasts until all was read
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		r.srv.start(r.srv.listeners[0], ours)
		p := &peer{t: t, conn: c}
		p.login()
		p.read()
		p.write(query(sql))
		header := make([]byte, wire.HeaderLen)
		if _, err := c.Read(header); err != nil {
			t.Fatal(err)
		}
		r.drain()
		waitFor(t, func() bool { // all sessions were told
			r.srv.mu.Lock()
			defer r.srv.mu.Unlock()
			return r.srv.draining
		})
		payload := make([]byte, wire.PayloadLen(header))
		if n, err := c.Read(payload); err != nil || n < len(payload) || payload[0] != wire.OKByte {
			t.Errorf("%s: the rest of its reply is %q, %v", sql, payload[:n], err)
		}
		p.wantClosed()
		<-r.done
	}
}

// A command that comes when the session was found idle does not reach the
// server, although the session is not closed yet.
func TestDrainSendsNothingLate(t *testing.T) {
	for _, sql := range []string{"UPDATE t SET a = 1", "INSERT INTO orders (a) VALUES (1)"} {
		counts := &rule.Counts{}
		r := start(t, func(_ *Config, live *Settings) { live.Rules = countedRules(counts) })
		c := r.client()
		r.srv.mu.Lock()
		sessions := slices.Collect(maps.Keys(r.srv.sessions))
		r.srv.mu.Unlock()
		for _, s := range sessions {
			s.draining.Store(true)
			if !s.leave() {
				t.Errorf("%s: an idle session does not end", sql)
			}
		}
		c.write(query(sql))
		c.wantClosed()
		ids, _, _ := counts.Load()
		if got := r.server.queries(); len(got) > 0 || ids > 0 {
			t.Errorf("the server saw %q, %d ids were drawn", got, ids)
		}
	}
}

// What keeps a conversation from ending.
func TestConversationLeave(t *testing.T) {
	busy := map[string]func(c *relay.Conversation){
		"a pending command":       func(c *relay.Conversation) { c.Send(relay.Pending{Reply: relay.ReplyOne}) },
		"a reply made here":       func(c *relay.Conversation) { c.Send(relay.Pending{Reply: relay.ReplyOne}); c.Answerable([]byte("x")) },
		"a transaction":           func(c *relay.Conversation) { c.Update(func(s *relay.State) { s.InTrans = true }) },
		"a statement decided on":  func(c *relay.Conversation) { c.Decide() },
		"a login":                 func(c *relay.Conversation) { c.SetPhase(relay.PhaseAuth) },
		"a stream without an end": func(c *relay.Conversation) { c.SetPhase(relay.PhaseOpaque) },
	}
	for name, change := range busy {
		c := &relay.Conversation{Caps: uint64(mysql.CLIENT_PROTOCOL_41)}
		if change(c); c.Leave() || c.Ended.Load() {
			t.Errorf("%s: the conversation ended", name)
		}
	}
	c := &relay.Conversation{}
	if !c.Decide() {
		t.Error("a conversation has ended from the start")
	}
	if c.Decided(); !c.Leave() || c.Decide() {
		t.Error("a conversation goes on behind its end")
	}
}
