package bridge

import (
	"bytes"
	"sync"
)

// MaxPacket is the most that a packet has which a bridge must read whole: the switch to a plugin,
// the key of a server, a password or what was made of it. A key of 16,384 bits has 2.9 kB.
const MaxPacket = 4096

// nonceLen is how many bytes of its nonce a server mixes with passwords.
const nonceLen = 20

// Error says why a login cannot be bridged, to the client.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// Greeting is what a server says first of how it will authenticate.
type Greeting struct {
	Plugin  string // it goes on with, unless it switches to another
	Nonce   []byte
	Factors bool // it may ask for further passwords behind the first
}

// Login is the authentication of a session whose sides differ, and again each COM_CHANGE_USER in it.
// The lane from the server gives it packets by FromServer, the one from the client by FromClient.
type Login struct {
	sides   Sides
	key     func() (*Key, error) // our own
	factors bool

	mu     sync.Mutex // guards all below
	plugin string
	nonce  []byte
	next   expected
	shift  byte
	asked  chan []byte // where the server's key goes
}

// expected is what comes next that must be read.
type expected uint8

const (
	nothing   expected = iota
	password           // of the client: the password in its form, or a question for the server's key
	block              // of the client: the password, encrypted with our key
	serverKey          // of the server
)

// New begins the login of a session. key returns the proxy's own key; it is called when it is needed.
func New(sides Sides, g Greeting, key func() (*Key, error)) *Login {
	return &Login{sides: sides, key: key, factors: g.Factors, plugin: g.Plugin, nonce: bytes.Clone(g.Nonce), shift: sides.shift()}
}

// Again begins the authentication that a COM_CHANGE_USER asks for. The server goes on with the
// plugin and nonce that it had, or switches.
func (l *Login) Again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.shift = nothing, 0
}

// Over ends the authentication: whoever waits for the server's key gets none.
func (l *Login) Over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = nothing
	if l.asked != nil {
		close(l.asked)
		l.asked = nil
	}
}

// Blanks reports whether what a client says first by a plugin must not reach the server: it may be
// the password, in a form that is not the server's. The server then switches to that plugin, and the
// client says it again.
func (l *Login) Blanks(name string) bool {
	p := plugins[name]
	return p.exposed(l.sides) || name == sha256 && p.unlike(l.sides)
}

// Shift is what sequence numbers of the client are ahead of those of the server.
func (l *Login) Shift() byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shift
}

// Verdict is what becomes of a packet of the server.
type Verdict uint8

const (
	Passes  Verdict = iota
	Kept            // the client must not see it
	Refused         // it asks for a password that would be sent on in clear
)

// FromServer looks at a packet that neither lets the client in nor turns it away. It has the first
// MaxPacket bytes of it.
func (l *Login) FromServer(payload []byte) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == serverKey {
		l.next = nothing
		l.asked <- bytes.Clone(bytes.TrimPrefix(payload, []byte{1}))
		l.asked = nil
		return Kept
	}
	l.next = nothing
	if len(payload) == 0 {
		return Passes
	}
	switch payload[0] {
	case 1: // more of the plugin
		if l.plugin == cachingSHA2 && bytes.Equal(payload, []byte{1, 4}) && plugins[cachingSHA2].unlike(l.sides) {
			l.next = password // the server does not remember it
		}
	case 2: // the next factor, where there are some; else a plugin's own affair
		if l.factors {
			return l.switched(payload[1:])
		}
	case 0xfe:
		return l.switched(payload[1:])
	}
	return Passes
}

// switched notes a switch to a plugin. The lock is held.
func (l *Login) switched(to []byte) Verdict {
	name, nonce, _ := bytes.Cut(to, []byte{0})
	l.plugin, l.nonce = string(name), bytes.Clone(nonce)
	p := plugins[l.plugin]
	if p.exposed(l.sides) {
		return Refused
	}
	if l.plugin == sha256 && p.unlike(l.sides) {
		l.next = password
	}
	return Passes
}

// Expects reports whether the next packet of the client is one for FromClient.
func (l *Login) Expects() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next == password || l.next == block
}

// Carrier sends the packets of a login that is bridged, with the sequence numbers that are due.
type Carrier interface {
	ToServer(payload []byte) error
	ToClient(payload []byte) error
	// Await waits for what FromServer gives, and is false when that will never come.
	Await(key <-chan []byte) (text []byte, ok bool)
}

// FromClient takes a packet that was expected, and wipes it. It returns an Error when the login
// cannot go on, or what the carrier returned.
func (l *Login) FromClient(payload []byte, c Carrier) error {
	defer clear(payload)
	l.mu.Lock()
	name, nonce, was := l.plugin, l.nonce, l.next
	l.next = nothing
	l.mu.Unlock()
	if len(nonce) < nonceLen {
		return Error("the server's nonce is cut off")
	}
	p := plugins[name]
	asks, empty := len(payload) == 1 && payload[0] == p.ask, len(payload) == 0 || len(payload) == 1 && payload[0] == 0
	switch {
	case was == block:
		return l.open(payload, nonce, c)
	case empty:
		return c.ToServer(payload)
	case l.sides.Server >= p.clear && asks:
		return l.giveKey(c)
	case l.sides.Server >= p.clear:
		return Error("the client encrypted its password with a key that it did not ask for: let it ask (--get-server-public-key, without a file of the key), or connect it with TLS")
	case asks: // it encrypts of its own accord, and the server shall have it so
		return c.ToServer(payload)
	}
	return l.seal(p, payload, nonce, c)
}

// giveKey answers a client that asks for the server's key with ours.
func (l *Login) giveKey(c Carrier) error {
	key, err := l.key()
	if err != nil {
		return Error(err.Error())
	}
	l.mu.Lock()
	l.next = block
	l.shift += 2 // the question and its answer
	l.mu.Unlock()
	return c.ToClient(append([]byte{1}, key.public...))
}

// open sends the password that a client encrypted with our key. What is none is denied by the
// server, as it would have denied it itself.
func (l *Login) open(block, nonce []byte, c Carrier) error {
	key, err := l.key()
	if err != nil {
		return Error(err.Error())
	}
	text := key.open(block, nonce)
	if text == nil {
		text = nobodys()
	}
	defer clear(text)
	return c.ToServer(text)
}

// seal asks the server for its key and sends the password encrypted with it.
func (l *Login) seal(p plugin, text, nonce []byte, c Carrier) error {
	asked := make(chan []byte, 1)
	l.mu.Lock()
	l.next, l.asked = serverKey, asked
	l.mu.Unlock()
	if err := c.ToServer([]byte{p.ask}); err != nil {
		return err
	}
	key, ok := c.Await(asked)
	if !ok {
		return nil // the server has said why
	}
	sealed, err := seal(key, text, nonce)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.shift -= 2 // the question and its answer
	l.mu.Unlock()
	return c.ToServer(sealed)
}
