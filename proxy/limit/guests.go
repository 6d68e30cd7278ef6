package limit

import (
	"net/netip"
	"sync"
)

// Guests counts the sessions of one listener by who they are. The zero value is ready.
type Guests struct {
	mu       sync.Mutex // guards all below, and all guests
	networks map[netip.Prefix]int
	users    map[string]int
}

// Guest is one session as it is counted. The zero value counts for nothing.
type Guest struct {
	network  netip.Prefix // not valid: none
	user     string
	loggedIn bool
}

// Come counts a session for the network of its client. It reports false when that has its number.
func (l *Guests) Come(g *Guest, client netip.Addr, b *Bounds) bool {
	network := b.Network(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.PerNetwork > 0 && l.networks[network] >= b.PerNetwork {
		return false
	}
	if l.networks == nil {
		l.networks = map[netip.Prefix]int{}
	}
	g.network = network
	l.networks[network]++
	return true
}

// Full reports whether a user has as many sessions as one may.
func (l *Guests) Full(user string, b *Bounds) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return b.PerUser > 0 && l.users[user] >= b.PerUser
}

// LogIn counts a session for the user who has logged in, who may have been another one before. It
// reports false when that user has their number.
func (l *Guests) LogIn(g *Guest, user string, b *Bounds) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.loggedIn {
		if g.user == user {
			return true
		}
		l.logOut(g)
	}
	if b.PerUser > 0 && l.users[user] >= b.PerUser {
		return false
	}
	if l.users == nil {
		l.users = map[string]int{}
	}
	g.user, g.loggedIn = user, true
	l.users[user]++
	return true
}

func (l *Guests) logOut(g *Guest) {
	if l.users[g.user]--; l.users[g.user] == 0 {
		delete(l.users, g.user)
	}
	g.loggedIn = false
}

// Go ends what a session counts for.
func (l *Guests) Go(g *Guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.loggedIn {
		l.logOut(g)
	}
	if g.network.IsValid() {
		if l.networks[g.network]--; l.networks[g.network] == 0 {
			delete(l.networks, g.network)
		}
		g.network = netip.Prefix{}
	}
}
