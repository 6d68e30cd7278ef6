package proxy

import (
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
	"idproxy/proxy/authbridge"
	"idproxy/proxy/choice"
	"idproxy/proxy/decide"
	"idproxy/proxy/dial"
	"idproxy/proxy/eventloop"
	"idproxy/proxy/limit"
	"idproxy/proxy/origin"
	"idproxy/proxy/stats"
	"idproxy/rule"
)

// Config is what a Server is made of. But for the listeners it does not change while it runs.
type Config struct {
	Listeners    []Listener             // at first; see Server.Prepare
	SecondReader decide.SecondReader    // nil: none
	Logger       *slog.Logger           // nil: discard
	Tracer       *slog.Logger           // of sessions that Settings.Trace chooses; nil: none
	Loops        int                    // event loops that drive sessions; 0: goroutines do
	OnRefused    func(RefusedStatement) // is told of each; nil: nobody is
	// Open is how a listener's address is taken; nil: Listen.
	Open func(network, address string) (net.Listener, error)
}

// RefusedStatement is one that was refused, or that an observing rule would have treated otherwise.
type RefusedStatement struct {
	Listener, User string
	Rule           string // empty: it is not known, or no single one
	Reason         string // one of rule.Reason's, or "observed"
	Statement      string // without its values
	Code           uint16 // of the error that the client saw; 0: it saw none
	Text           string // of that error, or what would have been done
}

// TLSMode says when the connection to the server uses TLS.
type TLSMode uint8

// AsClient is the default: TLS to the server if, and only if, the client uses it. The others do not
// ask what the client does: always, if the server has it, and never.
const (
	AsClient TLSMode = iota
	Required
	Preferred
	Disabled
)

// toServer reports whether TLS is spoken to a server that has it, or has it not.
func (m TLSMode) toServer(has, clientTLS bool) bool {
	switch m {
	case Required:
		return true
	case Preferred:
		return has
	case Disabled:
		return false
	case AsClient:
	}
	return clientTLS
}

// Kind is what a server is: it says how it is asked, and whether it knows LAST_INSERT_ID(expr).
type Kind uint8

// Learned is the default: a server is native until its greeting or its answers say that it is foreign.
const (
	Learned Kind = iota
	Native       // MySQL, MariaDB or TiDB
	Foreign      // a sharding middleware, Vitess, Dolt: see package catalog
)

// Listener is one address that clients connect to, and the servers behind it.
type Listener struct {
	Name   string
	Listen net.Addr
	// Balancers are the networks from which connections begin with a PROXY header.
	Balancers origin.Networks
	// TellOrigin is the version of the PROXY header that servers are sent; 0: they are sent none.
	TellOrigin origin.Version
	// Upstreams are replicas of each other, at least one. A session goes to the first that accepts. All
	// have an account, or none.
	Upstreams []Upstream
	// Writable passes servers over that are read-only. It takes accounts.
	Writable bool
	// ClientTLS offers TLS to clients; nil: none.
	ClientTLS *tls.Config
	// Compression offers clients compressed connections.
	Compression bool
	// ClientsNeedTLS refuses clients that neither use it nor a unix socket.
	ClientsNeedTLS  bool
	UpstreamTLSMode TLSMode
	// Kind is what the servers are.
	Kind Kind
	// OnHeld is told how long each command was held that was decided on; nil: nobody is.
	OnHeld func(time.Duration)
	// OnGone is called when no session comes through it any more, and none is left; nil: nobody is told.
	OnGone func()
}

// Address is a network address that is resolved when it is used.
type Address struct{ Net, Addr string }

// Network returns "tcp" or "unix".
func (a Address) Network() string { return a.Net }

// String returns host:port, or the path of a socket.
func (a Address) String() string { return a.Addr }

// Settings are what may change while sessions run.
type Settings struct {
	Rules           map[string]*rule.List      // by the listener's name
	Sources         map[string]idsource.Source // by the name that rules use
	Eras            map[string]uint64          // of those, as rules have them; of one that is not there 0
	IDWait          time.Duration              // how long a statement waits for a source that another one takes the place of
	Sessions        int
	Handshake       time.Duration
	Connect         map[string]time.Duration // by the listener's name: how long one of its servers has to take a session; default Handshake
	TCP             dial.TCP                 // of connections made from now on
	Statement       int                      // most bytes of a statement to hold
	Held            int                      // most bytes of memory for statements that all sessions hold; 0: any number
	Logins          int                      // most sessions that have not logged in; 0: any number
	Bounds          map[string]*limit.Bounds // by the listener's name; nil: it has none
	DrainDelay      time.Duration            // how long a server that drains takes new sessions yet, though it is not ready
	DrainSpread     time.Duration            // over how long it lets its sessions go then
	ShutdownTimeout time.Duration            // from the beginning until the others are cut; 0: that is at once
	Trace           *Trace                   // nil: no session is traced
}

// Stats counts statements, of which a command may have several, and what is counted nowhere else.
// Commands and errors are counted in package stats, ids and what observing rules saw by the rules.
type Stats struct {
	Filled    atomic.Int64 // statements that were given ids
	Refused   atomic.Int64 // statements refused for their form
	LeftAlone atomic.Int64 // statements on tables that a wildcard matches and does not concern
	Unseen    atomic.Int64 // statements that may have written to tables with rules out of sight: CALL, texts that are not known
	Panics    atomic.Int64
}

// Server accepts clients on all listeners.
type Server struct {
	Stats Stats

	cfg   Config
	log   *slog.Logger
	live  atomic.Pointer[current]
	loops []*eventloop.Loop

	notices *notices
	late    lateGreetings
	logins  limit.Logins
	held    limit.Bytes
	key     func() (*authbridge.Key, error) // for logins; made once
	refused rule.Counts                     // statements that no single rule refused

	accepting sync.WaitGroup // one per door
	checked   chan struct{}  // holds a token when CheckServers is to look which listeners there are

	mu        sync.Mutex  // guards all below but wg
	listeners []*listener // in force
	accepts   bool        // Serve has begun
	stopped   bool        // no door is open any more
	sessions  map[*session]struct{}
	lastID    uint64 // number of the newest session
	phase     Phase
	empty     chan struct{}  // closed when no session is left; nil: new ones come
	ordered   *drain         // that Drain began and nobody took back; nil: none
	ending    bool           // Serve ends
	wg        sync.WaitGroup // one per session
}

// current are the settings in force.
type current struct {
	*Settings
	over chan struct{} // closed once others are
}

func (srv *Server) settings() *Settings { return srv.live.Load().Settings }

// listener is a Listener at work. It never changes: another one takes its place, and it stays for the
// sessions that came through it.
type listener struct {
	Listener
	*kin
	srv    *Server
	health health
	// The servers, as Upstreams has them.
	servers []*server
	choice  *choice.Choice
	// What all of its sessions are given, made once:
	failed    func(code uint16) // counts an error of the server
	forgetAll func()

	// Guarded by Server.mu:
	door     *door // nil: no session comes through it yet, or any more
	sessions int   // that came through it
	left     bool  // by its door, for good
}

// kin are the listeners of one name: the one in force, and those before it that have sessions yet.
// They have the same rules, and count together.
type kin struct {
	rules  atomic.Pointer[rule.List]
	stats  stats.Listener
	guests limit.Guests
	// limited counts what limits refused or closed.
	limited [limit.Keys]atomic.Uint64
	open    int // sessions; Server.mu guards it
	// removed: none of them is in force any more, and no drain that is taken back keeps their sessions.
	removed atomic.Bool

	mu    sync.Mutex // guards all below
	all   []*listener
	empty chan struct{} // closed when none is left; nil: nobody waits
}

// follow has all of them follow other rules.
func (k *kin) follow(rules *rule.List) {
	k.rules.Store(rules)
	k.each(func(s *server) {
		s.tables.Withdraw(rules)
		s.tables.Forget() // they were asked for the columns of other rules
	})
}

// forget has what is known of tables asked anew: what changes at one server changes at all.
func (k *kin) forget() {
	k.each(func(s *server) { s.tables.Forget() })
}

func (k *kin) each(do func(*server)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.all {
		for _, s := range l.servers {
			do(s)
		}
	}
}

func (srv *Server) newListener(l Listener, with *kin) *listener {
	made := &listener{Listener: l, srv: srv, kin: with}
	for _, u := range l.Upstreams {
		made.servers = append(made.servers, made.newServer(u, srv.cfg.SecondReader))
	}
	made.choice = made.choose()
	made.failed = func(code uint16) {
		made.stats.Error(stats.Error{Code: code, Side: stats.Server})
		made.failedWith(code)
	}
	made.forgetAll = with.forget
	if len(with.all) == 0 {
		with.stats.OnHeld = l.OnHeld
	}
	return made
}
