package ask

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// TestHeldQuery: ids in a column of text are compared as text, which an index answers.
func TestHeldQuery(t *testing.T) {
	for _, tt := range []struct {
		text bool
		want string
	}{
		{false, "SELECT MAX(`i``d`) FROM `shop`.`orders` WHERE `i``d` IN (4503599627370496,4503599627370497)"},
		{true, "SELECT MAX(`i``d`) FROM `shop`.`orders` WHERE `i``d` IN ('4503599627370496','4503599627370497')"},
	} {
		got := HeldQuery("shop", "orders", rule.Column{Name: "i`d", Text: tt.text}, []uint64{1 << 52, 1<<52 + 1})
		assert.True(t, got == tt.want, "%s, want %s", got, tt.want)
	}
}
