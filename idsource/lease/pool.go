package lease

// Pool is what a store keeps of a pool as a whole.
type Pool struct {
	Shape  string // what ids are composed of; see ShapeText
	Server string // which server that was, at the last visit; empty for stores that do not forget
	Since  int64  // since when it is that server: no number is given out before Since+Quarantine
}

// State is what becomes of a worker number.
type State uint8

// The states of a worker number.
const (
	Free    State = iota + 1 // anybody may take it
	Held                     // it has a holder
	Dropped                  // it was taken out of the pool; its fence is kept
)

// Record is what a store keeps of a worker number.
type Record struct {
	State State
	Token string // the holder's secret
	Label string // who that is, for people
	Beat  int64  // the holder's last sign of life; for a free number when it became free
	Start int64  // the holder's first timestamp
	Fence int64  // all its timestamps lie below; the next holder starts here
}

// Verdict is a store's answer to a holder.
type Verdict uint8

// The verdicts. A holder that is told another one than Granted and Anew has lost its number. After Late
// the store has it under the token still, and the holder can give it back.
const (
	Granted    Verdict = iota
	Anew               // granted, but the lease had ended: it begins anew, as if the number were just taken
	Wait               // not yet; it is known for how long
	NoPool             // the store has no such pool
	OtherShape         // the pool is one of other ids
	Empty              // no number is free
	Gone               // the number is not held
	Stolen             // the number has another holder
	Late               // the lease was silent for too long
	UsedUp             // numbers are used once, and there is none left
)

var verdicts = [...]string{
	Granted: "granted", Anew: "the lease had ended and begins anew", Wait: "wait", NoPool: "the store has no such pool", OtherShape: "the pool is one of other ids",
	Empty: "no number is free", Gone: "the number was given back or taken out", Stolen: "the number has another holder",
	Late: "the lease was not renewed in time", UsedUp: "all numbers that the layout has room for were used",
}

// String returns the verdict in words.
func (v Verdict) String() string { return verdicts[v] }

// Given says whether the number is the caller's.
func (v Verdict) Given() bool { return v == Granted || v == Anew }

// Visit notes which server answers. One that is not the one from before may
// have forgotten any part of the past.
func (l Rules) Visit(p Pool, server string, now int64) Pool {
	if p.Server != server && l.has(guardIncarnation) {
		p.Since = now
	}
	p.Server = server
	return p
}

// Resting is how long no number may be given out.
func (l Rules) Resting(p Pool, now int64) int64 {
	return max(0, p.Since+l.Quarantine()-now)
}

// Create makes a pool. fresh says that no id of its shape was ever issued, by
// any pool; then there is nothing to wait for.
func (l Rules) Create(shape, server string, now int64, fresh bool) Pool {
	p := Pool{Shape: shape, Server: server, Since: now}
	if fresh || !l.has(guardQuarantine) {
		p.Since -= l.Quarantine()
	}
	return p
}

// Wait is for how long nobody may take a number: until its holder has been
// silent for long enough, and until its first timestamp is one that can be used.
func (l Rules) Wait(r Record, now int64) (wait int64) {
	if r.State == Held && l.has(guardReclaim) {
		wait = r.Beat + l.Reclaim - now
	}
	// A fence beyond now+Lead would let numbers that change hands run away from
	// the clock, and a number that starts there is of no use to anybody.
	if l.has(guardReach) {
		wait = max(wait, r.Fence-(now+l.Lead)+1)
	}
	return max(0, wait)
}

// Take gives a number to the holder of token; or says how long it has to wait.
func (l Rules) Take(r Record, now int64, token, label string) (Record, int64, Verdict) {
	if r.State != Free && r.State != Held {
		return r, 0, Gone
	}
	if wait := l.Wait(r, now); wait > 0 {
		return r, wait, Wait
	}
	start := now
	if l.has(guardStart) {
		start = max(r.Fence, now)
	}
	return Record{State: Held, Token: token, Label: label, Beat: now, Start: start, Fence: now + l.Lead}, 0, Granted
}

// Use is what a holder tells of itself.
type Use struct {
	Token string
	Last  int64 // its last timestamp, 0 when there is none
	Beat  int64 // its last sign of life that the store confirmed, 0 when there is none
}

// owned says whether the number is held under the token.
func (l Rules) owned(r Record, token string) Verdict {
	switch {
	case r.State != Held:
		return Gone
	case r.Token != token && l.has(guardToken):
		return Stolen
	}
	return Granted
}

// Renew moves the fence on. Timestamps that run ahead of the clock take it
// with them, within Ahead. A lease that was silent for too long begins anew.
func (l Rules) Renew(p Pool, r Record, now int64, u Use) (Record, Verdict) {
	if v := l.owned(r, u.Token); v != Granted {
		return r, v
	}
	if now-r.Beat > l.Gap && l.has(guardGap) {
		return l.anew(p, r, now, u)
	}
	r.Beat = now
	r.Fence = max(r.Fence, max(now, min(u.Last, now+l.Ahead))+l.Lead)
	return r, Granted
}

// anew gives a number back and takes it again for its holder, in one step. While the pool rests
// the server may have forgotten who took the number since. Nobody has, as long as the holder's
// last sign of life that any server confirmed is not Reclaim old.
func (l Rules) anew(p Pool, r Record, now int64, u Use) (Record, Verdict) {
	if l.Resting(p, now) > 0 && now-u.Beat >= l.Reclaim-l.Skew && l.has(guardSilence) {
		return r, Late
	}
	free, _ := l.Release(r, now, u)
	again, _, v := l.Take(free, now, u.Token, r.Label)
	if v != Granted {
		return r, Late
	}
	again.Fence = max(r.Fence, again.Fence)
	return again, Anew
}

// Heard notes in the pool what a holder's asking shows: that the store forgot, though it looks like the server from
// before. The holder has lost a number that nobody could take by the rules, or it had a later sign of life confirmed
// than the record has. Then any number may have been given again, and the pool rests.
func (l Rules) Heard(p Pool, r Record, now int64, u Use) Pool {
	forgot := r.Beat < u.Beat
	if l.owned(r, u.Token) != Granted {
		forgot = now-u.Beat < l.Reclaim-l.Skew
	}
	if forgot && l.has(guardForgotten) {
		p.Since = now
	}
	return p
}

// Release makes the number free. The fence comes down to what was used.
func (l Rules) Release(r Record, now int64, u Use) (Record, Verdict) {
	if v := l.owned(r, u.Token); v != Granted {
		return r, v
	}
	fence := u.Last + 1
	if l.has(guardRelease) {
		fence = max(r.Start, fence)
	}
	return Record{State: Free, Label: r.Label, Beat: now, Start: r.Start, Fence: fence}, Granted
}
