package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/lease"
)

// Disposable is a store of numbers that are used once. Closing it closes nothing.
func (s *Store) Disposable() lease.Store { return lease.Disposable(table{s}) }

// table is the store as one that compares and sets. What is compared is the whole content: a record
// or a pool that has become what it was is what it was.
type table struct{ s *Store }

//go:embed table.lua
var tableSource string

var tableScript = redis.NewScript(tableSource)

// Close implements lease.Table.
func (t table) Close() error { return nil }

// Pools implements lease.Table.
func (t table) Pools(ctx context.Context) ([]string, error) { return t.s.Pools(ctx) }

// Visit implements lease.Table.
func (t table) Visit(_ context.Context, pool string, do func(v lease.Visit) error) error {
	base := keys(pool)[0]
	if err := do(&visit{s: t.s, keys: []string{base, base + ":numbers"}}); err != nil {
		return fmt.Errorf("%s: %w", t.s.where, err)
	}
	return nil
}

type visit struct {
	s      *Store
	keys   []string
	server string // who answered when the page was read
}

func (v *visit) run(ctx context.Context, args ...any) ([]string, error) {
	out, err := tableScript.Run(ctx, v.s.client, v.keys, args...).StringSlice()
	switch {
	case err != nil:
		return nil, err
	case len(out) == 0:
		return nil, errors.New("an empty reply")
	case len(out) == 1 && out[0] == "noserver":
		return nil, errors.New(noServer)
	}
	return out, nil
}

// Read implements lease.Visit.
func (v *visit) Read(ctx context.Context, w lease.Workers) (lease.Page, error) {
	out, err := v.run(ctx, "read", int64(w))
	if err != nil {
		return lease.Page{}, err
	}
	if len(out) < 5 || len(out)%2 == 0 {
		return lease.Page{}, fmt.Errorf("a reply of %d parts", len(out))
	}
	p := lease.Page{Server: out[0], Exists: out[2] != "", Records: map[uint64]lease.Record{}}
	v.server, p.Pool.Shape, p.Pool.Server = out[0], out[2], out[3]
	var errs [2]error
	p.Now, errs[0] = strconv.ParseInt(out[1], 10, 64)
	if p.Exists {
		p.Pool.Since, errs[1] = strconv.ParseInt(out[4], 10, 64)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return lease.Page{}, err
	}
	for i := 5; i < len(out); i += 2 {
		n, err := strconv.ParseUint(out[i], 10, 64)
		if err == nil {
			p.Records[n], err = lease.ParseRecord(out[i+1])
		}
		if err != nil {
			return lease.Page{}, fmt.Errorf("worker %s: %w", out[i], err)
		}
	}
	return p, nil
}

// set runs a step on what a page has.
func (v *visit) set(ctx context.Context, op string, old lease.Page, args ...any) (bool, error) {
	since := ""
	if old.Exists {
		since = strconv.FormatInt(old.Pool.Since, 10)
	}
	out, err := v.run(ctx, append([]any{op, v.server, old.Pool.Shape, old.Pool.Server, since}, args...)...)
	return err == nil && out[0] == "done", err
}

// WritePool implements lease.Visit.
func (v *visit) WritePool(ctx context.Context, old lease.Page, p lease.Pool) (bool, error) {
	return v.set(ctx, "pool", old, p.Shape, p.Server, p.Since)
}

// Write implements lease.Visit.
func (v *visit) Write(ctx context.Context, old lease.Page, worker uint64, r lease.Record) (bool, error) {
	before := ""
	if b, there := old.Records[worker]; there {
		before = b.String()
	}
	return v.set(ctx, "write", old, worker, before, r.String())
}

// Insert implements lease.Visit.
func (v *visit) Insert(ctx context.Context, old lease.Page, workers []uint64, r lease.Record) (bool, error) {
	var args []any
	for _, w := range workers {
		args = append(args, w, "", r.String())
	}
	return v.set(ctx, "write", old, args...)
}
