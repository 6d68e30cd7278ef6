package snowflake

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func TestParseLayout(t *testing.T) {
	for _, tt := range []struct {
		in      string
		want    Layout
		wantErr string
	}{
		{in: "41/10/12", want: Layout{Time: 41, Worker: 10, Sequence: 12, Unit: time.Millisecond}},
		{in: "41ms/10/12", want: Layout{Time: 41, Worker: 10, Sequence: 12, Unit: time.Millisecond}},
		{in: "41/5+5/12", want: Layout{Time: 41, Datacenter: 5, Worker: 5, Sequence: 12, Unit: time.Millisecond}},
		{in: "38/15/10", want: Layout{Time: 38, Worker: 15, Sequence: 10, Unit: time.Millisecond}},
		{in: "41/5/7", want: Layout{Time: 41, Worker: 5, Sequence: 7, Unit: time.Millisecond}},
		{in: "32s/8/13", want: Layout{Time: 32, Worker: 8, Sequence: 13, Unit: time.Second}},
		{in: "39x10ms/16/8", want: Layout{Time: 39, Worker: 16, Sequence: 8, Unit: 10 * time.Millisecond}},
		{in: "39x10ms/8seq/16worker", want: Layout{Time: 39, Worker: 16, Sequence: 8, Unit: 10 * time.Millisecond, order: "tsw"}},
		{in: "5+5worker/41/12seq", want: Layout{Time: 41, Datacenter: 5, Worker: 5, Sequence: 12, Unit: time.Millisecond, order: "wts"}},
		{in: "10worker/12seq/41ms", want: Layout{Time: 41, Worker: 10, Sequence: 12, Unit: time.Millisecond, order: "wst"}},
		{in: "12seq/41/10worker", want: Layout{Time: 41, Worker: 10, Sequence: 12, Unit: time.Millisecond, order: "stw"}},
		{in: "12seq/10worker/32s", want: Layout{Time: 32, Worker: 10, Sequence: 12, Unit: time.Second, order: "swt"}},
		{in: "41/10worker/12seq", want: Layout{Time: 41, Worker: 10, Sequence: 12, Unit: time.Millisecond}},
		{in: "41/12seq/10", wantErr: "names worker and sequence"},
		{in: "41/10worker/12", wantErr: "names worker and sequence"},
		{in: "12seq/12seq/10worker", wantErr: "names worker and sequence"},
		{in: "12/10worker/10worker", wantErr: "names worker and sequence"},
		{in: "41/seq/10worker", wantErr: "number of bits"},
		{in: "41/12seq/worker", wantErr: "number of bits"},
		{in: "41/8s/16w", wantErr: "number of bits"},
		{in: "41worker/10seq/12seq", wantErr: "names worker and sequence"},
		{in: "41/13seq/10worker", wantErr: "64 bits"},
		{in: "", wantErr: "form"},
		{in: "41/10", wantErr: "form"},
		{in: "41/10/12/1", wantErr: "form"},
		{in: "41/10/13", wantErr: "64 bits"},
		{in: "41/0/12", wantErr: "number of bits"},
		{in: "41/+5/12", wantErr: "number of bits"},
		{in: "41/5+/12", wantErr: "number of bits"},
		{in: "41/1+2+3/12", wantErr: "number of bits"},
		{in: "041/10/12", wantErr: "number of bits"},
		{in: "-1/10/12", wantErr: "unit"},
		{in: "41m/10/12", wantErr: "unit of time"},
		{in: "41/10/12 ", wantErr: "number of bits"},
		{in: "20/33/10", wantErr: "32 bits"},
	} {
		got, err := ParseLayout(tt.in)
		assert.True(t, got == tt.want && (err == nil) == (tt.wantErr == "") && (err == nil || strings.Contains(err.Error(), tt.wantErr)), "ParseLayout(%q) = %+v, %v; want %+v, %q", tt.in, got, err, tt.want, tt.wantErr)
	}
}

// A layout that parses prints as one that parses to the same, and every id it
// composes comes apart into what it was made of.
func FuzzParseLayout(f *testing.F) {
	for _, s := range []string{"41/10/12", "41/5+5/12", "32s/8/13", "39x10ms/16/8", "38/15/10", "1/1/1", "39x10ms/8seq/16worker", "5+5worker/41/12seq", "12seq/10worker/32s", "1worker/1seq/1"} {
		f.Add(s, uint64(math.MaxUint64), uint64(math.MaxUint64))
	}
	f.Fuzz(func(t *testing.T, text string, word, worker uint64) {
		l, err := ParseLayout(text)
		if err != nil {
			return
		}
		again, err := ParseLayout(l.String())
		assert.MustTrue(t, err == nil && again == l, "%q prints as %q, which reads as %+v, %v", text, l, again, err)
		word &= l.maxTime()<<l.Sequence | (1<<l.Sequence - 1)
		worker &= 1<<l.WorkerBits() - 1
		id := l.compose(word, worker)
		want := Parts{Time: word >> l.Sequence, Worker: worker, Sequence: word & (1<<l.Sequence - 1)}
		got := l.Decode(id)
		assert.MustTrue(t, got == want && id <= math.MaxInt64, "layout %s: id %d of %+v comes apart as %+v", l, id, want, got)
	})
}

func TestLayoutEnd(t *testing.T) {
	for _, tt := range []struct {
		layout   string
		min, max float64 // years
	}{
		{"41/10/12", 69.6, 69.8},
		{"38/15/10", 8.70, 8.72},
		{"28s/22/13", 8.50, 8.52},
		{"39x10ms/16/8", 146, 147}, // as long as a time.Duration goes
	} {
		l := assert.Of(ParseLayout(tt.layout)).Must(t)
		got := l.End(DefaultEpoch).Sub(DefaultEpoch).Hours() / 24 / 365.25
		assert.True(t, !(got < tt.min) && !(got > tt.max), "%s lasts %.2f years, want %v to %v", tt.layout, got, tt.min, tt.max)
	}
}

// TestOrders issues ids of every order, in runs of all lengths and strides, and
// takes them apart: none comes twice, and in a run they ascend.
func TestOrders(t *testing.T) {
	for _, layout := range []string{
		"41/6/6", "41/6seq/6worker", "6worker/41/6seq", "6worker/6seq/41", "6seq/41/6worker", "6seq/6worker/41", "39x10ms/8seq/16worker", "4+4worker/32s/8seq",
	} {
		t.Run(layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := Config{Fences: newFaultFences(), Layout: layout, Worker: 5, MaxAhead: time.Minute, Lead: 2 * time.Minute}
				s := newTestSnowflake(t, c, new(testClock).clock())
				seen := map[uint64]bool{}
				words := map[Parts]bool{}
				for n := 1; n < 400; n += 7 {
					for _, stride := range []uint64{1, 2, 5} {
						ids := sourcetest.Fill(t, s, n, stride)
						assert.MustTrue(t, slices.IsSorted(ids), "%d ids, %d apart, do not ascend: %d", n, stride, ids)
						for i, id := range ids {
							p := s.layout.Decode(id)
							assert.MustTrue(t, !seen[id] && !words[p] && p.Worker == 5 && id <= 1<<63-1, "id %d, %+v: was there before: %t", id, p, seen[id])
							seen[id], words[p] = true, true
							if s.layout.Consecutive() && i > 0 && s.layout.Decode(ids[i-1]).Time == p.Time && id != ids[i-1]+stride {
								t.Fatalf("id %d behind %d, %d apart", id, ids[i-1], stride)
							}
						}
						time.Sleep(20 * s.layout.Unit)
					}
				}
				assert.GreaterOrEqual(t, "ids", len(slices.Collect(maps.Keys(seen))), 10_000)
			})
		})
	}
}

// TestOrderRefuses: what relies on ids that ascend, or are consecutive, is
// refused where they are not.
func TestOrderRefuses(t *testing.T) {
	for _, tt := range []struct {
		layout          string
		advance, blocks bool // possible
	}{{"41/10/12", true, true}, {"41/12seq/10worker", true, false}, {"10worker/41/12seq", false, true}, {"12seq/10worker/41", false, false}} {
		t.Run(tt.layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSnowflake(t, Config{Fences: newFaultFences(), Layout: tt.layout, Worker: 5}, new(testClock).clock())
				id := sourcetest.Fill(t, s, 1, 1)[0]
				past := id + 1000
				if err := s.Advance(t.Context(), past); tt.advance {
					next := sourcetest.Fill(t, s, 1, 1)[0]
					assert.True(t, err == nil && next > past, "Advance: %v; %d behind %d", err, next, past)
				} else {
					sourcetest.WantKind(t, "Advance", err, idsource.TooHigh)
				}
				if err := s.Blocks(t.Context(), make([]uint64, 2), 4); tt.blocks {
					assert.NoError(t, err, "Blocks")
				} else {
					sourcetest.WantKind(t, "Blocks", err, idsource.BadConfig)
				}
			})
		})
	}
}

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
				s := newTestSnowflake(t, Config{Fences: newFaultFences(), Layout: tt.layout, Worker: 5, Sequence: tt.sequence}, new(testClock).clock())
				ids := slowly(t, s, 300_000)
				for m := uint64(2); m <= 128; m++ {
					chi := chiSquare(ids, m)
					flat := chi <= flatBelow(m)
					assert.True(t, flat == tt.flat(m), "modulo %d: chi-square %.1f, bound %.1f, want flat %v", m, chi, flatBelow(m), tt.flat(m))
				}
			})
		})
	}
}
