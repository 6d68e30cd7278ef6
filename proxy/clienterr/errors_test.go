package clienterr

import (
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rewriter"
	"idproxy/rule"
)

// TestUnsupportedNamesAll: a refusal names the form, the table and the rule; under a wildcard the
// last two differ.
func TestUnsupportedNamesAll(t *testing.T) {
	rule := &rule.Rule{Schema: "shop", Table: "*", Column: "id"}
	e := Unsupported(rule, rewriter.Name{Table: []byte("orders")}, "INSERT IGNORE")
	for _, want := range []string{"INSERT IGNORE", "table orders", "shop.*.id"} {
		assert.True(t, strings.Contains(e.Message, want), "%q does not name %q", e.Message, want)
	}
}
