package snowflake

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"idproxy/idsource"
)

// Defaults of Config.
const (
	DefaultLayout   = "41/10/12"
	DefaultMaxAhead = 3 * time.Second
	DefaultHold     = 15 * time.Millisecond
	DefaultLead     = 8 * time.Second
	DefaultRenew    = 2 * time.Second
)

// DefaultEpoch is where the time of snowflake ids starts unless configured.
var DefaultEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// ClockBack says what to do when the clock went back by more than Hold.
type ClockBack uint8

const (
	// BackBorrow goes on from the last timestamp, as far as MaxAhead allows.
	BackBorrow ClockBack = iota
	// BackError refuses until the clock has caught up.
	BackError
	// BackSwap changes to another worker number of the pool; a fixed one has none.
	BackSwap
)

// Config describes a Snowflake, with a fixed worker number or with one
// from a pool.
type Config struct {
	Name       string               // required: the source's name, for messages
	Fences     idsource.FenceStore  // for a fixed number; stays the caller's, who closes it after the source
	Pool       idsource.WorkerPool  // in place of Fences, Datacenter, Worker and Renew
	Layout     string               // default 41/10/12; see ParseLayout
	Epoch      time.Time            // default 2020-01-01 UTC
	Datacenter uint64               // only with a layout that has datacenter bits
	Worker     uint64               // the worker number
	Sequence   string               // where it starts in a new unit of time: continue (default), random, random:N, zero
	MaxAhead   time.Duration        // how far timestamps may run ahead of the clock when the sequence overflows, default 3s
	Hold       time.Duration        // a clock that goes back no more than this is waited out, default 15ms
	ClockBack  ClockBack            // beyond Hold; default BackBorrow
	Lead       time.Duration        // how far ahead of the clock the fence is stored, default 8s
	Renew      time.Duration        // how often, default 2s
	UsedTimes  *idsource.UsedTimes  // of the process; default: of this source alone
	Wait       func() time.Duration // longest wait of a Fill, asked at each; default 2s
	Clock      Clock                // default: the host's
	Logger     *slog.Logger         // default: discard
}

func (c Config) withDefaults() Config {
	c.Layout = cmp.Or(c.Layout, DefaultLayout)
	c.Epoch = cmp.Or(c.Epoch, DefaultEpoch)
	c.Sequence = cmp.Or(c.Sequence, "continue")
	c.MaxAhead = cmp.Or(c.MaxAhead, DefaultMaxAhead)
	c.Hold = cmp.Or(c.Hold, DefaultHold)
	c.Lead = cmp.Or(c.Lead, DefaultLead)
	c.Renew = cmp.Or(c.Renew, DefaultRenew)
	if c.Clock.Wall == nil {
		c.Clock = hostClock()
	}
	if c.UsedTimes == nil {
		c.UsedTimes = &idsource.UsedTimes{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *Config) check() error {
	switch {
	case c.Name == "":
		return errors.New("a snowflake source needs a name")
	case (c.Fences == nil) == (c.Pool == nil):
		return errors.New("a snowflake source needs a store for its fence, or a pool")
	case c.Pool != nil && (c.Worker != 0 || c.Datacenter != 0):
		return errors.New("a worker number from a pool is not configured as well")
	case c.ClockBack == BackSwap && c.Pool == nil:
		return errors.New("clock_back: swap needs worker numbers from a pool, a fixed one takes borrow or error")
	case c.ClockBack > BackSwap:
		return fmt.Errorf("unknown clock_back %d", c.ClockBack)
	case c.MaxAhead < 0 || c.Hold < 0 || c.Renew < 0:
		return errors.New("a duration cannot be negative")
	case c.Pool == nil && c.Lead < c.MaxAhead+c.Renew:
		return fmt.Errorf("the lead of %v must be at least max_ahead %v and the renewal interval %v together",
			c.Lead, c.MaxAhead, c.Renew)
	}
	return nil
}

// worker checks the configured numbers against the layout and joins them.
func (c *Config) worker(l Layout) (uint64, error) {
	if c.Worker >= 1<<l.Worker {
		return 0, fmt.Errorf("worker %d does not fit the %d bits of layout %s, the greatest is %d",
			c.Worker, l.Worker, l, 1<<l.Worker-1)
	}
	if c.Datacenter >= 1<<l.Datacenter {
		return 0, fmt.Errorf("datacenter %d does not fit the %d bits of layout %s", c.Datacenter, l.Datacenter, l)
	}
	return c.Datacenter<<l.Worker | c.Worker, nil
}

// checkEnd refuses a layout that ends within a year, and warns within another one.
func checkEnd(c *Config, l Layout, now time.Time) error {
	if c.Epoch.After(now) {
		return fmt.Errorf("the epoch %s lies in the future", c.Epoch.Format(time.RFC3339))
	}
	text, refused := l.Ending(c.Epoch, now)
	switch {
	case refused:
		return errors.New(text)
	case text != "":
		c.Logger.Warn("the ids of a source end", "source", c.Name, "reason", text)
	}
	return nil
}

// sequenceStart returns the function that says where the sequence starts in a
// new unit, given where it ended in the one before. continue and random start
// in the lower half, which leaves room for a burst in every unit.
func sequenceStart(text string, l Layout) (func(last uint64) uint64, error) {
	kind, arg, hasArg := strings.Cut(text, ":")
	room := uint64(1) << l.Sequence
	half := room / 2
	switch {
	case text == "zero":
		return func(uint64) uint64 { return 0 }, nil
	case text == "continue":
		step := spreadStep(&l)
		return func(last uint64) uint64 { return (last + step) & (half - 1) }, nil
	case text == "random":
		return func(uint64) uint64 { return rand.Uint64N(half) }, nil
	case kind == "random" && hasArg:
		n, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || n == 0 || n > room {
			return nil, fmt.Errorf("sequence %q: the bound is a number from 1 to %d", text, room)
		}
		return func(uint64) uint64 { return rand.Uint64N(n) }, nil
	}
	return nil, fmt.Errorf("sequence %q is none of continue, random, random:N, zero", text)
}

// spreadStep is how far continue moves the sequence on for the next unit: odd,
// so that all its values have their turn, and such that no number up to 127
// divides the distance of two ids with a unit between them. With a step of 1 ids
// of 41/10/12, one in each millisecond, are 2^22+1 = 5*397*2113 apart: of five
// shards by id % 5 one would get them all for two seconds.
func spreadStep(l *Layout) uint64 {
	unit, one := l.compose(1<<l.Sequence, 0), l.compose(1, 0)
	for step := uint64(1); step < 1<<l.Sequence/2; step += 2 {
		divisor := uint64(3)
		for divisor < 128 && (unit+step*one)%divisor != 0 {
			divisor += 2
		}
		if divisor > 127 {
			return step
		}
	}
	return 1 // the sequence is so short that it starts over every few units
}
