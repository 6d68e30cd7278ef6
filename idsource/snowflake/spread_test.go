package snowflake

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/integration/assert"
)

// flatBelow is the bound of chi-square that an even distribution over m values exceeds once in a
// billion times (by Wilson and Hilferty).
func flatBelow(m uint64) float64 {
	df := float64(m - 1)
	const z = 6
	return df * math.Pow(1-2/(9*df)+z*math.Sqrt(2/(9*df)), 3)
}

func chiSquare(ids []uint64, m uint64) (chi float64) {
	counts := make([]float64, m)
	for _, id := range ids {
		counts[id%m]++
	}
	want := float64(len(ids)) / float64(m)
	for _, n := range counts {
		chi += (n - want) * (n - want) / want
	}
	return chi
}

// slowly takes one id a millisecond, as a table with a row now and then has them.
func slowly(t *testing.T, s *Snowflake, n int) []uint64 {
	ids := make([]uint64, n)
	for i := range ids {
		assert.Must(t, s.Fill(t.Context(), ids[i:i+1], 1))
		time.Sleep(time.Millisecond)
	}
	return ids
}

// TestSnowflakeSpread shards rows by id modulo m. Time takes care of the odd part of m; the
// sequence has to spread over its greatest power of two.
func TestSnowflakeSpread(t *testing.T) {
	always := func(uint64) bool { return true }
	for _, tt := range []struct {
		layout, sequence string
		flat             func(m uint64) bool
	}{
		{"41/10/12", "continue", always},
		{"38/15/10", "continue", always},
		{"41/5/7", "continue", func(m uint64) bool { return m != 128 }}, // half the sequence has 64 values
		{"41/10/12", "random", always},
		{"41/10/12", "random:64", func(m uint64) bool { return m != 128 }},
		{"41/10/12", "random:100", func(m uint64) bool { return m%8 != 0 }}, // 4 divides 100
		{"41/10/12", "zero", func(m uint64) bool { return m%2 != 0 }},       // the negative control
	} {
		t.Run(tt.layout+" "+tt.sequence, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newTestSnowflake(t, Config{
					Fences: newFaultFences(), Layout: tt.layout, Worker: 5, Sequence: tt.sequence,
				}, new(testClock).clock())
				ids := slowly(t, s, 300_000)
				for m := uint64(2); m <= 128; m++ {
					chi := chiSquare(ids, m)
					if flat := chi <= flatBelow(m); flat != tt.flat(m) {
						t.Errorf("modulo %d: chi-square %.1f, bound %.1f, want flat %v", m, chi, flatBelow(m), tt.flat(m))
					}
				}
			})
		})
	}
}
