package census

import (
	"log/slog"
	"testing"

	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/integration/assert"
)

// TestSourceGone: a source asks where its series begins, and a reload has taken it away, or made it one without series.
func TestSourceGone(t *testing.T) {
	cfg := &config.Config{Sources: []config.Source{{Name: "flakes", Snowflake: &config.Snowflake{}}}}
	b := NewBeginner(cfg, slog.New(slog.DiscardHandler))
	defer b.Close()
	for _, name := range []string{"ids", "flakes"} {
		for _, used := range []bool{false, true} {
			_, err := b.Of(name, Store{})(t.Context(), segment.Beginning{Key: "ids", Column: "shop.orders.id", Used: used})
			assert.Fails(t, name, err, "a reload took source "+name+" away")
		}
	}
}
