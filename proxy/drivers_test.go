package proxy

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/idsource"
	"idproxy/proxy/wire"
)

// script makes a session out of the bytes of a fuzzer: what the client sends, where it is cut, how
// slowly both read, and how it ends.
type script struct{ in []byte }

func (s *script) next(n int) int {
	if len(s.in) == 0 {
		return 0
	}
	b := int(s.in[0])
	s.in = s.in[1:]
	return b % n
}

// How sessions end.
const (
	endHalf  = iota // the client stops sending and reads on
	endQuit         // COM_QUIT
	endReset        // the client resets the connection somewhere
	endCut          // the server closes the connection somewhere
	ends
)

// scripted is what a script says.
type scripted struct {
	sent     []byte
	cuts     [2][]int // of what the client and the server write, again and again
	small    [2]bool  // the client's, the server's buffers of what they read
	end      int
	at       int // the byte of sent at which it is reset, or the packet at which it is cut
	commands int
}

func (s *script) read() scripted {
	var r scripted
	r.end = s.next(ends)
	for i := range r.cuts {
		for range s.next(4) {
			r.cuts[i] = append(r.cuts[i], 1+s.next(256)*(1+s.next(40)))
		}
		r.small[i] = s.next(2) == 1
	}
	r.at = s.next(256)
	for r.commands = 1; len(s.in) > 0 && r.commands < 40; r.commands++ {
		r.sent = append(r.sent, s.command()...)
	}
	if r.end == endQuit {
		r.sent = append(r.sent, commandOf(mysql.COM_QUIT)...)
	}
	return r
}

func (s *script) command() []byte {
	note := strings.Repeat("x", s.next(256)*(1+s.next(3)*200))
	switch s.next(8) {
	case 0:
		return commandOf(mysql.COM_PING)
	case 1:
		return query("UPDATE t SET a = '" + note + "'")
	case 2:
		return query(fmt.Sprintf("SELECT big %d", s.next(256)*(1+s.next(40))))
	case 3:
		return query("INSERT INTO orders (a) VALUES ('" + note + "'), (2)")
	case 4:
		return query("INSERT IGNORE INTO orders (a) VALUES ('" + note + "')") // its outcome is asked for
	case 5:
		return query("INSERT INTO orders (a) VALUES (1); UPDATE t SET a = 1; INSERT INTO orders (a) VALUES ('" + note + "')")
	case 6:
		return query(refusedText)
	}
	return query("SET sql_mode = ''")
}

// mostCuts is how many pieces a connection is cut into, before the rest goes as it is.
const mostCuts = 500

// cutConn writes in pieces.
type cutConn struct {
	net.Conn
	cuts []int
	n    int
	left int // packets until it closes; below 0: it does not
}

func (c *cutConn) Write(b []byte) (n int, err error) {
	if c.left == 0 {
		c.Close()
	}
	c.left--
	for n < len(b) {
		piece := len(b) - n
		if len(c.cuts) > 0 && c.n < mostCuts {
			piece = min(piece, c.cuts[c.n%len(c.cuts)])
			c.n++
		}
		m, err := c.Conn.Write(b[n : n+piece])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// rows is the reply to SELECT big n.
func rows(n int) [][]byte {
	eof := []byte{wire.EOFByte, 0, 0, 2, 0}
	reply := [][]byte{{1}, (&mysql.Field{Name: []byte("a"), Type: mysql.MYSQL_TYPE_VAR_STRING}).Dump(), eof}
	for i := range n {
		reply = append(reply, mysql.PutLengthEncodedString([]byte(strings.Repeat(strconv.Itoa(i), 100))))
	}
	return append(reply, eof)
}

// played is what became of a script.
type played struct {
	read []byte   // by the client
	seen []string // by the server
}

// play plays a script over a driver. With a bad end it may be that not all of it was played.
func (r scripted) play(t *testing.T) played {
	run := start(t, func(c *Config, live *Settings) {
		c.Loops = loops
		live.Statement = 1 << 20
		live.Sources = map[string]idsource.Source{"s": &counter{}}
	})
	run.server.set(func(f *fakeServer) {
		f.handle = func(sql string) ([][]byte, bool) {
			n, big := strings.CutPrefix(sql, "SELECT big ")
			if count, err := strconv.Atoi(n); big && err == nil {
				return rows(count), true
			}
			return [][]byte{okPayload(1, 0, 2)}, true
		}
		f.wrap = func(c net.Conn) net.Conn {
			cut := &cutConn{Conn: c, cuts: r.cuts[1], left: -1}
			if r.end == endCut {
				cut.left = 2 + r.at%(4*r.commands)
			}
			if r.small[1] {
				_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
			}
			return cut
		}
	})
	c := run.client()
	tcp := c.conn.(*net.TCPConn)
	if r.small[0] {
		_ = tcp.SetReadBuffer(64 << 10)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		sent := r.sent
		if r.end == endReset {
			sent = sent[:len(sent)*r.at/256]
		}
		if _, err := (&cutConn{Conn: tcp, cuts: r.cuts[0], left: -1}).Write(sent); err != nil {
			return // it is over
		}
		switch r.end {
		case endReset:
			_ = tcp.SetLinger(0)
			tcp.Close()
		case endHalf, endCut: // which may not have come to it
			_ = tcp.CloseWrite()
		}
	}()
	if r.small[0] { // it begins to read when buffers are full
		time.Sleep(20 * time.Millisecond)
	}
	read, err := io.ReadAll(tcp)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the session hangs")
	}
	tcp.Close()
	<-written
	for until := time.Now().Add(patience); len(run.srv.Sessions()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the session does not end")
		}
	}
	if n := run.srv.Stats.Panics.Load(); n > 0 {
		t.Errorf("%d panics", n)
	}
	run.drain()
	<-run.done
	run.server.stop()
	seen := slices.DeleteFunc(run.server.queries(), func(sql string) bool { // it is asked where a reply is pending
		return sql == "SELECT LAST_INSERT_ID()"
	})
	return played{read: read, seen: seen}
}

// compare plays a script over goroutines and over loops.
func (r scripted) compare(t *testing.T) {
	defer func(n int) { loops = n }(loops)
	var got [2]played
	for i := range got {
		loops = i
		got[i] = r.play(t)
	}
	switch r.end {
	case endReset, endCut: // how far it comes is not the driver's alone
		n := min(len(got[0].seen), len(got[1].seen))
		got[0].seen, got[1].seen = got[0].seen[:n], got[1].seen[:n]
		m := min(len(got[0].read), len(got[1].read))
		if r.end == endCut { // nor whether an INSERT was in flight, which is told then
			m = 0
		}
		got[0].read, got[1].read = got[0].read[:m], got[1].read[:m]
	}
	if !bytes.Equal(got[0].read, got[1].read) {
		t.Errorf("the client reads %d bytes over goroutines, and others, %d, over loops", len(got[0].read), len(got[1].read))
	}
	if !slices.Equal(got[0].seen, got[1].seen) {
		t.Errorf("the server sees over goroutines\n%.300q\nover loops\n%.300q", got[0].seen, got[1].seen)
	}
}

// TestDriversAgree: a client and a server see the same bytes over both drivers, however they are cut,
// however slowly somebody reads, and however a session ends.
func TestDriversAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(9, uint64(loops))) //nolint:gosec // the same each time, others in each pass of TestMain
	for range 30 {
		in := make([]byte, 10+random.IntN(80))
		for i := range in {
			in[i] = byte(random.Uint32())
		}
		s := (&script{in: in}).read()
		s.compare(t)
		if t.Failed() {
			t.Fatalf("script %q", in)
		}
	}
}

func FuzzDrivers(f *testing.F) {
	f.Add([]byte("\x00\x02\x10\x20\x01\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := (&script{in: in}).read()
		s.compare(t)
	})
}

// TestNobodyIsHeldUp: clients that do not read their results, and one whose statement waits for a
// server that does not answer, hold nobody else up, although all share one loop.
func TestNobodyIsHeldUp(t *testing.T) {
	release := make(chan struct{})
	r := start(t, func(c *Config, _ *Settings) { c.Loops = min(loops, 1) })
	r.server.set(func(f *fakeServer) {
		f.handle = func(sql string) ([][]byte, bool) {
			switch sql {
			case "SELECT big":
				return rows(30_000), true // more than sockets hold
			case "SELECT LAST_INSERT_ID()":
				<-release
				return append(rows(0)[:3], []byte("\x0277"), rows(0)[3]), true
			}
			return [][]byte{okPayload(1, 0, 2)}, true
		}
	})
	var slow []*peer
	for range 4 {
		c := r.client()
		c.write(query("SELECT big"))
		slow = append(slow, c)
	}
	waiting := r.client()
	waiting.write(query("CALL p()"))
	waiting.write(query("INSERT IGNORE INTO orders (a) VALUES (1), (2)")) // the server is asked which id went in
	c := r.client()
	for i := range 200 {
		if reply := c.query("UPDATE t SET a = 1"); reply[0] != wire.OKByte {
			t.Fatalf("reply %d: %q", i, reply)
		}
	}
	close(release)
	for _, c := range slow {
		n, want := 0, 30_000
		for packets := 0; packets < want+4; packets++ {
			payload := c.read()
			n += len(payload)
		}
		if n < want {
			t.Errorf("%d bytes came", n)
		}
	}
	if reply := waiting.read(); reply[0] != wire.OKByte {
		t.Errorf("%q", reply)
	}
}

// stuck is where a log goes that nobody reads.
type stuck struct{ released chan struct{} }

func (s stuck) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("statement refused")) {
		<-s.released
	}
	return len(b), nil
}

// TestLogHoldsNobodyUp: who writes a line that does not go out holds up nobody who has nothing to say.
func TestLogHoldsNobodyUp(t *testing.T) {
	log := stuck{make(chan struct{})}
	r := start(t, func(c *Config, _ *Settings) {
		c.Loops, c.Logger = min(loops, 1), slog.New(slog.NewTextHandler(log, nil))
	})
	quiet, refused := r.client(), r.client()
	refused.query("INSERT INTO orders (a) VALUES (1)") // from then on it has no questions, for which it would leave the loop
	r.ids.set(testError(1467), false)
	refused.write(query("INSERT INTO orders (a) VALUES (1)"))
	for range 100 {
		if reply := quiet.query("UPDATE t SET a = 1"); reply[0] != wire.OKByte {
			t.Fatalf("%q", reply)
		}
		time.Sleep(time.Millisecond)
	}
	close(log.released)
	refused.wantError(refused.read(), 1467, "no")
}
