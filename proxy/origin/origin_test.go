package origin

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// piped is a connection on which some bytes came.
func piped(t *testing.T, sent []byte) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close() })
	go func() {
		_, _ = there.Write(sent) // nobody may read it all
		there.Close()
	}()
	return here
}

func tcp(s string) *net.TCPAddr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

// TestHeader: what is written is read again.
func TestHeader(t *testing.T) {
	for _, o := range []Origin{
		{},
		{tcp("192.0.2.1:5000"), tcp("198.51.100.7:3307")},
		{tcp("[2001:db8::1]:5000"), tcp("[2001:db8::2]:3307")},
	} {
		for _, v := range []Version{1, 2} {
			header, err := v.Header(o)
			assert.Must(t, err)
			got, err := Read(piped(t, header))
			switch {
			case err != nil:
				t.Errorf("version %d of %v: %v", v, o, err)
			case (got.Client == nil) != (o.Client == nil):
				t.Errorf("version %d of %v: read as %v", v, o, got)
			case o.Client != nil && (got.Client.String() != o.Client.String() || got.Listened.String() != o.Listened.String()):
				t.Errorf("version %d of %v: read as %v", v, o, got)
			}
			if !Header4th(header[3]) {
				t.Errorf("version %d: a header begins %q", v, header[:4])
			}
		}
	}
}

// TestRead: what is no header, and addresses that are none of TCP.
func TestRead(t *testing.T) {
	const v2 = "\r\n\r\n\x00\r\nQUIT\n"
	for _, tt := range []struct{ in, want, problem string }{
		{"PROXY TCP4 192.0.2.1 192.0.2.2 5000 3306\r\n", "192.0.2.1:5000", ""},
		{"PROXY UNKNOWN\r\n", "", ""},
		{"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", "", ""},
		{v2 + "\x20\x00\x00\x00", "", ""},                                                 // LOCAL
		{v2 + "\x20\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x13\x88\x0c\xea", "", ""}, // LOCAL, with addresses that do not count
		{v2 + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x13\x88\x0c\xea", "192.0.2.1:5000", ""},
		{v2 + "\x21\x11\x00\x10\xc0\x00\x02\x01\xc0\x00\x02\x02\x13\x88\x0c\xea\x04\x00\x01x", "192.0.2.1:5000", ""}, // with a TLV
		{v2 + "\x21\x31\x00\xd8" + strings.Repeat("\x00", 216), "", ""},                                              // unix sockets
		{v2 + "\x21\x00\x00\x00", "", ""},                                                                            // of no family, for whom it is on a unix socket
		{v2 + "\x21\x00\x00\x04\x04\x00\x01x", "", ""},                                                               // with a TLV
		{v2 + "\x21\x00\xff\xff", "", "at most 4112 are read"},
		{v2 + "\x21\x00\x00\x04\x04", "", "PROXY header"},
		{v2 + "\x21\x00\x00\x00\x00", "", "before the greeting"},
		{v2 + "\x21\x11\xff\xff", "", "PROXY header"},
		{v2 + "\x21\x11\x00\x0c\xc0", "", "PROXY header"},
		{v2 + "\x31\x11\x00\x00", "", "PROXY header"},
		{"PROXY TCP4 a b 1 2\r\n", "", "PROXY header"},
		{"PROXY " + strings.Repeat("x", 200), "", "PROXY header"},
		{"", "", "there is no PROXY header"},
		{"GET / HTTP/1.1\r\n", "", "there is no PROXY header"},
		{"PROXY UNKNOWN\r\n\x00", "", "before the greeting"},
	} {
		got, err := Read(piped(t, []byte(tt.in)))
		switch {
		case tt.problem != "":
			assert.Fails(t, fmt.Sprintf("%q: %v", tt.in, got), err, tt.problem)
		case err != nil:
			t.Errorf("%q: %v", tt.in, err)
		case tt.want == "" && got.Client != nil, tt.want != "" && (got.Client == nil || got.Client.String() != tt.want):
			t.Errorf("%q: %v, want %q", tt.in, got.Client, tt.want)
		}
	}
}

func TestNetworks(t *testing.T) {
	n := Networks{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("192.0.2.7/32")}
	for address, want := range map[string]bool{
		"10.1.2.3:1": true, "10.2.0.1:1": false, "[::ffff:10.1.2.3]:1": true, "[fd00::1]:1": true, "[fd00::1%eth0]:1": true, "[fe80::1]:1": false, "192.0.2.7:1": true, "192.0.2.8:1": false,
	} {
		assert.Equal(t, address, n.Has(tcp(address)), want)
	}
	assert.True(t, !n.Has(&net.UnixAddr{Name: "/tmp/s", Net: "unix"}), "a unix socket is in a network")
}

// FuzzRead: no header makes it panic, wait for what does not come, or take one address without the other.
func FuzzRead(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 5000 3306\r\n"))
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x13\x88\x0c\xea"))
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x00\x00\x04\x04\x00\x01x"))
	f.Fuzz(func(t *testing.T, in []byte) {
		o, err := Read(&said{in: *bytes.NewReader(in)})
		assert.True(t, (o.Client == nil) == (o.Listened == nil) && (err == nil || o.Client == nil), "%v, %v", o, err)
		for _, v := range []Version{1, 2} {
			_, e := v.Header(o)
			assert.True(t, err != nil || e == nil, "%v is read and cannot be written: %v", o, e)
		}
	})
}

// said is a connection on which some bytes came, and its end.
type said struct {
	net.Conn
	in bytes.Reader
}

func (s *said) Read(b []byte) (int, error)      { return s.in.Read(b) }
func (s *said) SetReadDeadline(time.Time) error { return nil }
