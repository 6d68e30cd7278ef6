package census

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/idsource/segment"
)

// take asks all servers at once. heard is called with each that has answered, or cannot.
func (c *census) take(ctx context.Context, shards []*Shard, heard func(*Shard)) found {
	parts := make([]found, len(shards))
	var wg sync.WaitGroup
	for i, s := range shards {
		wg.Go(func() {
			parts[i] = s.ask(ctx)
			heard(s)
		})
	}
	wg.Wait()
	all := found{greatest: map[series]segment.Greatest{}}
	for _, part := range parts {
		all.add(part)
	}
	return all
}

// ask asks all servers of a shard that take writes. There is one, but for those that replicate to each
// other.
func (s *Shard) ask(ctx context.Context) found {
	out := found{greatest: map[series]segment.Greatest{}}
	servers, err := []*upstream.Server(nil), errNoAccount
	if s.Account != nil {
		servers, err = s.census.open(ctx, s.census.cfg, s.Account, s.writable)
	}
	if err != nil {
		out.unasked = []*unasked{{shard: s, err: err}}
	}
	for _, u := range servers {
		out.add(s.askServer(ctx, u))
	}
	return out
}

// askServer asks one server, and closes it.
func (s *Shard) askServer(ctx context.Context, u *upstream.Server) found {
	a := &asker{Shard: s, u: u, out: found{greatest: map[series]segment.Greatest{}}}
	defer u.Close()
	tables, err := a.tables(ctx)
	if err != nil {
		a.out.unasked = []*unasked{{shard: s, err: err}}
		return a.out
	}
	a.out.renamed = a.renamed(tables)
	upstream.AtOnce(tables, upstream.ConnectionsAtOnce, func(t filledTable) { a.find(ctx, t) })
	a.greatest(ctx)
	out := a.out
	slices.SortFunc(out.unasked, func(a, b *unasked) int { return cmp.Compare(a.column, b.column) })
	return out
}
