package segment

import (
	"context"
	"errors"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// TestSegmentBegins: a series that was never used begins above the greatest id of all its columns;
// one that was used asks for none of them.
func TestSegmentBegins(t *testing.T) {
	const column = "shop.orders.id of listener a"
	other := Greatest{196607, "shop.orders.id of listener b"}
	for _, tt := range []struct {
		name  string
		at    *idsource.Position
		all   Greatest
		err   error
		last  uint64
		want  uint64 // the first id; 0: an error
		kind  idsource.Kind
		asked *Beginning
	}{
		{name: "no key", all: other, want: 196608, asked: &Beginning{Key: "order_id", Column: column}},
		{name: "less than the column of Admit", all: Greatest{5, "x"}, want: 131073, asked: &Beginning{Key: "order_id", Column: column}},
		{name: "told below", at: &idsource.Position{Next: 7}, all: other, want: 196608, asked: &Beginning{Key: "order_id", Column: column, Told: true}},
		{name: "told above", at: &idsource.Position{Next: 200000}, all: other, want: 200000, asked: &Beginning{Key: "order_id", Column: column, Told: true}},
		{name: "unset", at: &idsource.Position{Next: 1, Unset: true}, all: other, want: 196608, asked: &Beginning{Key: "order_id", Column: column}},
		{name: "used", at: &idsource.Position{Next: 150000, Used: true}, want: 150000, asked: &Beginning{Key: "order_id", Column: column, Told: true, Used: true}},
		{name: "joined", at: &idsource.Position{Next: 150000, Used: true}, all: other, want: 196608, asked: &Beginning{Key: "order_id", Column: column, Told: true, Used: true}},
		{name: "not known", err: errors.New("listener b cannot be asked"), kind: idsource.NotReady, asked: &Beginning{Key: "order_id", Column: column}},
		{name: "no room", all: other, last: 196607, kind: idsource.Exhausted, asked: &Beginning{Key: "order_id", Column: column}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFaultStore()
			if tt.at != nil {
				st.keys["order_id"] = *tt.at
			}
			var asked *Beginning
			s := newTestSegment(t, Config{Store: st, Last: tt.last, Begin: func(_ context.Context, b Beginning) (Greatest, error) {
				asked = &b
				return tt.all, tt.err
			}})
			err := s.Admit(t.Context(), column, 131072)
			assert.True(t, (asked == nil) == (tt.asked == nil) && (asked == nil || *asked == *tt.asked), "asked with %+v, want %+v", asked, tt.asked)
			if tt.want == 0 {
				sourcetest.WantKind(t, "Admit", err, tt.kind)
				now := st.snapshot()
				assert.True(t, len(now) == 0, "the store has %v", now)
				return
			}
			assert.Must(t, err)
			assert.Equal(t, "the first id", sourcetest.Fill(t, s, 1, 1)[0], tt.want)
		})
	}
}
