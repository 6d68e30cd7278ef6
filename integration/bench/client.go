package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/servers"
	"idproxy/proxy/wire"
)

// client is one connection to a target, logged in. It is a bare socket: no poller of Go's is told
// of it.
type client struct {
	fd     int
	packet []byte // the statement it sends, again and again
	sent   time.Time

	buf  []byte
	r, w int // bytes not looked at yet: buf[r:w]
	left int // bytes of a packet whose end has not arrived
	rows bool
}

// loginTimeout bounds every wait of a login, and of a reply.
const loginTimeout = 20 * time.Second

// replyBuffer is as large as a read of a large result may be.
const replyBuffer = 256 << 10

// dial connects to addr and logs in to the schema of the benchmark, without multi-statements.
func dial(addr string) (*client, error) { return dialAs(addr, uint64(capabilities)) }

// dialAs is dial for a client of other capabilities.
func dialAs(addr string, wanted uint64) (*client, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	c := &client{fd: fd}
	wait := syscall.NsecToTimeval(loginTimeout.Nanoseconds())
	err = errors.Join(
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait),
		syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}),
	)
	if err == nil {
		err = c.login(wanted)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("log in at %s: %w", addr, err), c.close())
	}
	return c, nil
}

func (c *client) close() error { return syscall.Close(c.fd) }

// Read reads from the socket.
func (c *client) Read(b []byte) (int, error) {
	n, err := ignoringEINTR(func() (int, error) { return syscall.Read(c.fd, b) })
	if err == nil && n == 0 && len(b) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Write writes all of b.
func (c *client) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n, err := ignoringEINTR(func() (int, error) { return syscall.Write(c.fd, rest) })
		if err != nil {
			return len(b) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(b), nil
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR { //nolint:errorlint // a bare errno, and the hot path
			return max(n, 0), err
		}
	}
}

// capabilities are those of an ordinary client.
const capabilities = mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_LONG_FLAG | mysql.CLIENT_PROTOCOL_41 |
	mysql.CLIENT_TRANSACTIONS | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH |
	mysql.CLIENT_CONNECT_WITH_DB | mysql.CLIENT_DEPRECATE_EOF

// login authenticates with mysql_native_password.
func (c *client) login(wanted uint64) error {
	greeting, seq, err := wire.ReadPacket(c, replyBuffer)
	if err != nil {
		return err
	}
	scramble, err := scrambleOf(greeting)
	if err != nil {
		return err
	}
	proof := mysql.CalcNativePassword(scramble, []byte(servers.AppPassword))
	payload := make([]byte, 32)
	wire.SetResponseCaps(payload, wanted)
	payload[8] = mysql.DEFAULT_COLLATION_ID
	payload = append(payload, servers.AppUser+"\x00"...)
	payload = append(append(payload, byte(len(proof))), proof...)
	payload = append(payload, schema+"\x00"+mysql.AUTH_NATIVE_PASSWORD+"\x00"...)
	if _, err := c.Write(wire.AppendPacket(nil, seq+1, payload)); err != nil {
		return err
	}
	answer, _, err := wire.ReadPacket(c, replyBuffer)
	switch {
	case err != nil:
		return err
	case len(answer) > 0 && answer[0] == wire.OKByte:
		return nil
	case len(answer) > 0 && answer[0] == wire.ErrByte:
		return errors.New(wire.ErrMessage(answer))
	}
	return errors.New("the server wants another authentication plugin")
}

// scrambleOf returns the twenty bytes of a greeting that the password is proven against.
func scrambleOf(greeting []byte) ([]byte, error) {
	end := bytes.IndexByte(greeting, 0)
	if end < 0 || len(greeting) < end+1+31+12 {
		return nil, errors.New("greeting is cut off")
	}
	p := greeting[end+1:]
	return append(bytes.Clone(p[4:12]), p[31:43]...), nil
}

// send starts the client's statement.
func (c *client) send() error {
	if c.buf == nil {
		c.buf = make([]byte, replyBuffer)
	}
	c.r, c.w, c.left, c.rows = 0, 0, 0, false
	_, err := c.Write(c.packet)
	return err
}

// receive reads once from a socket that has something to read. done is true when the reply is
// complete.
func (c *client) receive() (done bool, err error) {
	if c.r > 0 {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	n, err := c.Read(c.buf[c.w:])
	if err != nil {
		return false, fmt.Errorf("read reply: %w", err)
	}
	c.w += n
	return c.scan()
}

// scan goes through the packets that were read: an OK, or a result set up to the OK that ends it.
func (c *client) scan() (done bool, err error) {
	for c.r < c.w {
		if c.left > 0 {
			n := min(c.left, c.w-c.r)
			c.r, c.left = c.r+n, c.left-n
			continue
		}
		in := c.buf[c.r:c.w]
		if len(in) <= wire.HeaderLen {
			return false, nil
		}
		n, first := wire.PayloadLen(in), in[wire.HeaderLen]
		if first == wire.ErrByte {
			if len(in) < wire.HeaderLen+n {
				return false, nil
			}
			return true, errors.New(wire.ErrMessage(in[wire.HeaderLen : wire.HeaderLen+n]))
		}
		if !c.rows && first == wire.OKByte || c.rows && first == wire.EOFByte {
			return len(in) >= wire.HeaderLen+n, nil
		}
		c.rows, c.left = true, wire.HeaderLen+n
	}
	return false, nil
}

// exchange runs one statement to its end.
func (c *client) exchange() error {
	if err := c.send(); err != nil {
		return err
	}
	for {
		if done, err := c.receive(); done || err != nil {
			return err
		}
	}
}
