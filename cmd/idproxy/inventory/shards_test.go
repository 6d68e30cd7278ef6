package inventory

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
)

// TestShards: listeners of one server are one shard, with each set of rules once, in the order of the file; those that nobody wants are none.
func TestShards(t *testing.T) {
	cfg := assert.Of(config.Parse("idproxy.yaml", []byte(`listeners:
  - {name: a, listen: "127.0.0.1:1", upstream: "10.0.0.1:3306"}
  - {name: b, listen: "127.0.0.1:2", upstream: "10.0.0.2:3306"}
  - {name: c, listen: "127.0.0.1:3", upstream: "10.0.0.1:3306"}
  - {name: d, listen: "127.0.0.1:4", upstream: "10.0.0.1:3306"}
  - {name: e, listen: "127.0.0.1:5", upstream: "10.0.0.3:3306"}
sources: {ids: {snowflake: {worker: 1}}}
rules:
  - {table: shop.orders, column: id, source: ids, listeners: [a, b, c, d]}
  - {table: shop.items, column: id, source: ids, listeners: [c]}
`), nil)).Must(t)
	var got strings.Builder
	for _, s := range Shards(cfg, func(l *config.Listener, rules []*config.Rule) (string, bool) { return l.Behind(), len(rules) > 0 }) {
		fmt.Fprint(&got, "shard")
		for _, l := range s.Listeners {
			fmt.Fprint(&got, " ", l.Name)
		}
		for _, set := range s.Sets(cfg) {
			fmt.Fprint(&got, " rules ", set.Rules)
		}
		fmt.Fprintln(&got)
	}
	const orders, items = "shop.orders.id", "shop.items.id"
	assert.Equal(t, "shards", got.String(), "shard a c d rules ["+orders+"] rules ["+orders+" "+items+"]\nshard b rules ["+orders+"]\n")
}
