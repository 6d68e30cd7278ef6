package monitor

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/integration/assert"
)

// pipe is a connection whose other end a test sees being closed.
func pipe(t *testing.T) (server, client net.Conn) {
	t.Helper()
	server, client = net.Pipe()
	t.Cleanup(func() {
		server.Close()
		client.Close()
	})
	return server, client
}

// TestWhoLeaves: where there are too many connections, the oldest of those goes that wait; then one
// that is answered, and a stream last.
func TestWhoLeaves(t *testing.T) {
	c := newCrowd(4)
	clients := map[string]net.Conn{}
	guests := map[string]*guest{}
	enter := func(name string) {
		server, client := pipe(t)
		clients[name], guests[name] = client, c.enter(server)
		guests[name].begin()
		time.Sleep(time.Millisecond) // the next one is younger
	}
	gone := func(name string) bool {
		_ = clients[name].SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, err := clients[name].Read(make([]byte, 1))
		return err == io.EOF //nolint:errorlint // net.Pipe's own
	}
	for _, name := range []string{"stream", "answered", "idle", "new"} {
		enter(name)
	}
	guests["stream"].does(streaming)
	guests["answered"].does(answering)
	guests["idle"].does(answering)
	guests["idle"].does(waiting)
	for i, want := range []string{"idle", "new", "more 0", "more 1"} {
		enter("more " + string(rune('0'+i)))
		assert.True(t, gone(want), "%s is still there", want)
	}
	for name, there := range map[string]bool{"stream": true, "answered": true, "more 2": true, "more 3": true} {
		assert.True(t, gone(name) != there, "%s is gone", name)
	}
	guests["more 2"].does(answering)
	guests["more 3"].does(answering)
	enter("last")
	guests["last"].does(answering)
	enter("one more")
	assert.True(t, gone("answered") && !gone("stream"), "the one that was answered for longest is to leave before a stream")
	for _, g := range guests {
		g.Close()
	}
	assert.Equal(t, "connections are left", len(c.guests), 0)
}

// TestNobodyHasLooked: on a machine where nobody gets to run, a connection that may have asked is not
// taken for one that does nothing. Its time begins when it is read from.
func TestNobodyHasLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(1)
		server, client := pipe(t)
		first := c.enter(server)
		defer first.Close()
		second, _ := pipe(t)
		entered := make(chan *guest)
		go func() { entered <- c.enter(second) }()
		select {
		case <-entered:
			t.Error("a connection was cut that nobody had looked at")
		case <-time.After(time.Hour):
		}
		read := make(chan error)
		go func() {
			_, err := first.Read(make([]byte, 1))
			read <- err
		}()
		began := time.Now()
		(<-entered).Close()
		took := time.Since(began)
		assert.True(t, took >= grace && took <= 2*grace, "its place was taken after %v", took)
		assert.Fails(t, "it was not cut", <-read, "")
		client.Close()
	})
}

// TestFew: above so many answers at once the client is told to come again.
func TestFew(t *testing.T) {
	held, release := sync.WaitGroup{}, make(chan struct{})
	held.Add(maxAnswers)
	var once sync.Once
	handler := few(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		held.Done()
		<-release
	}))
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }() // it ends below
	defer srv.Close()
	defer once.Do(func() { close(release) })
	var all sync.WaitGroup
	for range maxAnswers {
		all.Go(func() { ask(t, http.DefaultClient, "GET", "http://"+l.Addr().String(), nil) })
	}
	held.Wait()
	r, err := http.Get("http://" + l.Addr().String()) //nolint:noctx // closed at once
	assert.Must(t, err)
	r.Body.Close()
	assert.True(t, r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "", "one too many: %d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
	once.Do(func() { close(release) })
	all.Wait()
}

// TestSlowReader: who asks and does not read is cut, and a stream that is read lives longer than
// any other request may take.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	big := healthy()
	big.Config.Problem = strings.Repeat("x", 8<<20) // more than the system keeps for a client
	base, _ := serve(t, Options{Program: &fixed{state: big}})
	small, _ := serve(t, Options{Program: &fixed{state: healthy()}})
	stream, err := http.Get(small + "/api/v1/stream") //nolint:noctx // closed below
	assert.Must(t, err)
	defer stream.Body.Close()
	conn := assert.Of(net.Dial("tcp", strings.TrimPrefix(base, "http://"))).Must(t)
	defer conn.Close()
	assert.Of(conn.Write([]byte("GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))).Must(t)
	time.Sleep(3 * chunkTime) // a busy machine may be late
	assert.Must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	n, err := io.Copy(io.Discard, conn)
	assert.True(t, (err == nil || strings.Contains(err.Error(), "reset")) && n < 8<<20, "a client that did not read got %d bytes: %v", n, err)
	reader := bufio.NewReader(stream.Body)
	for range 2 * int(headerTime.Seconds()) {
		assert.Of(reader.ReadString('\n')).Must(t, "a stream that is read ends")
	}
}

// TestStateIsShared: whoever asks how often, the program is asked ten times a second at most.
func TestStateIsShared(t *testing.T) {
	asked := &counting{Program: &fixed{state: healthy()}}
	g := &glimpse{Program: asked}
	began := time.Now()
	for time.Since(began) < 3*stateAge {
		s := g.State()
		assert.MustTrue(t, s.Version == "v1", "%+v", s)
	}
	most := int(time.Since(began)/stateAge) + 1
	assert.True(t, asked.n >= 2 && asked.n <= most, "asked %d times, want 2 to %d", asked.n, most)
}

// counting counts how often its state is asked.
type counting struct {
	Program
	n int
}

func (c *counting) State() State {
	c.n++
	return c.Program.State()
}

// TestReserve: a client is taken in the place of a spare file, and what lacks is opened again.
// TestFaults takes all descriptors away from a program.
func TestReserve(t *testing.T) {
	var r reserve
	if _, err := r.accept(nil); !noFiles(err) {
		t.Errorf("without files: %v", err)
	}
	r.fill()
	r.fill()
	assert.MustEqual(t, "files", len(r.files), spares)
	l := assert.Of(net.Listen("unix", filepath.Join(t.TempDir(), "s"))).Must(t)
	defer l.Close()
	client := assert.Of(net.Dial("unix", l.Addr().String())).Must(t)
	defer client.Close()
	taken, err := r.accept(l)
	assert.MustTrue(t, err == nil && len(r.files) == spares-1, "%d files: %v", len(r.files), err)
	taken.Close()
	r.fill()
	assert.True(t, len(r.files) == spares, "%d files once the client has gone", len(r.files))
	r.close()
	r.fill()
	assert.True(t, len(r.files) == 0, "%d files behind the end", len(r.files))
}
