package snowflake

import (
	"testing"

	"idproxy/idsource/sourcetest"
)

// The default layout has 4,096 ids per millisecond: 244 ns per id is its
// limit. A wide sequence shows what the code costs.
func BenchmarkSnowflake(b *testing.B) {
	for _, layout := range []string{DefaultLayout, "41/2/20"} {
		b.Run(layout, func(b *testing.B) {
			s, err := New(Config{Name: "event_id", Fences: newFaultFences(), Layout: layout})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close(b.Context()) }) // the store is in memory
			sourcetest.MeasureFill(b, s)
		})
	}
}
