package integration_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// parity is a server, reached directly and through the proxy: by listener plain, that has no rules, and by listener
// ruled, that has one for a table which the sessions never write to. Behind plain a tap records what the proxy sends.
type parity struct {
	server *servers.Server
	db     string
	proxy  *harness.Proxy
	tap    *tap
}

func newParity(t *testing.T, server *servers.Server) *parity {
	return newParityWith(t, server, harness.Spec{})
}

func newParityWith(t *testing.T, server *servers.Server, spec harness.Spec) *parity {
	p := &parity{server: server, db: harness.Database(t, server), tap: newTap(t, server.Addr, net.Dialer{})}
	spec.Config = fmt.Sprintf(`
listeners:
  - {name: plain, listen: "127.0.0.1:0", upstream: %q}
  - {name: ruled, listen: "127.0.0.1:0", upstream: %q}
sources: {ids: {segment: {}}}
rules:   [{table: %s.ruled, column: id, source: ids, listeners: [ruled]}]
`, p.tap.addr(), server.Addr, p.db)
	p.proxy = startProxy(t, spec)
	return p
}

// session is a conversation to replay. It must do the same every time.
type session struct {
	name string
	run  func(c *rawConn)
}

// variant is a way to speak.
type variant struct {
	name string
	cfg  rawConfig
	// held: idproxy must read whole texts, as the server would split them, and may ask the server questions of its own.
	held bool
}

func (p *parity) config(v variant) rawConfig {
	cfg := v.cfg
	cfg.addr, cfg.schema = p.server.Addr, p.db
	if cfg.user == "" {
		cfg.user, cfg.password = servers.AppUser, servers.AppPassword
	}
	return cfg
}

// compare replays a session directly and by each listener.
func (p *parity) compare(t *testing.T, s session, v variant) {
	t.Helper()
	cfg := p.config(v)
	direct := replay(cfg, s)
	for _, listener := range []string{"plain", "ruled"} {
		cfg.addr = p.proxy.Addr(listener)
		before := p.tap.count()
		proxied := replay(cfg, s)
		if err := differ(direct, proxied); err != nil {
			t.Errorf("%s, %s, listener %s: %v", s.name, v.name, listener, err)
			return
		}
		if listener == "plain" && !v.held {
			if err := p.tap.check(before, proxied.c); err != nil {
				t.Errorf("%s, %s: between proxy and server: %v", s.name, v.name, err)
			}
		}
	}
}

// replayed is a session that has ended.
type replayed struct {
	c   *rawConn
	err error
}

// replay runs a session from login to the server's end of the stream.
func replay(cfg rawConfig, s session) replayed {
	var r replayed
	r.err = rawDo(func() {
		r.c = dialRaw(cfg)
		r.c.login()
		s.run(r.c)
		if !r.c.ended {
			r.c.command(mysql.COM_QUIT)
		}
		r.c.drain()
	})
	if r.c != nil {
		r.c.close()
	}
	return r
}

// differ says how what two clients saw differs.
func differ(direct, proxied replayed) error {
	if direct.err != nil || proxied.err != nil {
		return fmt.Errorf("direct: %v, proxied: %v", direct.err, proxied.err)
	}
	a, b := masked(direct.c.got.Bytes(), direct.c.gotMasks), masked(proxied.c.got.Bytes(), proxied.c.gotMasks)
	if err := firstDifference(a, b); err != nil {
		return fmt.Errorf("server's bytes: %w", err)
	}
	return nil
}

// masked leaves the marked ranges of b, which it changes, out.
func masked(b []byte, masks []span) (out []byte) {
	out = b[:0]
	at := 0
	for _, m := range masks {
		out = append(out, b[at:m.from]...)
		at = m.to
	}
	return append(out, b[at:]...)
}

// firstDifference shows the first place in which want and got differ.
func firstDifference(want, got []byte) error {
	if bytes.Equal(want, got) {
		return nil
	}
	n := min(len(want), len(got))
	i := 0
	for i < n && want[i] == got[i] {
		i++
	}
	show := func(b []byte) string { return fmt.Sprintf("%q", b[max(0, min(i, len(b))-24):min(len(b), i+40)]) }
	return fmt.Errorf("byte %d of %d, %d:\n want ...%s\n got  ...%s", i, len(want), len(got), show(want), show(got))
}

// tap is a relay that keeps what crosses it.
type tap struct {
	ln       net.Listener
	upstream string
	dialer   net.Dialer

	mu    sync.Mutex
	conns []*tapped
}

type tapped struct {
	toServer bytes.Buffer
	done     chan struct{} // closed when both directions have ended
}

func newTap(t *testing.T, upstream string, dialer net.Dialer) *tap {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{ln: ln, upstream: upstream, dialer: dialer}
	var wg sync.WaitGroup
	wg.Go(func() { p.serve(&wg) })
	t.Cleanup(func() {
		ln.Close()
		wg.Wait()
	})
	return p
}

func (p *tap) addr() string { return p.ln.Addr().String() }

func (p *tap) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *tap) serve(wg *sync.WaitGroup) {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		rec := &tapped{done: make(chan struct{})}
		p.mu.Lock()
		p.conns = append(p.conns, rec)
		p.mu.Unlock()
		wg.Go(func() { rec.relay(client, p) })
	}
}

func (rec *tapped) relay(client net.Conn, p *tap) {
	defer close(rec.done)
	defer client.Close()
	server, err := p.dialer.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(io.MultiWriter(&rec.toServer, server), client) // an end is an end
		_ = server.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(client, server)
	client.Close()
	wg.Wait()
}

// check compares what the proxy sent to the server for the one session since the count was before with what the
// client sent: the same, but for capabilities that the greeting withheld, which clients leave away themselves.
func (p *tap) check(before int, c *rawConn) error {
	p.mu.Lock()
	conns := p.conns[before:]
	p.mu.Unlock()
	if len(conns) != 1 {
		return fmt.Errorf("%d connections, want 1", len(conns))
	}
	<-conns[0].done
	want, got := c.sent.Bytes(), conns[0].toServer.Bytes()
	if err := firstDifference(want, got); err != nil {
		return fmt.Errorf("client's bytes: %w", err)
	}
	p.mu.Lock()
	p.conns[before] = &tapped{} // sessions may be large
	p.mu.Unlock()
	return nil
}

// TestParityFindsDifferences shows that the comparison is not blind: a relay that changes one byte is found, in either
// direction, and so is one that adds a packet of its own.
func TestParityFindsDifferences(t *testing.T) {
	server := harness.MariaDB(t)
	cfg := rawConfig{addr: server.Addr, user: servers.AppUser, password: servers.AppPassword}
	ask := func(text string) session {
		return session{"one query", func(c *rawConn) { check(c.query(text)) }}
	}
	direct := replay(cfg, ask("SELECT 'left'"))
	if err := differ(direct, replay(cfg, ask("SELECT 'left'"))); err != nil {
		t.Errorf("two equal sessions: %v", err)
	}
	if err := differ(direct, replay(cfg, ask("SELECT 'lefu'"))); err == nil || !strings.Contains(err.Error(), "lefu") {
		t.Errorf("a changed byte gives %v", err)
	}
	if err := differ(direct, replay(cfg, ask("SELECT 'left'; DO 1"))); err == nil {
		t.Error("an added packet is not found")
	}
	p := newTap(t, server.Addr, net.Dialer{})
	cfg.addr = p.addr()
	tapped := replay(cfg, ask("SELECT 'left'"))
	if err := p.check(0, tapped.c); err != nil {
		t.Errorf("a tap that is all there is between client and server: %v", err)
	}
	tapped = replay(cfg, ask("SELECT 'left'"))
	tapped.c.sent.add([]byte{0})
	if err := p.check(1, tapped.c); err == nil {
		t.Error("a byte that the server did not get is not found")
	}
}

// check ends the conversation at an error that it did not provoke.
func check(err error) {
	if err != nil {
		fail("unexpected: %w", err)
	}
}

// wantCode ends the conversation unless err is the server's error of this number.
func wantCode(err error, code uint16) {
	if got := codeOf(err); got != code {
		fail("error %w, want number %d", err, code)
	}
}
