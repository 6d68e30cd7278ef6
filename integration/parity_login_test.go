package integration_test

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

// loginRaw connects and logs in.
func loginRaw(cfg rawConfig) *rawConn {
	c := dialRaw(cfg)
	c.login()
	return c
}

// login answers the greeting. It fails with the server's error.
func (c *rawConn) login() {
	c.caps = (baseCaps&^c.without | c.rawConfig.caps) & c.greeting.caps
	if c.greeting.caps&uint64(mysql.CLIENT_LONG_PASSWORD) != 0 {
		c.caps &= 1<<32 - 1
	}
	if c.schema != "" {
		c.caps |= uint64(mysql.CLIENT_CONNECT_WITH_DB)
	}
	if c.attrs != nil {
		c.caps |= uint64(mysql.CLIENT_CONNECT_ATTRS)
	}
	c.seq = 1
	if c.tls != nil {
		c.caps |= uint64(mysql.CLIENT_SSL)
		c.send(c.loginHead()...)
		c.secure()
	}
	plugin := c.plugin
	if plugin == "" {
		plugin = c.greeting.plugin
	}
	c.send(c.response(plugin)...)
	c.authenticate(plugin, c.greeting.scramble)
}

// secure starts TLS. What was recorded stays.
func (c *rawConn) secure() {
	conn := tls.Client(c.conn, c.tls)
	if err := conn.Handshake(); err != nil {
		fail("TLS: %w", err)
	}
	c.conn = conn
	c.in.Reset(conn)
}

// loginHead is the fixed part of the response, which an SSLRequest consists of.
func (c *rawConn) loginHead() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(c.caps))
	b = binary.LittleEndian.AppendUint32(b, 1<<30)
	b = append(b, 45) // utf8mb4_general_ci on both servers
	b = append(b, make([]byte, 19)...)
	return binary.LittleEndian.AppendUint32(b, uint32(c.caps>>32))
}

func (c *rawConn) response(plugin string) []byte {
	b := append(c.loginHead(), c.user+"\x00"...)
	auth := c.proof(plugin, c.greeting.scramble)
	b = append(append(b, byte(len(auth))), auth...)
	if c.has(uint64(mysql.CLIENT_CONNECT_WITH_DB)) {
		b = append(b, c.schema+"\x00"...)
	}
	if c.has(uint64(mysql.CLIENT_PLUGIN_AUTH)) {
		b = append(b, plugin+"\x00"...)
	}
	return append(b, c.attrs...)
}

// proof answers a scramble by a plugin's rule.
func (c *rawConn) proof(plugin string, scramble []byte) []byte {
	if c.password == "" {
		return nil
	}
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		return mysql.CalcNativePassword(scramble, []byte(c.password))
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		return mysql.CalcCachingSha2Password(scramble, []byte(c.password))
	case "dialog":
		return nil // no server here has it: it asks for another
	case mysql.AUTH_SHA256_PASSWORD:
		if _, ok := c.conn.(*tls.Conn); ok { // a socket is not enough for this plugin
			return []byte(c.password + "\x00")
		}
		return []byte{1} // a request for the server's key
	case mysql.AUTH_MARIADB_ED25519:
		sig, err := mysql.CalcEd25519Password(scramble, c.password)
		if err != nil {
			fail("ed25519: %w", err)
		}
		return sig
	}
	fail("plugin %q is not known to the test", plugin)
	return nil
}

// authenticate plays the rest of an exchange up to OK.
func (c *rawConn) authenticate(plugin string, scramble []byte) {
	for {
		p := c.packet()
		switch {
		case len(p) > 6 && p[0] == mysql.OK_HEADER:
			return
		case p[0] == mysql.ERR_HEADER:
			fail("%w", rawServerError(p, true))
		case p[0] == mysql.EOF_HEADER:
			end := bytes.IndexByte(p, 0)
			plugin, scramble = string(p[1:end]), p[end+1:]
			if plugin != mysql.AUTH_MARIADB_ED25519 { // whose 32 bytes are any, a zero at the end, too
				scramble = bytes.TrimSuffix(scramble, []byte{0})
			}
			c.maskGot(4+end+1, len(scramble))
			c.send(c.proof(plugin, scramble)...)
		case bytes.Equal(p, []byte{1, 3}): // the cache knew: OK follows by itself
		case bytes.Equal(p, []byte{1, 4}):
			c.fullSha2(scramble)
		case plugin == mysql.AUTH_SHA256_PASSWORD && p[0] == 1:
			c.sendEncrypted(p[1:], scramble)
		default:
			fail("unexpected authentication packet % x", p[:min(len(p), 16)])
		}
	}
}

// secret says that a password may cross the connection in clear.
func (c *rawConn) secret() bool {
	switch c.conn.(type) {
	case *tls.Conn, *net.UnixConn:
		return true
	}
	return false
}

// fullSha2 sends the password itself, encrypted unless the connection is secret.
func (c *rawConn) fullSha2(scramble []byte) {
	if c.secret() {
		c.send([]byte(c.password + "\x00")...)
		return
	}
	c.send(2)
	p := c.packet()
	if p[0] != 1 {
		fail("no public key: % x", p[:min(len(p), 16)])
	}
	c.sendEncrypted(p[1:], scramble)
}

func (c *rawConn) sendEncrypted(key, scramble []byte) {
	block, _ := pem.Decode(key)
	if block == nil {
		fail("no public key in %q", key)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		fail("public key: %w", err)
	}
	secret, err := mysql.EncryptPassword(c.password, scramble, public.(*rsa.PublicKey))
	if err != nil {
		fail("encrypt: %w", err)
	}
	c.send(secret...)
}

// changeUser sends COM_CHANGE_USER. Its first proof is for the greeting's scramble, as clients do it.
func (c *rawConn) changeUser(user, password, schema string) error {
	c.user, c.password = user, password
	plugin := c.greeting.plugin
	proof := c.proof(plugin, c.greeting.scramble)
	b := append([]byte(user+"\x00"), byte(len(proof)))
	b = append(append(b, proof...), schema+"\x00"...)
	b = append(b, 45, 0)
	b = append(b, plugin+"\x00"...)
	if c.attrs != nil {
		b = append(b, c.attrs...)
	}
	c.command(mysql.COM_CHANGE_USER, b...)
	return rawDo(func() { c.authenticate(plugin, c.greeting.scramble) })
}

// codeOf is the number of a server's error, or 0.
func codeOf(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MyError](err); ok {
		return e.Code
	}
	return 0
}
