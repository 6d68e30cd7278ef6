package etcd

import (
	"errors"
	"testing"

	"idproxy/idsource/order"
	"idproxy/integration/assert"
)

// TestRegister: one leads at a time, and a term that has ended changes nothing any more.
func TestRegister(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s)
	ctx, g := t.Context(), st.Register()
	seen, err := g.Look(ctx)
	assert.MustTrue(t, err == nil && seen == (order.Seen{}), "nobody led yet: %+v, %v", seen, err)
	a, b := order.Leader{Token: "a", Addr: "10.0.0.1:9309"}, order.Leader{Token: "b", Addr: "10.0.0.2:9309", Redis: "r:1"}
	first, taken, err := g.Take(ctx, seen, a)
	assert.MustTrue(t, err == nil && taken, "Take: %v, %v", taken, err)
	_, taken, err = g.Take(ctx, seen, b)
	assert.True(t, err == nil && !taken, "Take by what was seen before: %v, %v", taken, err)
	seen, err = g.Look(ctx)
	assert.True(t, err == nil && seen.Leader == a && seen.Term == first, "Look: %+v, %v", seen, err)
	assert.Of(g.Renew(ctx, first, "a")).Equal(t, "Renew", true)
	_, taken, err = g.Take(ctx, seen, b)
	assert.True(t, err == nil && !taken, "Take behind a sign of life: %v, %v", taken, err)
	old := g.During(first, "a")
	assert.Must(t, old.Advance(ctx, "k", 1))
	lo, hi, err := old.Reserve(ctx, ask("k", 10))
	assert.True(t, err == nil && lo == 1 && hi == 11, "Reserve: %d, %d, %v", lo, hi, err)
	_, _, err = st.Reserve(ctx, ask("k", 10))
	assert.True(t, errors.Is(err, errOrdered), "Reserve without order: %v", err)

	seen, _ = g.Look(ctx)
	second, taken, err := g.Take(ctx, seen, b)
	assert.MustTrue(t, err == nil && taken && second > first, "Take: term %d behind %d, %v, %v", second, first, taken, err)
	_, _, err = old.Reserve(ctx, ask("k", 10))
	assert.True(t, errors.Is(err, order.ErrDeposed), "Reserve when the term has ended: %v", err)
	assert.Of(old.GiveBack(ctx, "k", 5, 11)).ErrorIs(t, "GiveBack when the term has ended", order.ErrDeposed)
	assert.ErrorIs(t, "Advance when the term has ended", old.Advance(ctx, "k", 100), order.ErrDeposed)
	assert.Of(g.Renew(ctx, first, "a")).Equal(t, "Renew when the term has ended", false)
	assert.NoError(t, g.Resign(ctx, first, "a"), "Resign when the term has ended")
	seen, err = g.Look(ctx)
	assert.True(t, err == nil && seen.Leader == b && seen.Term == second, "the second leads: %+v, %v", seen, err)
	during := g.During(second, "b")
	lo, _, err = during.Reserve(ctx, ask("k", 10))
	assert.True(t, err == nil && lo == 11, "Reserve: %d, %v", lo, err)
	assert.Of(during.GiveBack(ctx, "k", 15, 21)).Equal(t, "GiveBack", true)
	_, _, err = g.During(second, "other").Reserve(ctx, ask("k", 10))
	assert.True(t, errors.Is(err, order.ErrDeposed), "Reserve by another token: %v", err)
	assert.NoError(t, g.Resign(ctx, second, "b"))
	seen, err = g.Look(ctx)
	assert.True(t, err == nil && seen.Leader == (order.Leader{}), "nobody leads: %+v, %v", seen, err)
	_, _, err = during.Reserve(ctx, ask("k", 10))
	assert.True(t, errors.Is(err, order.ErrDeposed), "Reserve behind a resignation: %v", err)
	assert.NoError(t, st.Set(ctx, "k", 500))
	lo, _, err = st.Reserve(ctx, ask("k", 1))
	assert.True(t, err == nil && lo == 500, "Reserve without order once the key was set: %d, %v", lo, err)
}
