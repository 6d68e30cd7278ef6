package config

import (
	"net/netip"
	"time"
)

//go:generate go test . -run TestSchema$ -rewrite

// Config is the whole file. Every field says its default, which [Parse] has
// filled in where the file does not name the key.
type Config struct {
	Path            string        `yaml:"-"`                  // the file, as named to Load or Parse
	Dir             string        `yaml:"-"`                  // its folder; relative paths of the file have been joined to it
	SHA256          string        `yaml:"-"`                  // of the file, in hex
	ValueFiles      []string      `yaml:"-"`                  // files that values name by ${file:...} and ${credential:...}, in file order
	Instance        string        `yaml:"instance"`           // names this process on the page, in metrics and logs; default the host's name
	Listeners       []Listener    `yaml:"listeners,required"` // at least one
	Stores          []Store       `yaml:"stores,named"`       // in file order, then [DefaultStore] when a source needs it
	Sources         []Source      `yaml:"sources,named"`      // in file order
	Rules           []Rule        `yaml:"rules"`              // in file order: per column the first match wins
	Admin           *Admin        `yaml:"admin"`              // default: none
	IDs             *IDs          `yaml:"ids"`                // default: none
	Order           *Order        `yaml:"order"`              // default: none; needed by sources with order: global
	Limits          Limits        `yaml:"limits"`
	TCP             TCP           `yaml:"tcp"`
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"` // from SIGTERM until sessions that still work are cut, drain.delay and drain.spread included; default 30s
	Drain           Drain         `yaml:"drain"`
	Engine          string        `yaml:"engine" oneof:"loops|goroutines"` // who drives sessions without TLS and compression; default loops, on Linux
	Log             Log           `yaml:"log"`
}

// What Engine may be.
const (
	EngineLoops      = "loops"      // a loop for each processor serves many sessions
	EngineGoroutines = "goroutines" // each session has two goroutines
)

// Limits bound what clients can make the proxy hold.
type Limits struct {
	Sessions       uint64        `yaml:"sessions"`        // at once, over all listeners; default 10000
	Logins         uint64        `yaml:"logins"`          // of those, the ones that have not logged in; default half of sessions
	Handshake      time.Duration `yaml:"handshake"`       // from accept to the server's final OK; default 10s
	ConnectTimeout time.Duration `yaml:"connect_timeout"` // until a server has accepted, all its addresses taken together; default 3s where there are several servers, else that of handshake
	Statement      Size          `yaml:"statement"`       // most bytes of one statement held in memory; default 256MiB
	Held           Size          `yaml:"held"`            // most bytes of memory for the statements that all sessions hold; default 1GiB
	IDWait         time.Duration `yaml:"id_wait"`         // longest wait of an INSERT for ids; default 2s

	// Those of each listener that does not have its own.
	SessionsPerUser    uint64   `yaml:"sessions_per_user"`    // that have logged in; default: any number
	SessionsPerNetwork *Network `yaml:"sessions_per_network"` // default: any number
	IdleTimeout        Span     `yaml:"idle_timeout"`         // without a command, in no transaction; default: none
	TransactionTimeout Span     `yaml:"transaction_timeout"`  // without a command, in a transaction; default: none
}

// ListenerLimits are those of one listener. What it does not have, Limits say.
type ListenerLimits struct {
	Sessions           uint64   `yaml:"sessions"` // at once, of this listener; default: as many as over all
	SessionsPerUser    uint64   `yaml:"sessions_per_user"`
	SessionsPerNetwork *Network `yaml:"sessions_per_network"`
	IdleTimeout        Span     `yaml:"idle_timeout"`
	TransactionTimeout Span     `yaml:"transaction_timeout"`
}

// Network bounds the sessions of clients whose addresses begin alike.
type Network struct {
	Limit uint64 `yaml:"limit,required"`
	IPv4  uint64 `yaml:"ipv4"` // bits that are alike; default 32, each address by itself
	IPv6  uint64 `yaml:"ipv6"` // default 64
}

// TCP says when a client or a server that vanished without a word is noticed. Both are for Linux;
// elsewhere UserTimeout does nothing.
type TCP struct {
	Keepalive   Span `yaml:"keepalive"`    // of silence until a peer is asked whether it is there; it then has as long to answer; default 30s, 0: never
	UserTimeout Span `yaml:"user_timeout"` // what is sent may wait to be taken; default 0: as long as the system lets it, about 15 minutes
}

// Drain is how sessions are let go, at SIGTERM or when an operator says so.
type Drain struct {
	Delay  time.Duration `yaml:"delay"`  // how long new sessions are taken yet, although /readyz says that it is not ready; default none
	Spread time.Duration `yaml:"spread"` // over how long sessions end then, each between two transactions; default: all at once
}

// Log says what is written to stderr and how.
type Log struct {
	Level  string `yaml:"level" oneof:"debug|info|warn|error"` // default info
	Format string `yaml:"format" oneof:"text|json"`            // default text
	Trace  *Trace `yaml:"trace"`                               // default: none
}

// Trace chooses sessions whose every decision is logged, whatever the level. It has a user, an
// address, or both.
type Trace struct {
	User    string `yaml:"user"`    // that logged in; default: any
	Address string `yaml:"address"` // of the client: 10.0.0.5 or 10.0.0.0/8; default: any
}

// Prefix returns the addresses that are chosen; one that is not valid where all are.
func (t *Trace) Prefix() (netip.Prefix, error) {
	if t.Address == "" {
		return netip.Prefix{}, nil
	}
	if one, err := netip.ParseAddr(t.Address); err == nil && one.Zone() == "" {
		return netip.PrefixFrom(one.Unmap(), one.Unmap().BitLen()), nil
	}
	return netip.ParsePrefix(t.Address)
}

// Admin is the page, the metrics and the health answers. It has an address, a socket, or both.
type Admin struct {
	Listen Addr   `yaml:"listen"` // default: none
	Socket Addr   `yaml:"socket"` // a unix socket, for whom its file lets in; default: none
	Token  Secret `yaml:"token"`  // asked for at Listen; default: none, which only a loopback address may have
	TLS    *TLS   `yaml:"tls"`    // of Listen; default: none
	Pprof  bool   `yaml:"pprof"`  // profiles of the process under /debug/pprof/; default false
}

// IDs hands ids to other programs.
type IDs struct {
	UsersIn string    `yaml:"users_in"` // mysql or etcd store of users who may ask, besides those below; default: none, and who is asked for no user below may ask
	Redis   *IDsRedis `yaml:"redis"`
	HTTP    *IDsHTTP  `yaml:"http"`
}

// OrderGlobal is what Segment.Order may be.
const OrderGlobal = "global"

// Order is how the processes that share series in one order ask each other: one gives the ids of all,
// and the others pass on to it.
type Order struct {
	Listen   Addr      `yaml:"listen,required"` // where the others ask this process
	Announce string    `yaml:"announce"`        // how they reach it, host:port; default: listen
	Token    Secret    `yaml:"token,required"`  // the same in all processes
	TLS      *OrderTLS `yaml:"tls"`             // default: no TLS
}

// OrderTLS are paths of PEM files. Both ends show a certificate that the CA signed.
type OrderTLS struct {
	CA   string `yaml:"ca,required"`
	Cert string `yaml:"cert,required"`
	Key  string `yaml:"key,required"`
}

// IDsRedis answers INCR, INCRBY, GET and more of the Redis protocol.
type IDsRedis struct {
	Listen    Addr      `yaml:"listen,required"`
	TLS       *TLS      `yaml:"tls"`         // default: none
	MaxIncrBy uint64    `yaml:"max_incrby"`  // most ids of one command; default 1000000
	Moved     bool      `yaml:"moved"`       // clients of a cluster are told who gives the ids of series in one order, which they ask then; default false: it is passed on
	Announce  string    `yaml:"announce"`    // with moved: how clients reach this process, host:port; default listen
	Members   []string  `yaml:"members"`     // with moved: how clients reach all proxies, by which they find another one when that is gone; default: they know the one that gives ids
	CreateIn  string    `yaml:"create_in"`   // store of the keys that users create; default: none can be created
	Users     []IDsUser `yaml:"users,named"` // in file order; default: clients need not log in
}

// IDsUser may ask for ids.
type IDsUser struct {
	Pos       Pos      `yaml:"-"`
	Name      string   `yaml:"-"` // "default" is who gives a password alone
	Password  Secret   `yaml:"password,required"`
	Sources   []string `yaml:"sources"`    // sources, or keys of stores, with * and ?; default (empty): all
	MaxIncrBy uint64   `yaml:"max_incrby"` // most ids of one command; default that of all users
	Rate      uint64   `yaml:"rate"`       // ids a second; default (0): as many as there are
	Create    bool     `yaml:"create"`     // may create keys, with IDS.CREATE; default false
	Set       bool     `yaml:"set"`        // may move keys up, with IDS.SET; default false
}

// IDsHTTP answers over HTTP: in its own way, as Leaf does, and as tinyid does.
type IDsHTTP struct {
	Listen     Addr          `yaml:"listen,required"`
	TLS        *TLS          `yaml:"tls"`         // default: none
	MaxN       uint64        `yaml:"max_n"`       // most ids of one request; default and at most 1000000
	TinyIDStep uint64        `yaml:"tinyid_step"` // ids of a segment that a client of tinyid gets; default 1000
	Users      []IDsHTTPUser `yaml:"users,named"` // in file order; default: clients need no token
}

// IDsHTTPUser may ask for ids over HTTP.
type IDsHTTPUser struct {
	Pos     Pos      `yaml:"-"`
	Name    string   `yaml:"-"`
	Token   Secret   `yaml:"token,required"`
	Sources []string `yaml:"sources"` // sources, or keys of stores, with the wildcards * and ?; default (empty): all
	MaxN    uint64   `yaml:"max_n"`   // most ids of one request; default that of all users
	Rate    uint64   `yaml:"rate"`    // ids a second; default 0: as fast as they come
}

// Listener finds a listener by its name; nil when there is none.
func (c *Config) Listener(name string) *Listener {
	for i := range c.Listeners {
		if c.Listeners[i].Name == name {
			return &c.Listeners[i]
		}
	}
	return nil
}

// Store finds a store by its name; nil when there is none.
func (c *Config) Store(name string) *Store {
	for i := range c.Stores {
		if c.Stores[i].Name == name {
			return &c.Stores[i]
		}
	}
	return nil
}

// Source finds a source by its name; nil when there is none.
func (c *Config) Source(name string) *Source {
	for i := range c.Sources {
		if c.Sources[i].Name == name {
			return &c.Sources[i]
		}
	}
	return nil
}
