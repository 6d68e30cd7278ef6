package main

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestExplainShard: explain says whether a listener takes a row, and names no key of a refused one.
func TestExplainShard(t *testing.T) {
	path := harness.WriteConfig(t, `listeners: [{name: even, listen: 127.0.0.1:0, upstream: 127.0.0.1:1, shard: {bits: 1, value: 0}}]
sources: {ids: {segment: {}}}
rules: [{table: shop.orders, column: id, source: ids, gene: {column: k, bits: 8}}]
`)
	taken := runWith(t, "", "explain", "--config", path, "--schema", "shop", "INSERT INTO orders (k) VALUES (1234)")
	assert.True(t, taken.status == statusFine, "%+v", taken)
	holds(t, "a row of the shard", taken.out, "the key must be of shard 0 of 2, which listener even is for")
	refused := runWith(t, "", "explain", "--config", path, "--schema", "shop", "INSERT INTO orders (k) VALUES (1235)")
	assert.True(t, refused.status == statusFinding, "%+v", refused)
	holds(t, "a row of another", refused.out, "rule shop.orders.id: the key in column k is of shard 1 of 2, and listener even is for shard 0")
}
