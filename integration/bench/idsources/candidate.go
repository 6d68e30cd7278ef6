package idsources

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"

	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
)

// candidate gives ids.
type candidate struct {
	name  string
	batch int // ids between two looks at the time
	// taker makes what takes n ids, one at a time, for one goroutine.
	taker func() func(n int) error
	end   func() error
}

// libraries are pinned in go.mod; tables show these names.
const (
	nameAtomic    = "atomic.AddInt64"
	nameSegment   = "idproxy segment"
	nameSnowflake = "idproxy snowflake"
	nameBwmarrin  = "bwmarrin/snowflake v0.3.0"
	nameSonyflake = "sony/sonyflake v2.2.0"
)

const batch = 1000

func newAtomic(context.Context) (*candidate, error) {
	v := new(atomic.Int64)
	return &candidate{name: nameAtomic, batch: batch, end: nothing, taker: shared(func(n int) error {
		for range n {
			v.Add(1)
		}
		return nil
	})}, nil
}

func nothing() error { return nil }

// shared is the taker of a candidate that needs nothing for each goroutine.
func shared(take func(n int) error) func() func(int) error {
	return func() func(int) error { return take }
}

// taking takes ids of a source of ours as the proxy does for INSERTs of one row.
func taking(ctx context.Context, s idsource.Series) func() func(int) error {
	return func() func(int) error {
		room := make([]uint64, 1)
		return func(n int) error {
			for range n {
				if err := s.Fill(ctx, room, 1); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// fetch is how long the store of the segment takes: a server in the same building.
const fetch = time.Millisecond

func newSegment(ctx context.Context) (*candidate, error) {
	s, err := segment.New(segment.Config{Name: "ids", Store: &store{delay: fetch}})
	if err != nil {
		return nil, err
	}
	return &candidate{
		name: nameSegment, batch: batch, taker: taking(ctx, s), end: func() error { return s.Close(ctx) },
	}, nil
}

// snowflakeOf makes the start of a source with a layout.
func snowflakeOf(name, layout string) func(context.Context) (*candidate, error) {
	return func(ctx context.Context) (*candidate, error) {
		s, err := snowflake.New(snowflake.Config{
			Name: "ids", Fences: &fences{fence: 1}, Layout: layout, MaxAhead: ahead, Epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		})
		if err != nil {
			return nil, err
		}
		return &candidate{
			name: name, batch: batch, taker: taking(ctx, s), end: func() error { return s.Close(ctx) },
		}, nil
	}
}

func newBwmarrin(context.Context) (*candidate, error) {
	node, err := bwmarrin.NewNode(1)
	if err != nil {
		return nil, err
	}
	return &candidate{name: nameBwmarrin, batch: batch, end: nothing, taker: shared(func(n int) error {
		for range n {
			node.Generate()
		}
		return nil
	})}, nil
}

func newSonyflake(context.Context) (*candidate, error) {
	flake, err := sonyflake.New(sonyflake.Settings{MachineID: func() (int, error) { return 1, nil }})
	if err != nil {
		return nil, err
	}
	return &candidate{name: nameSonyflake, batch: 10, end: nothing, taker: shared(func(n int) error {
		for range n {
			if _, err := flake.NextID(); err != nil {
				return err
			}
		}
		return nil
	})}, nil
}

// start starts candidates in their order. Those that run are returned also when there is an error.
func start(ctx context.Context, starts []func(context.Context) (*candidate, error)) (all []*candidate, err error) {
	for _, begin := range starts {
		c, err := begin(ctx)
		if err != nil {
			return all, fmt.Errorf("start id source %d: %w", len(all)+1, err)
		}
		all = append(all, c)
		if err := c.taker()(1); err != nil { // a first id, for what is done once
			return all, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return all, nil
}

func end(all []*candidate) error {
	var failed []error
	for _, c := range all {
		failed = append(failed, c.end())
	}
	return errors.Join(failed...)
}
