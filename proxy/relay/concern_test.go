package relay

import (
	"cmp"
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rewriter"
)

// What may concern a rule when not everything is known.
func TestMayConcern(t *testing.T) {
	tests := []struct {
		schema, table string
		known         Known
		fold          bool
		want          bool
		charset       string
	}{
		{table: "orders", known: KnowAll, want: true},
		{table: "other", known: KnowAll},
		{schema: "shop", table: "orders", want: true},
		{schema: "else", table: "orders"},
		{table: "orders", want: true}, // in some schema it would
		{table: "other"},
		{table: "ORDERS", known: KnowAll},
		{table: "ORDERS", known: KnowAll, fold: true, want: true},
		{table: "", known: KnowAll, want: true}, // cannot be read
		{table: "caf\xc3\xa9", known: KnowAll},
		{table: "caf\xc3\xa9", known: KnowAll &^ KnowCharset, want: true},
		{table: "caf\xc3\xa9", known: KnowAll, charset: "latin1", want: true}, // must be converted first
		{table: "orders\xff", known: KnowAll, want: true},                     // which MySQL takes for orders
	}
	for _, tt := range tests {
		k := newTalk(t, 0, atOnce)
		k.c.state.Known, k.c.state.Charset = tt.known, cmp.Or(tt.charset, "utf8mb4")
		k.requests.Rules = func() RuleBook { return RuleBook{List: relayRules, Fold: tt.fold} }
		name := rewriter.Name{Schema: []byte(tt.schema), Table: []byte(tt.table)}
		assert.Equal(t, fmt.Sprintf("%q.%q, known %06b, fold %v", tt.schema, tt.table, tt.known, tt.fold), k.requests.mayConcern(name), tt.want)
	}
}
