package snowflake

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
)

// Snowflake composes ids from the time, a worker number and a sequence.
//
// The timestamp of every id lies below a fence that has been stored before, and the next
// owner of the worker number starts at or above it.
type Snowflake struct {
	idsource.OneSeries
	cfg     Config
	layout  Layout
	worker  uint64 // the configured one; with a pool each grant has its own
	time    *timeline
	words   words
	outlook *outlook

	life     context.Context // of keep, or of the pool's; ended by Close
	end      context.CancelFunc
	wg       sync.WaitGroup
	lease    idsource.Lease // of a fixed number: keep's while it runs, then Close's
	turns    atomic.Bool    // a fixed number is held for moments, see Share
	kick     chan struct{}  // asks keep to renew now, for ids
	switched chan struct{}  // tells keep that turns has changed
	swap     chan string    // asks the pool for another number, and says why
	fresh    atomic.Uint64  // numbers that the pool gave
}

// New checks the configuration and starts the goroutine that takes the
// worker number and keeps its fence ahead of the clock. The error is an *Error
// of kind BadConfig.
func New(c Config) (*Snowflake, error) {
	c = c.withDefaults()
	s, err := buildSnowflake(c)
	if err != nil {
		return nil, &idsource.Error{Source: c.Name, Kind: idsource.BadConfig, Cause: err}
	}
	s.life, s.end = context.WithCancel(context.Background())
	if c.Pool != nil {
		s.wg.Go(func() { c.Pool.Keep(s.life, tenant{s}) })
	} else {
		s.wg.Go(s.keep)
	}
	return s, nil
}

func buildSnowflake(c Config) (*Snowflake, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	l, err := ParseLayout(c.Layout)
	if err != nil {
		return nil, err
	}
	worker, err := c.worker(l)
	if err != nil {
		return nil, err
	}
	start, err := sequenceStart(c.Sequence, l)
	if err != nil {
		return nil, err
	}
	if err := checkEnd(&c, l, time.Unix(0, c.Clock.Wall())); err != nil {
		return nil, err
	}
	t := &timeline{host: c.Clock, epoch: c.Epoch.UnixNano(), unit: l.Unit}
	return &Snowflake{
		cfg: c, layout: l, worker: worker, time: t,
		words: words{
			time: t, layout: l, mask: 1<<l.Sequence - 1, startSeq: start,
			ahead: uint64(c.MaxAhead / l.Unit), lead: uint64((c.Lead + l.Unit - 1) / l.Unit),
			hold: uint64(c.Hold / l.Unit), back: c.ClockBack,
		},
		outlook: newOutlook(c.Wait), kick: make(chan struct{}, 1), switched: make(chan struct{}, 1), swap: make(chan string, 1),
	}, nil
}

// Close ends the source and gives the worker number up. The fence comes down
// to the first timestamp not used, so that the next holder need not wait.
func (s *Snowflake) Close(ctx context.Context) error {
	if !s.outlook.close() {
		return nil
	}
	s.end()
	s.wg.Wait()
	last, granted := s.revoke()
	s.outlook.tell(nil, s.time.mono())
	if s.lease == nil {
		return nil
	}
	var fence uint64
	if granted {
		fence = last + 1
	}
	if err := s.lease.Release(ctx, fence); err != nil {
		return s.fail(idsource.StoreDown, fmt.Errorf("release worker %d: %w", s.worker, err), "")
	}
	return nil
}

// revoke ends what was granted, and returns the last time that was used; granted is false where nothing was.
func (s *Snowflake) revoke() (last uint64, granted bool) {
	g := s.words.grant.Load()
	if last, granted = s.words.revoke(); granted && g != nil {
		s.cfg.UsedTimes.Use(s.shape(), g.worker, last+1)
	}
	return last, granted
}

// Above returns what lies above all ids that the source, which is closed, has given, and that other processes can have
// given by now; 0: it gave none. ok is false where ids do not ascend with their times.
func (s *Snowflake) Above() (first uint64, ok bool) {
	last := s.words.last.Load()
	if last == s.words.first.Load() && s.fresh.Load() <= 1 {
		return 0, true
	}
	ts := max(last>>s.layout.Sequence, s.time.now()+s.words.lead)
	return s.layout.compose((ts+1)<<s.layout.Sequence, 0), s.layout.Ascends()
}

// shape is what ids are composed of.
func (s *Snowflake) shape() idsource.Shape {
	return idsource.Shape{Layout: s.layout.pool(), Epoch: s.cfg.Epoch}
}

func (s *Snowflake) fail(k idsource.Kind, cause error, hint string) *idsource.Error {
	return idsource.NewError(s.cfg.Name, k, cause, hint)
}

// Series implements Source: all tables share the one series.
func (s *Snowflake) Series(string, string) (idsource.Series, error) { return s, nil }

// Return implements Series: what was given is gone with its time.
func (s *Snowflake) Return(uint64, uint64) {}

var (
	_ idsource.Source = (*Snowflake)(nil)
	_ idsource.Series = (*Snowflake)(nil)
)
