package census

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
		all.unasked = append(all.unasked, part.unasked...)
		for k, g := range part.greatest {
			all.raise(k, g)
		}
	}
	return all
}

// ask asks one server.
func (s *Shard) ask(ctx context.Context) found {
	a := &asker{Shard: s, seen: map[filledColumn]bool{}, out: found{greatest: map[series]segment.Greatest{}}}
	tables, u, err := s.open(ctx)
	if err != nil {
		a.out.unasked = []*unasked{{shard: s, err: err}}
		return a.out
	}
	defer u.Close()
	a.u = u
	var wg sync.WaitGroup
	free := make(chan struct{}, upstream.ConnectionsAtOnce)
	for _, t := range tables {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			a.ask(ctx, t)
		})
	}
	wg.Wait()
	out := a.out
	slices.SortFunc(out.unasked, func(a, b *unasked) int { return cmp.Compare(a.column, b.column) })
	return out
}

// open connects, and lists the tables to ask for.
func (s *Shard) open(ctx context.Context) ([]filledTable, *upstream.Server, error) {
	if s.Account == nil {
		return nil, nil, errNoAccount
	}
	u, err := upstream.OpenAlone(s.Account)
	if err != nil {
		return nil, nil, err
	}
	connect, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("no answer within %v", connectTime))
	defer cancel()
	err = u.DB.PingContext(connect)
	if err != nil && connect.Err() != nil {
		err = context.Cause(connect)
	}
	var tables []filledTable
	if err == nil {
		tables, err = s.tables(ctx, u)
	}
	if err != nil {
		return nil, nil, errors.Join(err, u.Close())
	}
	return tables, u, nil
}
