// Package origin says where a client really is when something stands in front of the proxy, and
// tells the server: the PROXY protocol, versions 1 and 2
// (https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt).
package origin

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"
)

// Origin is what a header says of a connection. Its zero value is one that comes from nowhere else:
// what stands in front has opened it for itself, to see whether we are there.
type Origin struct {
	Client, Listened *net.TCPAddr // both or none: who connected, and to what
}

// Of returns the origin of a connection that nothing stands in front of. One over a unix socket has
// the zero value: headers can carry its path, and no server has use for that.
func Of(c net.Conn) Origin {
	client, ok1 := c.RemoteAddr().(*net.TCPAddr)
	listened, ok2 := c.LocalAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return Origin{}
	}
	return Origin{client, listened}
}

// longest is the bytes of a header: those of version 2 with the library's bound for what is in it, 4 KiB.
const longest = 16 + 4<<10

// Read reads the header that a connection must begin with, and not a byte more. Addresses that are
// none of TCP, and what a header has beside addresses, are left out.
func Read(c net.Conn) (Origin, error) {
	r := bufio.NewReaderSize(c, longest)
	read := proxyproto.Read
	if isUnspecified(r) {
		read = readUnspecified
	}
	h, err := read(r)
	switch {
	case errors.Is(err, proxyproto.ErrNoProxyProtocol):
		return Origin{}, errors.New("there is no PROXY header: the balancer must send one (send-proxy-v2), or proxy_protocol.accept must not have its network")
	case err != nil:
		return Origin{}, fmt.Errorf("PROXY header: %w", err)
	case r.Buffered() > 0:
		return Origin{}, errors.New("more than a PROXY header came before the greeting, which no MySQL client sends")
	case h.Command == proxyproto.LOCAL:
		return Origin{}, nil
	}
	client, listened, ok := h.TCPAddrs()
	if !ok {
		return Origin{}, nil
	}
	return Origin{client, listened}, nil
}

// unspecified begins a header of version 2 for a connection that came by something of which there is
// no address. The library refuses it; the specification leaves that to who reads it.
const unspecified = "\r\n\r\n\x00\r\nQUIT\n\x21\x00"

// isUnspecified reports whether such a header comes. Headers of version 1 may be shorter than the
// beginning of one.
func isUnspecified(r *bufio.Reader) bool {
	first, err := r.Peek(1)
	if err != nil || first[0] != unspecified[0] {
		return false
	}
	begins, err := r.Peek(len(unspecified))
	return err == nil && string(begins) == unspecified
}

// readUnspecified reads past such a header, as one that says nothing.
func readUnspecified(r *bufio.Reader) (*proxyproto.Header, error) {
	fixed, err := r.Peek(16)
	if err != nil {
		return nil, err
	}
	size := len(fixed) + int(binary.BigEndian.Uint16(fixed[14:]))
	if size > longest {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are read", size, longest)
	}
	if _, err := r.Discard(size); err != nil {
		return nil, err
	}
	return &proxyproto.Header{Version: 2, Command: proxyproto.LOCAL}, nil
}

// Header4th reports whether a byte is the fourth of a header. Where no header is expected it is read
// as the number of a packet, which is 1 in any login.
func Header4th(b byte) bool { return b == "PROXY"[3] || b == "\r\n\r\n"[3] }

// Version is that of the headers that a server is sent; 0: it is sent none.
type Version byte

// Header returns the header of an origin.
func (v Version) Header(o Origin) ([]byte, error) {
	h := &proxyproto.Header{Version: byte(v), Command: proxyproto.LOCAL, TransportProtocol: proxyproto.UNSPEC}
	if o.Client != nil {
		h = proxyproto.HeaderProxyFromAddrs(byte(v), o.Client, o.Listened)
	}
	return h.Format()
}

// Networks are those whose headers are believed.
type Networks []netip.Prefix

// Has reports whether an address is in one of them.
func (n Networks) Has(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, p := range n {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
