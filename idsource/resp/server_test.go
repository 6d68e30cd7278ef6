package resp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"idproxy/idsource/access"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a source that counts.
type counter struct {
	mu   sync.Mutex
	next uint64
	err  error
	gap  bool // every second id is left out
}

func (c *counter) Fill(_ context.Context, ids []uint64, stride uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	for i := range ids {
		if c.gap {
			c.next++
		}
		ids[i] = c.next
		c.next += stride
	}
	return nil
}

// ranges is a counter that need not list ids.
type ranges struct{ counter }

func (r *ranges) Range(ctx context.Context, n uint64) (uint64, error) {
	var one [1]uint64
	err := r.Fill(ctx, one[:], n)
	return one[0], err
}

// newServer serves sources until the test ends.
func newServer(t *testing.T, sources map[string]Source, users ...access.User) (addr string, stop func() error) {
	t.Helper()
	return newPatientServer(t, 0, sources, users...)
}

func newPatientServer(t *testing.T, patience time.Duration, sources map[string]Source, users ...access.User) (addr string, stop func() error) {
	t.Helper()
	return serve(t, Config{Users: usersOf(users), clients: 20, patience: patience, Lookup: func(key string) (Source, bool) {
		src, ok := sources[key]
		return src, ok
	}})
}

// usersOf are users; nobody needs to log in where there are none.
func usersOf(users []access.User) *access.Users {
	if len(users) == 0 {
		return nil
	}
	return access.NewUsers(users...)
}

// serve serves until the test ends.
func serve(t *testing.T, c Config) (addr string, stop func() error) {
	t.Helper()
	return sourcetest.Serve(t, New(c).Serve)
}

// talk sends text and returns the whole answer, after the server or QUIT has ended the connection.
func talk(t *testing.T, addr, text string) string {
	t.Helper()
	c := assert.Of(net.Dial("tcp", addr)).Must(t)
	defer c.Close() //nolint:errcheck // read to the end
	assert.Of(io.WriteString(c, text+"QUIT\r\n")).Must(t)
	assert.Must(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	all, err := io.ReadAll(c)
	assert.MustTrue(t, err == nil, "%q: %v after %q", text, err, all)
	return strings.TrimSuffix(string(all), "+OK\r\n")
}

func TestCommands(t *testing.T) {
	addr, _ := newServer(t, map[string]Source{
		"a": &counter{next: 1}, "r": &ranges{counter{next: 1}}, "gap": &counter{gap: true}, "big": &counter{next: math.MaxInt64},
		"down": &counter{err: errors.New("id source \"down\":\r\nstore not available")},
	})
	for _, tt := range []struct{ in, want string }{
		{"INCR a\r\n", ":1\r\n"},
		{"incr a\nGET a\n", ":2\r\n$1\r\n2\r\n"},
		{"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*3\r\n$6\r\nINCRBY\r\n$1\r\na\r\n$2\r\n10\r\n", ":3\r\n:13\r\n"},
		{"INCRBY a 1\r\nINCR a\r\n", ":14\r\n:15\r\n"},
		{"INCRBY r 1000000\r\nINCR r\r\n", ":1000000\r\n:1000001\r\n"},
		{"INCRBY a 65537\r\n", "-ERR at most 65536 ids of this source can be had at once\r\n"},
		{"INCRBY gap 3\r\n", "-ERR this source has no 3 consecutive ids: ask for fewer\r\n"},
		{"INCR big\r\n", ":9223372036854775807\r\n"},
		{"INCR big\r\n", "-ERR id 9223372036854775808 is above 2^63-1, the greatest number of the protocol\r\n"},
		{"INCR down\r\nPING\r\n", "-ERR id source \"down\":  store not available\r\n+PONG\r\n"},
		{"INCR unknown\r\n", "-ERR there is no id source and no key 'unknown'\r\n"},
		{"GET unknown\r\n", "-ERR there is no id source and no key 'unknown'\r\n"},
		{"GET down\r\n", "$-1\r\n"},
		{"INCRBY a 0\r\n", "-ERR value is not an integer from 1 to 2^63-1: ids only go up\r\n"},
		{"INCRBY a -1\r\n", "-ERR value is not an integer from 1 to 2^63-1: ids only go up\r\n"},
		{"INCRBY a x\r\n", "-ERR value is not an integer from 1 to 2^63-1: ids only go up\r\n"},
		{"INCR\r\n", "-ERR wrong number of arguments for 'incr' command\r\n"},
		{"INCR a b\r\n", "-ERR wrong number of arguments for 'incr' command\r\n"},
		{"SET a 1\r\n", "-ERR unknown command 'SET', ids are asked for with INCR, INCRBY, IDS.NEXT and GET\r\n"},
		{"DECR a\r\n", "-ERR unknown command 'DECR', ids are asked for with INCR, INCRBY, IDS.NEXT and GET\r\n"},
		{"AUTH x\r\n", "-ERR AUTH called without any password configured for the default user\r\n"},
		{"SELECT 0\r\nSELECT 1\r\n", "+OK\r\n-ERR DB index is out of range\r\n"},
		{"PING x\r\nECHO y\r\n", "$1\r\nx\r\n$1\r\ny\r\n"},
		{"HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n"},
		{"HELLO 3\r\nGET down\r\n", "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:25\r\n" +
			"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n_\r\n"},
		{"\r\n\r\n*0\r\nPING\r\n", "+PONG\r\n"},
		{"CLIENT SETINFO LIB-NAME x\r\nCLIENT KILL x\r\n", "+OK\r\n-ERR unknown subcommand or wrong number of arguments for 'KILL'\r\n"},
		{"*1000\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		{"*-1\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		{"*1\r\n$999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
		{"*1\r\nINCR\r\n", "-ERR Protocol error: expected '$'\r\n"},
		{"*1\r\n$4\r\nPINGxx", "-ERR Protocol error: a bulk string does not end where it should\r\n"},
		{strings.Repeat("x", maxLine+1) + "\r\n", "-ERR Protocol error: too big a line\r\n"},
	} {
		assert.Equal(t, fmt.Sprintf("%.60q", tt.in), talk(t, addr, tt.in), tt.want)
	}
}

func TestRights(t *testing.T) {
	addr, _ := newServer(t, map[string]Source{"a": &counter{next: 1}, "b": &counter{next: 100}},
		access.User{Name: "default", Secret: access.DigestOf("all")}, access.User{Name: "reader", Secret: access.DigestOf("only a"), Keys: []string{"a"}})
	const no, wrong = "-NOAUTH Authentication required.\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	for _, tt := range []struct{ in, want string }{
		{"INCR a\r\nPING\r\nINFO\r\n", no + no + no},
		{"AUTH wrong\r\nINCR a\r\n", wrong + no},
		{"AUTH all\r\nINCR a\r\nINCR b\r\n", "+OK\r\n:1\r\n:100\r\n"},
		{"AUTH default all\r\nAUTH wrong\r\nINCR a\r\n", "+OK\r\n" + wrong + ":2\r\n"},
		{"*3\r\n$4\r\nAUTH\r\n$6\r\nreader\r\n$6\r\nonly a\r\nINCR a\r\nINCR b\r\nGET b\r\nINCR nothing\r\n", "+OK\r\n:3\r\n" +
			"-NOPERM user 'reader' has no right to the key 'b'\r\n-NOPERM user 'reader' has no right to the key 'b'\r\n-NOPERM user 'reader' has no right to the key 'nothing'\r\n"},
		{"AUTH reader all\r\n", wrong},
		{"AUTH nobody all\r\n", wrong},
		{"AUTH all\r\nRESET\r\nINCR a\r\n", "+OK\r\n+RESET\r\n" + no},
		{"HELLO 2 AUTH default wrong\r\nHELLO 3\r\n", wrong + "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used\r\n"},
	} {
		assert.Equal(t, tt.in, talk(t, addr, tt.in), tt.want)
	}
}

// TestShutdown cuts a question that waits and a connection that is silent.
func TestShutdown(t *testing.T) {
	w := sourcetest.Waiter{Waits: make(chan struct{})}
	addr, stop := newServer(t, map[string]Source{"w": w})
	silent := assert.Of(net.Dial("tcp", addr)).Must(t)
	defer silent.Close() //nolint:errcheck // the server closes it
	asking := assert.Of(net.Dial("tcp", addr)).Must(t)
	defer asking.Close() //nolint:errcheck // the server closes it
	assert.Of(io.WriteString(asking, "INCR w\r\n")).Must(t)
	<-w.Waits
	began := time.Now()
	assert.NoError(t, stop(), "Serve")
	assert.LessOrEqual(t, "stopping took", time.Since(began), time.Minute)
}

// crowded is a listener that has no more files at first.
type crowded struct {
	net.Listener
	times int
}

func (c *crowded) Accept() (net.Conn, error) {
	if c.times > 0 {
		c.times--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return c.Listener.Accept()
}

// TestAcceptFails: what passes by itself does not end the server.
func TestAcceptFails(t *testing.T) {
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	s := New(Config{Lookup: func(string) (Source, bool) { return &counter{next: 1}, true }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, &crowded{l, 3}) }()
	assert.Equal(t, "the answer", talk(t, l.Addr().String(), "INCR a\r\n"), ":1\r\n")
	cancel()
	assert.NoError(t, <-done)
}

func TestTooManyClients(t *testing.T) {
	addr, _ := newServer(t, nil)
	for range 20 {
		c := assert.Of(net.Dial("tcp", addr)).Must(t)
		defer c.Close() //nolint:errcheck // the test is over
		assert.Of(io.WriteString(c, "PING\r\n")).Must(t)
		line, err := bufio.NewReader(c).ReadString('\n')
		assert.MustTrue(t, line == "+PONG\r\n", "%q, %v", line, err)
	}
	c := assert.Of(net.Dial("tcp", addr)).Must(t)
	defer c.Close() //nolint:errcheck // the server closes it
	all, _ := io.ReadAll(c)
	assert.Equal(t, "client 21 is told", string(all), "-ERR max number of clients reached\r\n")
}

// TestPatience: a client that does not log in, or does not read, is cut off; all others stay.
func TestPatience(t *testing.T) {
	sources := map[string]Source{"a": &counter{next: 1}}
	addr, _ := newPatientServer(t, 3*time.Second, sources, access.User{Name: "default", Secret: access.DigestOf("all")})
	dial := func() net.Conn {
		t.Helper()
		c := assert.Of(net.Dial("tcp", addr)).Must(t)
		t.Cleanup(func() { _ = c.Close() })
		assert.Must(t, c.SetDeadline(time.Now().Add(time.Minute)))
		return c
	}
	known := dial()
	answers := bufio.NewReader(known)
	ask := func(question, want string) {
		t.Helper()
		assert.Of(io.WriteString(known, question)).Must(t)
		line, err := answers.ReadString('\n')
		assert.MustTrue(t, line == want, "%q: %q, %v", question, line, err)
	}
	ask("AUTH all\r\n", "+OK\r\n")
	ask("RESET\r\n", "+RESET\r\n")
	ask("AUTH all\r\n", "+OK\r\n")
	silent, noisy, deaf := dial(), dial(), dial()
	go func() {
		for {
			if _, err := io.WriteString(noisy, "PING\r\n"); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	for name, c := range map[string]net.Conn{"silent": silent, "never logged in": noisy} {
		_, err := io.Copy(io.Discard, c)
		assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded), "%s: still connected", name)
	}
	question := "AUTH all\r\n" + strings.Repeat("ECHO "+strings.Repeat("x", 4000)+"\r\n", 100)
	var err error
	for err == nil { // until both sides are full, and then until the server has had enough
		_, err = io.WriteString(deaf, question)
	}
	assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded), "who does not read is still connected")
	ask("INCR a\r\n", ":1\r\n")
}

// TestGoRedis has many goroutines of the common client ask, in both versions of
// the protocol, alone and pipelined.
func TestGoRedis(t *testing.T) {
	for _, version := range []int{2, 3} {
		addr, _ := newServer(t, map[string]Source{"ids": &ranges{counter{next: 1}}}, access.User{Name: "app", Secret: access.DigestOf("secret")})
		c := redis.NewClient(&redis.Options{Addr: addr, Protocol: version, Username: "app", Password: "secret", PoolSize: 10})
		var mu sync.Mutex
		seen := map[int64]bool{}
		note := func(last, n int64) {
			mu.Lock()
			defer mu.Unlock()
			for id := last - n + 1; id <= last; id++ {
				assert.True(t, !seen[id], "id %d came twice", id)
				seen[id] = true
			}
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 100 {
					id, err := c.Incr(t.Context(), "ids").Result()
					if err != nil {
						t.Error(err)
						return
					}
					note(id, 1)
					n := int64(1 + i%20)
					if id, err = c.IncrBy(t.Context(), "ids", n).Result(); err != nil {
						t.Error(err)
						return
					}
					note(id, n)
				}
				cmds, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					for range 50 {
						p.Incr(context.Background(), "ids")
					}
					return nil
				})
				assert.NoError(t, err)
				for _, cmd := range cmds {
					note(cmd.(*redis.IntCmd).Val(), 1)
				}
			})
		}
		wg.Wait()
		want := 8 * (100 + 5*210 + 50)
		assert.True(t, len(seen) == want, "version %d: %d ids, want %d", version, len(seen), want)
		last, err := c.Get(t.Context(), "ids").Int64()
		assert.True(t, err == nil && int(last) == len(seen), "version %d: GET %d, %v, want the last id %d", version, last, err, len(seen))
		assert.Fails(t, "an unknown key was counted up", c.Incr(t.Context(), "other").Err(), "")
		assert.NoError(t, c.Close())
	}
}

// TestRedisCLI asks with redis-cli, as people do.
func TestRedisCLI(t *testing.T) {
	addr, _ := newServer(t, map[string]Source{"ids": &counter{next: 7}}, access.User{Name: "default", Secret: access.DigestOf("secret")})
	host, port, _ := net.SplitHostPort(addr)
	cli := func(in string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "redis-cli", append([]string{"-h", host, "-p", port, "--no-auth-warning", "-a", "secret"}, args...)...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		assert.Must(t, err, fmt.Sprintf("redis-cli %q", args), string(out))
		return string(out)
	}
	for _, tt := range []struct{ in, want string }{
		{"INCR ids", "7\n"}, {"incrby ids 3", "10\n"}, {"GET ids", "10\n"}, {"INCR x", "ERR there is no id source"},
	} {
		assert.Contains(t, "redis-cli "+tt.in, cli("", strings.Fields(tt.in)...), tt.want)
	}
	got := cli("INCR ids\nPING\n")
	assert.True(t, got == "11\nPONG\n\n" || got == "11\nPONG\n", "redis-cli with a script: %q", got)
	assert.Equal(t, "redis-cli -3", cli("", "-3", "INCR", "ids"), "12\n")
}

// FuzzRead: whatever comes, a command is read or refused, and what is read means
// the same when it is written in full.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"INCR a\r\n", "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n", "*1\r\n$-1\r\n", "*\r\n", "$1\r\n", "\n", "*1\r\n$0\r\n\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		args, err := readCommand(bufio.NewReaderSize(strings.NewReader(string(in)), 2*maxLine), maxArgs)
		if err != nil {
			return
		}
		full := fmt.Sprintf("*%d\r\n", len(args))
		for _, a := range args {
			full += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
		}
		assert.MustTrue(t, len(full) <= 1<<20, "%d bytes were kept of %d", len(full), len(in))
		again, err := readCommand(bufio.NewReaderSize(strings.NewReader(full), 2*maxLine), maxArgs)
		assert.True(t, (err == nil || longest(args) > maxBulk) && (err != nil || strings.Join(again, "\x00") == strings.Join(args, "\x00")), "%q became %q and then %q, %v", in, args, again, err)
	})
}

func longest(words []string) (n int) {
	for _, w := range words {
		n = max(n, len(w))
	}
	return n
}

// FuzzTalk: whatever a client sends, every answer is one of the protocol, in both versions, and
// nothing panics.
func FuzzTalk(f *testing.F) {
	for _, text := range []string{
		"INCR a\r\nGET a\r\nMGET a u x\r\n", "IDS.NEXT u 3\r\nINCRBY a 9\r\nGET u\r\n", "HELLO 3 AUTH app x SETNAME me\r\nINFO\r\nCONFIG GET x\r\nGET a\r\n",
		"COMMAND\r\nCOMMAND INFO x get\r\nCOMMAND DOCS incr x\r\nHELLO 3\r\nCOMMAND\r\nCOMMAND DOCS\r\nCOMMAND INFO x\r\n",
		"CLIENT SETNAME x\r\nCLIENT GETNAME\r\nCLIENT\r\nRESET\r\n", "IDS.CREATE a\r\nIDS.CREATE new 5\r\nIDS.SET m 9\r\nIDS.SET u 9\r\n", "*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out logged
		sources := map[string]Source{"a": &ranges{counter{next: 1}}, "u": &named{counter{next: 1}}, "m": &moved{counter{next: 1}}}
		s := New(Config{
			MaxIncrBy: 5000, patience: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&out, nil)), Users: access.NewUsers(access.User{Name: "app", Secret: access.DigestOf("x"), Create: true, Set: true}),
			Lookup: func(key string) (Source, bool) { src, ok := sources[key]; return src, ok },
			Create: func(context.Context, string, uint64, uint64) error { return nil },
		})
		c := &recorded{in: strings.NewReader("AUTH app x\r\n" + string(in))}
		s.client(t.Context(), c, 1)
		for answers := bufio.NewReader(&c.out); ; {
			if _, err := answers.Peek(1); err != nil {
				break
			}
			assert.Must(t, readAnswer(answers, 0), fmt.Sprintf("%q", in))
		}
		text := out.String()
		assert.MustTrue(t, !strings.Contains(text, "msg=panic"), "%q: %s", in, text)
	})
}

// recorded is a connection over which all has come already, and which keeps what is answered.
type recorded struct {
	net.Conn
	in  *strings.Reader
	out bytes.Buffer
}

func (c *recorded) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *recorded) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *recorded) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)} }
func (c *recorded) SetReadDeadline(time.Time) error  { return nil }
func (c *recorded) SetWriteDeadline(time.Time) error { return nil }

// readAnswer reads one answer of either version of the protocol.
func readAnswer(r *bufio.Reader, depth int) error {
	line, err := r.ReadString('\n')
	if err != nil || len(line) < 3 || !strings.HasSuffix(line, "\r\n") || depth > 5 {
		return fmt.Errorf("%q, %w", line, err)
	}
	text := line[1 : len(line)-2]
	if strings.ContainsRune("+-", rune(line[0])) {
		return nil
	}
	if line[0] == '_' && text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 && line[0] != ':' {
		return fmt.Errorf("%q is no number: %w", line, err)
	}
	switch line[0] {
	case ':':
		return nil
	case '$', '=':
		if n >= 0 {
			all := make([]byte, n+2)
			if _, err = io.ReadFull(r, all); err == nil && string(all[n:]) != "\r\n" {
				err = fmt.Errorf("%q does not end where it should", all)
			}
		}
		return err
	case '%':
		n *= 2
	case '*', '~':
	default:
		return fmt.Errorf("%q is no answer", line)
	}
	for range n {
		if err := readAnswer(r, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// TestLastWord: who was let in just before the server ends gets an answer, and then the end.
func TestLastWord(t *testing.T) {
	addr, stop := sourcetest.Serve(t, New(Config{}).Serve)
	sourcetest.LastWord(t, addr, stop, "PING\r\nQUIT\r\n", "+PONG\r\n")
}
