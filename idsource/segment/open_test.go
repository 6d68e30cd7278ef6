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
	assert.Must(t, st.Open(t.Context(), "order_id", 1, 0))
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
		{name: "a template that moved", keys: map[string]idsource.Position{"{schema}.{table}": {Next: 1, Sealed: 7}}, want: "the key is sealed"},
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

// TestTemplateMeanwhile: another process moves the template, or moves it up, before the series of a new table is made.
func TestTemplateMeanwhile(t *testing.T) {
	const template = "{schema}.{table}"
	for _, tt := range []struct {
		name string
		move func(st *faultStore) error
		kind idsource.Kind
		want func(at idsource.Position) bool
	}{
		{name: "sealed", kind: idsource.Behind, want: func(at idsource.Position) bool { return at.Sealed != 0 }, move: func(st *faultStore) error {
			_, err := st.Seal(t.Context(), template, 1<<60, 7)
			return err
		}},
		{name: "moved up", want: func(at idsource.Position) bool { return at.Next >= 500 && at.Sealed == 0 }, move: func(st *faultStore) error {
			return st.Advance(t.Context(), template, 500)
		}},
	} {
		st := newFaultStore()
		st.strict = true
		assert.Must(t, st.Open(t.Context(), template, 0, 0))
		p := assert.Of(NewPerTable(Config{Name: "ids", Store: st, Key: template, Begin: func(context.Context, Beginning) (Greatest, error) {
			return Greatest{}, tt.move(st)
		}})).Must(t)
		defer p.Close(t.Context()) //nolint:errcheck // nothing is pending
		err := assert.Of(p.Series("shop", "orders")).Must(t).Admit(t.Context(), "shop.orders.id", 0)
		if tt.kind == 0 {
			assert.NoError(t, err, tt.name)
		} else {
			sourcetest.WantKind(t, tt.name, err, tt.kind)
		}
		at := st.snapshot()["shop.orders"]
		assert.True(t, tt.want(at), "%s: the series is at %+v", tt.name, at)
	}
}
