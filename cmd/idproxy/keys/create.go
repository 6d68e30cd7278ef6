package keys

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"idproxy/idsource/resp"
	"idproxy/inside"
)

// maxKeys is how many keys there may be for one more to be made: each takes memory of every process
// that serves it.
const maxKeys = 10_000

// Create makes a key of a store, whose series begins at start, and serves it. The other processes
// that serve the store find it within a minute. Of all who make a key at the same time, the series
// begins at the greatest start.
//
// It is an error where the key is one already, in whatever store, and while a store does not say.
func (r *Registry) Create(ctx context.Context, in, key string, start uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	stores := r.sources.Stores()
	st, ok := stores[in]
	if !ok {
		return fmt.Errorf("there is no store %s that keeps series", in)
	}
	if len(*r.known.Load()) >= maxKeys {
		return fmt.Errorf("there are %d keys already, no more can be created", maxKeys)
	}
	if r.sources.Named()[key] != nil {
		return fmt.Errorf("key %q is the name of a source", key)
	}
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		one := stores[name]
		if one.ByKey[key] != nil || ofTable(one, key) != nil {
			return fmt.Errorf("key %q is one of a source", key)
		}
		p, err := one.Segments.Position(ctx, key)
		if err != nil {
			return inside.Mark(fmt.Errorf("store %s does not say whether it has key %q: %w", name, key, err))
		}
		if p.Used || p.Next > 0 {
			return fmt.Errorf("there is a key %q already", key)
		}
	}
	if err := st.Segments.Advance(ctx, key, start); err != nil {
		return inside.Mark(fmt.Errorf("key %q may not have been created: %w", key, err))
	}
	seg, err := r.segmentOf(in, key, st)
	if err != nil {
		return err
	}
	known := maps.Clone(*r.known.Load())
	known[key] = r.begin(seg, key, st)
	r.known.Store(&known)
	return nil
}

// Creator returns what makes keys in a store; nil where none is named.
func (r *Registry) Creator(in string) func(ctx context.Context, key string, start uint64) error {
	if in == "" {
		return nil
	}
	return func(ctx context.Context, key string, start uint64) error { return r.Create(ctx, in, key, start) }
}

// texts is a series of ids that are no numbers.
type texts struct {
	resp.Source
	text func(id [2]uint64) string
}

// Text implements resp.Texts.
func (t texts) Text(id [2]uint64) string { return t.text(id) }
