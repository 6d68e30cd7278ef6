package proxy

import (
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/limit"
	"idproxy/proxy/origin"
	"idproxy/proxy/wire"
)

// guest is a session as limits see it.
type guest struct {
	limit.Guest
	limit.Login
	clock *time.Timer // of the login; nil once there was one
}

// noBounds are those of a listener that has none.
var noBounds = &limit.Bounds{}

func (l *listener) bounds() *limit.Bounds {
	if b := l.srv.settings().Bounds[l.Name]; b != nil {
		return b
	}
	return noBounds
}

// full says why one more session is one too many, and else begins its login. The caller holds srv.mu.
func (l *listener) full(s *session) (limit.Key, *mysql.MyError) {
	live, b := l.srv.settings(), l.bounds()
	switch {
	case live.Sessions > 0 && len(l.srv.sessions) >= live.Sessions:
		return limit.Sessions, clienterr.TooManySessions(live.Sessions)
	case b.Sessions > 0 && l.open >= b.Sessions:
		return limit.PerListener, clienterr.ListenerFull(b.Sessions)
	case !l.srv.logins.Begin(&s.guest.Login, live.Logins):
		return limit.Pending, clienterr.TooManyLogins(live.Logins)
	}
	return 0, nil
}

// reached counts and logs that a limit refused or closed something.
func (l *listener) reached(key limit.Key, client string, why error) {
	l.limited[key].Add(1)
	if others, ok := l.srv.notices.Due(l.Name + " limit " + key.String()); ok {
		l.srv.log.Warn("limit reached", "listener", l.Name, "client.address", client, "limit", key.String(), "error.message", why, "others", others)
	}
}

func (s *session) reached(key limit.Key, why error) { s.l.reached(key, s.who.client(), why) }

// come lets a client in by where it is. One on a unix socket, and a balancer that has come for itself,
// are let in.
func (s handshake) come(from origin.Origin) error {
	if from.Client == nil {
		return nil
	}
	client, b := from.Client.AddrPort().Addr().Unmap().WithZone(""), s.l.bounds()
	key, e := limit.Allow, clienterr.NotAllowed(client.String())
	if b.Allows(client) {
		if s.l.guests.Come(&s.guest.Guest, client, b) {
			return nil
		}
		key, e = limit.PerNetwork, clienterr.NetworkFull(b.Network(client).String(), b.PerNetwork)
	}
	s.reached(key, e)
	_, _ = s.client.Write(wire.AppendERR(nil, 0, e)) // the session ends here anyway
	return e
}

// userFull refuses a user who has as many sessions as one may, before the server is asked for the
// password.
func (s handshake) userFull(user string) *mysql.MyError {
	b := s.l.bounds()
	if !s.l.guests.Full(user, b) {
		return nil
	}
	e := clienterr.UserFull(user, b.PerUser)
	s.reached(limit.PerUser, e)
	return e
}

// admit counts a user who has logged in. One who is one too many after all gets an error where the
// server said OK.
func (s toClient) admit(out []byte) ([]byte, error) {
	user, b := s.c.User(), s.l.bounds()
	if s.l.guests.LogIn(&s.guest.Guest, user, b) {
		return out, nil
	}
	e := clienterr.UserFull(user, b.PerUser)
	s.down.Handoff() // for the log
	s.reached(limit.PerUser, e)
	return inPlaceOfOK(out, e), e
}

// inPlaceOfOK returns the packets in front of the OK that ends a login, and an error behind them.
func inPlaceOfOK(out []byte, e *mysql.MyError) []byte {
	const least = 7 // bytes of an OK packet: a plugin may begin its data like one
	for at := 0; at+wire.HeaderLen < len(out); {
		n := wire.PayloadLen(out[at:])
		if n >= least && out[at+wire.HeaderLen] == wire.OKByte {
			return wire.AppendERR(out[:at:at], out[at+3], e)
		}
		at += wire.HeaderLen + n
	}
	return nil
}

// awaitsClient notes that the next word of a login is the client's.
func (s *session) awaitsClient() {
	if !s.stats.LoggedIn.Load() {
		s.guest.Awaited.Store(true)
	}
}

// awaitsServer notes that the next word of a login is the server's, once the client's is whole.
func (s *session) awaitsServer() {
	if !s.stats.LoggedIn.Load() && s.requests.Left == 0 {
		s.guest.Awaited.Store(false)
	}
}

// outlast ends the login that has waited for its client for longest. The caller holds srv.mu.
func (s handshake) outlast() {
	s.l.srv.wg.Go(func() {
		s.reached(limit.Pending, errOutlasted)
		s.giveUp(errOutlasted)
	})
}
