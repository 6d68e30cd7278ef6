package eventloop

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"idproxy/integration/assert"
	"idproxy/integration/width"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// moment is how long a test waits for what must not.
const moment = 50 * time.Millisecond

// newLoop returns a loop that ends with the test.
func newLoop(t *testing.T) *Loop {
	t.Helper()
	l := assert.Of(New()).Must(t)
	t.Cleanup(l.Close)
	return l
}

// pair returns both ends of a connection over a socket.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	assert.Must(t, err)
	defer ln.Close()
	theirs, err = net.Dial("tcp", ln.Addr().String())
	assert.Must(t, err)
	t.Cleanup(func() { theirs.Close() })
	assert.Must(t, theirs.SetDeadline(time.Now().Add(patience)))
	ours, err = ln.Accept()
	assert.Must(t, err)
	return ours, theirs
}

// served is a connection of a loop that is told of each turn.
type served struct {
	*Conn
	lane  Task
	peer  net.Conn
	turns chan []byte // what each turn read; closed at the end of the stream
	work  func(s *served, read []byte)
}

func serve(t *testing.T, l *Loop, work func(*served, []byte)) *served {
	t.Helper()
	ours, theirs := pair(t)
	s := &served{peer: theirs, turns: make(chan []byte, 1000), work: work}
	var err error
	s.Conn, err = l.Take(ours, s.turn)
	assert.Must(t, err)
	t.Cleanup(s.end)
	s.Start()
	return s
}

// end ends the stream, and frees the connection once its last turn was served.
func (s *served) end() {
	s.peer.Close()
	for range s.turns { //nolint:revive // it ends with the stream
	}
	s.Free()
}

func (s *served) turn(turn *Turn) {
	s.lane.On(turn)
	defer s.lane.On(nil)
	b := make([]byte, 1<<16)
	n, err := s.TryRead(b)
	switch {
	case errors.Is(err, ErrNotNow):
	case err != nil:
		s.Stop()
		close(s.turns)
	default:
		if s.turns <- b[:n]; s.work != nil {
			s.work(s, b[:n])
		}
	}
}

func (s *served) send(t *testing.T, text string) {
	t.Helper()
	assert.Of(s.peer.Write([]byte(text))).Must(t)
}

// within waits for a value.
func within[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("it did not come")
		panic("unreachable")
	}
}

// not reports what came although it must not.
func not[T any](t *testing.T, from <-chan T) {
	t.Helper()
	select {
	case v := <-from:
		t.Fatalf("%v came", v)
	case <-time.After(moment):
	}
}

func echo(s *served, b []byte) { _ = s.WriteBy(&s.lane, b) } // the peer may be gone

// TestServes: all connections are served, in the order of their bytes, and their end is told.
func TestServes(t *testing.T) {
	l := newLoop(t)
	var wg sync.WaitGroup
	connections := width.Of(40, 300) // 300 are more than one wait brings
	for range connections {
		s := serve(t, l, echo)
		wg.Go(func() {
			for i := range 20 {
				sent := bytes.Repeat([]byte{byte(i)}, 100*i+1)
				got := make([]byte, len(sent))
				assert.Of(s.peer.Write(sent)).NoError(t)
				_, err := io.ReadFull(s.peer, got)
				assert.True(t, err == nil && bytes.Equal(got, sent), "%d bytes came back otherwise: %v", len(sent), err)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, "connections", l.Len(), connections)
}

// TestLeave: who leaves the loop holds nobody up, and is not served until it is done.
func TestLeave(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		l := newLoop(t)
		release := make(chan struct{})
		slow := serve(t, l, func(s *served, _ []byte) {
			if leaves {
				s.lane.Handoff()
			}
			<-release
		})
		quick := serve(t, l, echo)
		slow.send(t, "a")
		within(t, slow.turns)
		quick.send(t, "b")
		if leaves {
			within(t, quick.turns)
		} else {
			not(t, quick.turns) // or the test would not show anything
		}
		slow.send(t, "c")
		not(t, slow.turns)
		close(release)
		assert.Equal(t, fmt.Sprintf("leaves %v: read behind the wait", leaves), string(within(t, slow.turns)), "c")
		if !leaves {
			within(t, quick.turns)
		}
	}
}

// TestWaits: a reader and a writer that must wait leave the loop, get and write everything, and are
// woken by Close.
func TestWaits(t *testing.T) {
	l := newLoop(t)
	big := make([]byte, 32<<20) // more than sockets hold
	for i := range big {
		big[i] = byte(rand.Uint32())
	}
	ended := make(chan error, 1)
	writer := serve(t, l, func(s *served, _ []byte) { ended <- s.WriteBy(&s.lane, big) })
	reader := serve(t, l, func(s *served, _ []byte) {
		b := make([]byte, 10)
		for n := 0; n < len(b); {
			m, err := s.ReadBy(&s.lane, b[n:])
			if err != nil {
				ended <- err
				return
			}
			n += m
		}
		s.turns <- b
	})
	quick := serve(t, l, echo)
	writer.send(t, "go")
	within(t, writer.turns)
	reader.send(t, "x")
	within(t, reader.turns)
	quick.send(t, "y")
	within(t, quick.turns)
	not(t, ended)
	for _, c := range "0123456789" {
		reader.send(t, string(c))
	}
	assert.Equal(t, "read", string(within(t, reader.turns)), "0123456789")
	got := make([]byte, len(big))
	_, err := io.ReadFull(writer.peer, got)
	assert.True(t, err == nil && bytes.Equal(got, big), "what a writer wrote piece by piece came otherwise: %v", err)
	assert.NoError(t, within(t, ended))
	// Close, with one that reads and one that writes.
	writer.send(t, "go")
	within(t, writer.turns)
	not(t, ended)
	writer.Close()
	assert.Fails(t, "a writer goes on behind Close", within(t, ended), "")
	reader.send(t, "x")
	within(t, reader.turns)
	not(t, ended)
	reader.Close()
	err = within(t, ended)
	assert.True(t, errors.Is(err, io.EOF), "a reader got %v behind Close", err)
}

// TestBothWait: two goroutines wait to write, and one to read.
func TestBothWait(t *testing.T) {
	l := newLoop(t)
	ours, theirs := pair(t)
	c, err := l.Take(ours, nil) // it is not started
	assert.Must(t, err)
	t.Cleanup(c.Free)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { assert.Of(c.Write(make([]byte, 4<<20))).NoError(t) })
	}
	wg.Go(func() {
		n, err := c.Read(make([]byte, 10))
		assert.True(t, n == 1 && err == nil, "read %d bytes: %v", n, err)
	})
	time.Sleep(moment)
	n, err := io.CopyN(io.Discard, theirs, 8<<20)
	assert.NoError(t, err, n, "bytes came")
	assert.Of(theirs.Write([]byte("x"))).NoError(t)
	wg.Wait()
}

// TestHalves: the end of one direction leaves the other.
func TestHalves(t *testing.T) {
	l := newLoop(t)
	s := serve(t, l, nil)
	assert.Must(t, s.CloseWrite())
	n, err := s.peer.Read(make([]byte, 1))
	assert.True(t, n <= 0 && errors.Is(err, io.EOF), "read %d bytes: %v", n, err)
	s.send(t, "still there")
	assert.Equal(t, "read", string(within(t, s.turns)), "still there")
}

// TestFreed: a socket that was freed is not touched any more, also when the number of its socket and
// its slot are another's.
func TestFreed(t *testing.T) {
	l := newLoop(t)
	gone := serve(t, l, nil)
	slot := gone.slot
	gone.end()
	gone.Free()
	next := serve(t, l, nil)
	assert.True(t, next.slot == slot, "slot %d is not used again", slot)
	assert.ErrorIs(t, "Close behind Free", gone.Close(), net.ErrClosed)
	assert.True(t, !gone.begin(^uint32(0)), "a connection that was freed is served")
	next.send(t, "x")
	within(t, next.turns)
}

// TestQuietWhenOver: a connection that is over and that nobody serves costs nothing: epoll would tell
// of it again and again.
func TestQuietWhenOver(t *testing.T) {
	l := newLoop(t)
	release := make(chan struct{})
	s := serve(t, l, func(s *served, _ []byte) {
		s.lane.Handoff()
		<-release
	})
	s.send(t, "x")
	within(t, s.turns)
	assert.Must(t, s.peer.(*net.TCPConn).SetLinger(0))
	s.peer.Close() // a reset, while it is at work
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		asked := s.asked
		s.mu.Unlock()
		if asked == 0 {
			break
		}
		assert.MustTrue(t, !time.Now().After(until), "epoll is still asked for %#x", asked)
	}
	close(release)
	_, open := <-s.turns
	assert.True(t, !open, "bytes of a connection that was reset")
}

// TestTake: what has no socket of its own is not taken.
func TestTake(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	assert.Of(newLoop(t).Take(a, nil)).Fails(t, "a pipe in memory was taken", "")
}

// TestUnread: what has come is seen, and is still there to be read, whatever the connection is.
func TestUnread(t *testing.T) {
	l := newLoop(t)
	for name, of := range map[string]func(ours net.Conn) (c, under net.Conn){
		"of the system": func(ours net.Conn) (c, under net.Conn) { return ours, ours },
		"below TLS":     func(ours net.Conn) (c, under net.Conn) { return tls.Server(ours, nil), ours },
		"of a loop": func(ours net.Conn) (c, under net.Conn) {
			taken := assert.Of(l.Take(ours, nil)).Must(t) // it is not started
			t.Cleanup(taken.Free)
			return taken, taken
		},
	} {
		ours, theirs := pair(t)
		c, under := of(ours)
		assert.True(t, !Unread(c), "%s: there is something before anything came", name)
		assert.Of(theirs.Write([]byte("x"))).NoError(t)
		assert.Until(t, name+": something has come", func() bool { return Unread(c) }, func() string { return "" })
		assert.Of(under.Read(make([]byte, 10))).Equal(t, name+": read", 1)
		assert.True(t, !Unread(c), "%s: there is something when all was read", name)
		assert.Must(t, under.Close())
		assert.True(t, !Unread(c), "%s: there is something when it is closed", name)
	}
}
