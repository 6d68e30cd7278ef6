package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"idproxy/inside"
	"idproxy/proxy/catalog"
	"idproxy/proxy/choice"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/rule"
)

// Upstream is one of the servers behind a listener.
type Upstream struct {
	Addr    net.Addr
	TLS     *tls.Config // of connections to it, where they are over TLS
	Account Account     // nil: there is none to ask it with
}

// Account asks a server over connections of its own.
type Account interface {
	// Ping asks the server whether it answers.
	Ping(ctx context.Context) error
	// ReadOnly asks whether the server takes no writes.
	ReadOnly(ctx context.Context) (bool, error)
	// At asks the server at an address that its name led to. A name may lead to several.
	At(address net.Addr) Questions
}

// Questions are those about tables, and whether what is in them is all there is.
type Questions interface {
	// Greatest returns what ask.GreatestQuery asks for.
	Greatest(ctx context.Context, schema, table string, column rule.Column, last uint64) (uint64, error)
	// Held is the same for ask.HeldQuery.
	Held(ctx context.Context, schema, table string, column rule.Column, ids []uint64) (uint64, error)
	// Definition returns what SHOW CREATE VIEW says of a view, nil of a table, where a client may not
	// see it.
	Definition(ctx context.Context, schema, table string) ([]byte, error)
	// ReadOnly is as Account has it.
	ReadOnly(ctx context.Context) (bool, error)
}

// ErrLocked is what Questions.Greatest answers when someone has locked the table.
var ErrLocked = errors.New("the table is locked")

// server is one of the servers behind a listener, and what is known of it. What its tables hold is
// asked of each, because one may lag behind the others.
type server struct {
	Upstream
	tables  *catalog.Tables
	decider decide.Decider
	plain   atomic.Bool           // it is asked plainly, and the OK packet alone shows its ids
	denied  atomic.Pointer[error] // why the account cannot ask it, though it answers; nil: it can
	last    atomic.Pointer[place] // where the newest session is
}

func (l *listener) newServer(u Upstream, second decide.SecondReader) *server {
	s := &server{Upstream: u, tables: catalog.New()}
	s.plain.Store(l.Kind == Foreign)
	rules := func() protocol.RuleBook {
		list := l.rules.Load()
		if s.plain.Load() {
			list = list.Packet()
		}
		return protocol.RuleBook{List: list, Fold: s.tables.Fold() != catalog.FoldNo}
	}
	s.decider = decide.Decider{Tables: s.tables, Rules: rules, Second: second}
	return s
}

// place is where sessions are: a server, and the address that its name led to.
type place struct {
	*server
	address net.Addr
}

// at returns the place at an address. Sessions share it.
func (s *server) at(address net.Addr) *place {
	if p := s.last.Load(); p != nil && p.address.String() == address.String() {
		return p
	}
	p := &place{s, address}
	s.last.Store(p)
	return p
}

// byAccount asks the server over connections of the account; nil: there is none, or its questions are
// for another kind of server.
func (p *place) byAccount() Questions {
	if p.Account == nil || p.plain.Load() {
		return nil
	}
	return p.Account.At(p.address)
}

// choose returns the choice between a listener's servers.
func (l *listener) choose() *choice.Choice {
	var servers []choice.Server
	for _, u := range l.Upstreams {
		s := choice.Server{Name: u.Addr.String()}
		if l.Writable {
			s.Writable = u.writable
		}
		servers = append(servers, s)
	}
	return choice.New(servers)
}

// writable asks whether the server takes writes. Clients may hear why there is no connection to it,
// and not what it says to the account.
func (u *Upstream) writable(ctx context.Context) error {
	readOnly, err := u.Account.ReadOnly(ctx)
	_, unconnected := errors.AsType[*net.OpError](err)
	switch {
	case unconnected:
		return err
	case err != nil:
		return fmt.Errorf("cannot be asked whether it is read-only: %w", inside.Mark(err))
	case readOnly:
		return choice.ErrReadOnly
	}
	return nil
}

// connectTime is how long one of the servers has to take a session.
func (l *listener) connectTime() time.Duration {
	live := l.srv.settings()
	if d, ok := live.Connect[l.Name]; ok {
		return d
	}
	return live.Handshake
}

// setOptions sets those of a socket. One that has closed meanwhile has none.
func (srv *Server) setOptions(c net.Conn, listener string) {
	if err := srv.settings().TCP.Apply(c); err != nil {
		if others, ok := srv.notices.Due(listener + " socket"); ok {
			srv.log.Warn("options of a socket cannot be set", "listener", listener, "error.message", err, "others", others)
		}
	}
}

// mayEncrypt reports whether clients may encrypt a password that the server wants in clear.
func (l *listener) mayEncrypt() bool {
	return l.UpstreamTLSMode == Required || l.UpstreamTLSMode == Preferred ||
		slices.ContainsFunc(l.Upstreams, func(u Upstream) bool { return u.Addr.Network() == "unix" })
}

// hasAccount reports whether the servers can be asked over connections of our own.
func (l *listener) hasAccount() bool { return l.Upstreams[0].Account != nil }

// What servers say that take no writes any more: ER_OPTION_PREVENTS_STATEMENT and ER_READ_ONLY_MODE.
// One that stops says ER_SERVER_SHUTDOWN.
const (
	errReadOnly     = 1290
	errReadOnlyMode = 1836
	errShutdown     = 1053
)

// failedWith is told of each error of a server.
func (l *listener) failedWith(code uint16) {
	if code == errReadOnly || code == errReadOnlyMode || code == errShutdown {
		l.choice.Doubt()
	}
}
