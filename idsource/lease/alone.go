package lease

import (
	"context"
	"fmt"
	"slices"
)

// Alone refuses to make a pool beside another one of a store, but for some, whose numbers make ids of the same shape and are in
// use: the new one would give these numbers, and so the ids, again. The other one is what a source had before it was
// renamed, or another program's.
func Alone(ctx context.Context, s Store, shape string, rules Rules, but []string) error {
	unknown := func(err error) error {
		return fmt.Errorf("it is not known whether numbers of another pool make the same ids: %w", err)
	}
	pools, err := s.Pools(ctx)
	if err != nil {
		return unknown(err)
	}
	slices.Sort(pools)
	for _, pool := range pools {
		if slices.Contains(but, pool) {
			continue
		}
		l, err := s.List(ctx, pool)
		if err != nil {
			return unknown(err)
		}
		if l.Pool.Shape == shape && l.inUse(rules) {
			return fmt.Errorf("pool %s is in use, and its numbers make the same ids: if the source was renamed, pool_name: %[1]s; if they need not differ, idproxy worker add N --force", pool)
		}
	}
	return nil
}

// inUse reports whether ids may be made of a number of the pool: it is held by who was heard of, or has been used for times
// that are not past.
func (l *Listing) inUse(rules Rules) bool {
	for _, r := range l.Records {
		if r.State == Held && l.Now-r.Beat < rules.Reclaim || r.Fence > l.Now {
			return true
		}
	}
	return false
}
