package snowflake

import (
	"math"
	"strings"
	"testing"
	"time"

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
		if got != tt.want || (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("ParseLayout(%q) = %+v, %v; want %+v, %q", tt.in, got, err, tt.want, tt.wantErr)
		}
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
