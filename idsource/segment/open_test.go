package segment

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// TestNotOpen: a source makes no key of its own, neither for a column nor for a program that takes ids.
func TestNotOpen(t *testing.T) {
	st := newFaultStore()
	st.strict = true
	s := newTestSegment(t, Config{Store: st})
	for what, err := range map[string]error{"Admit": s.Admit(t.Context(), "t.id", 0), "Fill": s.Fill(t.Context(), make([]uint64, 1), 1)} {
		sourcetest.WantKind(t, what, err, idsource.NotReady)
		assert.Contains(t, what, err.Error(), "series order_id is not open in its store")
	}
	assert.Equal(t, "keys", len(st.snapshot()), 0)
	assert.Must(t, st.Open(t.Context(), "order_id", 1))
	assert.Must(t, s.Admit(t.Context(), "t.id", 6))
	assert.Equal(t, "the first id", sourcetest.Fill(t, s, 1, 1)[0], 7)
}

// TestTemplateOpens: the series of a table is made where the template is a key, or where the store has one of another
// table, as stores of earlier versions do.
func TestTemplateOpens(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys map[string]idsource.Position
		want string // "": it is made
	}{
		{name: "nothing", want: "series shop.orders is not open"},
		{name: "another key", keys: map[string]idsource.Position{"orders": {Next: 5, Used: true}}, want: "series shop.orders is not open"},
		{name: "the template", keys: map[string]idsource.Position{"{schema}.{table}": {Next: 1}}},
		{name: "a table", keys: map[string]idsource.Position{"shop.items": {Next: 5, Used: true}}},
		{name: "a template that moved", keys: map[string]idsource.Position{"{schema}.{table}": {Next: 1, Sealed: true}}, want: "the key is sealed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFaultStore()
			st.strict = true
			maps.Copy(st.keys, tt.keys)
			p := assert.Of(NewPerTable(Config{Name: "ids", Store: st, Key: "{schema}.{table}", Keys: func(context.Context) ([]string, error) {
				return slices.Collect(maps.Keys(st.snapshot())), nil
			}})).Must(t)
			defer p.Close(t.Context()) //nolint:errcheck // nothing is pending
			s := assert.Of(p.Series("shop", "orders")).Must(t)
			err := s.Admit(t.Context(), "shop.orders.id", 0)
			assert.True(t, (err == nil) == (tt.want == "") && (err == nil || strings.Contains(err.Error(), tt.want)), "%v, want %q", err, tt.want)
			assert.Equal(t, "keys", len(st.snapshot()), len(tt.keys)+map[bool]int{true: 1}[tt.want == ""])
		})
	}
}
