package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestMaxStepBelowStep: a bound that would have no effect is refused.
func TestMaxStepBelowStep(t *testing.T) {
	few, some, many := uint64(50), uint64(100), uint64(1000)
	for _, tt := range []struct {
		c  Change
		ok bool
	}{
		{c: Change{MaxStep: &some}},
		{Change{MaxStep: &some, Step: &few}, true},
		{Change{MaxStep: &many}, true},
		{c: Change{MaxStep: &some, Step: &many}},
	} {
		to, err := tt.c.apply(idsource.Tuning{}, 1000)
		assert.True(t, (err == nil) == tt.ok && (err == nil || errors.Is(err, ErrUsage)), "%+v, %v", to, err)
	}
}

// TestNumberNotID: a series of scrambled ids stands at a number, and an id in its place moves nothing.
func TestNumberNotID(t *testing.T) {
	cfg, err := config.Load(harness.WriteConfig(t, `
listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {local: {file: {dir: ./ids}}}
sources: {order_id: {segment: {store: local, key: orders, scramble: {key: 000102030405060708090a0b0c0d0e0f, bits: 53}}}}
`))
	assert.Must(t, err)
	m := Move{Place: Place{Source: "order_id"}, Next: 1 << 52}
	for name, do := range map[string]func(context.Context, *config.Config, Move) (*Moved, error){"set": Set, "create": Create} {
		assert.Of(do(t.Context(), cfg, m)).ErrorIs(t, name, ErrUsage)
	}
	m.Next--
	moved, err := Set(t.Context(), cfg, m)
	assert.True(t, err == nil && moved.Next == m.Next, "%+v, %v", moved, err)
}

// TestRefusedMoveTunesNothing: a series that may not go back is tuned as it was.
func TestRefusedMoveTunesNothing(t *testing.T) {
	server := assert.Of(servers.StartEtcd(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	cfg, err := config.Load(harness.WriteConfig(t, fmt.Sprintf(`
listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {raft: {etcd: {endpoints: [%q]}}}
sources: {order_id: {segment: {store: raft, key: orders}}}
`, server.Addr)))
	assert.Must(t, err)
	steps := []uint64{100, 200}
	m := Move{Place: Place{Source: "order_id"}, Next: 500, Tune: Change{Step: &steps[0]}}
	assert.Of(Create(t.Context(), cfg, m)).Must(t)
	m.Next, m.Tune.Step = 400, &steps[1]
	assert.Of(Set(t.Context(), cfg, m)).Fails(t, "Set", "--force")
	d, err := Describe(t.Context(), cfg, m.Place)
	assert.True(t, err == nil && d.Step == steps[0] && d.Next == 500, "%+v, %v", d, err)
}

// TestCreateSaysWhere: a key that another system serves at once is not made without a number.
func TestCreateSaysWhere(t *testing.T) {
	cfg, err := config.Load(harness.WriteConfig(t, `
listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {ids: {mysql: {dsn: "u@tcp(127.0.0.1:1)/d", table: {dialect: leaf}}}}
sources: {order_id: {segment: {store: ids, key: orders}}}
`))
	assert.Must(t, err)
	step := uint64(100)
	_, err = Create(t.Context(), cfg, Move{Place: Place{Source: "order_id"}, Tune: Change{Step: &step}})
	assert.True(t, errors.Is(err, ErrUsage) && strings.Contains(err.Error(), "say NEXT"), "%v, want to be asked for NEXT", err)
}

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
		assert.Of(tt.m.targets(cfg, tags)).Fails(t, fmt.Sprintf("%s, %q", tt.m.Format, tt.m.To), tt.want)
	}
}
