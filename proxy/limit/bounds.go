package limit

import (
	"net/netip"
	"time"
)

// Bounds are those of one listener. 0: there is none.
type Bounds struct {
	Sessions    int
	PerUser     int
	PerNetwork  int
	IPv4, IPv6  int            // bits of an address that say which network it is of
	Allow       []netip.Prefix // from where clients may come; nil: from everywhere
	Idle        time.Duration  // without a command, in no transaction
	Transaction time.Duration  // without a command, in a transaction
}

// Allows reports whether a client may come from an address.
func (b *Bounds) Allows(client netip.Addr) bool {
	if b.Allow == nil {
		return true
	}
	for _, p := range b.Allow {
		if p.Contains(client) {
			return true
		}
	}
	return false
}

// Network returns the one that an address is of.
func (b *Bounds) Network(client netip.Addr) netip.Prefix {
	bits := b.IPv6
	if client.Is4() {
		bits = b.IPv4
	}
	p, _ := client.Prefix(bits) // config has checked the bits; what is not valid counts as one network
	return p
}

// Key is the key of the configuration whose limit was reached.
type Key uint8

// The keys.
const (
	Sessions Key = iota
	PerListener
	PerNetwork
	PerUser
	Pending
	Allow
	Idle
	Transaction
	Memory
	Keys
)

var keyNames = [Keys]string{
	"sessions", "listener_sessions", "sessions_per_network", "sessions_per_user", "logins", "allow", "idle_timeout", "transaction_timeout", "held",
}

// String returns the key as metrics have it.
func (k Key) String() string { return keyNames[k] }
