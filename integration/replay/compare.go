package replay

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"net"
	"sync"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// Parity is a server, reached directly and through the proxy: by listener plain, that has no rules,
// and by listener ruled, that has one for a table which the sessions never write to. Behind plain a
// tap records what the proxy sends.
type Parity struct {
	server *servers.Server
	DB     string
	Proxy  *harness.Proxy
	tap    *Tap
}

// NewParity starts a proxy in front of a server.
func NewParity(t *testing.T, server *servers.Server) *Parity {
	return NewParityWith(t, server, harness.Spec{})
}

// NewParityWith is NewParity with a choice.
func NewParityWith(t *testing.T, server *servers.Server, spec harness.Spec) *Parity {
	p := &Parity{server: server, DB: harness.Database(t, server), tap: NewTap(t, server.Addr, net.Dialer{})}
	spec.Config = fmt.Sprintf(`
listeners:
  - {name: plain, listen: "127.0.0.1:0", upstream: %q}
  - {name: ruled, listen: "127.0.0.1:0", upstream: %q}
sources: {ids: {segment: {}}}
rules:   [{table: %s.ruled, column: id, source: ids, listeners: [ruled]}]
`, p.tap.Addr(), server.Addr, p.DB)
	p.Proxy = StartProxy(t, spec)
	return p
}

// Session is a conversation to replay. It must do the same every time.
type Session struct {
	Name string
	Run  func(c *Conn)
}

// Variant is a way to speak.
type Variant struct {
	Name string
	Cfg  Config
	// held: idproxy must read whole texts, as the server would split them, and may ask the server
	// questions of its own.
	Held bool
}

// Config is how a session logs in directly.
func (p *Parity) Config(v Variant) Config {
	cfg := v.Cfg
	cfg.Addr, cfg.Schema = p.server.Addr, p.DB
	if cfg.User == "" {
		cfg.User, cfg.Password = servers.AppUser, servers.AppPassword
	}
	return cfg
}

// Compare replays a session directly and by each listener.
func (p *Parity) Compare(t *testing.T, s Session, v Variant) {
	t.Helper()
	cfg := p.Config(v)
	direct := Run(cfg, s)
	for _, listener := range []string{"plain", "ruled"} {
		cfg.Addr = p.Proxy.Addr(listener)
		before := p.tap.count()
		proxied := Run(cfg, s)
		if err := Differ(direct, proxied); err != nil {
			t.Errorf("%s, %s, listener %s: %v", s.Name, v.Name, listener, err)
			return
		}
		if listener == "plain" && !v.Held {
			assert.NoError(t, p.tap.check(before, proxied.C), s.Name+", "+v.Name+": between proxy and server")
		}
	}
}

// Replayed is a session that has ended.
type Replayed struct {
	C   *Conn
	Err error
}

// Run runs a session from login to the server's end of the stream.
func Run(cfg Config, s Session) Replayed {
	var r Replayed
	r.Err = Do(func() {
		r.C = Dial(cfg)
		r.C.Login()
		s.Run(r.C)
		if !r.C.Ended {
			r.C.Command(mysql.COM_QUIT)
		}
		r.C.Drain()
	})
	if r.C != nil {
		r.C.Close()
	}
	return r
}

// Differ says how what two clients saw differs.
func Differ(direct, proxied Replayed) error {
	if direct.Err != nil || proxied.Err != nil {
		return fmt.Errorf("direct: %v, proxied: %v", direct.Err, proxied.Err)
	}
	a, b := Masked(direct.C.Got.Bytes(), direct.C.GotMasks), Masked(proxied.C.Got.Bytes(), proxied.C.GotMasks)
	if err := FirstDifference(a, b); err != nil {
		return fmt.Errorf("server's bytes: %w", err)
	}
	return nil
}

// Masked leaves the marked ranges of b, which it changes, out.
func Masked(b []byte, masks []Span) (out []byte) {
	out = b[:0]
	at := 0
	for _, m := range masks {
		out = append(out, b[at:m.From]...)
		at = m.To
	}
	return append(out, b[at:]...)
}

// FirstDifference shows the first place in which want and got differ.
func FirstDifference(want, got []byte) error {
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

// Tap is a relay that keeps what crosses it.
type Tap struct {
	ln       net.Listener
	upstream string
	dialer   net.Dialer

	mu    sync.Mutex
	conns []*tapped
}

type tapped struct {
	toServer, toClient bytes.Buffer
	done               chan struct{} // closed when both directions have ended
}

// NewTap starts to listen.
func NewTap(t *testing.T, upstream string, dialer net.Dialer) *Tap {
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	p := &Tap{ln: ln, upstream: upstream, dialer: dialer}
	var wg sync.WaitGroup
	wg.Go(func() { p.serve(&wg) })
	t.Cleanup(func() {
		ln.Close()
		wg.Wait()
	})
	return p
}

// Addr is where the tap listens.
func (p *Tap) Addr() string { return p.ln.Addr().String() }

func (p *Tap) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Tap) serve(wg *sync.WaitGroup) {
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

func (rec *tapped) relay(client net.Conn, p *Tap) {
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
	_, _ = io.Copy(io.MultiWriter(&rec.toClient, client), server)
	client.Close()
	wg.Wait()
}

// Exchange is what crossed a tap on one connection behind the login: what the client sent, and what the server did.
type Exchange struct{ Sent, Got []byte }

// Take waits until all connections of before have ended, and returns what crossed the tap on those that logged in, in the
// order in which they came. It forgets them.
func (p *Tap) Take() (all []Exchange) {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		<-c.done
		if e, ok := behindLogin(c.toServer.Bytes(), c.toClient.Bytes()); ok {
			all = append(all, e)
		}
	}
	return all
}

// behindLogin cuts off the login, which differs each time: the server's packets up to its first OK, and the client's up to the
// first that begins a command. ok is false where nobody logged in.
func behindLogin(sent, got []byte) (e Exchange, ok bool) {
	for packet := range Packets(got) {
		got = got[len(packet):]
		if ok = len(packet) > headerLength && packet[3] > 0 && packet[headerLength] == mysql.OK_HEADER; ok {
			break
		}
	}
	for packet := range Packets(sent) {
		if packet[3] == 0 {
			break
		}
		sent = sent[len(packet):]
	}
	return Exchange{sent, got}, ok
}

const headerLength = 4

// Packets are those of one direction, with their headers. The last may be cut off.
func Packets(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) >= headerLength {
			n := min(len(b), headerLength+(int(b[0])|int(b[1])<<8|int(b[2])<<16))
			if !yield(b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}

// check compares what the proxy sent to the server for the one session since the count was before
// with what the client sent: the same, but for capabilities that the greeting withheld, which
// clients leave away themselves.
func (p *Tap) check(before int, c *Conn) error {
	p.mu.Lock()
	conns := p.conns[before:]
	p.mu.Unlock()
	if len(conns) != 1 {
		return fmt.Errorf("%d connections, want 1", len(conns))
	}
	<-conns[0].done
	want, got := c.sent.Bytes(), conns[0].toServer.Bytes()
	if err := FirstDifference(want, got); err != nil {
		return fmt.Errorf("client's bytes: %w", err)
	}
	p.mu.Lock()
	p.conns[before] = &tapped{} // sessions may be large
	p.mu.Unlock()
	return nil
}

// Check ends the conversation at an error that it did not provoke.
func Check(err error) {
	if err != nil {
		Fail("unexpected: %w", err)
	}
}

// WantCode ends the conversation unless err is the server's error of this number.
func WantCode(err error, code uint16) {
	if got := CodeOf(err); got != code {
		Fail("error %w, want number %d", err, code)
	}
}
