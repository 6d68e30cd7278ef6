package replay

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"net"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Login connects and logs in.
func Login(cfg Config) *Conn {
	c := Dial(cfg)
	c.Login()
	return c
}

// Login answers the greeting. It fails with the server's error.
func (c *Conn) Login() {
	c.caps = (baseCaps&^c.Without | c.Config.Caps) & c.Greeting.Caps
	if c.Greeting.Caps&uint64(mysql.CLIENT_LONG_PASSWORD) != 0 {
		c.caps &= 1<<32 - 1
	}
	if c.Schema != "" {
		c.caps |= uint64(mysql.CLIENT_CONNECT_WITH_DB)
	}
	if c.Attrs != nil {
		c.caps |= uint64(mysql.CLIENT_CONNECT_ATTRS)
	}
	c.Seq = 1
	if c.Tls != nil {
		c.caps |= uint64(mysql.CLIENT_SSL)
		c.Send(c.loginHead()...)
		c.secure()
	}
	plugin := c.Plugin
	if plugin == "" {
		plugin = c.Greeting.plugin
	}
	c.Send(c.response(plugin)...)
	c.authenticate(plugin, c.Greeting.scramble)
}

// secure starts TLS. What was recorded stays.
func (c *Conn) secure() {
	conn := tls.Client(c.Conn, c.Tls)
	if err := conn.Handshake(); err != nil {
		Fail("TLS: %w", err)
	}
	c.Conn = conn
	c.in.Reset(conn)
}

// loginHead is the fixed part of the response, which an SSLRequest consists of.
func (c *Conn) loginHead() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(c.caps))
	b = binary.LittleEndian.AppendUint32(b, 1<<30)
	b = append(b, 45) // utf8mb4_general_ci on both servers
	b = append(b, make([]byte, 19)...)
	return binary.LittleEndian.AppendUint32(b, uint32(c.caps>>32))
}

func (c *Conn) response(plugin string) []byte {
	b := append(c.loginHead(), c.User+"\x00"...)
	auth := c.proof(plugin, c.Greeting.scramble)
	b = append(append(b, byte(len(auth))), auth...)
	if c.Has(uint64(mysql.CLIENT_CONNECT_WITH_DB)) {
		b = append(b, c.Schema+"\x00"...)
	}
	if c.Has(uint64(mysql.CLIENT_PLUGIN_AUTH)) {
		b = append(b, plugin+"\x00"...)
	}
	return append(b, c.Attrs...)
}

// proof answers a scramble by a plugin's rule.
func (c *Conn) proof(plugin string, scramble []byte) []byte {
	if c.Password == "" {
		return nil
	}
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		return mysql.CalcNativePassword(scramble, []byte(c.Password))
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		return mysql.CalcCachingSha2Password(scramble, []byte(c.Password))
	case "dialog":
		return nil // no server here has it: it asks for another
	case mysql.AUTH_SHA256_PASSWORD:
		if _, ok := c.Conn.(*tls.Conn); ok { // a socket is not enough for this plugin
			return []byte(c.Password + "\x00")
		}
		return []byte{1} // a request for the server's key
	case mysql.AUTH_MARIADB_ED25519:
		sig, err := mysql.CalcEd25519Password(scramble, c.Password)
		if err != nil {
			Fail("ed25519: %w", err)
		}
		return sig
	}
	Fail("plugin %q is not known to the test", plugin)
	return nil
}

// authenticate plays the rest of an exchange up to OK.
func (c *Conn) authenticate(plugin string, scramble []byte) {
	for {
		p := c.Packet()
		switch {
		case len(p) > 6 && p[0] == mysql.OK_HEADER:
			return
		case p[0] == mysql.ERR_HEADER:
			Fail("%w", ServerError(p))
		case p[0] == mysql.EOF_HEADER:
			end := bytes.IndexByte(p, 0)
			plugin, scramble = string(p[1:end]), p[end+1:]
			if plugin != mysql.AUTH_MARIADB_ED25519 { // whose 32 bytes are any, a zero at the end, too
				scramble = bytes.TrimSuffix(scramble, []byte{0})
			}
			c.MaskGot(4+end+1, len(scramble))
			c.Send(c.proof(plugin, scramble)...)
		case bytes.Equal(p, []byte{1, 3}): // the cache knew: OK follows by itself
		case bytes.Equal(p, []byte{1, 4}):
			c.fullSha2(scramble)
		case plugin == mysql.AUTH_SHA256_PASSWORD && p[0] == 1:
			c.sendEncrypted(p[1:], scramble)
		default:
			Fail("unexpected authentication packet % x", p[:min(len(p), 16)])
		}
	}
}

// secret says that a password may cross the connection in clear.
func (c *Conn) secret() bool {
	switch c.Conn.(type) {
	case *tls.Conn, *net.UnixConn:
		return true
	}
	return false
}

// fullSha2 sends the password itself, encrypted unless the connection is secret.
func (c *Conn) fullSha2(scramble []byte) {
	if c.secret() {
		c.Send([]byte(c.Password + "\x00")...)
		return
	}
	c.Send(2)
	p := c.Packet()
	if p[0] != 1 {
		Fail("no public key: % x", p[:min(len(p), 16)])
	}
	c.sendEncrypted(p[1:], scramble)
}

func (c *Conn) sendEncrypted(key, scramble []byte) {
	block, _ := pem.Decode(key)
	if block == nil {
		Fail("no public key in %q", key)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		Fail("public key: %w", err)
	}
	secret, err := mysql.EncryptPassword(c.Password, scramble, public.(*rsa.PublicKey))
	if err != nil {
		Fail("encrypt: %w", err)
	}
	if c.Garble != nil {
		secret = c.Garble(secret)
	}
	c.Send(secret...)
}

// ChangeUser sends COM_CHANGE_USER. Its first proof is for the greeting's scramble, as clients do
// it.
func (c *Conn) ChangeUser(user, password, schema string) error {
	c.User, c.Password = user, password
	plugin := c.Greeting.plugin
	proof := c.proof(plugin, c.Greeting.scramble)
	b := append([]byte(user+"\x00"), byte(len(proof)))
	b = append(append(b, proof...), schema+"\x00"...)
	b = append(b, 45, 0)
	b = append(b, plugin+"\x00"...)
	if c.Attrs != nil {
		b = append(b, c.Attrs...)
	}
	c.Command(mysql.COM_CHANGE_USER, b...)
	return Do(func() { c.authenticate(plugin, c.Greeting.scramble) })
}

// CodeOf is the number of a server's error, or 0.
func CodeOf(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MyError](err); ok {
		return e.Code
	}
	return 0
}
