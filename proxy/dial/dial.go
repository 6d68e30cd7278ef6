package dial

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
)

// headStart is how long an address has before the next one is tried beside it. RFC 8305 has 250 ms,
// Go 300 ms.
const headStart = 300 * time.Millisecond

// Dial connects to an address, whose host may be a name. It gives up when ctx is done.
func Dial(ctx context.Context, to net.Addr) (net.Conn, error) {
	if to.Network() != "tcp" {
		return new(net.Dialer).DialContext(ctx, to.Network(), to.String())
	}
	addresses, err := Resolve(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return race(ctx, addresses, func(ctx context.Context, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})
}

// Resolve returns all addresses of host:port, at least one, in the order in which the system prefers
// them. A path has itself.
func Resolve(ctx context.Context, network, address string) (all []string, err error) {
	if network != "tcp" {
		return []string{address}, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host) // which keeps zones, as LookupNetIP does not
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	for _, ip := range ips {
		all = append(all, net.JoinHostPort(ip.String(), port))
	}
	return slices.Compact(all), nil
}

// Failed is why none of several addresses was taken, in their order.
type Failed []error

// Error joins them.
func (f Failed) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns them.
func (f Failed) Unwrap() []error { return f }

// Ours reports whether an error is of this process, which has no descriptor left, and says nothing of
// the server.
func Ours(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

type attempt struct {
	number int
	conn   net.Conn
	err    error
}

// race tries addresses until one is taken. The next one is tried when one fails, and beside one that
// takes long.
func race(ctx context.Context, addresses []string, dial func(context.Context, string) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	made := make(chan attempt, len(addresses)) // with room for all: who is late does not wait
	begun, open := 0, 0
	begin := func() {
		if begun == len(addresses) {
			return
		}
		number := begun
		begun++
		open++
		go func() {
			conn, err := dial(ctx, addresses[number])
			made <- attempt{number, conn, err}
		}()
	}
	next := time.NewTicker(headStart)
	defer next.Stop()
	failed := make(Failed, len(addresses))
	for begin(); open > 0; {
		select {
		case a := <-made:
			open--
			if a.err == nil {
				go closeLate(made, open)
				return a.conn, nil
			}
			failed[a.number] = a.err
			begin()
			next.Reset(headStart)
		case <-next.C:
			begin()
		}
	}
	if len(failed) == 1 {
		return nil, failed[0]
	}
	return nil, failed
}

// closeLate closes what comes of the attempts that another one was faster than.
func closeLate(made <-chan attempt, open int) {
	for range open {
		if a := <-made; a.err == nil {
			a.conn.Close()
		}
	}
}
