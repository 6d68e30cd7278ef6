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
	"idproxy/proxy"
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
	out := found{greatest: map[series]segment.Greatest{}}
	columns, u, err := s.open(ctx)
	if err != nil {
		out.unasked = []*unasked{{shard: s, err: err}}
		return out
	}
	defer u.Close()
	var mu sync.Mutex
	var wg sync.WaitGroup
	free := make(chan struct{}, upstream.ConnectionsAtOnce)
	for _, c := range columns {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			id, err := u.Greatest(ctx, c.schema, c.table, c.column)
			if err == nil {
				err = TooHigh(id, c.column.Max)
			}
			mu.Lock()
			defer mu.Unlock()
			switch name := c.schema + "." + c.table + "." + c.column.Name; {
			case err == nil:
				out.raise(c.of, segment.Greatest{ID: id, Column: proxy.ColumnOn(s.Name(), name)})
			case !isGone(err):
				out.unasked = append(out.unasked, &unasked{s, name, err})
			}
		})
	}
	wg.Wait()
	slices.SortFunc(out.unasked, func(a, b *unasked) int { return cmp.Compare(a.column, b.column) })
	return out
}

// open connects, and lists the columns to ask for.
func (s *Shard) open(ctx context.Context) ([]filledColumn, *upstream.Server, error) {
	if s.Account == nil {
		return nil, nil, errNoAccount
	}
	u, err := upstream.Open(s.Account)
	if err != nil {
		return nil, nil, err
	}
	connect, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("no answer within %v", connectTime))
	defer cancel()
	err = u.DB.PingContext(connect)
	if err != nil && connect.Err() != nil {
		err = context.Cause(connect)
	}
	var columns []filledColumn
	if err == nil {
		columns, err = s.columns(ctx, u)
	}
	if err != nil {
		return nil, nil, errors.Join(err, u.Close())
	}
	return columns, u, nil
}
