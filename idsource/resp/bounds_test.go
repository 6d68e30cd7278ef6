package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource/access"
	"idproxy/inside"
	"idproxy/integration/assert"
)

// logged is a log that can be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestInside has a store be down: clients get a reference, and the log has the rest.
func TestInside(t *testing.T) {
	down := &counter{err: fmt.Errorf("id source a: store not available: %w", inside.Mark(errors.New("dial tcp 10.1.2.3:3306: access denied for 'ids'")))}
	var out logged
	addr, _ := serve(t, Config{Logger: slog.New(slog.NewTextHandler(&out, nil)), Lookup: func(string) (Source, bool) { return down, true }})
	got := talk(t, addr, "INCR a\r\nINCRBY a 5\r\n")
	_, reference, _ := strings.Cut(strings.TrimSpace(strings.SplitN(got, "\r\n", 2)[0]), "reference ")
	assert.True(t, strings.HasPrefix(got, "-ERR id source a: store not available: the log of idproxy says why") && len(reference) == 8, "clients are told %q", got)
	assert.True(t, !strings.Contains(got, "10.1.2.3") && !strings.Contains(got, "'ids'"), "clients are told %q", got)
	text := out.String()
	assert.True(t, strings.Count(text, "\n") == 1 && strings.Contains(text, reference) && strings.Contains(text, "10.1.2.3:3306: access denied for 'ids'") && strings.Contains(text, "key=a"), "reference %s, and the log has %s", reference, text)
}

// logins returns what logs in from a host, where a password is right, and the log of that.
func logins(t *testing.T) (login func(host, password string) bool, out *logged) {
	out = &logged{}
	s := New(Config{Users: access.NewUsers(access.User{Name: "default", Secret: access.DigestOf("right")}), Logger: slog.New(slog.NewTextHandler(out, nil))})
	return func(host, password string) bool {
		return (&client{s: s, addr: &net.TCPAddr{IP: net.ParseIP(host), Port: 1}}).login(t.Context(), "default", password)
	}, out
}

// TestGuesses tries passwords over many connections at once.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		login, out := logins(t)
		began := time.Now()
		assert.MustTrue(t, !login("10.0.0.1", "wrong"), "a wrong password is right")
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() { login("10.0.0.1", fmt.Sprint("guess", i)) })
		}
		assert.True(t, login("10.0.0.2", "right") && time.Since(began) <= 0, "another host had to wait for %v", time.Since(began))
		wg.Wait()
		assert.GreaterOrEqual(t, "ten guesses took", time.Since(began), 10*guessPause)
		assert.True(t, login("10.0.0.1", "right") && time.Since(began) >= 11*guessPause, "after ten guesses the right password took %v", time.Since(began))
		time.Sleep(2 * guessTime)
		began = time.Now()
		assert.True(t, login("10.0.0.1", "right") && time.Since(began) <= 0, "later the right password took %v", time.Since(began))
		text := out.String()
		assert.True(t, strings.Contains(text, "login for ids failed") && strings.Contains(text, "10.0.0.1") && !strings.Contains(text, "wrong") && !strings.Contains(text, "guess") && strings.Count(text, "\n") <= 2, "the log has\n%s", text)
	})
}

// TestGuessesEnd: a host that goes on with the right password is slowed for a minute behind a wrong one,
// and no longer.
func TestGuessesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		login, _ := logins(t)
		login("2001:db8::1", "wrong")
		began := time.Now()
		for time.Since(began) < guessTime {
			time.Sleep(guessPause / 2)
			login("2001:db8::2", "right") // of the same network
		}
		time.Sleep(guessPause)
		began = time.Now()
		for range 10 {
			assert.MustTrue(t, login("2001:db8::1", "right") && time.Since(began) <= 0, "a minute behind a wrong password the right one took %v", time.Since(began))
		}
	})
}

// TestLoginMinute: RESET does not give a client that has not logged in another minute.
func TestLoginMinute(t *testing.T) {
	s := New(Config{Users: access.NewUsers(access.User{Name: "default", Secret: access.DigestOf("x")})})
	cl := &client{s: s, since: time.Now().Add(-time.Hour)}
	cl.forget()
	assert.True(t, !cl.until().After(time.Now()), "who never logged in has more time")
	cl.user = &access.User{}
	cl.forget()
	assert.True(t, !cl.until().Before(time.Now()), "who logged out has no time")
}

// scattered is a Source of numbers that are not consecutive, and says so.
type scattered struct{ *counter }

func (scattered) Scrambled() {}

// TestApart: n consecutive ids of a source that has none. Those that were drawn count as the user's; a
// source that says so is not drawn from.
func TestApart(t *testing.T) {
	drawn, hidden := &counter{next: 1, gap: true}, &counter{next: 1}
	addr, _ := newServer(t, map[string]Source{"drawn": drawn, "hidden": scattered{hidden}}, access.User{Name: "default", Secret: access.DigestOf("x"), Rate: 5})
	const none = "-ERR this source has no 100 consecutive ids: ask for fewer\r\n"
	got := talk(t, addr, "AUTH x\r\nINCRBY hidden 100\r\nINCRBY hidden 100\r\n")
	assert.True(t, got == "+OK\r\n"+none+none && hidden.next == 1, "%q, and %d ids were drawn", got, hidden.next-1)
	got = talk(t, addr, "AUTH x\r\nINCRBY drawn 100\r\nINCRBY drawn 100\r\n")
	assert.True(t, strings.HasPrefix(got, "+OK\r\n"+none+"-ERR user 'default' may have 5 ids in a second"), "%q", got)
}

// TestKnownPassword: a name that is nobody's, with a password that is somebody's, is refused and slows
// nobody. Processes of one order come so to one that leads no more.
func TestKnownPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Users: access.NewUsers(access.User{Name: "new", Secret: access.DigestOf("right")})})
		cl, began := &client{s: s, addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}}, time.Now()
		for range 10 {
			assert.True(t, !cl.login(t.Context(), "old", "right"), "another name is right")
		}
		assert.True(t, cl.login(t.Context(), "new", "right") && time.Since(began) <= 0, "the right name after %v", time.Since(began))
	})
}

// TestMaxIncrBy bounds what one command takes.
func TestMaxIncrBy(t *testing.T) {
	addr, _ := newServer(t, map[string]Source{"a": &ranges{counter{next: 1}}}, access.User{Name: "default", Secret: access.DigestOf("x")}, access.User{Name: "few", Secret: access.DigestOf("x"), Most: 10})
	for in, want := range map[string]string{
		"AUTH x\r\nINCRBY a 1000000\r\n": "+OK\r\n:",
		"AUTH x\r\nINCRBY a 1000001\r\n": "+OK\r\n-ERR at most 1000000 ids can be had at once (max_incrby)",
		"AUTH few x\r\nINCRBY a 10\r\n":  "+OK\r\n:",
		"AUTH few x\r\nINCRBY a 11\r\n":  "+OK\r\n-ERR at most 10 ids can be had at once (max_incrby)",
	} {
		got := talk(t, addr, in)
		assert.True(t, strings.HasPrefix(got, want), "%q: %q, want %q", in, got, want)
	}
}

// TestAnnounced sends commands whose words are announced and never come: no room is made for them.
func TestAnnounced(t *testing.T) {
	r := bufio.NewReaderSize(nil, 2*maxLine)
	const text = "*64\r\n$4096\r\n"
	if bytes := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Reset(strings.NewReader(text))
			if _, err := readCommand(r, maxArgs); !errors.Is(err, io.ErrUnexpectedEOF) {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp(); bytes > 512 {
		t.Errorf("%d bytes of memory for %d that were sent", bytes, len(text))
	}
	assert.Of(readCommand(bufio.NewReaderSize(strings.NewReader("*9\r\n"), 2*maxLine), maxAuth)).Fails(t, "nine words before the login are accepted", "")
}
