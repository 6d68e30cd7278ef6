package admin

import (
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestImportTargets: what an import cannot go to is named before anything is moved.
func TestImportTargets(t *testing.T) {
	cfg, err := config.Load(harness.WriteConfig(t, `
listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {local: {file: {dir: ./ids}}, several: {mysql: {dsns: ["u@tcp(127.0.0.1:1)/d", "u@tcp(127.0.0.1:2)/d"]}}}
sources: {order_id: {segment: {store: local, key: orders}}, each: {segment: {store: local, key: "ids_{table}"}}, ticket: {segment: {store: several}}}
`))
	assert.Must(t, err)
	cfg.Stores = append(cfg.Stores, config.Store{Name: "leases", Redis: &config.RedisStore{}})
	tags := map[string]uint64{"": 5, "x": 7}
	for _, tt := range []struct {
		m    Import
		want string
	}{
		{Import{Format: "leaf", Store: "leases"}, "redis store, which cannot keep segments"},
		{Import{Format: "leaf", Store: "gone"}, `no store "gone"`},
		{Import{Format: "leaf", To: []string{"x=order_id", "x=ticket"}}, `tag "x" is to go to two sources, order_id and ticket`},
		{Import{Format: "tickets64", To: []string{"order_id", "ticket"}}, "order_id and ticket"},
		{Import{Format: "leaf", To: []string{"x=each"}}, "no segment with one key"},
		{Import{Format: "leaf", To: []string{"y=order_id"}}, `no tag "y"`},
	} {
		list, err := tt.m.targets(cfg, tags)
		assert.True(t, err != nil && strings.Contains(err.Error(), tt.want), "%s, %q: %v, %v; want an error with %q", tt.m.Format, tt.m.To, list, err, tt.want)
	}
}
