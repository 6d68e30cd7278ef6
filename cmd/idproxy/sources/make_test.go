package sources

import (
	"fmt"
	"math"
	"testing"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/integration/assert"
)

// TestLastOfStore: an id above what the store can give moves nothing, and the source goes on.
func TestLastOfStore(t *testing.T) {
	st := assert.Of(file.New(file.Config{Dir: t.TempDir() + "/ids"})).Must(t)
	t.Cleanup(func() { _ = st.Close() })
	m := &maker{stores: map[string]store.Store{"table": {Segments: st, Keys: st, Last: math.MaxInt64 - 1}}}
	m.idWait.Store(int64(idsource.DefaultWait))
	src := assert.Of(m.newSource(&config.Source{Name: "order_id", Segment: &config.Segment{Store: "table", Key: "k", Step: 10, MaxStep: 10, StepPolicy: "fixed", Prefetch: 10}}, 0)).Must(t)
	defer src.Close(t.Context()) //nolint:errcheck // the test is over
	series, err := src.Series("d", "t")
	if err == nil {
		err = st.Open(t.Context(), "k", 1, 0)
	}
	assert.Must(t, err)
	for _, id := range []uint64{math.MaxInt64, math.MaxInt64 - 2} {
		assert.ErrorIs(t, fmt.Sprintf("Advance(%d)", id), series.Advance(t.Context(), id), idsource.TooHigh)
	}
	ids := make([]uint64, 1)
	if err := series.Fill(t.Context(), ids, 1); err != nil || ids[0] != 1 {
		t.Errorf("the source gives %d, %v behind it", ids[0], err)
	}
}
