package lifecycle

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// badLogins are what a client may send in place of a response to the greeting.
var badLogins = map[string]string{
	"nothing":                     "",
	"HTTP":                        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"TLS at once":                 "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
	"half a header":               "\x20\x00",
	"a header alone":              "\x20\x00\x00\x01",
	"half a packet":               "\x40\x00\x00\x01\x05\xa6\x3f",
	"an empty packet":             "\x00\x00\x00\x01",
	"a packet of one byte":        "\x01\x00\x00\x01\x00",
	"a packet over 1 MiB":         "\x01\x00\x10\x01" + strings.Repeat("x", 1<<20+1),
	"a packet of several frames":  "\xff\xff\xff\x01" + strings.Repeat("x", 1<<20+1),
	"zeros":                       "\x20\x00\x00\x01" + strings.Repeat("\x00", 32),
	"ones":                        "\x80\x00\x00\x01" + strings.Repeat("\xff", 128),
	"an unterminated user":        "\x24\x00\x00\x01\x05\xa6\x3f\x00\x00\x00\x00\x01\x2d" + strings.Repeat("\x00", 23) + "user",
	"a proof beyond the packet":   "\x26\x00\x00\x01\x05\xa6\x3f\x00\x00\x00\x00\x01\x2d" + strings.Repeat("\x00", 23) + "app\x00\xfexx",
	"a response for protocol 3.2": "\x0b\x00\x00\x01\x04\x00\x00\x00\x01app\x00xx",
	"a wrong sequence number":     "\x20\x00\x00\x07\x05\xa6\x3f\x00\x00\x00\x00\x01\x2d" + strings.Repeat("\x00", 23),
	"TLS that is not offered":     "\x20\x00\x00\x01\x05\xae\x3f\x00\x00\x00\x00\x01\x2d" + strings.Repeat("\x00", 23),
	"a LOAD DATA file":            "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03",
}

func TestBadLogins(t *testing.T) {
	var wg sync.WaitGroup
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) + "limits: {handshake: 3s}\n"})
		for name, text := range badLogins {
			wg.Go(func() {
				start := time.Now()
				err := replay.Do(func() {
					c := replay.Dial(replay.Config{Addr: p.Addr("a")})
					defer c.Close()
					c.Write([]byte(text))
					c.Drain()
				})
				if took := time.Since(start); took > time.Minute || err != nil && !strings.Contains(err.Error(), "reset by peer") && !strings.Contains(err.Error(), "broken pipe") {
					t.Errorf("%s, %s: ended after %v with %v", server.Kind, name, took, err)
				}
				assert.NoError(t, serves(server, p.Addr("a")), server.Kind, "after", name)
			})
		}
	}
	wg.Wait()
}

// badCommand is a command that is no command.
type badCommand struct {
	name    string
	payload string
	seq     byte // sequence number
	silent  bool // MariaDB does not answer it
	own     bool // idproxy may refuse it where there are rules
	random  bool // the answer has a scramble in it
}

var badCommands = []badCommand{
	{name: "an empty packet", payload: ""},
	{name: "a query without text", payload: "\x03"},
	{name: "a query of zeros", payload: "\x03\x00\x00\x00\x00"},
	{name: "an unfinished string", payload: "\x03SELECT '"},
	{name: "an unfinished comment", payload: "\x03INSERT /*", own: true},
	{name: "an INSERT of one word", payload: "\x03INSERT", own: true},
	{name: "an INSERT without a name", payload: "\x03INSERT INTO ", own: true},
	{name: "an empty PREPARE", payload: "\x16"},
	{name: "an EXECUTE without an id", payload: "\x17"},
	{name: "an EXECUTE of three bytes", payload: "\x17\x01\x00"},
	{name: "a CLOSE without an id", payload: "\x19", silent: true},
	{name: "long data without an id", payload: "\x18\x01", silent: true},
	{name: "a RESET of three bytes", payload: "\x1a\x01\x00"},
	{name: "a FETCH of three bytes", payload: "\x1c\x01\x00"},
	{name: "an empty SET_OPTION", payload: "\x1b"},
	{name: "an unknown SET_OPTION", payload: "\x1b\x09\x09"},
	{name: "an empty INIT_DB", payload: "\x02"},
	{name: "an empty FIELD_LIST", payload: "\x04"},
	{name: "an unknown command", payload: "\xefabcd"},
	{name: "a BULK_EXECUTE of three bytes", payload: "\xfa\x01\x00"},
	{name: "an empty CHANGE_USER", payload: "\x11", random: true},
	{name: "a CHANGE_USER cut off", payload: "\x11app\x00\xff", random: true},
	{name: "a wrong sequence number", seq: 5, payload: "\x03SELECT 1"},
}

// TestBadCommands compares what becomes of malformed commands with what the server makes of them by
// itself.
func TestBadCommands(t *testing.T) {
	var all sync.WaitGroup // a server may take a second to answer
	for _, server := range harness.Servers(t) {
		p := replay.NewParity(t, server)
		for _, b := range badCommands {
			for _, caps := range []uint64{0, replay.DeprecateEOF | replay.Attributes | replay.SessionTrack} {
				all.Go(func() { compareBadCommand(t, server, p, b, caps) })
			}
		}
	}
	all.Wait()
}

func compareBadCommand(t *testing.T, server *servers.Server, p *replay.Parity, b badCommand, caps uint64) {
	s := replay.Session{Name: b.name, Run: func(c *replay.Conn) { malformed(c, b) }}
	cfg := p.Config(replay.Variant{Cfg: replay.Config{Caps: caps}})
	straight := replay.Run(cfg, s)
	for _, listener := range []string{"plain", "ruled"} {
		direct := straight
		cfg.Addr = p.Proxy.Addr(listener)
		proxied := replay.Run(cfg, s)
		if b.random || b.own && listener == "ruled" {
			direct = proxied
		}
		assert.NoError(t, sameEnd(direct, proxied), fmt.Sprintf("%s, %s, caps %#x, listener %s", server.Kind, b.name, caps, listener))
		assert.NoError(t, serves(server, cfg.Addr), fmt.Sprintf("%s, after %s", server.Kind, b.name))
	}
}

// malformed sends a bad command and sees what becomes of the session.
func malformed(c *replay.Conn, b badCommand) {
	c.Seq = b.seq
	c.Send([]byte(b.payload)...)
	if !b.silent || !c.MariaDB() {
		p := c.Packet()
		if len(p) > 2 && p[0] == mysql.ERR_HEADER && binary.LittleEndian.Uint16(p[1:]) == mysql.ER_UNKNOWN_STMT_HANDLER {
			c.MaskGot(0, 4+len(p))
		}
	}
	if err := replay.Do(func() { c.Must("SELECT 'alive'") }); err != nil {
		c.Ended = true // the server closed the session, as it may
	}
}

// TestStatementLimit sends a statement that must be held and is larger than may be.
func TestStatementLimit(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) + fmt.Sprintf(`
limits: {statement: 1MiB}
sources: {ids: {segment: {}}}
rules: [{table: %s.big, column: id, source: ids}]
`, db)})
	cfg := replay.Config{Addr: p.Addr("a"), User: servers.AppUser, Password: servers.AppPassword, Without: uint64(mysql.CLIENT_MULTI_STATEMENTS)}
	assert.NoError(t, replay.Do(func() {
		c := replay.Login(cfg)
		defer c.Close()
		c.Must("USE "+db, "CREATE TABLE big (id BIGINT PRIMARY KEY, a LONGTEXT)")
		for _, size := range []int{1 << 20, 20 << 20} {
			err := c.Query("INSERT INTO big (a) VALUES ('" + strings.Repeat("x", size) + "')")
			if replay.CodeOf(err) != mysql.ER_NET_PACKET_TOO_LARGE || !strings.Contains(err.Error(), "limits.statement") {
				replay.Fail("%d bytes: %w, want 1153 that names limits.statement", size, err)
			}
			c.Must("INSERT INTO big (a) VALUES ('small')")
		}
		c.Must("SELECT LENGTH('" + strings.Repeat("y", 2<<20) + "')")
	}))
}

// fakeServer answers every connection with f and closes it.
func fakeServer(t *testing.T, f func(conn net.Conn)) (addr string) {
	t.Helper()
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // the test ends by itself
				f(conn)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		wg.Wait()
	})
	return ln.Addr().String()
}

// aGreeting is a server's greeting of capabilities that are enough to log in.
func aGreeting() []byte {
	p := append([]byte("\x0a8.0.0-fake\x00\x01\x00\x00\x00abcdefgh\x00"), 0x0d, 0xa2, 45, 2, 0, 0x08, 0, 21)
	p = append(p, make([]byte, 10)...)
	p = append(p, "ijklmnopqrst\x00mysql_native_password\x00"...)
	b, _ := replay.Frames(0, p)
	return b
}

// saying sends text and waits for the client to leave.
func saying(text string) func(conn net.Conn) {
	return func(conn net.Conn) {
		if _, err := conn.Write([]byte(text)); err == nil {
			_, _ = conn.Read(make([]byte, 1)) // whatever comes
		}
	}
}

// afterLogin greets, accepts any login, and answers the first command with text.
func afterLogin(text string) func(conn net.Conn) {
	return func(conn net.Conn) {
		b := make([]byte, 4096)
		for _, say := range []string{string(aGreeting()), "\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00", text} {
			if _, err := conn.Write([]byte(say)); err != nil {
				return
			}
			if _, err := conn.Read(b); err != nil {
				return
			}
		}
	}
}

func TestBadServers(t *testing.T) {
	t.Parallel()
	good := harness.MariaDB(t)
	fakes := map[string]func(conn net.Conn){
		"closes at once":            func(net.Conn) {},
		"says nothing":              saying(""),
		"HTTP":                      saying("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"SSH":                       saying("SSH-2.0-OpenSSH_9.2\r\n"),
		"half a greeting":           saying("\x40\x00\x00\x00\x0a8.0"),
		"a greeting without an end": saying("\x04\x00\x00\x00\x0a8.0"),
		"a greeting of 16 MiB":      saying("\xff\xff\xff\x00\x0a8.0"),
		"an old protocol":           saying("\x05\x00\x00\x00\x093.2\x00"),
		"an empty packet":           saying("\x00\x00\x00\x00"),
		"an error":                  saying("\x0e\x00\x00\x00\xff\x6a\x04not allowed"),
		"an empty error":            saying("\x01\x00\x00\x00\xff"),
		"a greeting, then nothing":  saying(string(aGreeting())),
		"a greeting, then garbage":  saying(string(aGreeting()) + strings.Repeat("\xfe\xff\x00\x01", 5000)),
		"a reply of garbage":        afterLogin(strings.Repeat("\x07\x00\x00\x01\xfb\xfe\xff\xfc\x00\x00\x00", 3000)),
		"an OK of one byte":         afterLogin("\x01\x00\x00\x01\x00"),
		"an OK cut off":             afterLogin("\x07\x00\x00\x01\x00\xfe\xfe\xfe\xfe\xfe\xfe"),
		"an ERR of one byte":        afterLogin("\x01\x00\x00\x01\xff"),
		"empty packets":             afterLogin(strings.Repeat("\x00\x00\x00\x01", 500)),
		"a file request":            afterLogin("\x01\x00\x00\x01\xfb"),
		"an endless row":            afterLogin("\x01\x00\x00\x01\x01\xff\xff\xff\x02\x03def"),
	}
	var listeners strings.Builder
	fmt.Fprintf(&listeners, "limits: {handshake: 3s}\nlisteners:\n  - {name: good, listen: '127.0.0.1:0', upstream: %q}\n", good.Addr)
	var names []string
	for name, f := range fakes {
		names = append(names, name)
		fmt.Fprintf(&listeners, "  - {name: %q, listen: '127.0.0.1:0', upstream: %q}\n", "bad"+fmt.Sprint(len(names)), fakeServer(t, f))
	}
	fmt.Fprint(&listeners, "  - {name: down, listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}\n  - {name: nowhere, listen: '127.0.0.1:0', upstream: 'no-such-host.invalid:3306'}\n")
	p := replay.StartProxy(t, harness.Spec{Config: listeners.String()})
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			start := time.Now()
			err := replay.Do(func() { pinged(p.Addr("bad" + fmt.Sprint(i+1))) })
			took := time.Since(start)
			assert.True(t, took <= time.Minute, "server %s: client waited %v: %v", name, took, err)
			assert.NoError(t, serves(good, p.Addr("good")), "after server", name)
		})
	}
	wg.Wait()
	for listener, want := range map[string]string{"down": "connection refused", "nowhere": "no-such-host.invalid"} {
		err := serves(good, p.Addr(listener))
		assert.True(t, replay.CodeOf(err) == mysql.ER_BAD_HOST_ERROR && strings.Contains(err.Error(), want), "listener %s: %v, want 1042 with %q", listener, err, want)
	}
}

// pinged logs in and sends a ping. A client that waits for ever for a fake server's reply is no
// fault of the proxy's.
func pinged(addr string) {
	c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword})
	defer c.Close()
	if err := c.Conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		replay.Fail("deadline: %w", err)
	}
	c.Command(mysql.COM_PING)
	c.Packet()
	c.Drain()
}
