package bridge

import (
	"bytes"
	"testing"

	"idproxy/integration/assert"
)

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
