package plural

import "testing"

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		n    int
		noun string
		want string
	}{{0, "table", "0 tables"}, {1, "table", "1 table"}, {2, "table", "2 tables"}, {1, "proxy", "1 proxy"}, {3, "proxy", "3 proxies"}} {
		if got := Of(tt.n, tt.noun); got != tt.want {
			t.Errorf("Of(%d, %q) is %q, want %q", tt.n, tt.noun, got, tt.want)
		}
	}
}
