package idsource

import (
	"strconv"
	"testing"
)

// benchmarkFill measures one goroutine and all of them, for one id and for a
// thousand.
func benchmarkFill(b *testing.B, s Series) {
	fill(b, s, 1, 1)
	for _, n := range []int{1, 1000} {
		b.Run("n="+strconv.Itoa(n), func(b *testing.B) {
			ids := make([]uint64, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Fill(b.Context(), ids, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			ids := make([]uint64, 1)
			for pb.Next() {
				if err := s.Fill(b.Context(), ids, 1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func BenchmarkSegment(b *testing.B) {
	benchmarkFill(b, newTestSegment(b, SegmentConfig{Store: newFaultStore(), Step: 1_000_000}))
}

// The default layout has 4,096 ids per millisecond: 244 ns per id is its
// limit. A wide sequence shows what the code costs.
func BenchmarkSnowflake(b *testing.B) {
	for _, layout := range []string{DefaultLayout, "41/2/20"} {
		b.Run(layout, func(b *testing.B) {
			s, err := NewSnowflake(SnowflakeConfig{Name: "event_id", Fences: newFaultFences(), Layout: layout})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close(b.Context()) }) // the store is in memory
			benchmarkFill(b, s)
		})
	}
}
