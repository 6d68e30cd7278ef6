package admin

import (
	"errors"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/harness"
)

// TestCreateSaysWhere: a key that another system serves at once is not made without a number.
func TestCreateSaysWhere(t *testing.T) {
	cfg, err := config.Load(harness.WriteConfig(t, `
listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {ids: {mysql: {dsn: "u@tcp(127.0.0.1:1)/d", table: {dialect: leaf}}}}
sources: {order_id: {segment: {store: ids, key: orders}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	step := uint64(100)
	_, err = Create(t.Context(), cfg, Move{Place: Place{Source: "order_id"}, Tune: Change{Step: &step}})
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "say NEXT") {
		t.Errorf("%v, want to be asked for NEXT", err)
	}
}
