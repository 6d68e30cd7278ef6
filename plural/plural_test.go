package plural

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		n    int
		noun string
		want string
	}{{0, "table", "0 tables"}, {1, "table", "1 table"}, {2, "table", "2 tables"}, {1, "proxy", "1 proxy"}, {3, "proxy", "3 proxies"}} {
		assert.Equal(t, fmt.Sprintf("Of(%d, %q)", tt.n, tt.noun), Of(tt.n, tt.noun), tt.want)
	}
}
