package census

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/integration/assert"
)

// TestAboveRenamed: a series begins above those whose tables are missing, also where the store has one as it came from another
// store, and nothing was reserved of it since.
func TestAboveRenamed(t *testing.T) {
	b := NewBeginner(&config.Config{}, slog.New(slog.DiscardHandler), nil)
	defer b.Close()
	keys := map[string]idsource.Position{"shop.new": {Next: 1, Unset: true}, "shop.used": {Next: 50, Used: true}, "shop.moved": {Next: 100}}
	st := Store{Position: func(_ context.Context, key string) (idsource.Position, error) { return keys[key], nil }}
	for text, want := range map[string]uint64{"shop.new": 7, "shop.new shop.used": 49, "shop.used shop.moved": 99} {
		top, err := b.aboveRenamed(t.Context(), &found{renamed: strings.Fields(text)}, series{"ids", "shop.orders"}, st, segment.Greatest{ID: 7})
		assert.True(t, err == nil && top.ID == want, "%s: above %d, %v, want %d", text, top.ID, err, want)
	}
}

// TestSourceGone: a source asks where its series begins, and a reload has taken it away, or made it one without series.
func TestSourceGone(t *testing.T) {
	cfg := &config.Config{Sources: []config.Source{{Name: "flakes", Snowflake: &config.Snowflake{}}}}
	b := NewBeginner(cfg, slog.New(slog.DiscardHandler), nil)
	defer b.Close()
	for _, name := range []string{"ids", "flakes"} {
		for _, used := range []bool{false, true} {
			_, err := b.Of(name, Store{})(t.Context(), segment.Beginning{Key: "ids", Column: "shop.orders.id", Used: used})
			assert.Fails(t, name, err, "a reload took source "+name+" away")
		}
	}
}
