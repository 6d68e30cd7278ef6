package config

// What a Listener's UpstreamTLS.Mode can be.
const (
	TLSAsClient  = "as_client" // TLS to the server when the client speaks TLS to us
	TLSRequired  = "required"  // always, whatever the client speaks
	TLSPreferred = "preferred" // when the server has it
	TLSDisabled  = "disabled"  // never
)

// What a ListenerTLS's Mode can be; TLSRequired is the other.
const TLSOptional = "optional" // clients without TLS are let in, too

// Listener is one address clients connect to and the one server behind it.
type Listener struct {
	Pos           Pos            `yaml:"-"`
	Name          string         `yaml:"name"`              // default listener0, listener1, ... by its place in the list
	Listen        Addr           `yaml:"listen,required"`   // port 0: any free one
	Upstream      Addr           `yaml:"upstream,required"` // resolved at every connect
	Account       *Account       `yaml:"account"`           // default: none
	TLS           *ListenerTLS   `yaml:"tls"`               // default: no TLS offered to clients
	UpstreamTLS   UpstreamTLS    `yaml:"upstream_tls"`
	ProxyProtocol *ProxyProtocol `yaml:"proxy_protocol"` // default: none
}

// Account is a user of the server for the proxy's own questions: MAX(id) of a
// table before its first id, and checks. Sessions of clients never use it.
type Account struct {
	User     string `yaml:"user,required"`
	Password Secret `yaml:"password"` // default: empty
}

// ListenerTLS is what is offered to clients of MySQL.
type ListenerTLS struct {
	Mode     string `yaml:"mode" oneof:"optional|required"` // default optional
	Cert     string `yaml:"cert,required"`
	Key      string `yaml:"key,required"`
	ClientCA string `yaml:"client_ca"`
}

// Files are those of the section; nil for none.
func (t *ListenerTLS) Files() *TLS {
	if t == nil {
		return nil
	}
	return &TLS{Cert: t.Cert, Key: t.Key, ClientCA: t.ClientCA}
}

// TLS is what is offered to clients. All three are paths of PEM files.
type TLS struct {
	Cert     string `yaml:"cert,required"`
	Key      string `yaml:"key,required"`
	ClientCA string `yaml:"client_ca"` // set: clients must show a certificate it signed; default: none asked
}

// UpstreamTLS is how the server is spoken to.
type UpstreamTLS struct {
	Mode       string `yaml:"mode" oneof:"as_client|required|preferred|disabled"` // default as_client
	CA         string `yaml:"ca"`                                                 // PEM file; default: the certificate is not verified
	ServerName string `yaml:"server_name"`                                        // name the certificate must carry; default: host of upstream
}

// ProxyProtocol carries client addresses through.
type ProxyProtocol struct {
	Accept []string `yaml:"accept"`             // networks (CIDR) from which connections begin with a PROXY header; default: none
	Send   string   `yaml:"send" oneof:"v1|v2"` // header that the server is sent; default: none
}

// Unverified reports whether TLS may be spoken to the server without anybody looking whose
// certificate it has.
func (l *Listener) Unverified() bool {
	mode := l.UpstreamTLS.Mode
	return l.UpstreamTLS.CA == "" && l.Upstream.Network == "tcp" && (mode == TLSRequired || mode == TLSPreferred || mode == TLSAsClient && l.TLS != nil)
}
