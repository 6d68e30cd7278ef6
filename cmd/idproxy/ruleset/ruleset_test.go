package ruleset

import (
	"slices"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/rule"
)

// TestRulesOf holds that every word of a rule reaches the proxy.
func TestRulesOf(t *testing.T) {
	cfg, err := config.Load(harness.WriteConfig(t, `listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}, {name: b, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
sources: {ids: {segment: {}}}
rules:
  - {table: shop.orders, column: id, source: ids, explicit: advance, last_insert_id: packet}
  - {table: shop.orders, column: nr, source: ids, explicit: reject, unsupported: forward, mode: observe}
  - {table: shop.items, column: id, source: ids, listeners: [b]}
`))
	assert.Must(t, err)
	want := []rule.Rule{
		{Schema: "shop", Table: "orders", Column: "id", Source: "ids", Explicit: rule.Advance, Packet: true},
		{Schema: "shop", Table: "orders", Column: "nr", Source: "ids", Explicit: rule.Reject, Forward: true, Observe: true},
	}
	got := Of(cfg, "a")
	assert.True(t, slices.Equal(got, want), "got %+v, want %+v", got, want)
	assert.Equal(t, "rules on b", len(Of(cfg, "b")), 3)
}
