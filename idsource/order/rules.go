package order

import "time"

// Rules are the times of an election. Both sides measure on their own clocks, from moments that
// they saw themselves; only the clocks' rates must agree, to a tenth.
type Rules struct {
	Beat time.Duration // the leader shows itself this often
	Look time.Duration // the others look this often
	Hold time.Duration // the leader may issue ids for so long from when it sent what was confirmed
	Wait time.Duration // the others wait for so long from when they saw the leader's last sign of life
}

// DefaultRules hand over within two seconds after the leader died.
var DefaultRules = Rules{Beat: 250 * time.Millisecond, Look: 150 * time.Millisecond, Hold: 1050 * time.Millisecond, Wait: 1200 * time.Millisecond}

// Until is when the leader's right to issue ids ends, by a sign of life that it sent and that the
// register confirmed. When the confirmation came tells nothing: it may have been on its way for long.
func (r Rules) Until(sent time.Duration) time.Duration { return sent + r.Hold }

// May says whether ids that were claimed may be given. now is read after the claim: a process that
// was stopped between both finds out.
func (r Rules) May(now, until time.Duration) bool { return now < until }

// Vacant says whether a process may take the lead, of which it saw the last change at seen. It
// saw the change after it was made, so what the leader sent before ended earlier.
func (r Rules) Vacant(s Seen, seen, now time.Duration) bool {
	return s.Leader.Token == "" || now-seen >= r.Wait
}

// Seen is what a process saw in the register.
type Seen struct {
	Leader Leader
	Term   int64 // of the leader; every other term has another number, and later ones have greater ones
	Beat   int64 // changes with each sign of life
}

// Leader is who leads.
type Leader struct {
	Token string `json:"token"`           // of the process; empty: nobody leads
	Addr  string `json:"addr,omitempty"`  // where other proxies ask it for ids, host:port
	Redis string `json:"redis,omitempty"` // where clients ask it over the Redis protocol, host:port; empty: it tells none
}

// User is who other proxies log in as at the leader. It has the leader's token, so that another process
// at the same address does not answer in its place.
func (l Leader) User() string { return "idproxy-" + l.Token }
