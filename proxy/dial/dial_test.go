package dial

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/integration/assert"
)

// fakes are addresses that take a connect after a time, or refuse it.
type fakes map[string]struct {
	after time.Duration
	err   error
}

type fakeConn struct {
	net.Conn
	address string
	closed  func(string)
}

func (c fakeConn) Close() error {
	c.closed(c.address)
	return nil
}

func TestRace(t *testing.T) {
	const never = time.Hour
	refused := syscall.ECONNREFUSED
	for _, tt := range []struct {
		name    string
		of      fakes
		want    string // that is taken; empty: none
		took    time.Duration
		dialled string // in this order
		closed  string
	}{
		{name: "the first", of: fakes{"a": {}, "b": {}}, want: "a", dialled: "a"},
		{name: "one that refuses leads to the next at once", of: fakes{"a": {time.Millisecond, refused}, "b": {}}, want: "b", took: time.Millisecond, dialled: "ab"},
		{name: "beside one that is silent the next is tried", of: fakes{"a": {never, nil}, "b": {}}, want: "b", took: headStart, dialled: "ab"},
		{name: "two are silent", of: fakes{"a": {never, nil}, "b": {never, nil}, "c": {}}, want: "c", took: 2 * headStart, dialled: "abc"},
		{name: "one that is late is closed", of: fakes{"a": {headStart + 10*time.Millisecond, nil}, "b": {headStart, nil}}, want: "a", took: headStart + 10*time.Millisecond, dialled: "ab", closed: "b"},
		{name: "all refuse", of: fakes{"a": {0, refused}, "b": {0, refused}}, dialled: "ab"},
		{name: "the time is up", of: fakes{"a": {never, nil}, "b": {0, refused}}, took: 3 * time.Second, dialled: "ab"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				var mu sync.Mutex
				var dialled, closed string
				var names []string
				for _, n := range []string{"a", "b", "c"} {
					if _, ok := tt.of[n]; ok {
						names = append(names, n)
					}
				}
				began := time.Now()
				c, err := race(ctx, names, func(ctx context.Context, address string) (net.Conn, error) {
					mu.Lock()
					dialled += address
					mu.Unlock()
					f := tt.of[address]
					select {
					case <-time.After(f.after):
					case <-ctx.Done():
						if f.after == never {
							return nil, ctx.Err()
						}
						<-time.After(f.after) // the connect was nearly through
					}
					if f.err != nil {
						return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New(address + ": refused")}
					}
					return fakeConn{address: address, closed: func(a string) {
						mu.Lock()
						defer mu.Unlock()
						closed += a
					}}, nil
				})
				took := time.Since(began)
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				got := ""
				if c != nil {
					got = c.(fakeConn).address
				}
				assert.True(t, got == tt.want && (err == nil) == (got != "") && took == tt.took && dialled == tt.dialled && closed == tt.closed,
					"got %q (%v) in %v, dialled %s, closed %q; want %q in %v, %s, %q", got, err, took, dialled, closed, tt.want, tt.took, tt.dialled, tt.closed)
				if err != nil && len(err.(Failed)) != len(names) { //nolint:errorlint // that is what it is
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// TestDial names in its error each address of a name, and why it was not taken.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.Must(t, err)
	to := address{"tcp", strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)}
	c := assert.Of(Dial(t.Context(), to)).Must(t)
	c.Close()
	l.Close()
	_, err = Dial(t.Context(), to)
	assert.True(t, err != nil && strings.Contains(err.Error(), "127.0.0.1:") && errors.Is(err, syscall.ECONNREFUSED) && !Ours(err), "got %v", err)
	_, err = Dial(t.Context(), address{"tcp", "no-such-host.invalid:3306"})
	assert.Fails(t, "err", err, "no-such-host.invalid")
	_, err = Dial(t.Context(), address{"unix", t.TempDir() + "/none"})
	assert.True(t, errors.Is(err, syscall.ENOENT), "got %v", err)
	both := Failed{errors.New("dial tcp [::1]:1: connect: connection refused"), syscall.EMFILE}
	assert.True(t, both.Error() == "dial tcp [::1]:1: connect: connection refused; too many open files" && Ours(both), "got %v", both)
}

type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }

// TestResolve: an address is what it was, with its zone.
func TestResolve(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:3306": "127.0.0.1:3306", "[::1]:3306": "[::1]:3306", "[fe80::1%eth0]:3306": "[fe80::1%eth0]:3306", "[::ffff:192.0.2.1]:3306": "192.0.2.1:3306",
	} {
		got, err := Resolve(t.Context(), "tcp", address)
		assert.True(t, err == nil && len(got) == 1 && got[0] == want, "%s: %q, %v, want %s", address, got, err, want)
	}
}
