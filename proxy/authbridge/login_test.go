package authbridge

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
)

const (
	secret = "s3cret-of-a-client"
	salt   = "12345678901234567890"
)

// keys are made once: that takes a while.
var keys = sync.OnceValue(func() (k struct{ own, server *Key }) {
	var err1, err2 error
	k.own, err1 = NewKey()
	k.server, err2 = NewKey()
	if err := errors.Join(err1, err2); err != nil {
		panic(err)
	}
	return k
})

// conversation is a login with what both sides got of it. It implements Carrier.
type conversation struct {
	t                  testing.TB
	login              *Login
	toServer, toClient [][]byte
	key                []byte // with which the server answers; nil: it denies the login in its place
}

func begin(t testing.TB, sides Sides, name string) *conversation {
	c := &conversation{t: t, key: append([]byte{1}, keys().server.public...)}
	c.login = New(sides, Greeting{Plugin: name, Nonce: []byte(salt)}, func() (*Key, error) { return keys().own, nil })
	return c
}

func (c *conversation) ToServer(payload []byte) error {
	c.toServer = append(c.toServer, bytes.Clone(payload))
	return nil
}

func (c *conversation) ToClient(payload []byte) error {
	c.toClient = append(c.toClient, bytes.Clone(payload))
	return nil
}

func (c *conversation) Await(key <-chan []byte) (text []byte, ok bool) {
	if c.key == nil {
		c.login.Over()
	} else if v := c.login.FromServer(c.key); v != Kept {
		c.t.Errorf("the server's key: verdict %d", v)
	}
	text, ok = <-key
	return text, ok
}

// client gives the login a packet of the client, which must be wiped.
func (c *conversation) client(payload []byte) error {
	c.t.Helper()
	assert.True(c.t, c.login.Expects(), "%q is not expected", payload)
	payload = bytes.Clone(payload)
	err := c.login.FromClient(payload, c)
	assert.True(c.t, bytes.Equal(payload, make([]byte, len(payload))), "%q is left of what the client said", payload)
	return err
}

// asked begins a login that needs the password.
func asked(t testing.TB, sides Sides, name string) *conversation {
	c := begin(t, sides, name)
	packet := []byte{1, 4}
	if name == sha256 {
		packet = []byte("\xfe" + name + "\x00" + salt + "\x00")
	}
	assert.MustEqual(t, "verdict", c.login.FromServer(packet), Passes)
	return c
}

// TestServerEncrypts: the client says its password, and the server gets it encrypted with its own
// key, as a client without TLS would have done it.
func TestServerEncrypts(t *testing.T) {
	for name, sides := range map[string]Sides{cachingSHA2: {TLS, Plain}, sha256: {TLS, Socket}, cachingSHA2 + " ": {Socket, Plain}} {
		name = strings.TrimSpace(name)
		c := asked(t, sides, name)
		before := c.login.Shift()
		assert.Must(t, c.client([]byte(secret+"\x00")))
		assert.MustTrue(t, len(c.toServer) == 2 && bytes.Equal(c.toServer[0], []byte{plugins[name].ask}) && c.toClient == nil, "%s: server %q, client %q", name, c.toServer, c.toClient)
		text, err := rsa.DecryptOAEP(sha1.New(), nil, keys().server.private, c.toServer[1], nil)
		for i := range text {
			text[i] ^= salt[i%len(salt)]
		}
		assert.True(t, err == nil && string(text) == secret+"\x00", "%s: the server read %q, %v", name, text, err)
		assert.True(t, !c.login.Expects() && c.login.Shift() == before-2, "%s: expects %t, shift %d", name, c.login.Expects(), c.login.Shift())
	}
}

// TestClientEncrypts: the client asks for a key, and the server gets the password in clear.
func TestClientEncrypts(t *testing.T) {
	for name, sides := range map[string]Sides{cachingSHA2: {Plain, TLS}, sha256: {Socket, TLS}, cachingSHA2 + " ": {Plain, Socket}} {
		name = strings.TrimSpace(name)
		c := asked(t, sides, name)
		before := c.login.Shift()
		if err := c.client([]byte{plugins[name].ask}); err != nil || len(c.toClient) != 1 || c.toServer != nil {
			t.Fatalf("%s: %v, client %q", name, err, c.toClient)
		}
		block, _ := pem.Decode(c.toClient[0][1:])
		public := assert.Of(x509.ParsePKIXPublicKey(block.Bytes)).Must(t)
		sealed := assert.Of(mysql.EncryptPassword(secret, []byte(salt), public.(*rsa.PublicKey))).Must(t)
		err := c.client(sealed)
		assert.True(t, err == nil && len(c.toServer) == 1 && string(c.toServer[0]) == secret+"\x00", "%s: %v, server %q", name, err, c.toServer)
		assert.True(t, !c.login.Expects() && c.login.Shift() == before+2, "%s: expects %t, shift %d", name, c.login.Expects(), c.login.Shift())
	}
}

// TestNothingToBridge: what both sides do alike passes, and so does what a client does of its own
// accord as the server wants it.
func TestNothingToBridge(t *testing.T) {
	for name, sides := range map[string]Sides{sha256: {Socket, Plain}, cachingSHA2: {TLS, Socket}, "client_ed25519": {TLS, Plain}, "dialog": {Socket, Plain}} {
		c := begin(t, sides, "mysql_native_password")
		for _, packet := range [][]byte{[]byte("\xfe" + name + "\x00" + salt + "\x00"), {1, 4}, {1, 3}, []byte("\x02x"), {0xfe}, {}} {
			v := c.login.FromServer(packet)
			assert.True(t, v == Passes && !c.login.Expects(), "%s: %q: verdict %d, expects %t", name, packet, v, c.login.Expects())
		}
		assert.True(t, !c.login.Blanks(name), "%s: what the client says first is blanked", name)
	}
	for _, packet := range []string{"\x02", "", "\x00"} { // it asks for the server's key, or has no password
		c := asked(t, Sides{Socket, Plain}, cachingSHA2)
		err := c.client([]byte(packet))
		assert.True(t, err == nil && len(c.toServer) == 1 && string(c.toServer[0]) == packet && !c.login.Expects(), "%q: %v, server %q", packet, err, c.toServer)
	}
}

// TestExposed: a password that came over TLS is not asked for where it would go on in clear.
func TestExposed(t *testing.T) {
	for _, name := range []string{"mysql_clear_password", "dialog", "authentication_openid_connect_client"} {
		for _, first := range []string{"\xfe", "\x02"} {
			l := New(Sides{TLS, Plain}, Greeting{Plugin: name, Factors: true}, nil)
			v := l.FromServer([]byte(first + name + "\x00"))
			assert.True(t, v == Refused && l.Blanks(name), "%s: verdict %d, blanked %t", name, v, l.Blanks(name))
		}
	}
	assert.True(t, New(Sides{TLS, Plain}, Greeting{}, nil).Blanks(sha256) && New(Sides{Plain, TLS}, Greeting{}, nil).Blanks(sha256), "sha256_password: what the client says first reaches the server")
}

// TestBadBlocks: the server denies what is no password, and it is not the empty one either.
func TestBadBlocks(t *testing.T) {
	sealed := func(text string, size int) []byte {
		private := assert.Of(rsa.GenerateKey(rand.Reader, size)).Must(t)
		return assert.Of(mysql.EncryptPassword(text, []byte(salt), &private.PublicKey)).Must(t)
	}
	empty := make([]byte, 1)
	mix(empty, []byte(salt))
	nothing, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, &keys().own.private.PublicKey, empty, nil)
	assert.Must(t, err)
	own := &keys().own.private.PublicKey
	zero := []byte{1} // a block that begins with a zero is the same number without it
	for zero[0] != 0 {
		zero, err = mysql.EncryptPassword(secret, []byte(salt), own)
		assert.Must(t, err)
	}
	for what, block := range map[string][]byte{
		"without its zero": zero[1:], "with a zero more": append([]byte{0}, zero...),
		"garbage": bytes.Repeat([]byte{7}, 256), "short": {1, 2, 3}, "nothing": {}, "long": make([]byte, MaxPacket),
		"another key": sealed(secret, keyBits), "another size": sealed(secret, 1024), "an empty password": nothing,
	} {
		c := asked(t, Sides{Plain, TLS}, cachingSHA2)
		assert.Must(t, c.client([]byte{2}))
		if err := c.client(block); err != nil || len(c.toServer) != 1 || len(c.toServer[0]) < 20 || strings.Contains(string(c.toServer[0]), secret) {
			t.Errorf("%s: %v, server %q", what, err, c.toServer)
		}
	}
}

// TestUnbridged: where a login cannot go on, the password goes nowhere.
func TestUnbridged(t *testing.T) {
	ecdsa := "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYD54V/vp+54P9DXarYqx4MPcm+HK\nRIQzNasYSoRQHQ/6S6Ps8tpMcT+KvIIC8W/e9k0W7Cm72M1P9jU7SLf/vg==\n-----END PUBLIC KEY-----\n"
	for key, want := range map[string]string{
		"\x01no key": "sent no RSA key", "\x01": "sent no RSA key",
		"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n": "cannot be read", ecdsa: "no RSA key",
	} {
		c := asked(t, Sides{TLS, Plain}, cachingSHA2)
		c.key = []byte(key)
		err := c.client([]byte(secret + "\x00"))
		_, ours := errors.AsType[Error](err)
		assert.True(t, ours && strings.Contains(err.Error(), want) && len(c.toServer) == 1, "key %q: %v, server %q", key, err, c.toServer)
	}
	c := asked(t, Sides{TLS, Plain}, cachingSHA2)
	c.key = nil
	if err := c.client([]byte(secret + "\x00")); err != nil || len(c.toServer) != 1 {
		t.Errorf("a server that denies in place of a key: %v, server %q", err, c.toServer)
	}
	c = asked(t, Sides{TLS, Plain}, cachingSHA2)
	if err := c.client(bytes.Repeat([]byte{'x'}, 250)); err == nil || !strings.Contains(err.Error(), "too long") || len(c.toServer) != 1 {
		t.Errorf("a password of 250 bytes: %v, server %q", err, c.toServer)
	}
	c = asked(t, Sides{Plain, TLS}, cachingSHA2)
	err := c.client(make([]byte, 256))
	assert.True(t, err != nil && strings.Contains(err.Error(), "did not ask for") && c.toServer == nil, "a block for a key that was not given: %v, server %q", err, c.toServer)
	short := New(Sides{TLS, Plain}, Greeting{Plugin: cachingSHA2, Nonce: []byte("short")}, nil)
	short.FromServer([]byte{1, 4})
	assert.Fails(t, "a nonce of five bytes", short.FromClient([]byte("x\x00"), c), "cut off")
}

// TestDue: while the client's password is due the server changes nothing of what becomes of it.
func TestDue(t *testing.T) {
	for _, packet := range []string{"\x01\x04", "\x01x", "", "\x02", "\xfemysql_native_password\x00" + salt, "\x00\x00\x00\x02\x00\x00\x00"} {
		c := asked(t, Sides{TLS, Plain}, cachingSHA2)
		assert.Equal(t, fmt.Sprintf("%q: verdict", packet), c.login.FromServer([]byte(packet)), Untimely)
		c.login.Over()
		err := c.client([]byte(secret + "\x00"))
		assert.True(t, err != nil && c.toServer == nil, "%q: %v, server %q", packet, err, c.toServer)
	}
	for what, spoils := range map[string]func(*conversation){
		"asked before the change of user": func(c *conversation) { c.login.Early(); c.login.Again(cachingSHA2) },
		"asked while it was sent":         func(c *conversation) { c.login.Again(cachingSHA2); c.login.Early() },
	} {
		c := begin(t, Sides{TLS, Plain}, cachingSHA2)
		c.login.Over()
		spoils(c)
		err := c.client([]byte(secret + "\x00"))
		assert.True(t, err != nil && c.toServer == nil && c.login.FromServer([]byte{1, 4}) == Untimely, "%s: %v, server %q", what, err, c.toServer)
	}
	assert.Equal(t, "a question for the password: verdict", begin(t, Sides{TLS, Plain}, "dialog").login.FromServer([]byte("\x02Password: ")), Refused)
}

// FuzzLogin plays packets of hostile clients and servers. Neither ends the program, no password that
// is expected reaches a server in clear where others can read it, and what comes after a login is
// over does not wait.
func FuzzLogin(f *testing.F) {
	f.Add(byte(2), []byte("s\x01\x04|c"+secret+"\x00|s\x01key"))
	f.Add(byte(6), []byte("s\xfesha256_password\x00"+salt+"\x00|c\x01|cblock"))
	f.Add(byte(6), []byte("s\x01\x04|c\x02|cblock|s\x01\x04"))
	f.Add(byte(3), []byte("s\x02dialog\x00|s\xfe|c"))
	f.Add(byte(2), append([]byte("s\x01\x04|c"+secret+"\x00|s\x01"), keys().server.public...))
	f.Fuzz(func(t *testing.T, kind byte, script []byte) {
		sides := Sides{Side(kind % 3), Side(kind / 3 % 3)}
		if sides.Alike() {
			return
		}
		c := begin(t, sides, cachingSHA2)
		c.login.factors = kind&128 != 0
		steps := bytes.Split(script, []byte("|"))
		for i, step := range steps {
			if len(step) == 0 {
				continue
			}
			from, payload := step[0], step[1:min(len(step), MaxPacket)]
			if from == 's' {
				due := c.login.Due()
				v := c.login.FromServer(payload)
				assert.True(t, !due || v == Untimely && c.login.Due(), "%q while the password is due: verdict %d", payload, v)
				continue
			}
			if !c.login.Expects() {
				continue
			}
			c.toServer, c.key = nil, nil
			if i+1 < len(steps) && len(steps[i+1]) > 0 {
				c.key = steps[i+1][1:]
			}
			said := bytes.Clone(payload)
			err := c.login.FromClient(payload, c)
			_, ours := errors.AsType[Error](err)
			assert.MustTrue(t, err == nil || ours, "%v", err)
			for _, packet := range c.toServer {
				// The random bytes of an encrypted block may hold a few letters by chance.
				leaked := len(said) > 1 && bytes.Equal(packet, said) || len(said) >= 8 && bytes.Contains(packet, said)
				assert.True(t, sides.Server != Plain || !leaked, "%q went on in clear as %q", said, packet)
			}
		}
		late := c.login.Expects() // for good
		c.login.Over()
		c.login.Again(cachingSHA2)
		assert.True(t, c.login.Expects() == late && c.login.Shift() == 0, "it does not begin anew")
	})
}

// victim is a client over TLS whose server is an enemy, who says what he likes when he likes. It says
// its password whenever what reached it asks for that, as clients do.
type victim struct {
	*conversation
	plugin string
	said   [][]byte // on its way to the proxy
	script [][]byte // what the server says yet
	idle   bool     // no login is under way
	busy   bool     // the proxy has a word of the client in its hands
	over   bool     // the proxy has ended the session
}

// ToServer has the server say the next thing before it has read this, and while the password is in
// our hands.
func (v *victim) ToServer(payload []byte) error {
	assert.True(v.t, !bytes.Contains(payload, []byte(secret)), "the password went on in clear: %q", payload)
	v.step()
	return nil
}

// Await has the server say one thing after the other until the key is there or will not come.
func (v *victim) Await(key <-chan []byte) (text []byte, ok bool) {
	for len(v.script) > 0 && !v.over {
		v.step()
		select {
		case text, ok = <-key:
			v.step() // the password is not sealed yet
			return text, ok
		default:
		}
	}
	return nil, false
}

// step is the next thing that happens. The client's words may be slower than what the server says
// behind its question.
func (v *victim) step() {
	if len(v.script) == 0 || v.over {
		return
	}
	next := v.script[0]
	v.script = v.script[1:]
	if len(next) == 0 {
		return
	}
	payload := next[1:min(len(next), MaxPacket)]
	switch event := next[0]; {
	case event == 's' && v.idle:
		v.login.Early()
		v.hear(payload)
	case event == 's':
		verdict := v.login.FromServer(payload)
		v.over = verdict >= Refused
		if verdict == Passes {
			v.hear(payload)
		}
	case event == 'o': // it lets the client in
		v.over = !v.idle && v.login.Due()
		v.idle = true
		v.login.Over()
	case event == 'e':
		v.idle = true
		v.login.Over()
	case event == 'a' && !v.busy: // the client says what is asked, and logs in again
		v.speak()
		v.login.Again(cachingSHA2)
		v.plugin, v.idle = cachingSHA2, false
	case event == 'c' && !v.busy:
		v.speak()
	}
}

// hear has the client say its password where it is asked.
func (v *victim) hear(payload []byte) {
	if name, ok := bytes.CutPrefix(payload, []byte{0xfe}); ok {
		name, _, _ = bytes.Cut(name, []byte{0})
		v.plugin = string(name)
		if p, says := plugins[v.plugin]; says && v.plugin != cachingSHA2 && (p.bare || p.clear <= v.login.sides.Client) {
			v.said = append(v.said, []byte(secret+"\x00"))
		}
	} else if asks := bytes.TrimPrefix(payload, []byte{1}); v.plugin == cachingSHA2 && len(asks) > 0 && asks[0] == 4 {
		v.said = append(v.said, []byte(secret+"\x00"))
	}
}

// speak has what the client said reach the proxy.
func (v *victim) speak() {
	v.busy = true
	defer func() { v.busy = false }()
	for len(v.said) > 0 {
		payload := v.said[0]
		v.said = v.said[1:]
		if !v.login.Expects() {
			v.t.Errorf("the password is not expected: it passes in clear")
			return
		}
		if v.login.FromClient(payload, v) != nil {
			v.over = true
		}
	}
}

// FuzzLeak: whatever the server says, and when, the client's password does not go to it in clear.
func FuzzLeak(f *testing.F) {
	key := string(keys().server.public)
	for _, script := range []string{
		"s\x01\x04|c|s\x01" + key + "|o",
		"s\x01\x04|s\xfemysql_native_password\x00" + salt + "\x00|c",
		"s\x01\x04|sx|c", "s\x01\x04|s|c", "s\x01\x04|o|c", "s\x01\x04|e|c", "s\x04|c",
		"s\x01\x04|c|s\xfesha256_password\x00" + salt + "\x00|s\x01" + key + "|c",
		"s\x01\x04|c||s\x01" + key + "|s\xfesha256_password\x00" + salt + "\x00|c",
		"s\xfesha256_password\x00" + salt + "\x00|s\x01\x04|c|c",
		"o|s\x01\x04|a|c", "o|s\x01\x04|a|s\xfecaching_sha2_password\x00" + salt + "\x00|c",
		"s\xfemysql_clear_password\x00|c", "s\x02mysql_clear_password\x00|c",
	} {
		f.Add([]byte(script))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		v := &victim{conversation: begin(t, Sides{TLS, Plain}, cachingSHA2), plugin: cachingSHA2, script: bytes.Split(script, []byte("|"))}
		for len(v.script) > 0 && !v.over {
			v.step()
		}
		v.speak() // what was on its way when the session ended
	})
}
