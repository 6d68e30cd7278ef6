package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"idproxy/idsource/lease"
)

// records is a pool of worker numbers, as a server has it.
type records struct {
	node
	exists   bool
	pool     lease.Pool
	all      map[uint64]lease.Record
	versions map[uint64]int64
	changes  int64 // of the pool as a whole
	past     []recordChange
	server   string        // its identity
	off      time.Duration // of its clock
	wrote    func(old, now lease.Record)
}

// recordChange is what a record was before, or the pool.
type recordChange struct {
	at     time.Time
	worker uint64
	record lease.Record
	pool   *lease.Pool
}

// newRecords makes a server without a pool.
func newRecords(w *world, r *rand.Rand) *records {
	return &records{node: node{w: w, waits: between(r, 0, 2*time.Millisecond)}, all: map[uint64]lease.Record{}, versions: map[uint64]int64{}, server: "0"}
}

// now is the server's clock. The caller holds mu.
func (s *records) now() int64 { return s.w.began.UnixMilli() + (s.w.now() + s.off).Milliseconds() }

func (s *records) put(worker uint64, r lease.Record) {
	old := s.all[worker]
	s.past = append(s.past, recordChange{at: time.Now(), worker: worker, record: old})
	s.all[worker] = r
	s.versions[worker]++
	s.w.note("record", worker, uint64(r.State), uint64(r.Start), uint64(r.Fence))
	if s.wrote != nil {
		s.wrote(old, r)
	}
}

func (s *records) putPool(p lease.Pool) {
	before := s.pool
	s.past = append(s.past, recordChange{at: time.Now(), pool: &before})
	s.pool, s.exists = p, true
	s.changes++
	s.w.note("pool", uint64(p.Since))
}

// back undoes all changes made behind a moment. The caller holds mu.
func (s *records) back(to time.Time) {
	for n := len(s.past); n > 0 && s.past[n-1].at.After(to); n-- {
		if c := s.past[n-1]; c.pool != nil {
			s.pool = *c.pool
			s.exists = s.pool != lease.Pool{}
			s.changes++
		} else {
			s.all[c.worker] = c.record
			s.versions[c.worker]++
		}
		s.past = s.past[:n-1]
	}
}

// copy is another server with what this one had a while ago. The caller holds mu.
func (s *records) copy(ago time.Duration, server string, skew time.Duration) *records {
	c := *s
	c.all, c.versions, c.past = maps.Clone(s.all), maps.Clone(s.versions), slices.Clone(s.past)
	c.server, c.off = server, s.off+skew
	c.back(time.Now().Add(-ago))
	return &c
}

// made says whether there was a pool before.
type made bool

const (
	fresh made = true
	again made = false
)

// fill adds numbers as an administrator does. The caller holds mu.
func (s *records) fill(rules lease.Rules, shape string, n uint64, first made) {
	if !s.exists {
		s.putPool(rules.Create(shape, s.server, s.now(), bool(first)))
	}
	for w := range n {
		if _, there := s.all[w]; !there || s.all[w].State == 0 {
			s.put(w, lease.Record{State: lease.Free, Beat: s.now()})
		}
	}
}

// script is a store whose server does each step at once, as Redis runs a script: a lease.Store.
type script struct {
	p  *process
	to func() *records
}

func (c *script) node() *node { return &c.to().node }

// ask has the server do a step with a pool that is there and of this shape.
func (c *script) ask(ctx context.Context, a lease.Ask, do func(s *records, now int64) lease.Reply) (lease.Reply, error) {
	return call(ctx, c.p, c.node, fmt.Errorf("%w: %w", lease.ErrUnsent, errRefused), func() (lease.Reply, error) {
		s := c.to()
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		now := s.now()
		if !s.exists {
			return lease.Reply{Verdict: lease.NoPool, Now: now}, nil
		}
		if p := a.Rules.Visit(s.pool, s.server, now); p != s.pool {
			s.putPool(p)
		}
		r := do(s, now)
		r.Now = now
		return r, nil
	})
}

// Take implements lease.Store.
func (c *script) Take(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	return c.ask(ctx, a, func(s *records, now int64) lease.Reply {
		if rest := a.Rules.Resting(s.pool, now); rest > 0 {
			return lease.Reply{Verdict: lease.Wait, Wait: time.Duration(rest) * time.Millisecond, Why: "the pool rests"}
		}
		n, wait, v := a.Rules.Choose(s.all, now, a.Reclaim, a.Spare)
		if v != lease.Granted {
			return lease.Reply{Verdict: v, Wait: time.Duration(wait) * time.Millisecond, Why: "none is free"}
		}
		r, _, _ := a.Rules.Take(s.all[n], now, a.Token, a.Label) // as it was chosen
		s.put(n, r)
		return lease.Given(lease.Granted, n, r)
	})
}

// Renew implements lease.Store.
func (c *script) Renew(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	return c.move(ctx, a, a.Rules.Renew)
}

// Release implements lease.Store.
func (c *script) Release(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	return c.move(ctx, a, func(_ lease.Pool, r lease.Record, now int64, u lease.Use) (lease.Record, lease.Verdict) {
		return a.Rules.Release(r, now, u)
	})
}

func (c *script) move(ctx context.Context, a lease.Ask, rule func(lease.Pool, lease.Record, int64, lease.Use) (lease.Record, lease.Verdict)) (lease.Reply, error) {
	return c.ask(ctx, a, func(s *records, now int64) lease.Reply {
		r, v := rule(s.pool, s.all[a.Worker], now, a.Use)
		if v.Given() {
			s.put(a.Worker, r)
		}
		return lease.Given(v, a.Worker, r)
	})
}

// Add implements lease.Store; an administrator of the simulation does it by itself.
func (c *script) Add(context.Context, lease.Fill) (int, error) { return 0, errRefused }

// Drop implements lease.Store; nobody does.
func (c *script) Drop(context.Context, string, []uint64) ([]uint64, error) { return nil, errRefused }

// List implements lease.Store; nobody does.
func (c *script) List(context.Context, string) (lease.Listing, error) {
	return lease.Listing{}, errRefused
}

// Close implements lease.Store.
func (c *script) Close() error { return nil }

// Pools implements lease.Store: nobody makes a pool.
func (c *script) Pools(context.Context) ([]string, error) { return nil, errRefused }

// table is a store that can compare and set, as etcd and MySQL are: a lease.Table and a lease.Visit.
type table struct {
	p    *process
	to   func() *records
	time func() time.Time // of the host, where the store has no clock
	at   *records         // where a visit is
	life int
}

// Visit implements lease.Table.
func (c *table) Visit(_ context.Context, _ string, do func(v lease.Visit) error) error {
	v := *c
	w := c.p.host.w
	w.mu.Lock()
	v.at = c.to()
	v.life = v.at.life
	w.mu.Unlock()
	return do(&v)
}

// Close implements lease.Table.
func (c *table) Close() error { return nil }

// Pools implements lease.Table: nobody makes a pool.
func (c *table) Pools(context.Context) ([]string, error) { return nil, errRefused }

func (c *table) node() *node { return &c.to().node }

// here reports whether the server is the one that the visit began with. The caller holds mu.
func (c *table) here() bool { return c.to() == c.at && c.at.life == c.life }

// Read implements lease.Visit.
func (c *table) Read(ctx context.Context, w lease.Workers) (lease.Page, error) {
	var read int64
	if c.time != nil {
		read = c.time().UnixMilli()
	}
	return call(ctx, c.p, c.node, errRefused, func() (lease.Page, error) {
		s := c.to()
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		p := lease.Page{Pool: s.pool, Exists: s.exists, PoolVersion: s.changes, Server: s.server, Now: s.now()}
		if c.time != nil {
			p.Now = read
		}
		p.Records, p.Versions = map[uint64]lease.Record{}, map[uint64]int64{}
		for n, r := range s.all {
			if w == lease.All || w == lease.Workers(n) {
				p.Records[n], p.Versions[n] = r, s.versions[n]
			}
		}
		return p, nil
	})
}

// WritePool implements lease.Visit.
func (c *table) WritePool(ctx context.Context, old lease.Page, p lease.Pool) (bool, error) {
	return c.write(ctx, old, func(s *records) bool { s.putPool(p); return true })
}

// Write implements lease.Visit.
func (c *table) Write(ctx context.Context, old lease.Page, worker uint64, r lease.Record) (bool, error) {
	return c.write(ctx, old, func(s *records) bool {
		if s.versions[worker] != old.Versions[worker] {
			return false
		}
		s.put(worker, r)
		return true
	})
}

// Insert implements lease.Visit; an administrator of the simulation does it by itself.
func (c *table) Insert(context.Context, lease.Page, []uint64, lease.Record) (bool, error) {
	return false, errRefused
}

func (c *table) write(ctx context.Context, old lease.Page, do func(s *records) bool) (bool, error) {
	return call(ctx, c.p, c.node, errRefused, func() (bool, error) {
		s := c.to()
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		if !c.here() {
			return false, errLost
		}
		return s.changes == old.PoolVersion && do(s), nil
	})
}
