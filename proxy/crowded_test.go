package proxy

import (
	"errors"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// A client that sends and sends while the server works on its first statement
// does not fill the proxy's memory with refusals: they wait, and all of them
// come in the end.
func TestSessionBoundsWaitingRefusals(t *testing.T) {
	r := start(t, nil)
	c := r.client()
	c.query("INSERT INTO orders (a) VALUES (1)")  // the table is known from here on
	r.ids.set(errors.New("store is down"), false) // no refusal asks the server anything
	release := make(chan struct{})
	r.server.mu.Lock()
	handle := r.server.handle
	r.server.handle = func(text string) ([][]byte, bool) {
		<-release
		return handle(text)
	}
	r.server.mu.Unlock()

	const sent = 3 * protocol.MaxPending
	c.write(query("SELECT SLEEP(1)"))
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range sent {
			c.write(query("INSERT INTO orders (a) VALUES (1)"))
		}
	}()
	most := 0
	for end := time.Now().Add(patience); most < protocol.MaxPending && time.Now().Before(end); time.Sleep(time.Millisecond) {
		most = pendingOf(r)
	}
	time.Sleep(50 * time.Millisecond) // what is unbounded would go on
	if most = pendingOf(r); most != protocol.MaxPending {
		t.Errorf("%d commands are pending, want %d", most, protocol.MaxPending)
	}
	close(release)
	if reply := c.read(); reply[0] != wire.OKByte {
		t.Errorf("the first reply is %q", reply)
	}
	for range sent {
		c.wantError(c.read(), mysql.ER_AUTOINC_READ_FAILED, "store is down")
	}
	<-written
}

// pendingOf returns how many commands are pending in the only session.
func pendingOf(r *running) (n int) {
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	for s := range r.srv.sessions {
		n += s.c.Waiting()
	}
	return n
}
