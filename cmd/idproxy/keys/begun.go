package keys

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/resp"
	"idproxy/idsource/segment"
)

// lookTime bounds the look whether a store has a key.
const lookTime = 5 * time.Second

// begun is a series as other programs have it: they do not begin it. An INSERT
// begins a series above the rows of its table; a program brings no table, and
// would have it begin at its start, below ids that are there. So a store that was
// emptied gives no id twice, also by a key that the store had when it was listed.
type begun struct {
	*segment.Segment
	key   string
	store idsource.SegmentStore
	sure  atomic.Bool // the key was seen in the store
}

var (
	_ resp.Source = (*begun)(nil)
	_ resp.Ranger = (*begun)(nil)
	_ resp.Setter = (*begun)(nil)
)

// Fill implements resp.Source.
func (b *begun) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if err := b.look(ctx); err != nil {
		return err
	}
	return b.Segment.Fill(ctx, ids, stride)
}

// Range implements resp.Ranger.
func (b *begun) Range(ctx context.Context, n uint64) (first uint64, err error) {
	if err := b.look(ctx); err != nil {
		return 0, err
	}
	return b.Segment.Range(ctx, n)
}

// Advance implements resp.Setter.
func (b *begun) Advance(ctx context.Context, id uint64) error {
	if err := b.look(ctx); err != nil {
		return err
	}
	return b.Segment.Advance(ctx, id)
}

func (b *begun) look(ctx context.Context) error {
	if b.sure.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	p, err := b.store.Position(ctx, b.key)
	if err != nil {
		return fmt.Errorf("where key %q stands cannot be read: %w", b.key, err)
	}
	if !p.Used && p.Next == 0 {
		return fmt.Errorf("the store has no key %q yet: the first INSERT makes it, above the rows of its table, idproxy source set or IDS.CREATE", b.key)
	}
	b.sure.Store(true)
	return nil
}
