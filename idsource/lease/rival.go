package lease

import (
	"context"
	"slices"
)

// Rival returns a pool of a store, but for some, whose numbers make ids of a shape and are in use: a new pool would
// give these numbers, and so the ids, again. It is what a source had before it was renamed, or another program's. It is empty
// where there is none.
func Rival(ctx context.Context, s Store, shape string, rules Rules, but []string) (string, error) {
	pools, err := s.Pools(ctx)
	if err != nil {
		return "", err
	}
	slices.Sort(pools)
	for _, pool := range pools {
		if slices.Contains(but, pool) {
			continue
		}
		l, err := s.List(ctx, pool)
		if err != nil {
			return "", err
		}
		if l.Pool.Shape == shape && l.inUse(rules) {
			return pool, nil
		}
	}
	return "", nil
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
