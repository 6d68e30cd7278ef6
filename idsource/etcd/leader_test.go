package etcd

import (
	"errors"
	"testing"

	"idproxy/idsource/order"
)

// TestRegister: one leads at a time, and a term that has ended changes nothing any more.
func TestRegister(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s)
	ctx, g := t.Context(), st.Register()
	seen, err := g.Look(ctx)
	if err != nil || seen != (order.Seen{}) {
		t.Fatalf("nobody led yet: %+v, %v", seen, err)
	}
	a, b := order.Leader{Token: "a", Addr: "10.0.0.1:9309"}, order.Leader{Token: "b", Addr: "10.0.0.2:9309", Redis: "r:1"}
	first, taken, err := g.Take(ctx, seen, a)
	if err != nil || !taken {
		t.Fatalf("Take: %v, %v", taken, err)
	}
	if _, taken, err := g.Take(ctx, seen, b); err != nil || taken {
		t.Errorf("Take by what was seen before: %v, %v", taken, err)
	}
	seen, err = g.Look(ctx)
	if err != nil || seen.Leader != a || seen.Term != first {
		t.Errorf("Look: %+v, %v", seen, err)
	}
	if ok, err := g.Renew(ctx, first, "a"); err != nil || !ok {
		t.Errorf("Renew: %v, %v", ok, err)
	}
	if _, taken, err := g.Take(ctx, seen, b); err != nil || taken {
		t.Errorf("Take behind a sign of life: %v, %v", taken, err)
	}
	old := g.During(first, "a")
	if err := old.Advance(ctx, "k", 1); err != nil {
		t.Fatal(err)
	}
	if lo, hi, err := old.Reserve(ctx, ask("k", 10)); err != nil || lo != 1 || hi != 11 {
		t.Errorf("Reserve: %d, %d, %v", lo, hi, err)
	}
	if _, _, err := st.Reserve(ctx, ask("k", 10)); !errors.Is(err, errOrdered) {
		t.Errorf("Reserve without order: %v", err)
	}

	seen, _ = g.Look(ctx)
	second, taken, err := g.Take(ctx, seen, b)
	if err != nil || !taken || second <= first {
		t.Fatalf("Take: term %d behind %d, %v, %v", second, first, taken, err)
	}
	if _, _, err := old.Reserve(ctx, ask("k", 10)); !errors.Is(err, order.ErrDeposed) {
		t.Errorf("Reserve when the term has ended: %v", err)
	}
	if _, err := old.GiveBack(ctx, "k", 5, 11); !errors.Is(err, order.ErrDeposed) {
		t.Errorf("GiveBack when the term has ended: %v", err)
	}
	if err := old.Advance(ctx, "k", 100); !errors.Is(err, order.ErrDeposed) {
		t.Errorf("Advance when the term has ended: %v", err)
	}
	if ok, err := g.Renew(ctx, first, "a"); err != nil || ok {
		t.Errorf("Renew when the term has ended: %v, %v", ok, err)
	}
	if err := g.Resign(ctx, first, "a"); err != nil {
		t.Errorf("Resign when the term has ended: %v", err)
	}
	if seen, err := g.Look(ctx); err != nil || seen.Leader != b || seen.Term != second {
		t.Errorf("the second leads: %+v, %v", seen, err)
	}
	during := g.During(second, "b")
	if lo, _, err := during.Reserve(ctx, ask("k", 10)); err != nil || lo != 11 {
		t.Errorf("Reserve: %d, %v", lo, err)
	}
	if back, err := during.GiveBack(ctx, "k", 15, 21); err != nil || !back {
		t.Errorf("GiveBack: %v, %v", back, err)
	}
	if _, _, err := g.During(second, "other").Reserve(ctx, ask("k", 10)); !errors.Is(err, order.ErrDeposed) {
		t.Errorf("Reserve by another token: %v", err)
	}
	if err := g.Resign(ctx, second, "b"); err != nil {
		t.Error(err)
	}
	if seen, err := g.Look(ctx); err != nil || seen.Leader != (order.Leader{}) {
		t.Errorf("nobody leads: %+v, %v", seen, err)
	}
	if _, _, err := during.Reserve(ctx, ask("k", 10)); !errors.Is(err, order.ErrDeposed) {
		t.Errorf("Reserve behind a resignation: %v", err)
	}
	if err := st.Set(ctx, "k", 500); err != nil {
		t.Error(err)
	}
	if lo, _, err := st.Reserve(ctx, ask("k", 1)); err != nil || lo != 500 {
		t.Errorf("Reserve without order once the key was set: %d, %v", lo, err)
	}
}
