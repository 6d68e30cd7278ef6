package authbridge

// Side says what keeps others from reading a connection.
type Side uint8

// They are in order: what counts as secure for a plugin is a least one.
const (
	Plain  Side = iota // nothing
	Socket             // it is a unix socket
	TLS
)

// Sides are the two connections of a session.
type Sides struct{ Client, Server Side }

// Alike reports whether there is nothing to bridge.
func (s Sides) Alike() bool { return s.Client == s.Server }

// shift is what the client's sequence numbers are ahead of the server's: one for a request for TLS
// that only the client made, and one less for a request that only the server got.
func (s Sides) shift() (n byte) {
	if s.Client == TLS {
		n++
	}
	if s.Server == TLS {
		n--
	}
	return n
}

// plugin is one whose clients send the password itself.
type plugin struct {
	clear Side // the least side over which they send it in clear
	ask   byte // the packet by which they ask for the key of the server over any other
	bare  bool // they send it in clear over any
}

const (
	cachingSHA2 = "caching_sha2_password"
	sha256      = "sha256_password"
)

// plugins are those that both servers and their clients bring along. Any other plugin proves that
// the client knows the password, or is relayed as what it is.
var plugins = map[string]plugin{
	cachingSHA2:                            {clear: Socket, ask: 2},
	sha256:                                 {clear: TLS, ask: 1},
	"mysql_clear_password":                 {bare: true},
	"dialog":                               {bare: true},
	"authentication_openid_connect_client": {bare: true}, // sends a token, which is as good as a password
}

// unlike reports whether client and server disagree on how the password is sent.
func (p plugin) unlike(s Sides) bool {
	return !p.bare && (s.Client >= p.clear) != (s.Server >= p.clear)
}

// exposed reports whether a password that TLS hid on its way here would be sent on in clear.
func (p plugin) exposed(s Sides) bool { return p.bare && s == Sides{Client: TLS, Server: Plain} }
