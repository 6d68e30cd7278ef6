package authbridge

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

// Greeting is what both sides say first of how they authenticate.
type Greeting struct {
	Plugin  string // the client goes on with, unless the server switches to another
	Nonce   []byte
	Factors bool // the server may ask for further passwords behind the first
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
	ours               // of nobody: the password is in our hands
	serverKey          // of the server, while the password is in our hands
	tooLate            // of the client: the password, which is for nobody; it stays so
)

// New begins the login of a session. key returns the proxy's own key; it is called when it is needed.
func New(sides Sides, g Greeting, key func() (*Key, error)) *Login {
	return &Login{sides: sides, key: key, factors: g.Factors, plugin: g.Plugin, nonce: bytes.Clone(g.Nonce), shift: sides.shift()}
}

// Again begins the authentication that a COM_CHANGE_USER asks for. The client goes on with the plugin
// that it names there, and the nonce that the server had, unless the server switches.
func (l *Login) Again(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shift = 0
	if name != "" {
		l.plugin = name
	}
	if l.next != tooLate {
		l.next = nothing
	}
}

// Early notes that the server said something when nobody had asked. A client that logs in again may
// take it for the answer.
func (l *Login) Early() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = tooLate
}

// Over ends the authentication: whoever waits for the server's key gets none, and a password that is
// on its way from the client goes nowhere.
func (l *Login) Over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.next {
	case password, block, tooLate:
		l.next = tooLate
	default:
		l.next = nothing
	}
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
	Passes   Verdict = iota
	Kept             // the client must not see it
	Refused          // it asks for a password that would be sent on in clear
	Untimely         // it comes while the client's password is due
)

// FromServer looks at a packet that neither lets the client in nor turns it away. It has the first
// MaxPacket bytes of it.
func (l *Login) FromServer(payload []byte) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.next {
	case serverKey:
		l.next = ours
		l.asked <- bytes.Clone(bytes.TrimPrefix(payload, []byte{1}))
		l.asked = nil
		return Kept
	case nothing:
	default: // the password must find this login as it was when it was asked for
		return Untimely
	}
	if len(payload) > 0 && (payload[0] == 0xfe || payload[0] == 2 && l.factors) {
		return l.switched(payload[1:])
	}
	p := plugins[l.plugin] // has more to say
	if p.exposed(l.sides) {
		return Refused
	}
	// The server does not remember the password. Clients take the number without the 1, too.
	if l.plugin == cachingSHA2 && bytes.HasPrefix(bytes.TrimPrefix(payload, []byte{1}), []byte{4}) && p.unlike(l.sides) {
		l.next = password
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
	return l.next == password || l.next == block || l.next == tooLate
}

// Due reports whether the server must say nothing: the client's password is on its way to it.
func (l *Login) Due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next != nothing && l.next != serverKey
}

// passOn reports whether the password is still in our hands, and has the login go on with what is
// next.
func (l *Login) passOn(next expected, shift int8) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != ours {
		return false
	}
	l.next = next
	l.shift += byte(shift)
	return true
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
	name, nonce, was := l.take()
	if was == tooLate {
		return Error("the server did not wait for the password")
	}
	if len(nonce) < nonceLen {
		return Error("the server's nonce is cut off")
	}
	p := plugins[name]
	asks, empty := len(payload) == 1 && payload[0] == p.ask, len(payload) == 0 || len(payload) == 1 && payload[0] == 0
	switch {
	case was == block:
		return l.open(payload, nonce, c)
	case empty:
		return l.send(payload, 0, c)
	case l.sides.Server >= p.clear && asks:
		return l.giveKey(c)
	case l.sides.Server >= p.clear:
		return Error("the client encrypted its password with a key that it did not ask for: let it ask (--get-server-public-key, without a file of the key), or connect it with TLS")
	case asks: // it encrypts of its own accord, and the server shall have it so
		return l.send(payload, 0, c)
	}
	return l.seal(p, payload, nonce, c)
}

// take has the password be in our hands.
func (l *Login) take() (plugin string, nonce []byte, was expected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = l.next
	if was != tooLate {
		l.next = ours
	}
	return l.plugin, l.nonce, was
}

// send gives the server what it waits for, unless it has ended the login and said why.
func (l *Login) send(payload []byte, shift int8, c Carrier) error {
	if !l.passOn(nothing, shift) {
		return nil
	}
	return c.ToServer(payload)
}

// giveKey answers a client that asks for the server's key with ours.
func (l *Login) giveKey(c Carrier) error {
	key, err := l.key()
	if err != nil {
		return Error(err.Error())
	}
	if !l.passOn(block, 2) { // the question and its answer
		return nil // the server has said why
	}
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
	return l.send(text, 0, c)
}

// seal asks the server for its key and sends the password encrypted with it.
func (l *Login) seal(p plugin, text, nonce []byte, c Carrier) error {
	asked := make(chan []byte, 1)
	if !l.await(asked) {
		return nil
	}
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
	return l.send(sealed, -2, c) // the question and its answer
}

// await has the server's key go to asked, unless the server has ended the login.
func (l *Login) await(asked chan []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != ours {
		return false
	}
	l.next, l.asked = serverKey, asked
	return true
}
