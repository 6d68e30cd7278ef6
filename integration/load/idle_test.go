package load

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/process"
	"idproxy/integration/width"
	"idproxy/proxy/wire"
)

// TestIdleSessions has as many sessions wait at one idproxy as the machine has open files for, up to
// 20,000, and says what they take: time to log in, memory, time to be closed at SIGTERM.
func TestIdleSessions(t *testing.T) {
	const (
		spare  = 500     // open files for everything else
		worth  = 4 << 10 // bytes of memory that an idle session may cost
		enough = 5_000   // sessions whose memory can be told from the program's own
	)
	want := width.Of(2_000, 20_000)
	files := raiseFiles(t, 2*want+spare)
	n := min(want, (files-spare)/2)
	if n < want {
		t.Logf("the machine allows %d open files: %d sessions in place of %d", files, n, want)
	}
	server := startWaiting(t)
	p := harness.Start(t, harness.Spec{Plain: true, Config: fmt.Sprintf(
		"listeners:\n  - {listen: \"127.0.0.1:0\", upstream: \"%s\"}\nlimits: {sessions: %d}\nengine: loops\n", server, n)})
	empty := usage(t, p.Process)

	began := time.Now()
	clients, at := make([]net.Conn, n), make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range at {
				c, err := enter(p.Addrs()[0], i)
				if err != nil {
					t.Errorf("session %d: %v", i, err)
					continue
				}
				clients[i] = c
			}
		})
	}
	for i := range n {
		at <- i
	}
	close(at)
	wg.Wait()
	if t.Failed() {
		return
	}
	filled := time.Since(began)
	time.Sleep(time.Second) // what logged in has become idle
	each := float64(usage(t, p.Process).RSS-empty.RSS) / float64(n)
	assert.True(t, n < enough || !(each > worth), "an idle session takes %.0f bytes, want %d at most", each, worth)
	for i, c := range clients {
		assert.Must(t, ping(c), "session", i, "after it was idle")
	}
	began = time.Now()
	assert.Must(t, p.Signal(syscall.SIGTERM))
	for i, c := range clients {
		_, err := c.Read(make([]byte, 1))
		assert.MustTrue(t, errors.Is(err, io.EOF), "session %d at SIGTERM: %v, want the end of the connection", i, err)
		c.Close()
	}
	t.Logf("compared: %d sessions", n)
	t.Logf("logged in within %v, %.1f KiB each, closed within %v", filled.Round(time.Millisecond), each/1024, time.Since(began).Round(time.Millisecond))
}

// raiseFiles raises this program's limit of open files, and that of programs it starts, as far as
// it may, up to n.
func raiseFiles(t *testing.T, n int) (files int) {
	var limit syscall.Rlimit
	assert.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	raised := syscall.Rlimit{Cur: max(limit.Max, uint64(n)), Max: max(limit.Max, uint64(n))} // root may
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
		return int(raised.Cur)
	}
	limit.Cur = limit.Max
	assert.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	return int(limit.Cur)
}

func usage(t *testing.T, p *process.Process) process.Usage {
	return assert.Of(p.Usage()).Must(t)
}

// Payloads of the protocol's packets: see "Protocol::HandshakeV10" and "Protocol::HandshakeResponse41"
// in MySQL's documentation. Both sides have CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION and
// CLIENT_PLUGIN_AUTH.
var (
	hello = "\x0a9.7.0-waits\x00\x07\x00\x00\x00scramble\x00" + "\x00\x82" + "\x2d\x02\x00" + "\x08\x00" + "\x15" +
		strings.Repeat("\x00", 10) + "second scram\x00mysql_native_password\x00"
	login = "\x00\x82\x08\x00" + "\x00\x00\x00\x01" + "\x2d" + strings.Repeat("\x00", 23) + "root\x00" + "\x00" + "mysql_native_password\x00"
	okay  = "\x00\x00\x00\x02\x00\x00\x00"
)

// startWaiting starts a stand-in for a server: it lets everybody in, answers each command with OK,
// and waits. A real one would need a thread, or 256 KiB, for each of 20,000 connections.
func startWaiting(t *testing.T) net.Addr {
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				seq := byte(0)
				for say := hello; ; say = okay {
					if _, err := c.Write(wire.AppendPacket(nil, seq, []byte(say))); err != nil {
						return
					}
					_, came, err := wire.ReadPacket(c, 1<<10)
					if err != nil {
						return
					}
					seq = came + 1
				}
			}()
		}
	}()
	return l.Addr()
}

// enter logs in, and has one command answered. Addresses of the client's side take turns, so that
// none runs out of ports.
func enter(addr string, i int) (net.Conn, error) {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%8))}}
	c, err := from.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_, seq, err := wire.ReadPacket(c, 1<<10)
	if err == nil {
		_, err = c.Write(wire.AppendPacket(nil, seq+1, []byte(login)))
	}
	if err == nil {
		err = expectOK(c)
	}
	if err == nil {
		err = ping(c)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func ping(c net.Conn) error {
	if _, err := c.Write(wire.AppendPacket(nil, 0, []byte{0x0e})); err != nil {
		return err
	}
	return expectOK(c)
}

func expectOK(c net.Conn) error {
	reply, _, err := wire.ReadPacket(c, 1<<10)
	if err == nil && string(reply) != okay {
		return fmt.Errorf("reply %q, want OK", reply)
	}
	return err
}

// TestSmallBesideLarge has eight sessions read large results, one after the other, and a ninth run
// small statements all the while. It says how long those take, directly and over each engine. How
// long is not asserted: that none of them waits for a large result is.
func TestSmallBesideLarge(t *testing.T) {
	const (
		readers = 8
		results = 2
		fewest  = 20 // small statements while all of that is read
	)
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	large := fmt.Sprintf("SELECT REPEAT('x', 1048576) FROM seq_1_to_%d", width.Of(16, 64))
	for _, way := range []string{"", "loops", "goroutines"} {
		addr := ""
		if way != "" {
			addr = harness.Start(t, harness.Spec{Plain: true, Config: fmt.Sprintf(
				"listeners:\n  - {name: a, listen: \"127.0.0.1:0\", upstream: %q}\nengine: %s\n", s.Addr, way)}).Addr("a")
		}
		pool := harness.Open(t, s.Config(name), addr)
		pool.SetMaxIdleConns(readers + 1)
		var reading sync.WaitGroup
		for range readers {
			reading.Go(func() {
				for range results {
					assert.NoError(t, readAll(pool, large))
				}
			})
		}
		over := make(chan struct{})
		go func() {
			reading.Wait()
			close(over)
		}()
		took := smallOnes(t, pool, over)
		if len(took) < fewest {
			t.Errorf("%q: %d small statements while %d large results were read, want %d at least", way, len(took), readers*results, fewest)
			continue
		}
		slices.Sort(took)
		at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))].Round(time.Microsecond) }
		t.Logf("%q: %d small statements, p50 %v, p99 %v, max %v", way, len(took), at(0.5), at(0.99), at(1))
	}
}

// readAll reads a result to its end and keeps none of it.
func readAll(db *sql.DB, query string) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	var cell sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&cell); err != nil {
			return err
		}
	}
	return rows.Err()
}

// smallOnes runs small statements until over is closed, and returns how long each took.
func smallOnes(t *testing.T, db *sql.DB, over <-chan struct{}) (took []time.Duration) {
	for {
		select {
		case <-over:
			return took
		default:
		}
		began := time.Now()
		if err := db.QueryRow("SELECT 1").Scan(new(int)); err != nil {
			t.Error(err)
			<-over
			return took
		}
		took = append(took, time.Since(began))
	}
}
