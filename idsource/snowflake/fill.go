package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
)

// clock is what a Snowflake knows of the time. The two readings move apart
// when someone sets the wall clock.
type clock struct {
	wall func() int64         // nanoseconds since 1970
	mono func() time.Duration // since any moment; never goes back
}

// grant is what the store allows: timestamps in [start, fence) with a worker
// number. It never changes; a renewal puts a new one in its place.
type grant struct {
	start, fence uint64
	worker       uint64
}

// Snowflake composes ids from the time, a worker number and a sequence.
//
// Time and sequence are one word, so that a sequence that overflows carries
// into the time and a clock that goes back is a word that goes on: the next
// word is the greater of the last one plus one and the clock's. The timestamp
// of every id lies below a fence that has been stored before, and the next
// owner of the worker number starts at or above it.
type Snowflake struct {
	idsource.OneSeries
	cfg      Config
	layout   Layout
	worker   uint64 // the configured one; with a pool each grant has its own
	mask     uint64 // of the sequence
	startSeq func(last uint64) uint64
	clock    clock
	epoch    int64  // nanoseconds since 1970
	ahead    uint64 // MaxAhead in units
	lead     uint64 // Lead in units

	word  atomic.Uint64           // time<<Sequence | sequence of the last id issued
	seen  atomic.Uint64           // greatest reading of the clock below the fence, in units
	grant atomic.Pointer[grant]   // nil: nothing may be issued
	base  atomic.Pointer[reading] // with a pool: where its clock stood
	swap  chan struct{}           // asks the pool for another number

	life context.Context // of keep; ended by Close
	end  context.CancelFunc
	wg   sync.WaitGroup
	kick chan struct{} // asks keep to renew now

	patience *idsource.Patience

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when grant or failed changes
	failed  error         // of the store; nil when the last call succeeded
	later   time.Duration // on the monotonic clock: when failed may change, if that is known
	closed  bool
	lease   idsource.Lease // keep's while it runs, then Close's

	// Negative controls of tests.
	noFence   bool // the fence is not looked at
	noRecheck bool // the grant is not looked at again after a claim
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

// now is the wall clock in units since the epoch.
func (s *Snowflake) now() uint64 { return s.units(s.wall()) }

// units is a reading of the wall clock in units since the epoch.
func (s *Snowflake) units(wall int64) uint64 {
	d := wall - s.epoch
	switch {
	case d < 0:
		return 0
	case s.layout.Unit == time.Millisecond: // divided by a constant, far quicker
		return uint64(d) / uint64(time.Millisecond)
	}
	return uint64(d) / uint64(s.layout.Unit)
}

// Fill sets ids to one run, or to several where one unit of time has too few
// sequence numbers; each run lies within a unit. See Source.
func (s *Snowflake) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if len(ids) == 0 {
		return nil
	}
	if stride == 0 {
		return s.fail(idsource.BadConfig, errors.New("ids 0 apart were asked for"), "")
	}
	if !s.layout.Consecutive() { // each id is a run of its own
		stride = 1
	}
	if units := uint64(len(ids)-1) / s.perUnit(stride); units > s.ahead {
		return s.fail(idsource.TooMany, fmt.Errorf("%d ids, %d apart, are more than %v of layout %s hold",
			len(ids), stride, s.cfg.MaxAhead, s.layout), "insert fewer rows per statement")
	}
	first, worker, why, _ := s.claim(uint64(len(ids)), stride)
	if why != flows {
		var err error
		if first, worker, err = s.await(ctx, uint64(len(ids)), stride); err != nil {
			return err
		}
	}
	s.write(ids, first, worker, stride)
	return nil
}

// await claims as soon as that is possible. It is a function of its own because its closure
// goes to the heap, which Fill must not.
func (s *Snowflake) await(ctx context.Context, n, stride uint64) (first, worker uint64, err error) {
	err = s.wait(ctx, func() (why stall, lack uint64) {
		first, worker, why, lack = s.claim(n, stride)
		return why, lack
	})
	return first, worker, err
}

// perUnit is how many ids, stride apart, one unit holds.
func (s *Snowflake) perUnit(stride uint64) uint64 { return s.mask/stride + 1 }

// write expands the run or runs that start at word first.
func (s *Snowflake) write(ids []uint64, first, worker, stride uint64) {
	if !s.layout.Consecutive() {
		for i := range ids { // stride is 1
			ids[i] = s.layout.compose(first+uint64(i), worker)
		}
		if !s.layout.Ascends() {
			slices.Sort(ids)
		}
		return
	}
	seq, id := first&s.mask, s.layout.compose(first, worker)
	for i := range ids {
		ids[i] = id
		if stride <= s.mask-seq {
			seq, id = seq+stride, id+stride
			continue
		}
		// place gives whole units when one has too few.
		first = (first | s.mask) + 1
		seq, id = 0, s.layout.compose(first, worker)
	}
}

// claim takes the words of n ids, stride apart, and returns the first one and
// the worker number. lack is the number of units by which the clock falls short.
func (s *Snowflake) claim(n, stride uint64) (first, worker uint64, why stall, lack uint64) {
	for {
		g := s.grant.Load()
		if g == nil {
			return 0, 0, noGrant, 0
		}
		// The clock is read after the word: what other goroutines add in
		// between is not mistaken for a clock that went back.
		p := s.word.Load()
		now := s.now()
		first, last := s.place(p, now, n, stride)
		if why, lack := s.gate(g, last>>s.layout.Sequence, now); why != flows {
			return 0, 0, why, lack
		}
		if !s.word.CompareAndSwap(p, last) {
			continue
		}
		// Close takes the grant away before it reads the word and lowers the
		// fence to it; a word claimed in between is dropped.
		if s.grant.Load() == g || s.noRecheck {
			return first, g.worker, flows, 0
		}
	}
}

// place says which words n ids occupy behind word p.
func (s *Snowflake) place(p, now, n, stride uint64) (first, last uint64) {
	bits := s.layout.Sequence
	first = p + 1
	if now > p>>bits {
		first = now<<bits | s.startSeq(p&s.mask)
	}
	if n == 1 {
		return first, first
	}
	if stride <= s.mask && n-1 <= (s.mask-first&s.mask)/stride {
		return first, first + (n-1)*stride
	}
	unit := first >> bits
	if unit == p>>bits { // partly used
		unit++
	}
	per := s.perUnit(stride)
	return unit << bits, (unit+(n-1)/per)<<bits + (n-1)%per*stride
}

// gate says whether an id may carry the timestamp ts.
func (s *Snowflake) gate(g *grant, ts, now uint64) (why stall, lack uint64) {
	back := s.behind(g, now)
	limit := s.limit(g, now)
	switch {
	case ts > s.layout.maxTime():
		return spent, 0
	case s.cfg.ClockBack != BackBorrow && back > uint64(s.cfg.Hold/s.layout.Unit):
		return clockBack, back
	case s.cfg.ClockBack == BackSwap && g.start > limit+1: // it has given none, and for long it could not; 1 is what rounding does
		return clockBack, g.start - limit
	case ts >= g.fence && !s.noFence:
		return atFence, ts + 1 - min(ts+1, now+s.lead)
	case ts > limit:
		return tooFar, ts - limit
	}
	return flows, 0
}

// behind says by how many units the clock is behind its greatest reading. One
// at or above the fence does not count: it may be put right before it is
// confirmed, see keep, and no id can come of it until then.
func (s *Snowflake) behind(g *grant, now uint64) uint64 {
	for {
		seen := s.seen.Load()
		switch {
		case now <= seen:
			return seen - now
		case now >= g.fence && !s.noFence, s.seen.CompareAndSwap(seen, now):
			return 0
		}
	}
}

// limit is the greatest timestamp that the clock allows. After a crash the
// start may be further ahead of the clock than MaxAhead, by up to Lead. Lead
// bounds it, so that restarts do not add up.
func (s *Snowflake) limit(g *grant, now uint64) uint64 {
	return max(now+s.ahead, min(g.start+s.ahead, now+s.lead))
}

// wait tries again each time that an obstacle may have gone, until Wait or the patience with the
// store is over. It refuses at once when no obstacle can go in time.
func (s *Snowflake) wait(ctx context.Context, try func() (stall, uint64)) error {
	started, most := s.clock.mono(), s.patience.Limit()
	limit := time.NewTimer(most)
	defer limit.Stop()
	var t idsource.Turn // of a wait for the store
	defer func() { t.End() }()
	for {
		changed, later, hopeless := s.watch()
		// The try comes behind watch, so that no change falls in between.
		why, lack := try()
		if why == flows {
			return nil
		}
		waited := s.clock.mono() - started
		need := s.duration(lack)
		if why == noGrant {
			need = max(need, later-s.clock.mono())
		}
		if need <= 0 && t.Of == nil && (why == noGrant || why == atFence) {
			var ok bool
			if t, ok = s.patience.Begin(); !ok {
				return s.refuse(why, lack)
			}
			most = min(most, waited+t.Most)
			limit.Reset(most - waited)
		}
		if why == clockBack && s.cfg.ClockBack == BackSwap && !hopeless {
			s.swapNow()
			need = 0
		}
		if hopeless || why == spent || need > most-waited {
			return s.refuse(why, lack)
		}
		if why == atFence {
			s.renewNow()
		}
		var caughtUp <-chan time.Time
		if need > 0 {
			caughtUp = time.After(need)
		}
		select {
		case <-changed:
		case <-caughtUp:
		case <-ctx.Done():
			return s.fail(idsource.NotReady, fmt.Errorf("the wait for an id ended: %w", context.Cause(ctx)), "")
		case <-limit.C:
			return s.refuse(why, lack)
		}
	}
}

// duration is a number of units as time, or the longest time there is.
func (s *Snowflake) duration(units uint64) time.Duration {
	if units > uint64(math.MaxInt64/s.layout.Unit) {
		return math.MaxInt64
	}
	return time.Duration(units) * s.layout.Unit
}

// watch returns a channel that is closed at the next change, when on the monotonic
// clock that may come at the earliest, and whether there is no point in waiting for
// it.
func (s *Snowflake) watch() (changed <-chan struct{}, later time.Duration, hopeless bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, s.later, s.closed || errors.Is(s.failed, idsource.BadConfig)
}

func (s *Snowflake) fail(k idsource.Kind, cause error, hint string) *idsource.Error {
	return idsource.NewError(s.cfg.Name, k, cause, hint)
}

// refuse turns a stall into the error it ends in.
func (s *Snowflake) refuse(why stall, lack uint64) *idsource.Error {
	s.mu.Lock()
	failed, closed := s.failed, s.closed
	s.mu.Unlock()
	const checkClock = "check the clock of this host"
	switch {
	case closed:
		return s.fail(idsource.Closed, nil, "")
	case why == spent:
		return s.fail(idsource.Exhausted, fmt.Errorf("layout %s has no timestamps left", s.layout), "move to a layout with more bits of time")
	case why == noGrant && failed == nil && s.cfg.Pool != nil:
		return s.fail(idsource.NotReady, errors.New("no worker number is taken yet"), "")
	case why == noGrant && failed == nil:
		return s.fail(idsource.NotReady, fmt.Errorf("worker %d is not taken yet", s.worker), "")
	case why == noGrant && errors.Is(failed, idsource.BadConfig):
		return s.fail(idsource.BadConfig, failed, "")
	case why == noGrant:
		return s.fail(idsource.NotReady, failed, "it is tried again until it succeeds")
	case why == atFence && lack > 0:
		return s.fail(idsource.Fenced, fmt.Errorf("the clock is %v behind the timestamps that the worker number may have been used with",
			s.duration(lack)), checkClock)
	case why == atFence && failed != nil:
		return s.fail(idsource.Fenced, fmt.Errorf("the bound of timestamps cannot be renewed: %w", failed), "it is tried again until it succeeds")
	case why == atFence:
		return s.fail(idsource.Fenced, fmt.Errorf("the bound of timestamps was not renewed within %v", s.patience.Limit()), "")
	case why == clockBack:
		return s.fail(idsource.Fenced, fmt.Errorf("the clock went back by %v", s.duration(lack)), checkClock)
	}
	return s.fail(idsource.Fenced, fmt.Errorf("timestamps are %v further ahead of the clock than max_ahead allows", s.duration(lack)), checkClock)
}

// Blocks implements Series, for sizes up to the ids that one unit of time holds;
// each run lies within a unit.
func (s *Snowflake) Blocks(ctx context.Context, ids []uint64, size uint64) error {
	if len(ids) == 0 {
		return nil
	}
	if size == 0 || size&(size-1) != 0 || size > s.mask+1 || !s.layout.Consecutive() {
		return s.fail(idsource.BadConfig, fmt.Errorf("runs of %d ids are not possible with layout %s", size, s.layout), "")
	}
	n := uint64(len(ids)) * size
	if n/size != uint64(len(ids)) || (n-1)/(s.mask+1) > s.ahead {
		return s.fail(idsource.TooMany, fmt.Errorf("%d ids, each the only one of %d, are more than %v of layout %s hold",
			len(ids), size, s.cfg.MaxAhead, s.layout), "insert fewer rows per statement")
	}
	// The runs are claimed id by id: a claim of every size-th would leave the rest
	// of the last run to the next claim.
	first, worker, why, _ := s.claim(n, 1)
	if why != flows {
		var err error
		if first, worker, err = s.await(ctx, n, 1); err != nil {
			return err
		}
	}
	s.write(ids, first, worker, size)
	return nil
}
