package sources

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"idproxy/cmd/idproxy/census"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/lease"
	"idproxy/idsource/objectid"
	"idproxy/idsource/order"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
	"idproxy/idsource/uuid"
)

// maker is what sources are made with.
type maker struct {
	log    *slog.Logger
	dir    string // of the configuration file
	begin  *census.Beginner
	stores map[string]store.Store
	pools  []string // of worker numbers
	named  []row    // by sources
	high   highWater
	used   idsource.UsedTimes
	idWait atomic.Int64 // limits.id_wait
	order  *ordering    // nil: no source has one order
	// fetched is told how long it took to reserve a range; nil: nobody is.
	fetched func(source string, took time.Duration)
}

// wait returns limits.id_wait, which a reload may change.
func (m *maker) wait() time.Duration { return time.Duration(m.idWait.Load()) }

func (m *maker) newSource(c *config.Source, geneBits uint64) (idsource.Source, error) {
	switch {
	case c.Segment != nil:
		return m.newSegment(c, geneBits)
	case c.UUIDv7 != nil:
		return uuid.New(), nil
	case c.ObjectID != nil:
		return objectid.New(), nil
	}
	return m.newSnowflake(c)
}

func (m *maker) newSegment(c *config.Source, geneBits uint64) (idsource.Source, error) {
	g := c.Segment
	st := m.stores[g.Store]
	steps := func(rows uint64) uint64 { // an id with a gene takes 2^bits of the range
		n := rows << geneBits
		if st.Most > 0 {
			n = min(n, st.Most)
		}
		return n
	}
	policy, _ := segment.Policy(g.StepPolicy) // the configuration has looked at it
	sc := segment.Config{
		Name: c.Name, Store: st.Segments, Key: g.Key, HighWater: m.high.of(st.Place),
		Start: g.Start, Step: steps(g.Step), MaxStep: steps(g.MaxStep), StepPolicy: policy, Rows: steps,
		Last:     math.MaxUint64 - 1, // what a column holds bounds it further
		MaxBatch: st.Most, Wait: m.wait,
		Prefetch: float64(g.Prefetch) / 100, Begin: m.begin.Of(c.Name, census.Store{Keys: st.Keys.Keys, Position: st.Segments.Position}), Keys: m.unnamed(st), Logger: m.log,
	}
	for _, last := range []uint64{st.Last, g.Last} {
		if last > 0 {
			sc.Last = min(sc.Last, last)
		}
	}
	if m.fetched != nil {
		sc.Fetched = func(took time.Duration, _ error) { m.fetched(c.Name, took) }
	}
	if g.Order == config.OrderGlobal {
		sc.Tuner, _ = st.Segments.(idsource.Tuner) // the store of a term is a part of it
		sc.Last = min(sc.Last, math.MaxInt64)      // processes ask each other in a protocol of signed numbers
		return m.order.make(order.Config{Segment: begun(sc)}, st.Register)
	}
	if g.Scramble != nil {
		scrambled, err := store.Scramble(g)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", c.Name, err)
		}
		return segment.NewScrambled(begun(sc), scrambled, st.Keys.Keys)
	}
	if segment.IsTemplate(g.Key) {
		return segment.NewPerTable(begun(sc))
	}
	return segment.New(begun(sc))
}

// unnamed lists the keys of a store that no source names.
func (m *maker) unnamed(st store.Store) func(context.Context) ([]string, error) {
	named := m.named
	return func(ctx context.Context) ([]string, error) {
		all, err := st.Keys.Keys(ctx)
		return slices.DeleteFunc(all, func(key string) bool { return slices.ContainsFunc(named, row{st, key}.is) }), err
	}
}

func (m *maker) newSnowflake(c *config.Source) (idsource.Source, error) {
	f := c.Snowflake
	sc := snowflake.Config{
		Name: c.Name, Layout: f.Layout, Epoch: f.Epoch, Sequence: f.Sequence, MaxAhead: f.MaxAhead, Hold: f.ClockBack.Hold,
		ClockBack: map[string]snowflake.ClockBack{
			config.ThenBorrow: snowflake.BackBorrow, config.ThenError: snowflake.BackError, config.ThenSwap: snowflake.BackSwap,
		}[f.ClockBack.Then],
		UsedTimes: &m.used, Wait: m.wait, Logger: m.log,
	}
	if f.Workers == "" {
		sc.Fences, sc.Datacenter, sc.Worker = m.stores[f.Store].Fences, f.Datacenter, f.Worker
		return snowflake.New(fenced(sc))
	}
	rules, err := store.LeaseRules(f, m.stores[f.Workers].Lasting)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", c.Name, err)
	}
	sc.Lead = time.Duration(rules.Lead) * time.Millisecond
	sc.Pool, err = lease.New(lease.Config{
		Pool: f.PoolName, Beside: m.pools, Store: m.stores[f.Workers].Numbers(f), Place: m.stores[f.Workers].Place, Rules: rules, Size: f.Pool, Once: f.Disposable, Dir: filepath.Join(m.dir, leaseDir), Logger: m.log,
	})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", c.Name, err)
	}
	return snowflake.New(fenced(sc))
}

// leaseDir is the folder, beside the configuration file, of the files by which
// a process that was restarted takes its worker numbers again.
const leaseDir = "idproxy-leases"
