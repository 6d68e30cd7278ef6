package keys

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/httpapi"
	"idproxy/idsource/order"
	"idproxy/idsource/resp"
	"idproxy/idsource/segment"
	"idproxy/inside"
)

// lookTime bounds the look whether a store has a key.
const lookTime = 5 * time.Second

// begun is a series as other programs have it: they do not begin it. An INSERT
// begins a series above the rows of its table; a program brings no table, and
// would have it begin at its start, below ids that are there. So a store that was
// emptied gives no id twice, also by a key that the store had when it was listed.
type begun struct {
	series
	beginning
}

// scattered is begun for a series whose ids are scrambled: there are no ranges, and no order to move
// in.
type scattered struct {
	series *segment.Scrambled
	beginning
}

// beginning looks whether a store has a key.
type beginning struct {
	key   string
	store idsource.SegmentStore
	sure  atomic.Bool // the key was seen in the store
}

// positioned is a series that stands somewhere in a store.
type positioned interface {
	position(ctx context.Context) (idsource.Position, error)
}

// series is a series of numbers, as programs have it.
type series interface {
	resp.Source
	resp.Ranger
	resp.Setter
}

var (
	_ resp.Source = (*begun)(nil)
	_ resp.Ranger = (*begun)(nil)
	_ resp.Setter = (*begun)(nil)

	_ resp.Distant = (*begun)(nil)
	_ resp.Source  = (*scattered)(nil)

	_ httpapi.Scrambled = (*scattered)(nil)

	_ positioned = (*begun)(nil)
	_ positioned = (*scattered)(nil)
)

// Fill implements resp.Source.
func (b *begun) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if err := b.look(ctx); err != nil {
		return err
	}
	return b.series.Fill(ctx, ids, stride)
}

// Fill implements resp.Source.
func (s *scattered) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	if err := s.series.Unrivalled(ctx); err != nil {
		return err
	}
	return s.series.Fill(ctx, ids, stride)
}

// Scrambled implements httpapi.Scrambled and resp.Scrambled.
func (*scattered) Scrambled() {}

// Range implements resp.Ranger.
func (b *begun) Range(ctx context.Context, n uint64) (first uint64, err error) {
	if err := b.look(ctx); err != nil {
		return 0, err
	}
	return b.series.Range(ctx, n)
}

// Distant implements resp.Distant.
func (b *begun) Distant() bool {
	ordered, ok := b.series.(*order.Source)
	return ok && ordered.Distant()
}

// Advance implements resp.Setter.
func (b *begun) Advance(ctx context.Context, id uint64) error {
	if err := b.look(ctx); err != nil {
		return err
	}
	return b.series.Advance(ctx, id)
}

func (b *beginning) position(ctx context.Context) (idsource.Position, error) {
	return b.store.Position(ctx, b.key)
}

func (b *beginning) look(ctx context.Context) error {
	if b.sure.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	p, err := b.position(ctx)
	if err != nil {
		return fmt.Errorf("where key %q stands cannot be read: %w", b.key, inside.Mark(err))
	}
	if !p.Used && (p.Next == 0 || p.Unset) {
		return fmt.Errorf("where key %q begins is not known yet: the first INSERT has it begin above the rows of its table, else idproxy source set or IDS.CREATE", b.key)
	}
	b.sure.Store(true)
	return nil
}

// here is a series in one order, for those who ask the leader themselves.
type here struct {
	begun *begun
	local order.Local
}

var (
	_ resp.Ranger = here{}
	_ resp.Setter = here{}
)

// Fill implements resp.Source.
func (h here) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if err := h.begun.look(ctx); err != nil {
		return err
	}
	return h.local.Fill(ctx, ids, stride)
}

// Range implements resp.Ranger.
func (h here) Range(ctx context.Context, n uint64) (first uint64, err error) {
	if err := h.begun.look(ctx); err != nil {
		return 0, err
	}
	return h.local.Range(ctx, n)
}

// Advance implements resp.Setter.
func (h here) Advance(ctx context.Context, id uint64) error {
	if err := h.begun.look(ctx); err != nil {
		return err
	}
	return h.local.Advance(ctx, id)
}
