package limit

import (
	"net/netip"
	"sync"
	"testing"

	"idproxy/integration/assert"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// TestAllows: clients may come from the networks that are named, or from everywhere.
func TestAllows(t *testing.T) {
	all, some := Bounds{}, Bounds{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	for client, want := range map[string]bool{"10.1.2.3": true, "11.1.2.3": false, "fd00::1": true, "::1": false} {
		assert.True(t, some.Allows(addr(client)) == want && all.Allows(addr(client)), "%s: want %v, and true where nothing is named", client, want)
	}
}

// TestGuests: sessions count for their network and user until they go, and nothing is left then.
func TestGuests(t *testing.T) {
	var l Guests
	b := &Bounds{PerNetwork: 2, PerUser: 1, IPv4: 24, IPv6: 64}
	var a, c, d, e Guest
	assert.True(t, l.Come(&a, addr("10.0.0.1"), b) && l.Come(&c, addr("10.0.0.2"), b) && !l.Come(&d, addr("10.0.0.3"), b), "of one network two may come")
	assert.True(t, l.Come(&d, addr("10.0.1.3"), b) && l.Come(&e, addr("fd00::1"), b), "of other networks as many may")
	assert.True(t, !l.Full("u", b) && l.LogIn(&a, "u", b) && l.LogIn(&a, "u", b) && l.Full("u", b) && !l.LogIn(&c, "u", b), "one session of a user may log in, and log in again")
	assert.True(t, l.LogIn(&a, "v", b) && l.LogIn(&c, "u", b), "who logs in as somebody else leaves room")
	assert.True(t, !l.LogIn(&a, "u", b) && l.LogIn(&d, "v", b), "who may not log in as somebody else counts for nobody")
	for _, g := range []*Guest{&a, &c, &d, &e, &a} { // the last time for nothing
		l.Go(g)
	}
	assert.True(t, len(l.users) == 0 && len(l.networks) == 0, "left are %v, %v", l.users, l.networks)
}

// TestLogins: the oldest whose client is awaited makes room, and others do not.
func TestLogins(t *testing.T) {
	var l Logins
	ended := ""
	const awaited, waiting = true, false // its client, or for a server
	login := func(name string, client bool) *Login {
		g := &Login{End: func() { ended += name }}
		g.Awaited.Store(client)
		return g
	}
	first, second, third := login("1", waiting), login("2", awaited), login("3", awaited)
	for _, g := range []*Login{first, second, third} {
		assert.MustTrue(t, l.Begin(g, 3), "there is room for three")
	}
	if !l.Begin(login("4", waiting), 3) || ended != "2" {
		t.Errorf("ended is %q, want the oldest whose client is awaited", ended)
	}
	l.Over(third)
	l.Over(third)
	if !l.Begin(login("5", waiting), 3) || l.Begin(login("6", awaited), 3) || ended != "2" {
		t.Errorf("ended are %q: who waits for a server makes no room", ended)
	}
	assert.True(t, l.Begin(login("7", awaited), 0), "0 is any number")
}

// TestBytes: what all take together never is above what they may, and is given back.
func TestBytes(t *testing.T) {
	var b Bytes
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if b.Take(3, 10) {
					assert.LessOrEqual(t, "are taken", b.Taken(), 10)
					b.Give(3)
				}
			}
		})
	}
	all.Wait()
	b.Discard(2)
	b.Discard(2)
	b.Collect(0)
	b.Collect(4)
	assert.True(t, b.garbage.Load() == 4, "it was collected for nothing")
	b.Collect(3)
	assert.True(t, b.garbage.Load() == 0, "it was not collected")
	assert.True(t, b.Taken() == 0 && !b.Take(11, 10) && b.Take(11, 0), "11 are above 10, and not above any number")
}
