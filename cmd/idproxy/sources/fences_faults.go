//go:build faultinject

package sources

import (
	"context"
	"math"

	"idproxy/idsource"
	"idproxy/idsource/faults"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
)

// fenced leaves the fence of worker numbers out, if a test says so.
func fenced(c snowflake.Config) snowflake.Config {
	if !faults.NoFence() {
		return c
	}
	if c.Fences != nil {
		c.Fences = forgetful{c.Fences}
	}
	if c.Pool != nil {
		c.Pool = boundless{c.Pool}
	}
	return c
}

// shares has a process take no turns with another one, if a test says so.
func shares(with bool) bool { return with && !faults.NoShare() }

// seals has a move leave the row before open, if a test says so.
func seals(with bool) bool { return with && !faults.NoSeal() }

// begun has series begin above the column of their first INSERT alone, if a test says so.
func begun(c segment.Config) segment.Config {
	if faults.NoBegin() {
		c.Begin = nil
	}
	return c
}

// forgetful is a store that says it stored a fence, and stores none: of each number it knows that it was used long ago.
type forgetful struct{ idsource.FenceStore }

func (f forgetful) Acquire(ctx context.Context, worker uint64, s idsource.Shape) (idsource.Lease, error) {
	l, err := f.FenceStore.Acquire(ctx, worker, s)
	if err != nil {
		return nil, err
	}
	return forgetfulLease{l}, nil
}

type forgetfulLease struct{ idsource.Lease }

func (forgetfulLease) Fence() uint64                       { return 1 }
func (forgetfulLease) Raise(context.Context, uint64) error { return nil }
func (l forgetfulLease) Release(ctx context.Context, _ uint64) error {
	return l.Lease.Release(ctx, 0)
}

// boundless is a pool whose terms have no end.
type boundless struct{ idsource.WorkerPool }

func (p boundless) Keep(ctx context.Context, t idsource.Tenant) {
	p.WorkerPool.Keep(ctx, boundlessTenant{t})
}

type boundlessTenant struct{ idsource.Tenant }

func (t boundlessTenant) Grant(term idsource.Term) {
	term.Fence = math.MaxInt64
	t.Tenant.Grant(term)
}
