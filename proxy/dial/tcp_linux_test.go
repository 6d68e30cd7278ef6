package dial

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"idproxy/integration/assert"
)

// TestApply reads the options of a socket back.
func TestApply(t *testing.T) {
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer l.Close()
	c := assert.Of(net.Dial("tcp", l.Addr().String())).Must(t)
	defer c.Close()
	type options struct{ on, idle, interval, count, timeout int }
	read := func() (o options) {
		raw, err := c.(*net.TCPConn).SyscallConn()
		assert.Must(t, err)
		assert.Must(t, raw.Control(func(fd uintptr) {
			for _, one := range []struct {
				level, name int
				into        *int
			}{
				{unix.SOL_SOCKET, unix.SO_KEEPALIVE, &o.on},
				{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, &o.idle},
				{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, &o.interval},
				{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, &o.count},
				{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, &o.timeout},
			} {
				*one.into, err = unix.GetsockoptInt(int(fd), one.level, one.name)
				assert.NoError(t, err)
			}
		}))
		return o
	}
	for _, tt := range []struct {
		set  TCP
		want options
	}{
		{TCP{Keepalive: 30 * time.Second}, options{1, 30, 10, 3, 0}},
		{TCP{Keepalive: time.Second, UserTimeout: 1500 * time.Millisecond}, options{1, 1, 1, 3, 1500}},
		{TCP{Keepalive: 10 * time.Minute, UserTimeout: time.Minute}, options{1, 600, 200, 3, 60000}},
	} {
		assert.Must(t, tt.set.Apply(c))
		assert.Equal(t, fmt.Sprintf("%+v", tt.set), read(), tt.want)
	}
	assert.Must(t, (TCP{}).Apply(c))
	got := read()
	assert.True(t, got.on == 0 && got.timeout == 0, "switched off: %+v", got)
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	assert.NoError(t, (TCP{Keepalive: time.Second}).Apply(a), "no socket")
}

// TestSlowReader: a peer that is there and does not read is cut by UserTimeout, and not by Keepalive.
func TestSlowReader(t *testing.T) {
	for _, tt := range []struct {
		set TCP
		cut bool
	}{{TCP{Keepalive: time.Second}, false}, {TCP{Keepalive: time.Second, UserTimeout: 2 * time.Second}, true}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		assert.Must(t, err)
		defer l.Close()
		silent := assert.Of(net.Dial("tcp", l.Addr().String())).Must(t)
		defer silent.Close()
		c, err := l.Accept()
		assert.Must(t, err)
		defer c.Close()
		assert.Must(t, tt.set.Apply(c))
		wait := 6 * time.Second // more than Keepalive would take
		if tt.cut {
			wait = time.Minute
		}
		assert.Must(t, c.SetWriteDeadline(time.Now().Add(wait)))
		block := make([]byte, 1<<20)
		for err == nil {
			_, err = c.Write(block)
		}
		cut := errors.Is(err, unix.ETIMEDOUT)
		assert.True(t, cut == tt.cut && (cut || errors.Is(err, os.ErrDeadlineExceeded)), "%+v: %v", tt.set, err)
	}
}
