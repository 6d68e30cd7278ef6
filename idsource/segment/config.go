package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"idproxy/idsource"
)

// Defaults of Config.
const (
	DefaultStep     = 1000
	DefaultMaxStep  = 1_000_000
	DefaultPrefetch = 0.1
	DefaultTimeout  = 5 * time.Second
	DefaultMaxBatch = 1 << 32
)

// StepPolicy says how the size of the ranges follows the demand.
type StepPolicy uint8

const (
	// StepLeaf doubles the step when the last one lasted less than 15 minutes
	// and halves it when it lasted more than 30, between Step and MaxStep.
	StepLeaf StepPolicy = iota
	// StepFixed always reserves Step.
	StepFixed
	// StepRate sizes ranges to last a minute at the rate that ids are used,
	// between Step and MaxStep, and changes by a factor of two at most.
	StepRate
)

// policies are how stores name them.
var policies = map[string]StepPolicy{"leaf": StepLeaf, "fixed": StepFixed, "rate": StepRate}

// Policy returns the policy of a name.
func Policy(name string) (p StepPolicy, ok bool) {
	p, ok = policies[name]
	return p, ok
}

// Config describes a Segment.
type Config struct {
	Name       string                                               // required: the source's name, for messages
	Store      idsource.SegmentStore                                // required; stays the caller's, who closes it after the source
	Key        string                                               // default Name
	Start      uint64                                               // lowest id, default 1; a key that stands below is moved up to it
	Step       uint64                                               // ids per range, default 1000
	MaxStep    uint64                                               // bound of the dynamic step, default 1,000,000 or Step if that is more
	StepPolicy StepPolicy                                           // default StepLeaf
	Prefetch   float64                                              // share of the newest range that is used when the next one is fetched, default 0.1; earlier if the rest would not last
	Last       uint64                                               // greatest id ever issued, default 2^63-1
	MaxBatch   uint64                                               // greatest number of ids, times stride, in one Fill; default 2^32
	Wait       func() time.Duration                                 // longest wait of a Fill or Admit for the store, asked at each; default 2s
	Timeout    time.Duration                                        // of one fetch from the store, default 5s
	Ordered    bool                                                 // ids ascend in the order in which they are given, whatever their number; a call that finds too few drops them; default false
	template   func(ctx context.Context) (idsource.Position, error) // where that stands which the key is made of; nil: only an administrator makes the key
	Begin      Begin                                                // asked before the first id of a series; nil: the column of Admit is all there is
	Keys       func(context.Context) ([]string, error)              // of the store, but for those that sources name; nil: only Position says which keys there are
	Fetched    func(took time.Duration, err error)                  // told of each fetch; default: nobody is
	Logger     *slog.Logger                                         // default: discard

	HighWater *idsource.HighWater // of the store; default: of this source alone

	By    string         // who reserves, in the store's history; default host:process
	Tuner idsource.Tuner // says how the series is tuned; default Store, if it is one
	// Rows says how many ids a step of so many rows is; nil: as many. Steps that the store keeps are
	// of rows, those above are of ids.
	Rows func(rows uint64) uint64

	patience *idsource.Patience // by Wait; the series of a PerTable share it
}

func (c Config) withDefaults() Config {
	c.Key = cmp.Or(c.Key, c.Name)
	c.Start = cmp.Or(c.Start, 1)
	c.Step = cmp.Or(c.Step, DefaultStep)
	c.MaxStep = cmp.Or(c.MaxStep, max(DefaultMaxStep, c.Step))
	c.Prefetch = cmp.Or(c.Prefetch, DefaultPrefetch)
	c.Last = cmp.Or(c.Last, math.MaxInt64)
	c.MaxBatch = cmp.Or(c.MaxBatch, DefaultMaxBatch)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Fetched == nil {
		c.Fetched = func(time.Duration, error) {}
	}
	if c.Tuner == nil {
		c.Tuner, _ = c.Store.(idsource.Tuner)
	}
	if c.By == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.By = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if c.HighWater == nil {
		c.HighWater = &idsource.HighWater{}
	}
	if c.Rows == nil {
		c.Rows = func(rows uint64) uint64 { return rows }
	}
	if c.patience == nil {
		c.patience = idsource.NewPatience(c.Wait)
	}
	return c
}

func (c *Config) check() error {
	switch {
	case c.Name == "":
		return errors.New("a segment source needs a name")
	case c.Store == nil:
		return errors.New("a segment source needs a store")
	case c.StepPolicy > StepRate:
		return fmt.Errorf("unknown step policy %d", c.StepPolicy)
	case c.MaxStep < c.Step:
		return fmt.Errorf("max_step %d is below step %d", c.MaxStep, c.Step)
	case !(c.Prefetch > 0 && c.Prefetch <= 1):
		return fmt.Errorf("prefetch is a share above 0%% and up to 100%%, not %v%%", c.Prefetch*100)
	case c.Last == math.MaxUint64:
		return errors.New("the greatest id must be below 2^64-1")
	case c.Start > c.Last:
		return fmt.Errorf("start %d is above the greatest id %d", c.Start, c.Last)
	case c.Timeout < 0:
		return errors.New("a wait cannot be negative")
	}
	return nil
}
