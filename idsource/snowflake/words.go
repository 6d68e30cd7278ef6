package snowflake

import "sync/atomic"

// grant is what the store allows: timestamps in [start, fence) with a worker
// number. It never changes; a renewal puts a new one in its place.
type grant struct {
	start, fence uint64
	worker       uint64
}

// stall is why no id can be had now.
type stall uint8

const (
	flows     stall = iota
	noGrant         // no worker number yet
	atFence         // the fence must be renewed first
	tooFar          // the clock must catch up first
	clockBack       // so it must, by configuration
	spent           // no timestamps left
)

// words gives out words, each once: the time and the sequence of an id. It waits for nothing and
// knows no store. It is safe for concurrent use.
//
// Time and sequence are one word, so that a sequence that overflows carries
// into the time and a clock that goes back is a word that goes on: the next
// word is the greater of the last one plus one and the clock's.
type words struct {
	time     *timeline
	layout   Layout
	mask     uint64 // of the sequence
	startSeq func(last uint64) uint64
	ahead    uint64    // MaxAhead in units
	lead     uint64    // Lead in units
	hold     uint64    // Hold in units
	back     ClockBack // beyond hold

	last  atomic.Uint64         // time<<Sequence | sequence of the last id issued
	first atomic.Uint64         // what last was when the number was taken
	seen  atomic.Uint64         // greatest reading of the clock below the fence, in units
	grant atomic.Pointer[grant] // nil: nothing may be issued
}

// claim takes the words of n ids, stride apart, and returns the first one and
// the worker number. lack is the number of units by which the clock falls short.
func (w *words) claim(n, stride uint64) (first, worker uint64, why stall, lack uint64) {
	for {
		g := w.grant.Load()
		if g == nil {
			return 0, 0, noGrant, 0
		}
		// The clock is read after the word: what other goroutines add in
		// between is not mistaken for a clock that went back.
		p := w.last.Load()
		now := w.time.now()
		first, last := w.place(p, now, n, stride)
		if why, lack := w.gate(g, last>>w.layout.Sequence, now); why != flows {
			return 0, 0, why, lack
		}
		if !w.last.CompareAndSwap(p, last) {
			continue
		}
		// Close takes the grant away before it reads the word and lowers the
		// fence to it; a word claimed in between is dropped.
		if w.grant.Load() == g {
			return first, g.worker, flows, 0
		}
	}
}

// perUnit is how many ids, stride apart, one unit holds.
func (w *words) perUnit(stride uint64) uint64 { return w.mask/stride + 1 }

// place says which words n ids occupy behind word p.
func (w *words) place(p, now, n, stride uint64) (first, last uint64) {
	bits := w.layout.Sequence
	first = p + 1
	if now > p>>bits {
		first = now<<bits | w.startSeq(p&w.mask)
	}
	if n == 1 {
		return first, first
	}
	if stride <= w.mask && n-1 <= (w.mask-first&w.mask)/stride {
		return first, first + (n-1)*stride
	}
	unit := first >> bits
	if unit == p>>bits { // partly used
		unit++
	}
	per := w.perUnit(stride)
	return unit << bits, (unit+(n-1)/per)<<bits + (n-1)%per*stride
}

// outlook says why the next id cannot be had now, and by how many units the clock falls short. It
// changes nothing: what is seen of the clock is for those who take ids to say.
func (w *words) outlook(g *grant, now uint64) (why stall, lack uint64) {
	next, seen := (w.last.Load()+1)>>w.layout.Sequence, w.seen.Load()
	return w.judge(g, max(next, now), now, max(seen, now)-now)
}

// gate says whether an id may carry the timestamp ts.
func (w *words) gate(g *grant, ts, now uint64) (why stall, lack uint64) {
	return w.judge(g, ts, now, w.behind(g, now))
}

// judge is gate for a clock that is behind its greatest reading by back units.
func (w *words) judge(g *grant, ts, now, back uint64) (why stall, lack uint64) {
	limit := w.limit(g, now)
	switch {
	case ts > w.layout.maxTime():
		return spent, 0
	case w.back != BackBorrow && back > w.hold:
		return clockBack, back
	case w.back == BackSwap && g.start > limit+1: // it has given none, and for long it could not; 1 is what rounding does
		return clockBack, g.start - limit
	case ts >= g.fence:
		return atFence, ts + 1 - min(ts+1, now+w.lead)
	case ts > limit:
		return tooFar, ts - limit
	}
	return flows, 0
}

// behind says by how many units the clock is behind its greatest reading. One
// at or above the fence does not count: it may be put right before it is
// confirmed, see keep, and no id can come of it until then.
func (w *words) behind(g *grant, now uint64) uint64 {
	for {
		seen := w.seen.Load()
		switch {
		case now <= seen:
			return seen - now
		case now >= g.fence, w.seen.CompareAndSwap(seen, now):
			return 0
		}
	}
}

// limit is the greatest timestamp that the clock allows. After a crash the
// start may be further ahead of the clock than MaxAhead, by up to Lead. Lead
// bounds it, so that restarts do not add up.
func (w *words) limit(g *grant, now uint64) uint64 {
	return max(now+w.ahead, min(g.start+w.ahead, now+w.lead))
}

// advance moves the word up to target, under the same rules as claim.
func (w *words) advance(target uint64) (why stall, lack uint64) {
	for {
		g := w.grant.Load()
		if g == nil {
			return noGrant, 0
		}
		p := w.last.Load()
		ts, now := target>>w.layout.Sequence, w.time.now()
		switch limit := w.limit(g, now); {
		case target <= p:
			return flows, 0
		case ts > limit:
			return tooFar, ts - limit
		case ts >= g.fence:
			return atFence, ts + 1 - min(ts+1, now+w.lead)
		}
		// A word moved after Close has read it is not what Close stores as the
		// fence.
		if w.last.CompareAndSwap(p, target) && w.grant.Load() == g {
			return flows, 0
		}
	}
}

// revoke takes the grant away and returns the time of the last word, in units. The grant goes
// before the word is read: what is claimed in between is dropped. ok is false where there was none.
func (w *words) revoke() (ts uint64, ok bool) {
	ok = w.grant.Swap(nil) != nil
	return w.last.Load() >> w.layout.Sequence, ok
}

// begin has the words start at a time, in units. Nothing is granted yet.
func (w *words) begin(start uint64) {
	w.last.Store(start<<w.layout.Sequence - 1)
	w.first.Store(w.last.Load())
}

// restart takes the grant away and has the words of a worker number, which may be the one from before,
// start at a time, in units. The word goes back only where the clock did, which is what a change of
// numbers is for.
func (w *words) restart(start uint64) {
	w.grant.Store(nil) // claims under the old grant are dropped, so the word can be set
	from := max(start<<w.layout.Sequence, 1) - 1
	if p := w.last.Load(); p > from && p>>w.layout.Sequence <= w.time.now()+w.ahead {
		from = p
	}
	w.last.Store(from)
	w.first.Store(from)
	w.seen.Store(w.time.now())
}
