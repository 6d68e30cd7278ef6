package wireclient

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

// BulkOperations is MariaDB's capability of COM_STMT_BULK_EXECUTE.
const BulkOperations = 1 << 34

// replyTimeout is how long a reply may be waited for.
const replyTimeout = 3 * time.Minute

// loginConn asks for capabilities that go-mysql does not know, or would act on: it adds those that
// the greeting offers to the login packet. What goes through it later stays as it is.
type loginConn struct {
	net.Conn
	wanted   uint64
	greeting []byte
	agreed   uint64 // 0 until the login packet has been written
}

func (c *loginConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(replyTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if c.agreed == 0 {
		c.greeting = append(c.greeting, b[:n]...)
	}
	return n, err
}

func (c *loginConn) Write(b []byte) (int, error) {
	if c.agreed != 0 {
		return c.Conn.Write(b)
	}
	offered, err := offeredCapabilities(c.greeting)
	if err != nil {
		return 0, err
	}
	login := bytes.Clone(b)
	c.agreed = uint64(binary.LittleEndian.Uint32(login[4:]))&offered | c.wanted&offered
	if offered&uint64(mysql.CLIENT_LONG_PASSWORD) == 0 { // MariaDB's way to say that there are more
		binary.LittleEndian.PutUint32(login[4+28:], uint32(c.agreed>>32))
	}
	binary.LittleEndian.PutUint32(login[4:], uint32(c.agreed))
	return c.Conn.Write(login)
}

// offeredCapabilities reads a greeting, with its header.
func offeredCapabilities(greeting []byte) (uint64, error) {
	end := bytes.IndexByte(greeting[min(5, len(greeting)):], 0)
	if end < 0 || len(greeting) < 5+end+1+31 {
		return 0, errors.New("the greeting is too short")
	}
	p := greeting[5+end+1:]
	caps := uint64(binary.LittleEndian.Uint16(p[13:])) | uint64(binary.LittleEndian.Uint16(p[18:]))<<16
	if caps&uint64(mysql.CLIENT_LONG_PASSWORD) == 0 {
		caps |= uint64(binary.LittleEndian.Uint32(p[27:])) << 32
	}
	return caps, nil
}

// DialWith is dialSession with capabilities, as far as the server offers them.
func DialWith(caps uint64, addr, db string, options ...client.Option) (*Session, error) {
	options = append([]client.Option{func(c *client.Conn) error {
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES | mysql.CLIENT_DEPRECATE_EOF)
		return c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS)
	}}, options...)
	var conn *loginConn
	dialer := func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := (&net.Dialer{Timeout: time.Minute}).DialContext(ctx, network, address)
		conn = &loginConn{Conn: plain, wanted: caps}
		return conn, err
	}
	c, err := client.ConnectWithDialer(context.Background(), "", addr, servers.AppUser, servers.AppPassword, db, dialer, options...)
	if err != nil {
		return nil, err
	}
	return &Session{Conn: c, caps: conn.agreed, Statements: map[string]*preparedStatement{}}, nil
}

// ChangeLogin sends COM_CHANGE_USER for the app account, whose password the server knows since the
// login.
func (s *Session) ChangeLogin(db string) ([]Reply, error) {
	body := servers.AppUser + "\x00\x00" + db + "\x00" + "\x2d\x00" + mysql.AUTH_NATIVE_PASSWORD + "\x00\x00" // no attributes
	if err := s.Send(mysql.COM_CHANGE_USER, []byte(body)); err != nil {
		return nil, err
	}
	for {
		p, err := s.Conn.ReadPacket()
		switch {
		case err != nil:
			return nil, err
		case p[0] == mysql.OK_HEADER:
			clear(s.Statements)
			return []Reply{parseOK(p)}, nil
		case p[0] == mysql.ERR_HEADER:
			return []Reply{{Err: ParseERR(p)}}, nil
		case p[0] == 1: // caching_sha2_password found the password in its cache
			continue
		}
		end := bytes.IndexByte(p, 0)
		if end < 0 {
			return nil, errors.New("malformed request for a proof")
		}
		scramble := bytes.TrimSuffix(p[end+1:], []byte{0})
		proof := mysql.CalcNativePassword(scramble, []byte(servers.AppPassword))
		if string(p[1:end]) == mysql.AUTH_CACHING_SHA2_PASSWORD {
			proof = mysql.CalcCachingSha2Password(scramble, []byte(servers.AppPassword))
		}
		if err := s.Conn.WritePacket(append(make([]byte, 4), proof...)); err != nil {
			return nil, err
		}
	}
}

// DialAs logs in as a user of the test's own.
func DialAs(t *testing.T, addr, user, db string) *Session {
	t.Helper()
	conn, err := client.Connect(addr, user, "grants", db, func(c *client.Conn) error {
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES | mysql.CLIENT_DEPRECATE_EOF)
		return nil
	})
	assert.Must(t, err)
	s := &Session{Conn: conn}
	t.Cleanup(s.Close)
	return s
}
