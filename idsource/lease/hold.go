package lease

import "time"

// Hold is a number as its holder sees it. Mono times are on the holder's
// monotonic clock.
type Hold struct {
	Worker uint64
	Token  string
	Start  int64 // first timestamp
	Fence  int64 // timestamps lie below
	Beat   int64 // the last sign of life that the store confirmed

	Active   bool          // ids may be issued
	waits    bool          // the number changed hands: it rests for longer, and until the pool does not
	taken    time.Duration // mono: when the number was taken
	deadline time.Duration // mono: a renewal that is sent later finds the lease ended
}

// Took is the hold that begins when the store has given out a number. received
// is when its answer came, on the monotonic clock, sent when it was asked.
func (l Rules) Took(worker uint64, r Record, sent, received time.Duration) Hold {
	return Hold{
		Worker: worker, Token: r.Token, Start: r.Start, Fence: r.Fence, Beat: r.Beat,
		Active: l.Loss == 0 || !l.has(guardActivation),
		waits:  true, taken: received, deadline: sent + ms(l.Gap),
	}
}

// MayRenew says whether a renewal may be sent as one in time. When it may not, the lease has
// ended: the number may be somebody else's.
func (l Rules) MayRenew(h Hold, mono time.Duration) bool {
	return mono <= h.deadline || !l.has(guardDeadline)
}

// Ended is a hold whose lease has ended. last is the last timestamp used. Should the store grant a
// renewal all the same, then no id comes before another one is granted, as after a take.
func (l Rules) Ended(h Hold, last int64, mono time.Duration) Hold {
	h.Start, h.Active, h.taken = max(h.Start, last+1), false, mono
	return h
}

// Again is the hold after the store granted a renewal of an ended one, and the lease began anew. What
// was used while the renewal was under way lies below its start, too.
func (l Rules) Again(ended Hold, r Record, sent, received time.Duration) Hold {
	h := l.Took(ended.Worker, r, sent, received)
	h.waits = l.changed(ended, r)
	if l.has(guardUsed) {
		h.Start = max(h.Start, ended.Start)
	}
	return h
}

// changed says whether a hold whose lease ended, as the renewal with this record shows, is of a number that changed
// hands: or could, in the silence before.
func (l Rules) changed(ended Hold, r Record) bool {
	return ended.waits || r.Beat-ended.Beat >= l.Reclaim-l.Skew
}

// Renewed is the hold after the store granted a renewal. resting is for how long the pool rests yet.
func (l Rules) Renewed(h Hold, r Record, resting int64, sent time.Duration) Hold {
	h.waits = !h.Active && l.changed(h, r) // where the lease had begun anew, and nobody heard of it
	h.Start, h.Beat, h.Fence = max(h.Start, r.Start), r.Beat, max(h.Fence, r.Fence)
	h.deadline = max(h.deadline, sent+ms(l.Gap))
	if h.Active || sent < l.Activates(h) || h.waits && resting > 0 && l.has(guardWaits) {
		return h
	}
	if h.waits { // whoever held it when the store forgot stopped before this
		h.Start = max(h.Start, r.Beat)
	}
	h.Active, h.waits = true, false
	return h
}

// Reaches says whether the clock, which shows now, is near enough to the hold's
// first timestamp for it to be used. It is not when the clock went back since.
func (l Rules) Reaches(h Hold, now int64) bool { return h.Start < now+l.Lead }

// Activates is when a renewal makes the hold active, if the pool does not rest then.
func (l Rules) Activates(h Hold) time.Duration {
	if h.waits {
		return h.taken + ms(l.Rest())
	}
	return h.taken + ms(l.Loss)
}

// May says whether an id may carry a timestamp.
func (l Rules) May(h Hold, ts int64) bool {
	return h.Active && ts >= h.Start && (ts < h.Fence || !l.has(guardFence))
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
