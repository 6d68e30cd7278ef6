package config

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// What a Listener's UpstreamTLS.Mode can be.
const (
	TLSAsClient  = "as_client" // TLS to the server when the client speaks TLS to us
	TLSRequired  = "required"  // always, whatever the client speaks
	TLSPreferred = "preferred" // when the server has it
	TLSDisabled  = "disabled"  // never
)

// TLSOptional is what a ListenerTLS's Mode can be beside TLSRequired: clients without TLS are let in, too.
const TLSOptional = "optional"

// What a Listener's Compression can be.
const (
	CompressionOn  = "on"
	CompressionOff = "off"
)

// What a Listener's UpstreamKind can be.
const (
	KindAuto       = "auto"
	KindMySQL      = "mysql"
	KindMariaDB    = "mariadb"
	KindTiDB       = "tidb"
	KindVitess     = "vitess"
	KindDolt       = "dolt"
	KindMiddleware = "middleware"
)

// Listener is one address clients connect to and the servers behind it.
type Listener struct {
	Pos           Pos            `yaml:"-"`
	Name          string         `yaml:"name"`                                                                 // default listener0, listener1, ... by its place in the list
	Listen        Addr           `yaml:"listen,required"`                                                      // port 0: any free one
	Upstream      Addr           `yaml:"upstream,required" or:"upstreams"`                                     // resolved at every connect
	Upstreams     []Addr         `yaml:"upstreams"`                                                            // instead of upstream: the first that accepts
	UpstreamKind  string         `yaml:"upstream_kind" oneof:"auto|mysql|mariadb|tidb|vitess|dolt|middleware"` // what the servers are; default auto: their greetings and answers tell
	Writable      bool           `yaml:"writable"`                                                             // the first that accepts and is not read-only; default false
	Account       *Account       `yaml:"account"`                                                              // default: none
	TLS           *ListenerTLS   `yaml:"tls"`                                                                  // default: no TLS offered to clients
	UpstreamTLS   UpstreamTLS    `yaml:"upstream_tls"`
	ProxyProtocol *ProxyProtocol `yaml:"proxy_protocol"` // default: none
	Allow         []string       `yaml:"allow"`          // networks (CIDR) from which clients may connect; default: all
	Limits        ListenerLimits `yaml:"limits"`
	Compression   string         `yaml:"compression" oneof:"on|off"` // whether clients may have their connections compressed; default off
	Shard         *Shard         `yaml:"shard"`                      // default: rows of any shard go in
}

// Shard is the one that a listener is for: rows whose gene ends in these bits.
type Shard struct {
	Bits  uint64 `yaml:"bits,required"`  // 1 to 16, no more than the genes of the rules have
	Value uint64 `yaml:"value,required"` // 0 to 2^bits - 1
}

// Servers are those behind the listener, in their order.
func (l *Listener) Servers() []Addr {
	if len(l.Upstreams) > 0 {
		return l.Upstreams
	}
	return []Addr{l.Upstream}
}

// Foreign reports whether the servers behind the listener are said to be no MySQL and no MariaDB.
func (l *Listener) Foreign() bool {
	return l.UpstreamKind == KindVitess || l.UpstreamKind == KindDolt || l.UpstreamKind == KindMiddleware
}

// connectTimeout is how long one of several servers has to accept, unless the file says it.
const connectTimeout = 3 * time.Second

// ConnectTimeout is how long a server behind a listener has to accept. Of several, each has at most
// its share of the login's time: all of them can be tried, and one share is left for the login.
func (c *Config) ConnectTimeout(l *Listener) time.Duration {
	servers := len(l.Servers())
	if servers == 1 {
		return min(cmp.Or(c.Limits.ConnectTimeout, c.Limits.Handshake), c.Limits.Handshake)
	}
	return min(cmp.Or(c.Limits.ConnectTimeout, connectTimeout), c.Limits.Handshake/time.Duration(servers+1))
}

// Bounds are the limits of a listener: its own, and where it has none those of all.
func (c *Config) Bounds(l *Listener) ListenerLimits {
	own, all := l.Limits, c.Limits
	return ListenerLimits{
		Sessions:           own.Sessions,
		SessionsPerUser:    cmp.Or(own.SessionsPerUser, all.SessionsPerUser),
		SessionsPerNetwork: cmp.Or(own.SessionsPerNetwork, all.SessionsPerNetwork),
		IdleTimeout:        cmp.Or(own.IdleTimeout, all.IdleTimeout),
		TransactionTimeout: cmp.Or(own.TransactionTimeout, all.TransactionTimeout),
	}
}

// reaches reports whether one of the servers is reached over a network.
func (l *Listener) reaches(network string) bool {
	return slices.ContainsFunc(l.Servers(), func(a Addr) bool { return a.Network == network })
}

// Behind names the servers behind the listener.
func (l *Listener) Behind() string {
	var names []string
	for _, a := range l.Servers() {
		names = append(names, a.String())
	}
	return strings.Join(names, ", ")
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
	return l.UpstreamTLS.CA == "" && l.reaches("tcp") && (mode == TLSRequired || mode == TLSPreferred || mode == TLSAsClient && l.TLS != nil)
}
