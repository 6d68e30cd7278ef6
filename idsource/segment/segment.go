package segment

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"idproxy/idsource"
)

// Segment hands out ids of ranges reserved in a SegmentStore. The ranges form a
// chain; by default it is as long as two, since the next range is fetched
// while the newest one is being used. Ranges that follow each other without a
// gap are joined, so a statement never sees the seam.
//
// A Segment starts a goroutine when a range is wanted, and it ends when one has
// come; while the store does not answer it keeps trying.
type Segment struct {
	idsource.OneSeries
	cfg    Config
	chain  chain
	spaced idsource.Spaced // nil: all ids of its ranges are the series'
	every  atomic.Pointer[idsource.Spacing]

	life context.Context // of the loader; ended by Close
	end  context.CancelFunc
	wg   sync.WaitGroup
	kick chan struct{} // has the loader try the store again now

	mu      sync.Mutex // of the chain, too
	waiters queue
	loading bool            // the loader runs
	closed  bool            // no more ids
	dead    *idsource.Error // the store went back: no more ids
	failed  error           // of the last fetch; nil when it succeeded
	low     uint64          // where the last range began
	high    uint64          // no range may start below: where the last one ended
	past    uint64          // no id below is issued: Advance
	told    uint64          // no id below goes back to the store: Issued
	raised  uint64          // no part of the store gives a range below: Raiser
	pace    pace
	tuned   tuned
	ranges  uint64 // that came
	refused uint64 // fetches that failed
	meter   meter
	taken   taken
}

// New checks the configuration; it asks nothing of the store. The error
// is an *Error of kind BadConfig.
func New(c Config) (*Segment, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, &idsource.Error{Source: c.Name, Kind: idsource.BadConfig, Cause: err}
	}
	s := &Segment{
		cfg: c, kick: make(chan struct{}, 1),
		pace: pace{policy: c.StepPolicy, least: c.Step, most: c.MaxStep, step: c.Step},
	}
	s.chain.ordered = c.Ordered
	s.spaced, _ = c.Store.(idsource.Spaced)
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends the source. Ids left of the newest range go back to the store if
// nobody has reserved later ones; the others are a gap. An error of kind
// StoreDown means that they are a gap, too; nothing else is lost.
func (s *Segment) Close(ctx context.Context) error {
	unused, back, err := s.finish(ctx)
	if unused > 0 {
		s.cfg.closed(unused, back)
	}
	return err
}

// closed logs how many ids were in memory at the end.
func (c *Config) closed(unused uint64, back bool) {
	c.Logger.Info("id source closed", "source", c.Name, "unused", unused, "given_back", back)
}

// finish ends the series, and returns how many ids were left, and whether they went back.
func (s *Segment) finish(ctx context.Context) (unused uint64, back bool, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, false, nil
	}
	s.closed = true
	s.waiters.fail(s.fail(idsource.Closed, nil, ""))
	s.mu.Unlock()
	s.end()
	s.wg.Wait()

	s.mu.Lock()
	lo, hi, floor := s.chain.drain()
	if least := s.leastKept(); least > lo {
		lo, floor = least, least
	}
	if lo < hi && hi == s.high {
		s.rose(floor) // what is left was not given
	}
	s.mu.Unlock()
	if lo >= hi {
		return 0, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if back, err = s.cfg.Store.GiveBack(ctx, s.cfg.Key, lo, hi); err != nil {
		return 0, false, s.fail(idsource.StoreDown, fmt.Errorf("give back ids %d to %d: %w", lo, hi-1, err), "")
	}
	return hi - lo, back, nil
}

// leastKept returns up to where the newest range does not go back. The caller holds mu.
func (s *Segment) leastKept() uint64 {
	if s.past > 0 {
		return max(s.low+1, s.told)
	}
	return s.told
}

// ended says why no more ids will come. The caller holds mu.
func (s *Segment) ended() *idsource.Error {
	switch {
	case s.closed:
		return s.fail(idsource.Closed, nil, "")
	case s.dead != nil:
		return s.dead
	}
	return nil
}

func (s *Segment) fail(k idsource.Kind, cause error, hint string) *idsource.Error {
	return s.cfg.fail(k, cause, hint)
}

func (s *Segment) storeDown(err error) *idsource.Error {
	return s.fail(idsource.StoreDown, err, "it is tried again until it answers")
}

// Series implements Source: all tables share the one series.
func (s *Segment) Series(string, string) (idsource.Series, error) { return s, nil }

var (
	_ idsource.Source = (*Segment)(nil)
	_ idsource.Series = (*Segment)(nil)
)
