package proxy

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
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
		r.srv.listeners[0].door.start(ours)
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
			return r.srv.phase >= Closing
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
			s.departs.Store(uint32(betweenTransactions))
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
	busy := map[string]func(c *protocol.Conn){
		"a pending command": func(c *protocol.Conn) { c.Send(protocol.Pending{Reply: protocol.ReplyOne}) },
		"a reply made here": func(c *protocol.Conn) {
			c.Send(protocol.Pending{Reply: protocol.ReplyOne})
			c.Answerable([]byte("x"))
		},
		"a transaction":           func(c *protocol.Conn) { c.Update(func(s *protocol.Vars) { s.InTrans = true }) },
		"a statement decided on":  func(c *protocol.Conn) { c.Decide() },
		"a login":                 func(c *protocol.Conn) { c.SetPhase(protocol.PhaseAuth) },
		"a stream without an end": func(c *protocol.Conn) { c.SetPhase(protocol.PhaseOpaque) },
	}
	for name, change := range busy {
		c := &protocol.Conn{Caps: uint64(mysql.CLIENT_PROTOCOL_41)}
		if change(c); c.Leave() || c.Ended.Load() {
			t.Errorf("%s: the conversation ended", name)
		}
	}
	open := &protocol.Conn{}
	open.Update(func(s *protocol.Vars) { s.InTrans = true })
	if !open.Abandon() || !open.Ended.Load() {
		t.Error("a transaction cannot be abandoned")
	}
	c := &protocol.Conn{}
	if !c.Decide() {
		t.Error("a conversation has ended from the start")
	}
	if c.Decided(); !c.Leave() || c.Decide() {
		t.Error("a conversation goes on behind its end")
	}
}

// slowly has sessions let go in steps that a test can look at.
func slowly(delay, spread time.Duration) func(*Config, *Settings) {
	return func(_ *Config, live *Settings) {
		live.DrainDelay, live.DrainSpread, live.ShutdownTimeout = delay, spread, 10*patience
	}
}

// waitPhase waits until the server is in a phase.
func (r *running) waitPhase(p Phase) {
	r.t.Helper()
	waitFor(r.t, func() bool { return r.srv.Phase() == p })
}

// TestDrainTakesSessionsForAWhile: a server that is not ready any more takes sessions, and lets none
// go, until its delay is over.
func TestDrainTakesSessionsForAWhile(t *testing.T) {
	t.Parallel()
	const delay = 3 * time.Second
	r := start(t, slowly(delay, 0))
	old := r.client()
	began := time.Now()
	r.drain()
	r.waitPhase(Unready)
	late := r.client()
	for range 20 {
		for _, c := range []*peer{old, late} {
			if ok := c.query("UPDATE t SET a = 1"); ok[0] != wire.OKByte {
				t.Fatalf("in the delay: %q", ok)
			}
		}
	}
	old.wantClosed()
	late.wantClosed()
	<-r.done
	if took := time.Since(began); took < delay {
		t.Errorf("it took %v, less than the delay", took)
	}
}

// TestDrainSpreads: sessions that are idle do not end all at once.
func TestDrainSpreads(t *testing.T) {
	t.Parallel()
	r := start(t, slowly(0, 3*time.Second))
	for range 10 {
		r.client()
	}
	began := time.Now()
	r.drain()
	waitFor(t, func() bool { return len(r.srv.Sessions()) < 10 })
	waitFor(t, func() bool { n := len(r.srv.Sessions()); return n > 0 && n < 6 })
	<-r.done
	if took := time.Since(began); took < 2400*time.Millisecond {
		t.Errorf("ten sessions ended within %v, and the spread is three seconds", took)
	}
}

// TestDrainTakenBack: who drains takes no sessions and says so; taken back it serves those that are
// left, and new ones.
func TestDrainTakenBack(t *testing.T) {
	r := start(t, slowly(0, time.Hour)) // of two sessions one ends at once, the other half an hour later
	r.client()
	r.client()
	waitFor(t, func() bool { return len(r.srv.Sessions()) == 2 })
	for range 2 {
		r.srv.Drain()
		r.waitPhase(Closing)
		refused := r.dial()
		refused.wantError(refused.read(), mysql.ER_SERVER_SHUTDOWN, "drains")
		refused.wantClosed()
		waitFor(t, func() bool { return len(r.srv.Sessions()) == 1 })
		if err := r.srv.Resume(); err != nil {
			t.Fatal(err)
		}
		if p := r.srv.Phase(); p != Serving {
			t.Errorf("it is %v", p)
		}
		c := r.client()
		for range 10 {
			if ok := c.query("UPDATE t SET a = 1"); ok[0] != wire.OKByte {
				t.Fatalf("taken back: %q", ok)
			}
		}
	}
	if n := len(r.srv.Sessions()); n != 2 {
		t.Errorf("%d sessions are left, want 2", n)
	}
	if err := r.srv.Resume(); err != nil {
		t.Errorf("taken back twice: %v", err)
	}
}

// TestDrainedStays: a server without sessions stays, can be taken back, and ends.
func TestDrainedStays(t *testing.T) {
	r := start(t, nil)
	c := r.client()
	r.srv.Drain()
	r.srv.Drain()
	c.wantClosed()
	r.waitPhase(Drained)
	if err := r.srv.Resume(); err != nil {
		t.Fatal(err)
	}
	c = r.client()
	r.srv.Drain()
	c.wantClosed()
	r.waitPhase(Drained)
	select {
	case <-r.done:
		t.Error("it ended")
	default:
	}
	r.drain()
	<-r.done
	if err := r.srv.Resume(); !errors.Is(err, ErrEnding) {
		t.Errorf("taken back at the end: %v", err)
	}
}

// TestDrainGoesOnAtTheEnd: a drain that is under way goes on at SIGTERM, by the settings in force.
func TestDrainGoesOnAtTheEnd(t *testing.T) {
	r := start(t, slowly(2*patience, 0))
	c := r.client()
	r.srv.Drain()
	live := *r.srv.settings()
	live.DrainDelay, live.ShutdownTimeout = 0, patience
	r.srv.Set(&live)
	r.waitPhase(Unready)
	r.drain()
	c.wantClosed()
	<-r.done
}

// TestDrainWaitsForAnswers: a session in a transaction that sends one statement after the other
// has all its answers when the time is over, but for one that takes longer than the last of the time.
func TestDrainWaitsForAnswers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ran := 0
	r := start(t, func(_ *Config, live *Settings) { live.ShutdownTimeout = 5 * time.Second })
	r.server.set(func(f *fakeServer) {
		f.handle = func(string) ([][]byte, bool) {
			mu.Lock()
			ran++
			mu.Unlock()
			time.Sleep(20 * time.Millisecond) // so that a cut finds one at work
			return [][]byte{okPayload(0, 0, mysql.SERVER_STATUS_IN_TRANS)}, true
		}
	})
	c := r.client()
	c.query("BEGIN")
	r.drain()
	answered := 1
	var sent time.Time
	for answered < 1<<20 {
		sent = time.Now()
		if _, err := c.conn.Write(query("UPDATE t SET a = 1")); err != nil {
			break
		}
		if _, _, err := wire.ReadPacket(c.conn, 1<<20); err != nil {
			break
		}
		answered++
	}
	took := time.Since(sent)
	<-r.done
	mu.Lock()
	defer mu.Unlock()
	if slow := took > 500*time.Millisecond; answered != ran && !(slow && answered == ran-1) || ran < 2 {
		t.Errorf("%d statements ran, %d were answered, the last one took %v", ran, answered, took)
	}
}

// TestDrainLetsALoginFinish: a client that has the greeting, and no more, is let in before its session ends.
func TestDrainLetsALoginFinish(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	waitFor(t, func() bool {
		r.srv.mu.Lock()
		defer r.srv.mu.Unlock()
		return len(r.srv.sessions) == 1
	})
	r.drain()
	r.waitPhase(Closing)
	p.login()
	if ok := p.read(); ok[0] != wire.OKByte {
		t.Errorf("its login is answered by %q", ok)
	}
	p.wantClosed()
	<-r.done
}

// TestResumedTwice: of two who take a drain back, the slower one leaves the drain alone that came
// between them.
func TestResumedTwice(t *testing.T) {
	srv := &Server{log: slog.New(slog.DiscardHandler), sessions: map[*session]struct{}{}}
	srv.Set(&Settings{DrainDelay: time.Hour, ShutdownTimeout: 2 * time.Hour})
	slow, ended := make(chan struct{}), make(chan struct{})
	srv.ordered = &drain{cancel: func() { close(slow) }, done: ended}
	resumed := make(chan error)
	go func() { resumed <- srv.Resume() }()
	<-slow
	srv.mu.Lock()
	srv.ordered = nil // the other one was faster
	srv.mu.Unlock()
	srv.Drain()
	close(ended)
	if err := <-resumed; err != nil {
		t.Error(err)
	}
	if phase := srv.Phase(); phase != Unready {
		t.Errorf("the second drain is in phase %s", phase)
	}
	if err := srv.Resume(); err != nil || srv.Phase() != Serving {
		t.Errorf("%v, phase %s", err, srv.Phase())
	}
}
