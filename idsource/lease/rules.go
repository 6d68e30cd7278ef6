package lease

import (
	"fmt"
	"time"
)

// Bounds of what is assumed of a store that lost writes. They are constants of
// the design, see Rules.
const (
	// Loss is how long a server may go on accepting writes that the server in
	// its place does not have, and the age of the writes that may vanish while
	// the server looks the same.
	Loss = 2 * time.Second
	// Skew is how far the clocks of a server and of the one that takes its
	// place may differ.
	Skew = time.Second
)

// Rules are the times of a pool, in milliseconds. Derive makes them; all
// processes of a pool must use the same.
type Rules struct {
	Heartbeat int64 // a holder renews this often
	Gap       int64 // a lease that was not renewed for longer has ended
	Lead      int64 // how far ahead of the store's clock a renewal puts the fence
	Ahead     int64 // how far a holder's timestamps may run ahead of the clock
	Loss      int64 // see the constant
	Skew      int64 // see the constant
	Reclaim   int64 // silence after which another process may take the number

	without guard // rules that a test takes away
}

// Derive makes the rules of a pool from what is configured. What is left of
// reclaim after the assumptions goes half to the gap, which is the outage of
// the store that holders survive, and half to the lead, which is a heartbeat more.
func Derive(heartbeat, reclaim, maxAhead time.Duration) (Rules, error) {
	gap := (reclaim - maxAhead - Loss - Skew - heartbeat) / 2
	if heartbeat < time.Millisecond {
		return Rules{}, fmt.Errorf("a heartbeat of %v is too short, at least 1ms is needed", heartbeat)
	}
	if gap < 3*heartbeat {
		return Rules{}, fmt.Errorf("with a heartbeat of %v and ids up to %v ahead of the clock, reclaim must be at least %v, not %v",
			heartbeat, maxAhead, 7*heartbeat+maxAhead+Loss+Skew, reclaim)
	}
	return Rules{
		Heartbeat: heartbeat.Milliseconds(),
		Gap:       gap.Milliseconds(),
		Lead:      (gap + heartbeat).Milliseconds(),
		Ahead:     maxAhead.Milliseconds(),
		Loss:      Loss.Milliseconds(),
		Skew:      Skew.Milliseconds(),
		Reclaim:   reclaim.Milliseconds(),
	}, nil
}

// Lasting are the rules for a store that keeps what it has confirmed whichever
// of its servers fails, and that has no clock of its own: times are those of the
// processes' hosts. No write vanishes there, so the time for that is given to the clocks.
func (l Rules) Lasting() Rules {
	l.Skew, l.Loss = l.Skew+l.Loss, 0
	return l
}

// Survives is the longest outage of the store through which a holder goes on
// without a pause, counted from its last renewal.
func (l Rules) Survives() time.Duration { return time.Duration(l.Gap) * time.Millisecond }

// Quarantine is how long a pool rests before it gives out its first number,
// after it was made or when its server is not the one from before: by then all
// timestamps that a forgotten holder may use have passed.
func (l Rules) Quarantine() int64 { return l.Loss + l.Lead + l.Ahead + l.Skew }

// Rest is how long a number that changed hands is held before its first id: by then writes that vanish have
// vanished, and whoever held it before, and lives, asked the store, which could tell that it forgot. There
// is nothing to wait for where a store keeps what it has confirmed.
func (l Rules) Rest() int64 {
	if l.Loss == 0 || !l.has(guardRest) {
		return l.Loss
	}
	return max(l.Loss, l.Heartbeat+l.Skew)
}

// guard is a set of rules. Each can be taken away in a test, to show that the
// test would notice.
type guard uint16

const (
	guardFence       guard = 1 << iota // a timestamp is compared with the fence
	guardStart                         // the next holder starts at the fence
	guardToken                         // a renewal carries the token of the number's holder
	guardIncarnation                   // a server that is not the one from before starts a quarantine
	guardQuarantine                    // a pool that was made anew starts one
	guardActivation                    // no id before a renewal that was sent Loss after the number was taken
	guardForgotten                     // a pool rests when a holder's asking shows that the store forgot
	guardRest                          // a number that changed hands rests until all who hold one have asked
	guardWaits                         // it gives none while the pool rests
	guardGap                           // a lease that was silent for too long begins anew
	guardSilence                       // but not while the pool rests, after a silence in which another could take the number
	guardReclaim                       // only a silent number is taken from its holder
	guardRelease                       // a fence does not come down below where its holder started
	guardDeadline                      // a lease that has ended by its holder's clock gives no ids until it begins anew, or is shown to be kept
	guardUsed                          // a lease that begins anew begins above what its holder used meanwhile
	guardReach                         // a number is not given whose first timestamp the clock has to reach yet
)

func (l Rules) has(g guard) bool { return l.without&g == 0 }
