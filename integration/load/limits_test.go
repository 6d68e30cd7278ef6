package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
	"idproxy/proxy/wire"
)

// limited starts an idproxy with limits in front of a stand-in for a server. A rule concerns
// shop.orders.
func limited(t *testing.T, limits string) (p *harness.Proxy, metric func(name string) float64) {
	dir, err := os.MkdirTemp("", "limits") // the path of a socket must be short
	assert.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "admin")
	p = harness.Start(t, harness.Spec{Plain: true, Config: fmt.Sprintf(
		"listeners: [{name: a, listen: \"127.0.0.1:0\", upstream: %q}]\nlimits: %s\nadmin: {socket: %q}\n"+
			"sources: {ids: {snowflake: {worker: 1}}}\nrules: [{table: shop.orders, column: id, source: ids}]\n", startWaiting(t), limits, "unix:"+socket)})
	admin := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	return p, func(name string) float64 {
		t.Helper()
		r := assert.Of(admin.Get("http://idproxy/metrics")).Must(t)
		defer r.Body.Close()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
				return assert.Of(strconv.ParseFloat(value, 64)).Must(t)
			}
		}
		return 0
	}
}

// crowd are connections that say a byte a second.
type crowd struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (c *crowd) add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
}

// drip sends a byte on each connection once a second until ctx is done.
func (c *crowd) drip(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		c.mu.Lock()
		for _, conn := range c.conns {
			_, _ = conn.Write([]byte("x")) // many have been closed
		}
		c.mu.Unlock()
	}
}

func (c *crowd) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// TestSlowLogins: clients that send a byte of their login a second do not keep others out, although
// far more of them come than sessions may be open. The matrix has 20,000 of them, one after the other,
// and up to 9,000 are open at once on their side, which is what open files allow. Without the limit of
// logins nobody else gets in.
func TestSlowLogins(t *testing.T) {
	const logins = 100
	silent, sessions := width.Of(600, 20_000), width.Of(400, 4_000)
	most := width.Of(600, 9_000)
	raiseFiles(t, 2*most+1000)
	for _, tt := range []struct {
		logins int
		served bool
	}{{logins, true}, {sessions, false}} {
		p, metric := limited(t, fmt.Sprintf("{sessions: %d, logins: %d, handshake: 10m}", sessions, tt.logins))
		ctx, stop := context.WithCancel(t.Context())
		var slow crowd
		var dripping sync.WaitGroup
		dripping.Go(func() { slow.drip(ctx) })
		served, refused, longest := 0, 0, time.Duration(0)
		var said error // to one that was refused
		for i := range silent {
			c := assert.Of(net.Dial("tcp", p.Addr("a"))).Must(t)
			_, _, err := wire.ReadPacket(c, 1<<10)
			assert.Must(t, err)
			_, _ = c.Write([]byte("\x00\x10\x00\x01")) // a login of 4 KiB begins; some have been refused
			slow.add(c)
			if i%most == most-1 && i < silent-1 {
				slow.close()
			}
			if i < silent/2 || i%50 != 0 {
				continue
			}
			began := time.Now()
			if c, err := enter(p.Addr("a"), i); err == nil {
				served++
				c.Close()
			} else {
				refused++
				said = err
			}
			longest = max(longest, time.Since(began))
		}
		stop()
		dripping.Wait()
		slow.close()
		closed := metric(`idproxy_limited_total{limit="logins",listener="a"}`)
		t.Logf("logins: %d of %d sessions; %d silent clients, %.0f of them closed for others; %d others served within %v, %d refused",
			tt.logins, sessions, silent, closed, served, longest.Round(time.Millisecond), refused)
		if tt.served && (refused > 0 || closed == 0) || !tt.served && refused == 0 {
			t.Errorf("logins: %d: %d others were served, %d refused (%v), %.0f silent ones were closed", tt.logins, served, refused, said, closed)
		}
	}
}

// TestHeldMemory: sessions that each slow down to a byte a second in the middle of a large statement
// take no more memory than limits.held says, and as much again for garbage, while others are served. What found no room is
// refused when its end comes, and nothing is held then. The matrix has 1,000 sessions slow down after 24 MiB
// of 200: with all of them whole the test would be about how fast 200 GiB are thrown away.
func TestHeldMemory(t *testing.T) {
	const (
		held  = 256 << 20
		spare = 96 << 20 // the program, and buffers that are not counted
	)
	sessions, size, sent := width.Of(100, 1000), width.Of(20<<20, 200<<20), width.Of(19<<20, 24<<20)
	raiseFiles(t, 3*sessions+1000)
	p, metric := limited(t, "{held: 256MiB}")
	statement := insertOf(size)
	conns := make([]net.Conn, sessions)
	send := func(from, to int) {
		var sending sync.WaitGroup
		at := make(chan net.Conn)
		for range 16 {
			sending.Go(func() {
				for c := range at {
					assert.Of(c.Write(statement[from:to])).NoError(t)
				}
			})
		}
		for _, c := range conns {
			at <- c
		}
		close(at)
		sending.Wait()
	}
	for i := range conns {
		c := assert.Of(enter(p.Addr("a"), i)).Must(t)
		defer c.Close()
		conns[i] = c
	}
	other := assert.Of(enter(p.Addr("a"), 0)).Must(t)
	defer other.Close()
	send(0, sent)
	took := time.Duration(0)
	for range 3 { // and go on by a byte
		send(sent, sent+1)
		sent++
		began := time.Now()
		assert.NoError(t, ping(other))
		took = max(took, time.Since(began))
	}
	n := metric("idproxy_held_bytes")
	assert.True(t, !(n > held) && n != 0, "%.0f bytes are held, want some, and %d at most", n, held)
	peak := usage(t, p.Process).PeakRSS
	t.Logf("%d sessions in the middle of statements of %d MiB: %d MiB at most, another one is answered within %v", sessions, size>>20, peak>>20, took.Round(time.Microsecond))
	assert.True(t, peak <= 2*held+spare, "idproxy took %d MiB, want %d at most", peak>>20, (2*held+spare)>>20)
	if sent < size-1<<20 {
		return
	}
	send(sent, len(statement))
	decided, refused := 0, 0
	for _, c := range conns {
		reply, _, err := wire.ReadPacket(c, 1<<10)
		switch {
		case err != nil && !errors.Is(err, io.EOF): // which the stand-in does to what is so large
			t.Error(err)
		case err != nil:
			decided++
		case reply[0] == wire.ErrByte && wire.ErrCode(reply) == mysql.ER_OUT_OF_RESOURCES && strings.Contains(wire.ErrMessage(reply), "limits.held"):
			refused++
		default:
			decided++
		}
	}
	assert.True(t, refused != 0, "none was refused")
	none := func() bool { return metric("idproxy_held_bytes") == 0 } // a reply comes before its statement is let go
	assert.Until(t, "nothing is held", none)
	t.Logf("%d of them were decided on, %d were refused", decided, refused)
}

// insertOf returns a packet with an INSERT of so many bytes.
func insertOf(size int) []byte {
	head := "\x03INSERT INTO shop.orders (a) VALUES ('"
	return wire.AppendPacket(nil, 0, []byte(head+strings.Repeat("x", size-len(head)-2)+"')"))
}
