package monitor

import (
	"cmp"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// MaxConnections is how many connections the admin listener has at most, over all its addresses.
const MaxConnections = 512

// sendBuffer is how many bytes of answers the system keeps for a client that does not read.
const sendBuffer = 64 << 10

// crowd is all connections of the admin listener. They are bounded, and nobody keeps others out:
// where there are too many, a new one takes the place of the one that matters least. So a load
// balancer, which asks as soon as it is connected, is answered while thousands of others connect
// and do nothing.
type crowd struct {
	most  int
	spare reserve

	mu     sync.Mutex
	guests map[*guest]struct{}
}

// grace is how long a connection has to ask, from when it is read from, before a new one may take its
// place: in a burst of connections those that ask at once are served in turn.
const grace = 200 * time.Millisecond

func newCrowd(most int) *crowd { return &crowd{most: most, guests: map[*guest]struct{}{}} }

// doing is what a connection is there for. Those that do the least leave first, and of those the
// oldest.
type doing uint8

const (
	waiting   doing = iota // nothing was asked, or not to the end, or the answer is made
	arriving               // nobody has looked yet whether something is asked: it is not cut
	answering              // an answer is being made
	streaming              // the answer has no end
)

// guest is one connection.
type guest struct {
	net.Conn
	crowd *crowd
	begun sync.Once // it is read from

	// The crowd's mutex guards:
	since time.Time // when it was
	doing doing
}

// enter takes a new connection in.
func (c *crowd) enter(conn net.Conn) *guest {
	if tcp, ok := plain(conn).(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // the system's own bound is larger, and a bound too
	}
	g := &guest{Conn: conn, crowd: c, doing: arriving}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.guests) >= c.most {
		least := slices.MinFunc(slices.Collect(maps.Keys(c.guests)), func(a, b *guest) int {
			return cmp.Or(cmp.Compare(a.doing, b.doing), a.since.Compare(b.since))
		})
		if least.doing == arriving || least.doing == waiting && time.Since(least.since) < grace {
			c.mu.Unlock()
			time.Sleep(grace / 40) // others may leave meanwhile
			c.mu.Lock()
			continue
		}
		delete(c.guests, least)
		plain(least.Conn).Close() // of TLS, too: a farewell would wait for a client that does not read
	}
	c.guests[g] = struct{}{}
	return g
}

// Read implements net.Conn.
func (g *guest) Read(b []byte) (int, error) {
	g.begun.Do(g.begin)
	return g.Conn.Read(b)
}

// begin notes that somebody looks at what is asked.
func (g *guest) begin() {
	g.crowd.mu.Lock()
	defer g.crowd.mu.Unlock()
	g.since, g.doing = time.Now(), waiting
}

// does notes what a connection is there for from now on.
func (g *guest) does(d doing) {
	g.crowd.mu.Lock()
	defer g.crowd.mu.Unlock()
	g.doing = d
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.crowd.mu.Lock()
	delete(g.crowd.guests, g)
	g.crowd.mu.Unlock()
	defer g.crowd.spare.fill()
	return g.Conn.Close()
}

// plain returns the connection under TLS.
func plain(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c
}

// door is a listener whose connections are guests.
type door struct {
	net.Listener
	crowd *crowd
}

// Accept implements net.Listener.
func (d door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil && noFiles(err) {
		c, err = d.crowd.spare.accept(d.Listener)
	}
	if err != nil {
		return nil, err
	}
	return d.crowd.enter(c), nil
}

// Bounds on what clients that may ask can make the program hold and do.
const (
	maxAnswers = 32              // are made and sent at once, besides streams and health
	chunk      = 32 << 10        // bytes
	chunkTime  = 5 * time.Second // a client that does not take a chunk for so long is cut
)

// paced writes an answer in chunks, and gives up where the client does not read. A long answer may
// take as long as it takes.
type paced struct {
	http.ResponseWriter
}

// Unwrap is for http.ResponseController.
func (p paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write implements http.ResponseWriter.
func (p paced) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, chunk) {
		if err := p.hurry(); err != nil {
			return n, err
		}
		wrote, err := p.ResponseWriter.Write(part)
		n += wrote
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// hurry gives what is written next its time.
func (p paced) hurry() error {
	return http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(chunkTime))
}

// busy answers that it is too much just now.
func busy(w http.ResponseWriter, detail string) {
	w.Header().Set("Retry-After", "5")
	problem(w, http.StatusServiceUnavailable, detail)
}

// few answers some requests at once, and refuses those above.
func few(next http.Handler) http.Handler {
	places := make(chan struct{}, maxAnswers)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			busy(w, "too many requests are answered just now: ask again in a few seconds")
		}
	})
}

// stateAge is how old a state may be that is shown: it takes a look at every session, and who asks
// for it again and again would keep sessions from starting and ending.
const stateAge = 100 * time.Millisecond

// glimpse is a program whose state is asked ten times a second at most, whoever wants it. The
// states that it returns are shared: they are only read.
type glimpse struct {
	Program
	mu    sync.Mutex
	at    time.Time
	state State
}

// State implements Program.
func (g *glimpse) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.at) >= stateAge {
		g.state = g.Program.State()
		g.at = time.Now()
	}
	return g.state
}

// Drain implements Program. Who asks next sees what it did.
func (g *glimpse) Drain() {
	g.Program.Drain()
	g.forget()
}

// Resume implements Program.
func (g *glimpse) Resume() error {
	defer g.forget()
	return g.Program.Resume()
}

// Reload implements Program.
func (g *glimpse) Reload() ([]string, error) {
	defer g.forget()
	return g.Program.Reload()
}

func (g *glimpse) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = time.Time{}
}
