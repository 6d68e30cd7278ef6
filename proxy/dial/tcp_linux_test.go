package dial

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestApply reads the options of a socket back.
func TestApply(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	type options struct{ on, idle, interval, count, timeout int }
	read := func() (o options) {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
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
				if *one.into, err = unix.GetsockoptInt(int(fd), one.level, one.name); err != nil {
					t.Error(err)
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
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
		if err := tt.set.Apply(c); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != tt.want {
			t.Errorf("%+v: got %+v, want %+v", tt.set, got, tt.want)
		}
	}
	if err := (TCP{}).Apply(c); err != nil {
		t.Fatal(err)
	}
	if got := read(); got.on != 0 || got.timeout != 0 {
		t.Errorf("switched off: %+v", got)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := (TCP{Keepalive: time.Second}).Apply(a); err != nil {
		t.Errorf("no socket: %v", err)
	}
}

// TestSlowReader: a peer that is there and does not read is cut by UserTimeout, and not by Keepalive.
func TestSlowReader(t *testing.T) {
	for _, tt := range []struct {
		set TCP
		cut bool
	}{
		{TCP{Keepalive: time.Second}, false},
		{TCP{Keepalive: time.Second, UserTimeout: 2 * time.Second}, true},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		silent, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := tt.set.Apply(c); err != nil {
			t.Fatal(err)
		}
		wait := 6 * time.Second // more than Keepalive would take
		if tt.cut {
			wait = time.Minute
		}
		if err := c.SetWriteDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		block := make([]byte, 1<<20)
		for err == nil {
			_, err = c.Write(block)
		}
		if cut := errors.Is(err, unix.ETIMEDOUT); cut != tt.cut || !cut && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%+v: %v", tt.set, err)
		}
	}
}
