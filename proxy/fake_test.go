package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/idsource"
	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

const (
	fakeCaps = uint64(mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_SECURE_CONNECTION |
		mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_MULTI_STATEMENTS | mysql.CLIENT_CONNECT_WITH_DB)
	patience = 2 * time.Minute // how long a test waits for what must come
)

// fakeServer is a MySQL server by script: it greets, lets everybody in, and
// answers what the proxy asks; handle answers the rest.
type fakeServer struct {
	t  *testing.T
	ln net.Listener
	wg sync.WaitGroup

	mu        sync.Mutex
	greeting  []byte
	login     chan struct{} // when set, what the OK of a login waits for
	logins    []string      // users
	maxPacket string        // max_allowed_packet, as a row has it
	seen      []string      // texts of queries, but for the proxy's questions
	conns     []net.Conn
	wrap      func(net.Conn) net.Conn // of what it writes to; nil: as it is

	// handle returns the payloads that answer a query; false closes the
	// connection instead.
	handle func(sql string) (reply [][]byte, open bool)
}

func newFakeServer(t *testing.T) *fakeServer {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{t: t, ln: ln, greeting: fakeGreeting(), maxPacket: "\x0816777216"}
	f.handle = func(string) ([][]byte, bool) { return [][]byte{okPayload(1, 0, 2)}, true }
	f.wg.Go(f.accept)
	t.Cleanup(f.stop)
	return f
}

func (f *fakeServer) stop() {
	f.ln.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

func fakeGreeting() []byte {
	caps := fakeCaps
	b := []byte("\x0a9.7.0-fake\x00\x07\x00\x00\x00scramble\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(caps))
	b = append(b, 45, 2, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(caps>>16))
	b = append(b, 21)
	b = append(b, make([]byte, 10)...)
	return append(b, "second scram\x00mysql_native_password\x00"...)
}

// set changes the script.
func (f *fakeServer) set(change func(f *fakeServer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeServer) accept() {
	for {
		c, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns = append(f.conns, c)
		if f.wrap != nil {
			c = f.wrap(c)
		}
		f.mu.Unlock()
		f.wg.Go(func() { f.serve(c) })
	}
}

func (f *fakeServer) serve(c net.Conn) {
	defer c.Close()
	if _, err := c.Write(packet(0, f.greeting)); err != nil {
		return
	}
	payload, seq, err := wire.ReadPacket(c, protocol.MaxHandshake)
	if err != nil || len(payload) < 33 {
		return
	}
	user, _, _ := strings.Cut(string(payload[32:]), "\x00")
	f.mu.Lock()
	f.logins = append(f.logins, user)
	f.mu.Unlock()
	if f.login != nil {
		<-f.login
	}
	reply, open := [][]byte{okPayload(0, 0, 2)}, true
	for open {
		for i, p := range reply {
			if _, err := c.Write(packet(seq+1+byte(i), p)); err != nil {
				return
			}
		}
		if payload, seq, err = wire.ReadPacket(c, 64<<20); err != nil || len(payload) == 0 || payload[0] == mysql.COM_QUIT {
			return
		}
		reply, open = f.answer(payload)
	}
}

// answer answers what the proxy asks of its own accord.
func (f *fakeServer) answer(payload []byte) (reply [][]byte, open bool) {
	text := strings.Replace(strings.TrimSuffix(string(payload[1:]), " LIMIT 1"), rewriter.Untimed, "", 1)
	eof := []byte{0xfe, 0, 0, 2, 0}
	row := func(columns byte, values string) [][]byte {
		reply := [][]byte{{columns}}
		for range columns {
			reply = append(reply, []byte("\x03def"))
		}
		return append(reply, eof, []byte(values), eof)
	}
	switch {
	case payload[0] == mysql.COM_STMT_CLOSE:
		return nil, true
	case payload[0] == mysql.COM_STMT_PREPARE && strings.HasPrefix(text, "SELECT * FROM `shop`.`orders`"):
		return [][]byte{
			[]byte("\x00\x07\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00"),
			(&mysql.Field{Name: []byte("id"), Type: mysql.MYSQL_TYPE_LONGLONG, ColumnLength: 20}).Dump(),
			(&mysql.Field{Name: []byte("a"), Type: mysql.MYSQL_TYPE_LONG, ColumnLength: 11}).Dump(), eof,
		}, true
	case payload[0] == mysql.COM_STMT_PREPARE && text == refusedText:
		return [][]byte{[]byte("\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")}, true
	case payload[0] == mysql.COM_STMT_PREPARE && text == brokenText:
		return [][]byte{clienterr.Payload(clienterr.New(mysql.ER_PARSE_ERROR, "42000", "near ''"))}, true
	case strings.HasPrefix(text, "SELECT @@sql_mode,"):
		f.mu.Lock()
		defer f.mu.Unlock()
		return row(8, "\x00\x07utf8mb4\x0873686f70\x011"+f.maxPacket+"\x010\x010\x07utf8mb4"), true
	case text == catalog.GreatestQuery("shop", "orders", rule.Column{Name: "id"}, 0):
		return row(1, "\x0299"), true
	}
	f.mu.Lock()
	f.seen = append(f.seen, text)
	handle := f.handle
	f.mu.Unlock()
	return handle(text)
}

// refusedText is a form that is not filled, and brokenText one that no server takes.
const (
	refusedText = "INSERT INTO orders SELECT SLEEP(0), 2"
	brokenText  = "INSERT INTO orders (a VALUES (1)"
)

func (f *fakeServer) queries() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

// users waits until n clients have sent a login, and returns their names.
func (f *fakeServer) users(n int) []string {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		users := append([]string(nil), f.logins...)
		f.mu.Unlock()
		if len(users) >= n || time.Now().After(end) {
			return users
		}
	}
}

// counter is a source of ids: 100, 101, ...
type counter struct {
	numbers
	mu      sync.Mutex
	next    uint64
	refuse  error
	refused atomic.Int32 // how often
	panics  bool
}

func (numbers) Standing() idsource.Standing { return idsource.Standing{} }

func (c *counter) set(refuse error, panics bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse, c.panics = refuse, panics
}

func (c *counter) Fill(_ context.Context, ids []uint64, stride uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.panics {
		panic("source of a test")
	}
	if c.refuse != nil {
		c.refused.Add(1)
		return c.refuse
	}
	for i := range ids {
		ids[i] = 100 + c.next
		c.next += stride
	}
	return nil
}

func (c *counter) Admit(_ context.Context, column string, greatest uint64) error {
	if column != "shop.orders.id of listener l" || greatest != 99 {
		return errors.New("admitted with " + column)
	}
	return nil
}

func (c *counter) Advance(context.Context, uint64) error { return nil }

func (c *counter) Series(string, string) (idsource.Series, error) { return c, nil }

// numbers is a source of ids of which a test needs some methods alone.
type numbers struct{ idsource.Series }

func (numbers) EachTable() bool             { return false }
func (numbers) Wide() bool                  { return false }
func (numbers) Close(context.Context) error { return nil }

// running is a Server at work between a test's clients and a fake server.
type running struct {
	t      *testing.T
	srv    *Server
	server *fakeServer
	ids    *counter
	drain  context.CancelFunc
	done   chan struct{} // closed when Serve has returned
}

// start runs a Server. change, when not nil, adjusts its settings.
func start(t *testing.T, change func(cfg *Config, live *Settings)) *running {
	t.Helper()
	r := &running{t: t, server: newFakeServer(t), ids: &counter{}, done: make(chan struct{})}
	address := Address{Net: "tcp", Addr: r.server.ln.Addr().String()}
	cfg := Config{
		Listeners: []Listener{{Name: "l", Listen: Address{Net: "tcp", Addr: "127.0.0.1:0"}, Upstreams: []Upstream{{Addr: address}}, UpstreamTLSMode: Disabled}},
		Logger:    slog.New(slog.DiscardHandler), Loops: loops,
	}
	live := &Settings{
		Rules:   map[string]*rule.List{"l": theRules},
		Sources: map[string]idsource.Source{"s": r.ids}, Handshake: patience, Statement: 1 << 20, ShutdownTimeout: patience,
	}
	if change != nil {
		change(&cfg, live)
	}
	r.srv = New(cfg, live)
	if err := r.srv.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.drain = cancel
	go func() {
		defer close(r.done)
		if err := r.srv.Serve(ctx); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

// peer is a client's connection to the proxy.
type peer struct {
	t    *testing.T
	conn net.Conn
}

// dial connects without logging in.
func (r *running) dial() *peer {
	r.t.Helper()
	c, err := net.Dial("tcp", r.srv.listeners[0].door.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		r.t.Fatal(err)
	}
	return &peer{t: r.t, conn: c}
}

// client connects and logs in.
func (r *running) client() *peer {
	r.t.Helper()
	p := r.dial()
	p.login()
	if ok := p.read(); ok[0] != wire.OKByte {
		r.t.Fatalf("login answered by %q", ok)
	}
	return p
}

// login reads the greeting and sends a response.
func (p *peer) login() {
	p.t.Helper()
	greeting := p.read()
	if g, err := wire.ParseGreeting(greeting); err != nil || g.ThreadID != 7 {
		p.t.Fatalf("greeting %q: %v", greeting, err)
	}
	response := make([]byte, 32)
	binary.LittleEndian.PutUint32(response, uint32(fakeCaps))
	response = append(response, "app\x00\x00shop\x00mysql_native_password\x00"...)
	p.write(packet(1, response))
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// read returns the next packet's payload.
func (p *peer) read() []byte {
	p.t.Helper()
	payload, _, err := wire.ReadPacket(p.conn, 1<<20)
	if err != nil || len(payload) == 0 {
		p.t.Fatalf("read: %q, %v", payload, err)
	}
	return payload
}

// query sends a text and returns the first packet of the reply.
func (p *peer) query(sql string) []byte {
	p.t.Helper()
	p.write(query(sql))
	return p.read()
}

// wantError reports whether payload is an ERR of that code that says text.
func (p *peer) wantError(payload []byte, code uint16, text string) {
	p.t.Helper()
	if payload[0] != wire.ErrByte || wire.ErrCode(payload) != code || !strings.Contains(wire.ErrMessage(payload), text) {
		p.t.Errorf("got %q; want error %d that says %q", payload, code, text)
	}
}

// wantClosed waits for the end of the connection, and for nothing before it.
func (p *peer) wantClosed() {
	p.t.Helper()
	rest, err := io.ReadAll(p.conn)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || len(rest) > 0 {
		p.t.Errorf("connection not closed: %q, %v", bytes.TrimSpace(rest), err)
	}
}
